//! Three machines on one network: a server with the kernel's NFS, and two nodes of a farm that cache what it exports and share one engine. What one of
//! them closed, the others read after the next open, by random changes beside a copy. `EKE_DIFFER_SECONDS` has more seeds tried, for so long.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use eke_statistics::random::Random;
use eke_testkit::wait::{RaiseOnDrop, wait_at_most, wait_for};
use eke_vm::{Card, Format, Recipe, Userland, build_static, make_root, run_until};

use super::{BASICS, EXPORT, Lab, NFS, Path, binaries, cache_binary};

const FILES: usize = 4;
/// Of one seed: a machine here takes some 50 ms for a command.
const STEPS: u64 = 60;
const BLOCK: u64 = 64 << 10;
/// Until a machine is up, and of each of its commands.
const PATIENCE: Duration = Duration::from_secs(180);

/// Passes commands of the test to a shell, and its answers back.
const SHELL: &str =
    "ifconfig lo 127.0.0.1 up; ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up; mkfifo /tmp/answers
nc 10.0.2.2 $port </tmp/answers | sh >/tmp/answers
exit 0";

/// A machine that runs the test's commands, until this is dropped.
struct Machine {
    to: TcpStream,
    from: BufReader<TcpStream>,
    name: &'static str,
}

impl Machine {
    /// Runs a script without input: its status, and what it printed.
    fn try_run(&mut self, script: &str) -> (i32, Vec<u8>) {
        let answer = "status=$?; printf '%d %d\\n' $status $(wc -c </tmp/out); cat /tmp/out";
        writeln!(self.to, "(\n{script}\n) </dev/null >/tmp/out 2>&1\n{answer}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap_or_else(|e| panic!("{}: {script}: {e}", self.name));
        let numbers = line.trim().split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (status, length): (i32, usize) =
            numbers.unwrap_or_else(|| panic!("{}: {script}: {line:?}", self.name));
        let mut output = vec![0; length];
        self.from.read_exact(&mut output).unwrap();
        (status, output)
    }

    fn run(&mut self, script: &str) -> Vec<u8> {
        let (status, output) = self.try_run(script);
        assert_eq!(status, 0, "{}: {script}: {}", self.name, String::from_utf8_lossy(&output));
        output
    }

    /// What the mount says of the tier.
    fn shared(&mut self) -> serde_json::Value {
        let status: serde_json::Value =
            serde_json::from_slice(&self.run("eke cache status /nfs --json")).unwrap();
        status.pointer("/caches/0/details/worker/shared").unwrap_or_else(|| panic!("{status}")).clone()
    }
}

/// An engine on this machine's loopback, which the nodes' network reaches. Drop kills it.
struct Engine {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Engine {
    fn start() -> Option<Self> {
        let found = ["valkey-server", "redis-server"].into_iter().find_map(eke_vm::program)?;
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(found);
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]);
        command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let engine = Self { child: command.spawn().unwrap(), port, _dir: dir };
        wait_for("the engine to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(engine)
    }

    /// How many blocks it has.
    fn blocks(&self) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "DBSIZE\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().and_then(|line| line.strip_prefix(':')?.parse().ok()).unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The machines of one test.
struct Farm<'l> {
    lab: &'l Lab,
    image: PathBuf,
}

impl<'l> Farm<'l> {
    fn new(lab: &'l Lab) -> Self {
        let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let shared = build_static(workspace, &["eke-cache-shared"]).expect("the static binary builds");
        let binaries = [binaries().to_vec(), cache_binary(), shared].concat();
        let mut userland = Userland { binaries, ..Userland::default() };
        userland.modules.extend(["fuse", "nfsd", "nfsv4", "virtio_net"].map(str::to_owned));
        let image = lab.place.path().join("root");
        make_root(&lab.kit, &image, 96 << 20, &userland).expect("a root disk");
        Self { lab, image }
    }

