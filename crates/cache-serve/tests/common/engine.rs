//! Engines for a test: real redis-servers. Drop kills them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use eke_testkit::wait::wait_for;
use tempfile::TempDir;

/// The engine's program: both speak the same protocol.
pub fn program() -> Option<PathBuf> {
    let places = ["/usr/bin", "/usr/local/bin"];
    let found = ["valkey-server", "redis-server"]
        .into_iter()
        .flat_map(|name| places.map(|p| Path::new(p).join(name)));
    found.into_iter().find(|path| path.exists())
}

/// The program that sends commands to an engine.
fn client() -> PathBuf {
    let server = program().unwrap();
    server.with_file_name(server.file_name().unwrap().to_str().unwrap().replace("server", "cli"))
}

/// Why no test with an engine can run here.
pub fn cannot_run() -> Option<String> {
    let beside = Path::new(env!("CARGO_BIN_EXE_eke-cache")).with_file_name("eke-cache-shared");
    if !beside.exists() {
        return required("no eke-cache-shared beside eke-cache (cargo build -p eke-cache-engine)");
    }
    if program().is_none() { required("no redis-server or valkey-server on this machine") } else { None }
}

fn required(why: &str) -> Option<String> {
    assert!(std::env::var("EKE_TESTS").as_deref() != Ok("require"), "a required test cannot run: {why}");
    Some(why.to_owned())
}

/// Numbers of `N` ports that nobody uses now, and that have room for a cluster's bus above them.
pub fn ports<const N: usize>() -> [u16; N] {
    let listeners: Vec<_> = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").unwrap())
        .filter(|l| l.local_addr().unwrap().port() < 55_000)
        .take(N)
        .collect();
    std::array::from_fn(|n| listeners[n].local_addr().unwrap().port())
}

/// One engine.
pub struct Engine {
    child: Child,
    pub port: u16,
    args: Vec<String>,
    dir: TempDir,
}

impl Engine {
    /// Alone, with further arguments.
    pub fn start(args: &[&str]) -> Self {
        let [port] = ports();
        Self::at(port, &["--port", &port.to_string()], args)
    }

    /// At this port, which `listen` names.
    pub fn at(port: u16, listen: &[&str], args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args: Vec<String> = listen.iter().chain(args).map(|&arg| arg.to_owned()).collect();
        let child = spawn(dir.path(), &args);
        let engine = Self { child, port, args, dir };
        engine.wait();
        engine
    }

