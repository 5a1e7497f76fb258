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

    /// What it answers to `CLUSTER INFO`.
    fn cluster_info(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(super::common::LONG)).unwrap();
        stream.write_all(b"CLUSTER INFO\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
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

fn try_cluster(more: &[&str]) -> Result<[Engine; 3], String> {
    let ports = ports::<3>();
    let nodes = ports.map(|port| {
        let args = [
            "--cluster-enabled",
            "yes",
            "--cluster-require-full-coverage",
            "no",
            "--cluster-node-timeout",
            "2000",
        ];
        Engine::at(port, &["--port", &port.to_string()], &[&args[..], more].concat())
    });
    let cli = program().unwrap();
    let cli = cli.with_file_name(cli.file_name().unwrap().to_str().unwrap().replace("server", "cli"));
    let mut create = Command::new("timeout");
    create
        .arg("20")
        .arg(cli)
        .args(["--cluster", "create"])
        .args(ports.map(|port| format!("127.0.0.1:{port}")));
    let made = eke_testkit::program::output(create.args(["--cluster-replicas", "0", "--cluster-yes"]));
    if !made.status.success() {
        return Err(format!("{}: {}", made.status, String::from_utf8_lossy(&made.stdout)));
    }
    let serves = |node: &Engine| node.cluster_info().contains("cluster_state:ok");
    wait_for("each master to serve", || nodes.iter().all(serves));
    Ok(nodes)
}
