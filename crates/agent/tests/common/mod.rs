//! A whole agent on a simulated root, and clients for it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use eke_agent::child_service::ChildService;
use eke_agent::clock::{Clock, SystemClock};
use eke_agent::socket::Listeners;
use eke_agent::{Ended, run, socket};
use eke_linux::settings;
use eke_model::snapshot::{Response, Snapshot};
use eke_testkit::fake_kernel::FakeKernel;
pub use eke_testkit::program::KilledOnDrop as Process;
use eke_testkit::wait::wait_for;

/// An agent in a thread.
pub struct Agent {
    pub machine: Arc<FakeKernel>,
    pub socket: PathBuf,
    shutdown: UnixStream,
    thread: JoinHandle<Ended>,
}

impl Agent {
    pub fn on(machine: Arc<FakeKernel>) -> Self {
        Self::with_clock(machine, Arc::new(SystemClock))
    }

    pub fn with_clock(machine: Arc<FakeKernel>, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        std::fs::create_dir_all(machine.dir().join("run/eke")).unwrap();
        let listeners = socket::listen(&machine.root()).unwrap();
        Self::with_listeners(machine, clock, listeners)
    }

    pub fn with_listeners(
        machine: Arc<FakeKernel>,
        clock: Arc<dyn Clock + Send + Sync>,
        listeners: Listeners,
    ) -> Self {
        let root = machine.root();
        let (shutdown, watched) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            run(
                &root,
                &listeners,
                clock.as_ref(),
                watched.as_fd(),
                &|| settings::load(&root, None),
                ChildService::none(),
            )
            .unwrap()
        });
        Self { socket: machine.dir().join(socket::FILE), machine, shutdown, thread }
    }

    pub fn start() -> Self {
        Self::on(FakeKernel::new())
    }

    pub fn connect(&self) -> Connection {
        connect(&self.socket)
    }

    pub fn ask(&self, line: &str) -> Response {
        self.connect().ask(line)
    }

    pub fn end(mut self) -> Ended {
        self.shutdown.write_all(b"x").unwrap();
        self.thread.join().unwrap()
    }

    pub fn join(self) -> Ended {
        self.thread.join().unwrap()
    }
}

pub struct Connection(pub BufReader<UnixStream>);

pub fn connect(socket: &Path) -> Connection {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Connection(BufReader::new(stream))
}

impl Connection {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next line, `None` if the agent closed the connection.
    pub fn receive(&mut self) -> Option<Response> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("the agent neither answers nor closes: {e}"),
        }
    }

    /// Whether the connection is open, with nothing to read.
    pub fn is_open(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    }

    pub fn ask(&mut self, line: &str) -> Response {
        self.send(format!("{line}\n").as_bytes());
        self.receive().unwrap()
    }

    pub fn status(&mut self) -> Snapshot {
        match self.ask(STATUS) {
            Response::Status(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }
}

/// Connects as another user; the kernel takes the connecting thread's credentials.
pub fn connect_as(uid: u32, socket: &Path) -> std::io::Result<UnixStream> {
    let path = socket.to_owned();
    let thread = std::thread::spawn(move || {
        let uid = rustix::fs::Uid::from_raw(uid);
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        UnixStream::connect(path)
    });
    let stream = thread.join().unwrap()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Ok(stream)
}

/// A clock that the test sets.
#[derive(Default)]
pub struct ManualClock(pub AtomicU64);

impl Clock for ManualClock {
    fn monotonic_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_s(&self) -> u64 {
        1_000_000
    }
}

pub const STATUS: &str = r#"{"ask":"status"}"#;
pub const STOP: &str = r#"{"ask":"stop"}"#;
pub const RELOAD: &str = r#"{"ask":"reload"}"#;

/// Starts the program on a directory and waits until it answers or exits.
pub fn spawn(dir: &Path) -> Process {
    spawn_logging(dir, Stdio::piped())
}

/// The same, with this standard error.
pub fn spawn_logging(dir: &Path, log: Stdio) -> Process {
    spawn_command(&mut Command::new(env!("CARGO_BIN_EXE_eke-agent")), dir, log)
}

/// The same with a command of the test.
pub fn spawn_command(command: &mut Command, dir: &Path, log: Stdio) -> Process {
    command.arg("--root").arg(dir).stdin(Stdio::null()).stderr(log);
    let mut process = Process(command.spawn().unwrap());
    let pid = process.0.id().to_string();
    wait_for("the agent to answer or to end", || {
        let holds = std::fs::read_to_string(dir.join("run/eke/agent.lock")).is_ok_and(|t| t.trim() == pid);
        process.0.try_wait().unwrap().is_some()
            || (holds && UnixStream::connect(dir.join(socket::FILE)).is_ok())
    });
    process
}
