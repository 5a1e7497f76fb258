//! Stopping the agent, and what to do about one that the kernel does not let go: it is killed, and cannot act any more.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_linux::parse::process_status;
use eke_linux::{Root, read};
use eke_model::snapshot::Request;
use eke_present::exit::{Failure, Outcome, Status};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process};

use super::{PAUSE, PROGRAM, ask, connect};

const STOP_WITHIN: Duration = Duration::from_secs(5);
/// From SIGKILL to the end of a process that the kernel lets go.
const DIE_WITHIN: Duration = Duration::from_secs(2);
/// systemd sends SIGKILL after its own time and waits once more.
const SERVICE_WITHIN: Duration = Duration::from_secs(30);
/// The lock of the agent, with its process in it.
const LOCK: &str = "run/eke/agent.lock";
/// Where the kernel shows the devices.
const DEVICES: &str = "/sys/devices/virtual/block/";

/// What became of the agent.
#[derive(Debug)]
pub enum Stopped {
    /// It has ended, or none ran.
    Gone,
    /// It is killed, but the kernel does not let it go: it ends before it does anything else.
    Hangs(Hung),
}

/// An agent in a system call that does not return.
#[derive(Debug)]
pub struct Hung {
    /// Its process.
    pub pid: u32,
    /// The zram devices whose files it has open: what asks them for a reset would hang, too.
    pub devices: Vec<String>,
}

impl Hung {
    /// For people.
    pub fn sentence(&self) -> String {
        format!(
            "the agent (process {}) hangs in the kernel (see /proc/{0}/stack); it is killed, changes nothing any more, and ends when the kernel lets it go",
            self.pid
        )
    }
}

/// Stops the agent, if one listens, and waits until it is gone, within bounds. What is applied stays.
///
/// # Errors
/// It refuses (not root).
pub fn stop(root: &Root) -> Outcome<Stopped> {
    stop_service(root);
    let listening = match connect(root) {
        Ok(stream) => Some(stream),
        // Its queue of connections is full: it listens and does not answer.
        Err(e) if e.kind() == ErrorKind::WouldBlock => None,
        Err(_) => return Ok(Stopped::Gone),
    };
    let pid = process(root, listening.as_ref());
    let answered = match listening.is_some().then(|| ask(root, &Request::Stop)) {
        Some(Err(e)) if e.status() != Status::NoAgent => return Err(e),
        asked => matches!(asked, Some(Ok(_))),
    };
    // Its process is this machine's, whatever the directory that it watches.
    let host = Root::host();
    match pid {
        Some(pid) if answered && within(STOP_WITHIN, || has_ended(&host, pid)) => Ok(Stopped::Gone),
        Some(pid) => Ok(kill(&host, pid)),
        None if within(STOP_WITHIN, || connect(root).is_err()) => Ok(Stopped::Gone),
        None => Err(Failure::new(
            Status::Failed,
            "what answers on the agent's socket is no eke-agent, and it does not go; end it and say `eke down` again",
        )),
    }
}

/// The agent and, if that hangs, those that it started: they would end with it, and it does not.
fn kill(root: &Root, pid: u32) -> Stopped {
    let children = children(root, pid);
    send(pid, Signal::KILL);
    if within(DIE_WITHIN, || has_ended(root, pid)) {
        return Stopped::Gone;
    }
    for child in &children {
        send(*child, Signal::KILL);
    }
    for child in children {
        within(DIE_WITHIN, || has_ended(root, child));
    }
    Stopped::Hangs(Hung { pid, devices: devices_open(pid) })
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Who listens, or where that cannot be asked whom the agent's lock names; only one of the agent's name.
fn process(root: &Root, listening: Option<&UnixStream>) -> Option<u32> {
    let pid = match listening.and_then(|stream| socket_peercred(stream).ok()) {
        Some(peer) => u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?,
        None => root.read(LOCK).ok()?.trim().parse().ok()?,
    };
    let name = Root::host().read(format!("proc/{pid}/comm")).ok()?;
    (name.trim() == PROGRAM).then_some(pid)
}

/// Is it gone, or a zombie that somebody will wait for?
fn has_ended(root: &Root, pid: u32) -> bool {
    let status = root.read(format!("proc/{pid}/status")).unwrap_or_default();
    process_status::parse(&status).has_ended()
}

fn within(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !done() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

fn children(root: &Root, parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = root.read(format!("proc/{pid}/status")).unwrap_or_default();
        process_status::parse(&status).parent == Some(parent)
    };
    read::pids(root).into_iter().filter(is_child).collect()
}

fn devices_open(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let paths = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    paths.filter_map(|path| device_of(&path)).collect()
}

/// `zram1` of `/sys/devices/virtual/block/zram1/recompress`, and of the device itself.
fn device_of(path: &Path) -> Option<String> {
    let below = path.strip_prefix(DEVICES).or_else(|_| path.strip_prefix("/dev")).ok()?;
    let name = below.components().next()?.as_os_str().to_str()?;
    eke_linux::zram::number(name).map(|_| name.to_owned())
}

/// systemd would start a service again that it did not stop itself.
fn stop_service(root: &Root) {
    if !root.is_host() || !root.exists("run/systemd/system") || !root.exists("etc/systemd/system/eke.service")
    {
        return;
    }
    let mut systemctl = Command::new("systemctl");
    systemctl.args(["stop", "eke.service"]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = systemctl.spawn() else { return };
    if !within(SERVICE_WITHIN, || !matches!(child.try_wait(), Ok(None))) {
        // systemd goes on without it.
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_open_of_a_device_is_told_by_the_path() {
        let name = |path: &str| device_of(Path::new(path));
        assert_eq!(name("/sys/devices/virtual/block/zram3/writeback").as_deref(), Some("zram3"));
        assert_eq!(name("/dev/zram0").as_deref(), Some("zram0"));
        assert_eq!([name("/dev/null"), name("/run/eke/zram1"), name("/dev")], [None, None, None]);
    }
}
