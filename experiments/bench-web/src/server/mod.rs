//! The web servers. Each has its own configuration and directory, independent of installed and running servers.

pub mod nginx;
mod tomcat;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_core::test_image::Scratch;
use eke_linux::Root;
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};
use super::server_box::ServerBox;

/// How long a server may take until it answers: a JVM starts slowly from a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a server may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// How many characters of a log an error shows.
const SHOWN: usize = 2000;

/// A kind of web server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// Apache Tomcat 10.
    Tomcat,
}

impl Kind {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Tomcat => "tomcat",
        }
    }

    /// Its set-up, for the report.
    pub fn about(self) -> String {
        match self {
            Self::Nginx => nginx::ABOUT.to_owned(),
            Self::Tomcat => tomcat::about(),
        }
    }

    /// Checks that the server is installed.
    ///
    /// # Errors
    /// A program is missing.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Nginx => nginx::program().map(drop),
            Self::Tomcat => tomcat::programs().map(drop),
        }
    }
}

/// The settings of a server.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// The directory that it serves.
    pub content: &'a Path,
    /// The directory that it may write to.
    pub own: &'a Path,
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The most connections.
    pub connections: usize,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    kind: Kind,
    index: usize,
    own: Scratch,
}

impl Server {
    /// Starts a server in the box and waits until it answers.
    ///
    /// # Errors
    /// The server is not installed, ends, or does not answer; the error has the end of its log. Or a signal came.
    pub fn start(
        root: &Root,
        server_box: &mut ServerBox,
        kind: Kind,
        content: &Path,
        connections: usize,
        shutdown: &AtomicBool,
    ) -> Result<Self> {
        let own = Scratch::in_run(root)?;
        let port = free_port()?;
        let settings = Settings { content, own: own.path(), port, connections };
        let command = match kind {
            Kind::Nginx => nginx::command(&settings)?,
            Kind::Tomcat => tomcat::command(&settings)?,
        };
        let log = own.path().join("log");
        let options = OpenOptions::new().write(true).create_new(true).open(&log);
        let file = options.map_err(on("make", &log))?;
        let copy = file.try_clone().map_err(on("open", &log))?;
        let index = server_box.start(&command, Stdio::from(file), Stdio::from(copy))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Self { address, kind, index, own };
        server.wait(server_box, shutdown)?;
        Ok(server)
    }

    fn wait(&self, server_box: &mut ServerBox, shutdown: &AtomicBool) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !answers(self.address) {
            if shutdown.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.check(server_box)?;
            if Instant::now() > until {
                return Err(self.failed("does not answer"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Checks that the server still runs.
    ///
    /// # Errors
    /// The server ended; the error has its status and the end of its log.
    pub fn check(&self, server_box: &mut ServerBox) -> Result<()> {
        let ended = server_box.child(self.index).and_then(|child| child.try_wait().ok().flatten());
        match ended {
            Some(status) => Err(self.failed(&format!("ended ({status})"))),
            None => Ok(()),
        }
    }

    /// Ends the server and its workers in order, so that no file of the content stays open.
    pub fn stop(self, server_box: &mut ServerBox) {
        let Some(child) = server_box.child(self.index) else { return };
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(PAUSE);
        }
    }

    fn failed(&self, what: &str) -> Error {
        let text = std::fs::read_to_string(self.own.path().join("log")).unwrap_or_default();
        let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        Error::Program { name: self.kind.name(), what: what.to_owned(), log: text[from..].to_owned() }
    }
}

/// Whether the server sends any answer.
fn answers(address: SocketAddr) -> bool {
    let request = || -> std::io::Result<usize> {
        let mut stream = TcpStream::connect_timeout(&address, PAUSE)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"HEAD /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        stream.read(&mut [0; 16])
    };
    request().is_ok_and(|read| read > 0)
}

/// A port that the kernel has just assigned. If another program takes it meanwhile, the server reports that.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|l| l.local_addr());
    Ok(address.map_err(on("listen on", "127.0.0.1".as_ref()))?.port())
}

/// Writes a new configuration file.
fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(on("make", parent))?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    Ok(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(on("write", path))?)
}

/// The path of a program, in the directories where servers are installed.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"];
    dirs.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

/// A command with a fixed search path and locale.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    command
}
