//! An ssh server in the server's namespace, with its own keys, and the client's configuration for it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::command::output;
use eke_bench_core::fault::on;
use eke_bench_desktop::desktop::bare::die_with_parent;
use eke_bench_desktop::desktop::find;
use eke_linux::Root;
use eke_linux::cgroup::name;
use rustix::process::Signal;

use super::error::{Error, Result};
use super::net::{Net, SERVER_ADDRESS};

const LABEL: &str = "link";
const DIRS: &str = "run/eke";
/// The server's name in the client's configuration.
pub const HOST: &str = "far";
const SSHD: &str = "/usr/sbin/sshd";
/// The first display number for X11 forwarding. Root's cookie file is shared by all namespaces, so the number must not collide with
/// other sessions (sshd starts at 10 and ends at 999).
const FIRST_DISPLAY: u32 = 700;
const LISTENS_WITHIN: Duration = Duration::from_secs(20);

/// A running sshd. Drop ends it and removes its directory.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    child: Child,
}

impl Server {
    /// Starts sshd and waits until it listens.
    ///
    /// # Errors
    /// openssh-server or openssh-client is missing, or sshd does not start.
    pub fn start(root: &Root, net: &Net) -> Result<Self> {
        if !Path::new(SSHD).exists() {
            return Err(Error::Missing { program: "sshd", package: "openssh-server" });
        }
        if find(&["ssh"]).is_none() {
            return Err(Error::Missing { program: "ssh", package: "openssh-client" });
        }
        let dir = root.path(format!("{DIRS}/{}", name::of_this_process(root, LABEL)?));
        fs::create_dir_all(&dir).map_err(on("make", &dir))?;
        // The directory of sshd's unprivileged processes; Debian makes it at boot.
        let empty = root.path("run/sshd");
        fs::create_dir_all(&empty).map_err(on("make", &empty))?;
        if let Err(e) = configure(&dir) {
            let _ = fs::remove_dir_all(&dir);
            return Err(e);
        }
        let mut command = Command::new("ip");
        command.args(&net.in_server()[1..]).args([SSHD, "-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        die_with_parent(&mut command, Signal::KILL);
        let child = command.spawn().map_err(on("start", Path::new(SSHD)))?;
        let mut server = Self { dir, child };
        server.wait(net)?;
        Ok(server)
    }

    fn wait(&mut self, net: &Net) -> Result<()> {
        let until = Instant::now() + LISTENS_WITHIN;
        while Instant::now() < until {
            let listens =
                output(Command::new("ip").args(&net.in_server()[1..]).args(["ss", "-Hltn", "sport = :22"]))?;
            if !listens.trim().is_empty() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Error::Environment(format!("sshd ended at once ({status}); try: {SSHD} -t")));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        Err(Error::Environment(format!("sshd does not listen after {} s", LISTENS_WITHIN.as_secs())))
    }

    /// The path of the client's configuration.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn configure(dir: &Path) -> Result<()> {
    for key in ["host", "user"] {
        output(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key)))?;
    }
    let at = dir.display();
    let host_key = dir.join("host.pub");
    let host_key = fs::read_to_string(&host_key).map_err(on("read", &host_key))?;
    write(&dir.join("known"), &format!("{SERVER_ADDRESS} {host_key}"))?;
    let server = format!(
        "Port 22\nListenAddress {SERVER_ADDRESS}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\nStrictModes no\nUsePAM no\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nX11Forwarding yes\nX11DisplayOffset {FIRST_DISPLAY}\n\
         MaxStartups 100\n"
    );
    write(&dir.join("sshd_config"), &server)?;
    let client = format!(
        "Host {HOST}\n  HostName {SERVER_ADDRESS}\n  User root\n  IdentityFile {at}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {at}/known\n  \
         GlobalKnownHostsFile none\n"
    );
    write(&dir.join("config"), &client)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    Ok(file.and_then(|mut f| f.write_all(text.as_bytes())).map_err(on("write", path))?)
}

/// Removes the directories of dead owners.
///
/// # Errors
/// A directory cannot be removed.
pub fn sweep(root: &Root) -> Result<()> {
    for name in root.list(DIRS).unwrap_or_default() {
        let Some(owner) = name::owner(&name).filter(|_| name.starts_with("link-")) else { continue };
        if !name::is_alive(root, owner)? {
            let dir = root.path(format!("{DIRS}/{name}"));
            fs::remove_dir_all(&dir).map_err(on("remove", &dir))?;
        }
    }
    Ok(())
}