    /// Starts one. It ends when its connection is closed or `end` is set.
    fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        end: &'s AtomicBool,
        name: &'static str,
        cables: Vec<Card>,
    ) -> Machine {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let script = format!("{BASICS}\nport={}\n{SHELL}", listener.local_addr().unwrap().port());
        let mut recipe = Recipe::new(script).on_root(&self.image);
        (recipe.memory_mib, recipe.cpus, recipe.forget_root) = (192, 1, true);
        recipe.load = vec!["virtio_net".to_owned()];
        recipe.cards = [vec![Card::Host], cables].concat();
        if name == "server" {
            recipe.disks = vec![self.lab.disk("export", 64, Format::Ext4)];
        }
        recipe.timeout = Duration::from_secs(3600);
        let machine: ScopedJoinHandle<'_, ()> = scope.spawn(move || {
            match run_until(&self.lab.kit, &recipe, end, &mut |line| eprintln!("{name}: {line}")) {
                Ok(outcome) => assert_eq!(outcome.status, 0, "{name}: {}", outcome.console),
                Err(e) => eprintln!("{name}: {e}"),
            }
        });
        listener.set_nonblocking(true).unwrap();
        let to = wait_at_most(PATIENCE, name, || {
            assert!(!machine.is_finished(), "the {name} ended before it was up");
            listener.accept()
        });
        to.0.set_nonblocking(false).unwrap();
        to.0.set_read_timeout(Some(PATIENCE)).unwrap();
        Machine { from: BufReader::new(to.0.try_clone().unwrap()), to: to.0, name }
    }

    /// A cable between the server and a node: the ends of both.
    fn cable(&self, node: &str) -> (Card, Card) {
        let end = |name: &str| self.lab.place.path().join(format!("{node}-{name}"));
        let card = |own, other| Card::Cable { own: end(own), other: end(other) };
        (card("server", "node"), card("node", "server"))
    }
}

/// Clients of two networks, `10.0.1.2` and `10.0.2.2`, get the export.
fn serve(server: &mut Machine) {
    let nfs = NFS.split_once("serves()").unwrap().0;
    let clients =
        "for n in 3 4; do echo \"nfsd 10.0.$n.2 $always all\" > /proc/net/rpc/auth.unix.ip/channel; done";
    server.run(
        "ifconfig eth1 10.0.3.1 netmask 255.255.255.0 up; ifconfig eth2 10.0.4.1 netmask 255.255.255.0 up",
    );
    let files = "for n in $(seq 0 3); do tr '\\0' a </dev/zero | head -c 196608 > /export/$n; done";
    server.run(&format!("{BASICS}\noptions={EXPORT}\n{nfs}\n{clients}\n{files}"));
}

/// Mounts the export, and the cache over it.
fn join(node: &mut Machine, network: u32, engine: &Engine) {
    let mount = format!(
        "modprobe fuse; modprobe nfsv4; ifconfig eth1 10.0.{network}.2 netmask 255.255.255.0 up; mkdir -p /nfs
         mount -i -t nfs4 -o vers=4.2,addr=10.0.{network}.1,clientaddr=10.0.{network}.2 10.0.{network}.1:/ /nfs
         eke cache mount /nfs --memory 16M --names 0 --shared redis://10.0.2.2:{} --shared-name test",
        engine.port
    );
    node.run(&mount);
    wait_for("all connections", || node.shared()["connected"] == 6);
}

/// Changes a file by one of several calls, and the copy of what it must have.
fn change(machine: &mut Machine, file: usize, copy: &mut Vec<u8>, random: &mut Random, step: u64) {
    let (word, length) = (format!("{step} of {file}"), 1 + random.below(3 * BLOCK));
    let name = if machine.name == "server" { format!("/export/{file}") } else { format!("/nfs/{file}") };
    let bytes = |length: u64| -> Vec<u8> {
        format!("{word}\n").into_bytes().into_iter().cycle().take(length as usize).collect()
    };
    let content = |length| format!("yes '{word}' 2>/dev/null | head -c {length} > /tmp/new && ");
    let (what, changed) = match random.below(5) {
        0 => (content(length) + "cat /tmp/new > NAME", bytes(length)),
        // Of the same length: only the times tell.
        1 => {
            let same = copy.len() as u64;
            (content(same) + "dd if=/tmp/new of=NAME conv=notrunc bs=64k 2>/dev/null", bytes(same))
        }
        2 => {
            let more = 1 + length / 4;
            (content(more) + "cat /tmp/new >> NAME", [copy.clone(), bytes(more)].concat())
        }
        3 => {
            let mut cut = copy.clone();
            cut.resize(length as usize, 0);
            (format!("truncate -s {length} NAME"), cut)
        }
        _ => (content(length) + "cp /tmp/new NAME.new && mv NAME.new NAME", bytes(length)),
    };
    machine.run(&what.replace("NAME", &name));
    *copy = changed;
}

/// Puts the clocks of all forward, so that versions of now are old enough to be shared.
fn settle(machines: [&mut Machine; 3]) {
    for machine in machines {
        machine.run("sync; date -s @$(($(date +%s) + 65)) >/dev/null");
    }
}

