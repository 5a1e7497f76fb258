//! A real ssh server for one test, with its own port, keys and configuration, and a client's configuration for it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::real::{lacking, no_program};
use crate::tree::put;
use crate::wait::wait_for;

/// The server's name in the client's configuration.
pub const HOST: &str = "far";

/// Why no server can be started here. It runs as root, for root.
///
/// # Panics
/// If `EKE_TESTS=require` and a requirement is missing.
pub fn lacks() -> Option<String> {
    lacking(&[]).or_else(|| no_program(&["sshd", "ssh", "ssh-keygen"]))
}

/// A server on 127.0.0.1, killed when dropped.
#[derive(Debug)]
pub struct Server {
    dir: TempDir,
    child: Child,
}

impl Server {
    /// Starts a server with additional configuration lines (sshd_config(5)).
    ///
    /// # Panics
    /// If it cannot be started.
    #[expect(clippy::expect_used, reason = "test code")]
    pub fn start(more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("its mode is set");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
        let port = free.port();
        configure(dir.path(), port, more);
        // Directory for its unprivileged processes; Debian creates it at boot.
        fs::create_dir_all("/run/sshd").expect("/run/sshd can be made");
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f"]).arg(dir.path().join("sshd_config")).stderr(Stdio::null());
        let child = command.spawn().expect("sshd starts");
        wait_for("sshd to listen", || TcpStream::connect(("127.0.0.1", port)));
        Self { dir, child }
    }

    /// Its directory, removed with it: `config` for a client, `known` hosts, the keys `host` and `user`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The client's configuration.
    pub fn config(&self) -> PathBuf {
        self.dir().join("config")
    }

    /// Adds a line to the client's configuration.
    pub fn set(&self, line: &str) {
        let config = fs::read_to_string(self.config()).unwrap_or_default();
        put(self.dir(), "config", &format!("{config}  {line}\n"));
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

#[expect(clippy::expect_used, reason = "test code")]
fn configure(dir: &Path, port: u16, more: &str) {
    for key in ["host", "user"] {
        let mut made = Command::new("ssh-keygen");
        made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key));
        assert!(made.status().expect("ssh-keygen starts").success(), "no key");
    }
    let at = dir.display();
    let host_key = fs::read_to_string(dir.join("host.pub")).unwrap_or_default();
    put(dir, "known", &format!("[127.0.0.1]:{port} {host_key}"));
    let server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\nStrictModes no\n\
         UsePAM no\nPermitRootLogin yes\nKbdInteractiveAuthentication no\n{more}\n"
    );
    put(dir, "sshd_config", &server);
    let client = format!(
        "Host {HOST}\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {at}/user\n  IdentitiesOnly yes\n  \
         UserKnownHostsFile {at}/known\n  GlobalKnownHostsFile none\n"
    );
    put(dir, "config", &client);
}
