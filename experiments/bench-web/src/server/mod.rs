//! The web servers. Each has its own configuration and directory, independent of installed and running servers.

pub mod nginx;
mod tomcat;

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eke_bench_core::fault::on;
use eke_bench_core::test_image::Scratch;
use eke_linux::Root;

use super::error::Result;
use super::server_box::ServerBox;
use super::service::Service;

/// How long one probe may wait for a connection.
const PROBE: Duration = Duration::from_millis(50);

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
    /// The program.
    pub service: Service,
    _own: Scratch,
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
        let service = Service::start(server_box, kind.name(), &command, own.path())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        service.wait(shutdown, server_box, || answers(address))?;
        Ok(Self { address, service, _own: own })
    }
}

/// Whether the server sends any answer.
fn answers(address: SocketAddr) -> bool {
    let request = || -> std::io::Result<usize> {
        let mut stream = TcpStream::connect_timeout(&address, PROBE)?;
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

/// Writes a file, over an earlier one of its name, and makes its directory.
///
/// # Errors
/// The kernel refuses.
pub fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(on("make", parent))?;
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
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