    /// What it answers to a command without spaces in its words.
    pub fn answer(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(super::common::LONG)).unwrap();
        write!(stream, "{command}\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// What a sentinel answers: it knows no `QUIT`.
    pub fn sentinel(&self, command: &[&str]) -> String {
        let mut ask = Command::new(client());
        ask.args(["-p", &self.port.to_string(), "SENTINEL"]).args(command);
        String::from_utf8(eke_testkit::program::output(&mut ask).stdout).unwrap()
    }

    /// How many blocks it has.
    pub fn keys(&self) -> u64 {
        let size = self.answer("DBSIZE");
        size.lines().next().and_then(|line| line.strip_prefix(':')?.parse().ok()).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many commands of this name it got.
    pub fn calls(&self, command: &str) -> u64 {
        let report = self.answer("INFO commandstats");
        let prefix = format!("cmdstat_{command}:");
        let Some(line) = report.lines().find_map(|line| line.strip_prefix(&prefix)) else { return 0 };
        let count = |name: &str| {
            line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        count("calls").unwrap_or(0) + count("rejected_calls").unwrap_or(0)
    }

    fn wait(&self) {
        wait_for("the engine to listen", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn start_again(&mut self) {
        self.kill();
        self.child = spawn(self.dir.path(), &self.args);
        self.wait();
    }

    /// Stops or continues the process, as a partition or a hanging machine does.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(dir: &Path, args: &[String]) -> Child {
    let mut command = Command::new(program().unwrap());
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]).arg(dir).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A sentinel that knows this master as `farm`.
pub fn sentinel(master: &Engine) -> Engine {
    let ([port], dir) = (ports(), tempfile::tempdir().unwrap());
    let config = dir.path().join("sentinel.conf");
    let text = format!("port {port}\nbind 127.0.0.1\nsentinel monitor farm 127.0.0.1 {} 1\n", master.port);
    std::fs::write(&config, text).unwrap();
    let args = vec![config.to_str().unwrap().to_owned(), "--sentinel".to_owned()];
    let mut command = Command::new(program().unwrap());
    command.args(&args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let engine = Engine { child: command.spawn().unwrap(), port, args, dir };
    engine.wait();
    engine
}

/// A cluster of three masters, each of which serves: a master refuses everything in its first two seconds, also
/// after the cluster is made (`CLUSTER_WRITABLE_DELAY`).
pub fn cluster() -> [Engine; 3] {
    cluster_with(&[])
}

/// The same with further arguments of each master. An engine forgets another one that does not greet it within its timeout, and the program that makes
/// the cluster greets once and then waits for ever: on a busy machine it is tried again, with new engines.
pub fn cluster_with(more: &[&str]) -> [Engine; 3] {
    let (mut why, mut tries) = (String::new(), 0..3);
    let made = tries.find_map(|_| try_cluster(more).map_err(|e| why = e).ok());
    made.unwrap_or_else(|| panic!("no cluster: {why}"))
}

/// Three masters, and then as many replicas, each of which has a copy of what its master has. Nobody takes a lost master's place.
pub fn cluster_with_replicas() -> Vec<Engine> {
    let (mut why, mut tries) = (String::new(), 0..3);
    let slow = ["--cluster-node-timeout", "600000", "--repl-diskless-sync-delay", "0"];
    let made = tries.find_map(|_| try_members::<6>(&slow, 1).map_err(|e| why = e).ok());
    let nodes: Vec<_> = made.unwrap_or_else(|| panic!("no cluster: {why}")).into();
    let is_replica = |node: &Engine| node.answer("INFO replication").contains("role:slave");
    wait_for("three replicas", || nodes.iter().filter(|node| is_replica(node)).count() == 3);
    let (replicas, masters): (Vec<_>, Vec<_>) = nodes.into_iter().partition(is_replica);
    let is_up = |node: &Engine| node.answer("INFO replication").contains("master_link_status:up");
    wait_for("each replica to follow its master", || replicas.iter().all(is_up));
    // A member tells clients of a replica after it was told how far that is.
    let shown = |node: &Engine| node.answer("CLUSTER SLOTS").matches("127.0.0.1").count();
    wait_for("all to know of all replicas", || masters.iter().chain(&replicas).all(|node| shown(node) == 6));
    masters.into_iter().chain(replicas).collect()
}

fn try_cluster(more: &[&str]) -> Result<[Engine; 3], String> {
    try_members(&[&["--cluster-node-timeout", "2000"], more].concat(), 0)
}

fn try_members<const N: usize>(more: &[&str], replicas: usize) -> Result<[Engine; N], String> {
    let ports = ports::<N>();
    let nodes = ports.map(|port| {
        let args = ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"];
        Engine::at(port, &["--port", &port.to_string()], &[&args[..], more].concat())
    });
    let mut create = Command::new("timeout");
    create
        .arg("20")
        .arg(client())
        .args(["--cluster", "create"])
        .args(ports.map(|port| format!("127.0.0.1:{port}")));
    create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]);
    let made = eke_testkit::program::output(&mut create);
    if !made.status.success() {
        return Err(format!("{}: {}", made.status, String::from_utf8_lossy(&made.stdout)));
    }
    let serves = |node: &Engine| node.answer("CLUSTER INFO").contains("cluster_state:ok");
    wait_for("each member to serve", || nodes.iter().all(serves));
    Ok(nodes)
}
