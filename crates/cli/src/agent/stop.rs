//! Stops the agent. An agent that hangs in a system call is killed: it ends before it acts again.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use eke_client::agent::{ask, connect};
use eke_linux::parse::process_status;
use eke_linux::{Root, read};
use eke_model::snapshot::Request;
use eke_present::exit::{Failure, Outcome, Status};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process};

use super::systemd::of_service;
use super::{PROGRAM, within};

const STOP_WITHIN: Duration = Duration::from_secs(5);
/// From SIGKILL to the end of a process that does not hang.
const DIE_WITHIN: Duration = Duration::from_secs(2);
/// The agent's lock file, which holds its process number.
const LOCK: &str = "run/eke/agent.lock";
/// The devices in sysfs.
const DEVICES: &str = "/sys/devices/virtual/block/";

/// The result of stopping the agent.
#[derive(Debug)]
pub enum Stopped {
    /// It has ended, or none ran.
    Gone,
    /// It was killed but hangs in a system call: it ends when that returns.
    Hangs(Hung),
}

/// An agent in a system call that does not return.
#[derive(Debug)]
pub struct Hung {
    /// Its process.
    pub pid: u32,
    /// The zram devices whose files it has open: resetting them would hang too.
    pub devices: Vec<String>,
}

impl Hung {
    /// A sentence for the user.
    pub fn sentence(&self) -> String {
        format!(
            "the agent (process {}) hangs in the kernel (see /proc/{0}/stack); it was killed, changes nothing more, and ends when its system call returns",
            self.pid
        )
    }
}

/// Stops the agent, if one listens, and waits a limited time for its end. What is applied stays.
///
/// # Errors
/// It refuses (not root).
pub fn stop(root: &Root) -> Outcome<Stopped> {
    let listening = match connect(root) {
        Ok(stream) => Some(stream),
        // Its connection queue is full: it listens but does not accept.
        Err(e) if e.kind() == ErrorKind::WouldBlock => None,
        Err(_) => return Ok(Stopped::Gone),
    };
    let pid = process(root, listening.as_ref());
    let answered = match listening.is_some().then(|| ask(root, &Request::Stop)) {
        Some(Err(e)) if e.status() != Status::NoAgent => return Err(e),
        asked => matches!(asked, Some(Ok(_))),
    };
    // The process is on this machine, even if the root directory is another.
    let host = Root::host();
    match pid {
        Some(pid) if answered && within(STOP_WITHIN, || has_ended(&host, pid)) => Ok(Stopped::Gone),
        Some(pid) => Ok(kill(&host, pid)),
        None if within(STOP_WITHIN, || connect(root).is_err()) => Ok(Stopped::Gone),
        None => Err(Failure::new(
            Status::Failed,
            "the process on the agent's socket is not eke-agent and does not end; end it and run `eke down` again",
        )),
    }
}

/// Kills the agent and, if it hangs, its children, which would otherwise end with it.
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

/// The agent that listens.
pub(super) fn running(root: &Root) -> Option<u32> {
    process(root, Some(&connect(root).ok()?))
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The process that listens, or else the one in the agent's lock file; only if it has the agent's name.
fn process(root: &Root, listening: Option<&UnixStream>) -> Option<u32> {
    let pid = match listening.and_then(|stream| socket_peercred(stream).ok()) {
        Some(peer) => u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?,
        None => root.read(LOCK).ok()?.trim().parse().ok()?,
    };
    let name = Root::host().read(format!("proc/{pid}/comm")).ok()?;
    (name.trim() == PROGRAM).then_some(pid)
}

/// True if it is gone or a zombie.
fn has_ended(root: &Root, pid: u32) -> bool {
    let status = root.read(format!("proc/{pid}/status")).unwrap_or_default();
    process_status::parse(&status).has_ended()
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
    let relative = path.strip_prefix(DEVICES).or_else(|_| path.strip_prefix("/dev")).ok()?;
    let name = relative.components().next()?.as_os_str().to_str()?;
    eke_linux::zram::number(name).map(|_| name.to_owned())
}

/// Stops the service by systemd, which would otherwise restart it. True if systemd did: then only somebody's request starts it again.
pub fn stop_service(root: &Root) -> bool {
    of_service(root, "stop")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_recognised_by_the_path_of_an_open_file() {
        let name = |path: &str| device_of(Path::new(path));
        assert_eq!(name("/sys/devices/virtual/block/zram3/writeback").as_deref(), Some("zram3"));
        assert_eq!(name("/dev/zram0").as_deref(), Some("zram0"));
        assert_eq!([name("/dev/null"), name("/run/eke/zram1"), name("/dev")], [None, None, None]);
    }
}
