//! The clients' network: a namespace with a bridge, and a tap for each client.

use std::path::Path;
use std::process::Command;

use eke_bench_core::fault::Missing;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_vm::{program, run_to_end};
use serde::Deserialize;

use crate::conf::SERVER;
use crate::error::Result;

/// The beginning of the namespace's name, before its owner.
const LABEL: &str = "ekeltsp";

/// The namespace. Drop ends what runs in it, and removes it.
#[derive(Debug)]
pub struct Network {
    name: String,
}

/// What went through a client's tap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// From the server to the client.
    pub sent: u64,
    /// From the client to the server.
    pub received: u64,
}

#[derive(Deserialize)]
struct Link {
    stats64: Stats,
}
#[derive(Deserialize)]
struct Stats {
    rx: Direction,
    tx: Direction,
}
#[derive(Deserialize)]
struct Direction {
    bytes: u64,
}

impl Network {
    /// Makes the namespace with the server's address and a tap for each client. Removes those that killed experiments left.
    ///
    /// # Errors
    /// iproute2 is missing, or the kernel has no bridge or tap.
    pub fn make(root: &Root, clients: usize) -> Result<Self> {
        if program("ip").is_none() {
            return Err(Missing::new("ip", "the experiment needs", "iproute2").into());
        }
        sweep(root)?;
        let name = name::of_this_process(root, LABEL)?;
        ip(&["netns", "add", &name])?;
        let network = Self { name };
        network.ip(&["link", "set", "lo", "up"])?;
        network.ip(&["link", "add", "br0", "type", "bridge"])?;
        network.ip(&["addr", "add", &format!("{SERVER}/24"), "dev", "br0"])?;
        network.ip(&["link", "set", "br0", "up"])?;
        for client in 0..clients {
            let tap = tap(client);
            network.ip(&["tuntap", "add", &tap, "mode", "tap"])?;
            network.ip(&["link", "set", &tap, "master", "br0", "up"])?;
        }
        Ok(network)
    }

    /// A command that runs a program there, which ends with this thread.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = eke_vm::mortal(Path::new("ip"));
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// What went through a client's tap so far.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn traffic(&self, client: usize) -> Result<Traffic> {
        let text = ip(&["-n", &self.name, "-s", "-j", "link", "show", &tap(client)])?;
        let links: Vec<Link> = serde_json::from_str(&text)?;
        let traffic = |link: &Link| Traffic { sent: link.stats64.tx.bytes, received: link.stats64.rx.bytes };
        Ok(links.first().map(traffic).unwrap_or_default())
    }

    /// Takes the server's end of the network up or down: for its clients the server hangs.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn set_reachable(&self, is_reachable: bool) -> Result<()> {
        self.ip(&["link", "set", "br0", if is_reachable { "up" } else { "down" }]).map(drop)
    }

    fn ip(&self, arguments: &[&str]) -> Result<String> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = remove(&self.name);
    }
}

/// The device of a client's tap.
#[must_use]
pub fn tap(client: usize) -> String {
    format!("tap{client}")
}

fn sweep(root: &Root) -> Result<()> {
    for name in root.list("run/netns").unwrap_or_default() {
        let Some(owner) = name::owner(&name).filter(|_| name.starts_with(LABEL)) else { continue };
        if !name::is_alive(root, owner)? {
            remove(&name)?;
        }
    }
    Ok(())
}

fn remove(name: &str) -> Result<()> {
    for pid in ip(&["netns", "pids", name])?.lines() {
        let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    ip(&["netns", "del", name]).map(drop)
}

fn ip(arguments: &[&str]) -> Result<String> {
    Ok(run_to_end(Command::new("ip").args(arguments))?)
}
