//! Two network namespaces and the link between them.

use std::process::Command;

use eke_bench_core::command::output;
use eke_bench_desktop::desktop::find;
use eke_linux::Root;
use eke_linux::cgroup::name;
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};
use super::plan::Rate;

const CLIENT: &str = "ekelinkclient";
const SERVER: &str = "ekelinkserver";
const DEVICE: &str = "eke0";
/// The directory of named namespaces (ip-netns(8)).
const NAMES: &str = "run/netns";
/// The server's address.
pub const SERVER_ADDRESS: &str = "10.77.0.2";
/// The client's address.
pub const CLIENT_ADDRESS: &str = "10.77.0.1";

/// Two namespaces joined by a link. Drop removes them and the link.
#[derive(Debug)]
pub struct Net {
    client: String,
    server: String,
}

impl Net {
    /// Makes the namespaces and an unlimited link.
    ///
    /// # Errors
    /// iproute2 is missing, or the kernel refuses.
    pub fn make(root: &Root) -> Result<Self> {
        for program in ["ip", "tc"] {
            if find(&[program]).is_none() {
                return Err(Error::Missing { program, package: "iproute2" });
            }
        }
        let client = name::of_this_process(root, CLIENT)?;
        let net = Self { client, server: name::of_this_process(root, SERVER)? };
        for name in [&net.client, &net.server] {
            ip(&["netns", "add", name])?;
        }
        ip(&[
            "link",
            "add",
            DEVICE,
            "netns",
            &net.client,
            "type",
            "veth",
            "peer",
            "name",
            DEVICE,
            "netns",
            &net.server,
        ])?;
        for (name, address) in [(&net.client, CLIENT_ADDRESS), (&net.server, SERVER_ADDRESS)] {
            ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["-n", name, "link", "set", DEVICE, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(net)
    }

    /// Limits the link to this rate in both directions.
    ///
    /// # Errors
    /// The kernel has no token bucket (`sch_tbf`).
    pub fn limit(&self, rate: Rate) -> Result<()> {
        for name in [&self.client, &self.server] {
            // Fails if there is no limit yet.
            let _ = tc(&["-n", name, "qdisc", "del", "dev", DEVICE, "root"]);
            if let Some([rate, burst]) = rate.bucket() {
                let bucket = ["rate", rate, "burst", burst, "latency", "50ms"];
                tc(&[&["-n", name, "qdisc", "add", "dev", DEVICE, "root", "tbf"][..], &bucket].concat())?;
            }
        }
        Ok(())
    }

    /// The command that runs a program in the client's namespace.
    pub fn in_client(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.client]
    }

    /// The command that runs a program in the server's namespace.
    pub fn in_server(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.server]
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Kills the processes in namespaces of dead owners, and removes the namespaces.
///
/// # Errors
/// A namespace cannot be listed or removed.
pub fn sweep(root: &Root) -> Result<()> {
    for name in root.list(NAMES).unwrap_or_default() {
        let of_experiment = name.starts_with(CLIENT) || name.starts_with(SERVER);
        let Some(owner) = name::owner(&name).filter(|_| of_experiment) else { continue };
        if name::is_alive(root, owner)? {
            continue;
        }
        for pid in
            ip(&["netns", "pids", &name])?.lines().filter_map(|l| Pid::from_raw(l.trim().parse().ok()?))
        {
            let _ = kill_process(pid, Signal::KILL);
        }
        ip(&["netns", "del", &name])?;
    }
    Ok(())
}

fn ip(args: &[&str]) -> Result<String> {
    Ok(output(Command::new("ip").args(args))?)
}

fn tc(args: &[&str]) -> Result<String> {
    Ok(output(Command::new("tc").args(args))?)
}
