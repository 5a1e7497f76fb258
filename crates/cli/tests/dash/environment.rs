//! A made-up machine with a plan applied, the real agent on it, `eke dash` and `eke metrics` beside, and their answers on
//! their ports.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eke_apply::session::Session;
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::step::{Plan, Prediction, Reason, Step};
use eke_model::units::Nanos;
use eke_swap::measure::measurements::{AlgorithmMeasurement, Measured};
use eke_testkit::fake_kernel::FakeKernel;
pub use eke_testkit::program::KilledOnDrop as Process;
use eke_testkit::wait::wait_for;

use crate::common::{build_agent, command};

/// The machine.
pub struct Environment {
    pub machine: Arc<FakeKernel>,
    pub place: tempfile::TempDir,
}

/// Free, available, anonymous memory of the machine in MiB; it has 1000.
pub const FREE: u64 = 250;
pub const AVAILABLE: u64 = 420;

impl Environment {
    /// A machine with an applied plan.
    pub fn new() -> Self {
        let machine = FakeKernel::new();
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        plan.push(
            Step::set("vm.swappiness", 180),
            Reason::new("a page from zram costs 2.9 µs, one from a <b>file</b> 54 µs"),
        );
        plan.prediction = Some(Prediction {
            ratio: 3.05,
            holds_times_ram: 2.4,
            load_p50_ns: 2_940,
            load_p99_ns: 5_370,
            incompressible_share: 0.01,
        });
        plan.advice.push(Reason::new("MGLRU's min_ttl_ms guards against freezes."));
        Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
        let applied = Applied { unix_s: 1_700_000_000, plans: vec![plan], ..Applied::default() };
        state::save(&machine.root(), state::APPLIED, &applied).unwrap();
        state::save(&machine.root(), state::MEASURED, &measured()).unwrap();
        machine.add_area("/dev/zram0", 2_048_000, 317_440, 100);
        machine.put("sys/block/zram0/disksize", "2097152000\n");
        machine.put("sys/block/zram0/mm_stat", "325058560 100000000 104857600 0 110000000 0 0 5 5\n");
        machine.put("proc/sys/kernel/hostname", "classroom\n");
        let environment = Self { machine, place: tempfile::tempdir().unwrap() };
        environment.memory(FREE, AVAILABLE);
        environment.pressure(1.5);
        environment
    }

    pub fn memory(&self, free_mib: u64, available_mib: u64) {
        let kib = |mib: u64| mib * 1024;
        self.machine.put(
            "proc/meminfo",
            &format!(
                "MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\nBuffers: 2048 kB\nCached: {} kB\nAnonPages: {} kB\nShmem: {} kB\nSwapTotal: 2048000 kB\nSwapFree: 1730560 kB\n",
                kib(1000), kib(free_mib), kib(available_mib), kib(200), kib(300), kib(20),
            ),
        );
    }

    pub fn pressure(&self, some: f64) {
        for (resource, some) in [("memory", some), ("io", some * 2.0), ("cpu", some / 2.0)] {
            let line = |kind: &str, share: f64| {
                format!("{kind} avg10={share:.2} avg60={share:.2} avg300=0.00 total=1500000\n")
            };
            self.machine
                .put(&format!("proc/pressure/{resource}"), &(line("some", some) + &line("full", some / 3.0)));
        }
    }

    pub fn root(&self) -> &str {
        self.machine.dir().to_str().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Waits until it answers.
    pub fn agent(&self) -> Process {
        build_agent();
        let program = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-agent");
        let mut agent = Command::new(program);
        agent.args(["--root", self.root()]).stdin(Stdio::null()).stderr(Stdio::null());
        let agent = Process(agent.spawn().unwrap());
        let socket = self.machine.dir().join("run/eke/agent.sock");
        let pid = agent.0.id().to_string();
        let lock = self.machine.dir().join("run/eke/agent.lock");
        wait_for("the agent answers", || {
            std::fs::read_to_string(&lock).is_ok_and(|t| t.trim() == pid)
                && UnixStream::connect(&socket).is_ok()
        });
        agent
    }

    /// Starts a verb that serves; returns it with its printed address.
    pub fn serve(&self, args: &[&str]) -> (Process, String) {
        let mut verb = command(&[&["--root", self.root()], args].concat());
        verb.env("XDG_STATE_HOME", self.path("state"));
        serving(verb)
    }

    pub fn dash(&self, listen: &str) -> (Process, String) {
        self.serve(&["dash", "--listen", listen])
    }
}

/// A serving process and its printed address.
pub fn serving(mut verb: Command) -> (Process, String) {
    let mut process = Process(verb.stdout(Stdio::piped()).spawn().unwrap());
    let line = eke_testkit::program::first_line(process.0.stdout.take().unwrap());
    let address =
        line.split_whitespace().find(|w| w.starts_with("http://")).unwrap_or_else(|| panic!("{line}"));
    (process, address.to_owned())
}

fn measured() -> Measured {
    let algorithm = |name: &str, p50: u64, p99: u64| AlgorithmMeasurement {
        name: name.into(),
        in_zram: true,
        ratio: 3.0,
        load_p50: Nanos(p50),
        load_p99: Nanos(p99),
        ..AlgorithmMeasurement::default()
    };
    Measured {
        algorithms: vec![algorithm("lzo", 2_940, 5_370), algorithm("zstd", 7_800, 21_000)],
        ..Measured::default()
    }
}

/// `127.0.0.1:1234` of an address.
pub fn port_of(address: &str) -> SocketAddr {
    let host = address.trim_start_matches("http://").split('/').next().unwrap();
    let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// An answer: status, head in lower case, body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// One request with these further header lines.
pub fn get(to: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let more: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{more}\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}