/// Changes one of the files by one of the machines.
fn step(
    machines: [&mut Machine; 3],
    copies: &mut [Vec<u8>],
    random: &mut Random,
    step: u64,
) -> (usize, &'static str) {
    let file = random.below(copies.len() as u64) as usize;
    let [server, one, other] = machines;
    let machine = [server, one, other].into_iter().nth(random.below(3) as usize).unwrap();
    change(machine, file, &mut copies[file], random, step);
    (file, machine.name)
}

fn check(node: &mut Machine, file: usize, copies: &[Vec<u8>], when: &str) {
    let ((status, read), copy) = (node.try_run(&format!("cat /nfs/{file}")), &copies[file]);
    assert!(status == 0 && read == *copy, "{when}: {} reads {file}: {}", node.name, shown(&read, copy));
}

fn differ(seed: u64, engine: &Engine, server: &mut Machine, one: &mut Machine, other: &mut Machine) {
    let mut random = Random::new(seed);
    let mut copies: Vec<Vec<u8>> =
        (0..FILES).map(|file| server.run(&format!("cat /export/{file}"))).collect();
    for n in 0..STEPS {
        let (file, changer) = step([&mut *server, &mut *one, &mut *other], &mut copies, &mut random, n);
        let when = format!("seed {seed}, step {n} by the {changer}");
        if n % 4 < 2 {
            for file in [file, random.below(FILES as u64) as usize] {
                let reader = if random.below(2) == 0 { &mut *one } else { &mut *other };
                check(reader, file, &copies, &when);
            }
        } else if n % 4 == 3 {
            // Old enough to be shared before anybody has read it: one node reads the server's, the other what the first one offered.
            settle([&mut *server, &mut *one, &mut *other]);
            let (first, second) =
                if random.below(2) == 0 { (&mut *one, &mut *other) } else { (&mut *other, &mut *one) };
            let before = engine.blocks();
            (0..FILES).for_each(|file| check(first, file, &copies, &when));
            wait_for("the new blocks to be offered", || engine.blocks() > before);
            (0..FILES).for_each(|file| check(second, file, &copies, &when));
        }
    }
}

/// What differs, for people.
fn shown(read: &[u8], copy: &[u8]) -> String {
    let at = read.iter().zip(copy).position(|(a, b)| a != b).unwrap_or(read.len().min(copy.len()));
    let around = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[at.min(bytes.len())..bytes.len().min(at + 40)]).into_owned()
    };
    format!(
        "{} bytes instead of {}, from {at}: {:?} instead of {:?}",
        read.len(),
        copy.len(),
        around(read),
        around(copy)
    )
}

#[test]
fn what_one_machine_closed_others_read_after_the_next_open() {
    let Some(lab) = Lab::new() else { return };
    let Some(engine) = Engine::start() else {
        assert!(std::env::var("EKE_TESTS").as_deref() != Ok("require"), "no redis-server or valkey-server");
        eprintln!("skipped: what_one_machine_closed_others_read_after_the_next_open: no redis-server");
        return;
    };
    let seconds = std::env::var("EKE_DIFFER_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (farm, end) = (Farm::new(&lab), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _end = RaiseOnDrop(&end);
        let (cables, nodes): (Vec<Card>, Vec<Card>) =
            ["one", "other"].map(|node| farm.cable(node)).into_iter().unzip();
        let mut server = farm.start(scope, &end, "server", cables);
        serve(&mut server);
        let start = |name, at: usize| {
            let mut node = farm.start(scope, &end, name, vec![nodes[at].clone()]);
            join(&mut node, at as u32 + 3, &engine);
            node
        };
        let (mut one, mut other) = (start("one", 0), start("other", 1));
        let begin = Instant::now();
        let mut seeds = 26..;
        loop {
            differ(seeds.next().unwrap(), &engine, &mut server, &mut one, &mut other);
            if begin.elapsed() >= Duration::from_secs(seconds) {
                break;
            }
        }
        let (one, other) = (one.shared(), other.shared());
        eprintln!("{} blocks of all versions\n{one}\n{other}", engine.blocks());
        let count =
            |name: &str| [&one, &other].map(|shared| shared[name].as_u64().unwrap()).iter().sum::<u64>();
        assert!(count("hits") > 0 && count("refused") == 0, "{one} {other}");
        // Of each file a few blocks are of now.
        assert!(engine.blocks() > FILES as u64 * 6, "the engine has no old versions");
    });
}
