//! An ssh server in the far namespace, with keys of its own, and the client's configuration for it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_desktop::desktop::bare::die_with_parent;
use eke_bench_desktop::desktop::find;
use eke_linux::Root;
use eke_linux::cgroup::name;
use rustix::process::Signal;

use super::error::{Error, Result};
use super::net::{ADDRESS, Net, run};

const LABEL: &str = "link";
const DIRS: &str = "run/eke";
/// How the client's configuration calls it.
pub const HOST: &str = "far";
const SSHD: &str = "/usr/sbin/sshd";
/// Cookies of all displays are in one file of root's, namespaces or not: a number that no session of somebody else has (sshd's own first is
/// 10, the last 999).
const FIRST_DISPLAY: u32 = 700;
const LISTENS_WITHIN: Duration = Duration::from_secs(20);

/// It and its directory go when it is dropped.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// openssh-server is missing, or it does not start.
    pub fn start(root: &Root, net: &Net) -> Result<Self> {
        if !Path::new(SSHD).exists() {
            return Err(Error::Missing { program: "sshd", package: "openssh-server" });
        }
        if find(&["ssh"]).is_none() {
            return Err(Error::Missing { program: "ssh", package: "openssh-client" });
        }
        let dir = root.path(format!("{DIRS}/{}", name::of_this_process(root, LABEL)?));
        fs::create_dir_all(&dir).map_err(on("make", &dir))?;
        // where its processes without rights go, which Debian makes at boot
        let empty = root.path("run/sshd");
        fs::create_dir_all(&empty).map_err(on("make", &empty))?;
        if let Err(e) = configure(&dir) {
            let _ = fs::remove_dir_all(&dir);
            return Err(e);
        }
        let mut command = Command::new("ip");
        command.args(&net.in_far()[1..]).args([SSHD, "-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        die_with_parent(&mut command, Signal::KILL);
        let child = command.spawn().map_err(on("start", Path::new(SSHD)))?;
        let mut server = Self { dir, child };
        server.wait(net)?;
        Ok(server)
    }

    fn wait(&mut self, net: &Net) -> Result<()> {
        let until = Instant::now() + LISTENS_WITHIN;
        let far = net.in_far()[3].to_owned();
        while Instant::now() < until {
            let listens = run("ip", &["netns", "exec", &far, "ss", "-Hltn", "sport = :22"])?;
            if !listens.trim().is_empty() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Error::Place(format!("sshd ended at once ({status}); try: {SSHD} -t")));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        Err(Error::Place(format!("sshd does not listen after {} s", LISTENS_WITHIN.as_secs())))
    }

    /// The client's configuration.
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
        let at = dir.join(key);
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at.to_string_lossy()])?;
    }
    let at = dir.display();
    let host_key = dir.join("host.pub");
    let host_key = fs::read_to_string(&host_key).map_err(on("read", &host_key))?;
    write(&dir.join("known"), &format!("{ADDRESS} {host_key}"))?;
    let server = format!(
        "Port 22\nListenAddress {ADDRESS}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\nStrictModes no\nUsePAM no\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nX11Forwarding yes\nX11DisplayOffset {FIRST_DISPLAY}\n\
         MaxStartups 100\n"
    );
    write(&dir.join("sshd_config"), &server)?;
    let client = format!(
        "Host {HOST}\n  HostName {ADDRESS}\n  User root\n  IdentityFile {at}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {at}/known\n  \
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
/// The kernel's answer.
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
