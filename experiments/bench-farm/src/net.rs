//! The farm's network: a switch, and a namespace and a link for each host.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_bench_core::command::output;
use eke_linux::Root;
use eke_linux::cgroup::name;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Result;
use crate::hosts::{self, Host};

/// The beginning of the namespaces' names.
const LABEL: &str = "ekefarm";
const SWITCH: &str = "switch";
/// The device of a host.
const DEVICE: &str = "eth0";
/// The directory of named namespaces (ip-netns(8)).
const NAMES: &str = "run/netns";
/// 1 Gb/s. The bucket holds the bytes of a 1 ms tick (tc-tbf(8)) and a packet of 64 KiB that is not yet segmented.
const LIMIT: [&str; 7] = ["tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms"];

/// The network. Drop removes it.
#[derive(Debug)]
pub struct Net {
    root: Root,
    /// The namespace of each host.
    names: BTreeMap<Host, String>,
    switch: String,
}

impl Net {
    /// Makes the network.
    ///
    /// # Errors
    /// The kernel refuses a namespace, a link or its limit. Nothing is left then.
    pub fn make(root: &Root) -> Result<Self> {
        let named = |word: &str| name::of_this_process(root, &format!("{LABEL}{word}"));
        let mut net = Self { root: root.clone(), names: BTreeMap::new(), switch: named(SWITCH)? };
        ip(&["netns", "add", &net.switch])?;
        ip(&["-n", &net.switch, "link", "add", SWITCH, "type", "bridge"])?;
        ip(&["-n", &net.switch, "link", "set", SWITCH, "up"])?;
        for host in Host::all() {
            let name = named(&host.word())?;
            ip(&["netns", "add", &name])?;
            net.names.insert(host, name);
            net.link(host)?;
        }
        Ok(net)
    }

    fn link(&self, host: Host) -> Result<()> {
        let (name, port) = (self.name(host), host.word());
        let peer = ["type", "veth", "peer", "name", DEVICE, "netns", name];
        ip(&[&["-n", &self.switch, "link", "add", &port][..], &peer].concat())?;
        ip(&["-n", &self.switch, "link", "set", &port, "master", SWITCH, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{}/24", host.address()), "dev", DEVICE])?;
        ip(&["-n", name, "link", "set", DEVICE, "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        if host.is_limited() {
            for (name, device) in [(name, DEVICE), (self.switch.as_str(), port.as_str())] {
                let on = ["-n", name, "qdisc", "add", "dev", device, "root"];
                output(Command::new("tc").args(on).args(LIMIT))?;
            }
        }
        Ok(())
    }

    fn name(&self, host: Host) -> &str {
        self.names.get(&host).map_or("", String::as_str)
    }

    /// The file of a host's namespace.
    pub fn namespace(&self, host: Host) -> PathBuf {
        self.root.path(NAMES).join(self.name(host))
    }

    /// The command that runs a program on a host.
    pub fn on(&self, host: Host, program: &Path) -> Command {
        let mut command = Command::new("/usr/bin/nsenter");
        let mut namespace = std::ffi::OsString::from("--net=");
        namespace.push(self.namespace(host));
        command.arg(namespace).arg("--").arg(program);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command
    }

    /// Cuts a host off, or connects it again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn connect(&self, host: Host, connected: bool) -> Result<()> {
        let state = if connected { "up" } else { "down" };
        ip(&["-n", &self.switch, "link", "set", &host.word(), state]).map(drop)
    }

    /// The bytes that each host has sent so far.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn sent(&self) -> Result<BTreeMap<Host, u64>> {
        Ok(hosts::sent(&ip(&["-n", &self.switch, "-json", "-statistics", "link"])?))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in self.names.values().chain([&self.switch]) {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Moves this thread into a network namespace, for as long as it lives.
///
/// # Errors
/// The kernel refuses.
pub fn enter(namespace: &Path) -> std::io::Result<()> {
    let file = std::fs::File::open(namespace)?;
    Ok(move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network))?)
}

/// Whether something listens at the address in this network namespace.
pub fn listens(namespace: &Path, address: SocketAddr) -> bool {
    let probe =
        || enter(namespace).and_then(|()| TcpStream::connect_timeout(&address, Duration::from_secs(1)));
    std::thread::scope(|scope| scope.spawn(probe).join()).is_ok_and(|connected| connected.is_ok())
}

/// Kills the processes in namespaces of dead owners, and removes the namespaces.
///
/// # Errors
/// A namespace cannot be listed or removed.
pub fn sweep(root: &Root) -> Result<()> {
    for name in root.list(NAMES).unwrap_or_default() {
        let Some(owner) = name::owner(&name).filter(|_| name.starts_with(LABEL)) else { continue };
        if name::is_alive(root, owner)? {
            continue;
        }
        let pids = ip(&["netns", "pids", &name])?;
        for pid in pids.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        ip(&["netns", "del", &name])?;
    }
    Ok(())
}

fn ip(args: &[&str]) -> Result<String> {
    Ok(output(Command::new("ip").args(args))?)
}
