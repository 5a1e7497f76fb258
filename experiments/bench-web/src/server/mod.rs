//! The web servers: each with a configuration of its own in a directory of its own, beside whatever is installed and running.

mod nginx;
mod tomcat;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_core::stage::Scratch;
use eke_linux::Root;
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};
use super::room::Room;

/// How long a server may take until it answers: a JVM on a slow disk takes its time.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);
/// How long it may take to end.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// So much of a log is shown.
const SAID: usize = 2000;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// Apache Tomcat 10.
    Tomcat,
}

impl Kind {
    /// On the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Tomcat => "tomcat",
        }
    }

    /// How it is set up, for the report.
    pub fn about(self) -> String {
        match self {
            Self::Nginx => nginx::ABOUT.to_owned(),
            Self::Tomcat => tomcat::about(),
        }
    }

    /// Is it installed?
    ///
    /// # Errors
    /// Which program is missing.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Nginx => nginx::program().map(drop),
            Self::Tomcat => tomcat::programs().map(drop),
        }
    }
}

/// What a server is told.
#[derive(Debug)]
pub(super) struct Wish<'a> {
    /// What it serves.
    pub content: &'a Path,
    /// Where it may write.
    pub own: &'a Path,
    /// On 127.0.0.1.
    pub port: u16,
    /// At most so many connections.
    pub connections: usize,
}

/// A server that answers.
#[derive(Debug)]
pub struct Server {
    /// Where.
    pub address: SocketAddr,
    kind: Kind,
    index: usize,
    own: Scratch,
}

impl Server {
    /// Starts it in the box and waits until it answers.
    ///
    /// # Errors
    /// It is not installed, ends, or does not answer; with the end of what it said. A signal.
    pub fn start(
        root: &Root,
        room: &mut Room,
        kind: Kind,
        content: &Path,
        connections: usize,
        shutdown: &AtomicBool,
    ) -> Result<Self> {
        let own = Scratch::in_run(root)?;
        let port = free_port()?;
        let wish = Wish { content, own: own.path(), port, connections };
        let command = match kind {
            Kind::Nginx => nginx::command(&wish)?,
            Kind::Tomcat => tomcat::command(&wish)?,
        };
        let log = own.path().join("log");
        let options = OpenOptions::new().write(true).create_new(true).open(&log);
        let file = options.map_err(on("make", &log))?;
        let copy = file.try_clone().map_err(on("open", &log))?;
        let index = room.start(&command, Stdio::from(file), Stdio::from(copy))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Self { address, kind, index, own };
        server.wait(room, shutdown)?;
        Ok(server)
    }

    fn wait(&self, room: &mut Room, shutdown: &AtomicBool) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !answers(self.address) {
            if shutdown.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.check(room)?;
            if Instant::now() > until {
                return Err(self.failed("does not answer"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Does it still run?
    ///
    /// # Errors
    /// How it ended, with the end of what it said.
    pub fn check(&self, room: &mut Room) -> Result<()> {
        let ended = room.child(self.index).and_then(|child| child.try_wait().ok().flatten());
        match ended {
            Some(status) => Err(self.failed(&format!("ended ({status})"))),
            None => Ok(()),
        }
    }

    /// Ends it in order, with its workers, so that no file of the content is open any more.
    pub fn stop(self, room: &mut Room) {
        let Some(child) = room.child(self.index) else { return };
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let until = Instant::now() + LAST_WORDS;
        while Instant::now() < until && child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(PAUSE);
        }
    }

    fn failed(&self, what: &str) -> Error {
        let text = std::fs::read_to_string(self.own.path().join("log")).unwrap_or_default();
        let from = text.char_indices().rev().nth(SAID).map_or(0, |(at, _)| at);
        Error::Server { server: self.kind.name(), what: what.to_owned(), said: text[from..].to_owned() }
    }
}

/// Has it an answer, whatever it is?
fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<usize> {
        let mut stream = TcpStream::connect_timeout(&address, PAUSE)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"HEAD /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        stream.read(&mut [0; 16])
    };
    ask().is_ok_and(|read| read > 0)
}

/// One that the kernel has just given; whoever takes it in between makes the server say so.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|l| l.local_addr());
    Ok(address.map_err(on("listen on", "127.0.0.1".as_ref()))?.port())
}

/// Writes a new file of a configuration.
fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(on("make", above))?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    Ok(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(on("write", path))?)
}

/// A program in the directories where servers are installed.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"];
    dirs.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

/// The command with nothing of this process's surroundings but the path.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    command
}
