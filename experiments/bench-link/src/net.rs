//! Two network namespaces and the link between them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eke_bench_desktop::desktop::find;
use eke_linux::Root;
use eke_linux::cgroup::name;
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};
use super::plan::Rate;

const NEAR: &str = "ekelinknear";
const FAR: &str = "ekelinkfar";
const DEVICE: &str = "eke0";
/// Where the kernel-side names of namespaces are (ip-netns(8)).
const NAMES: &str = "run/netns";
/// The address of the far end.
pub const ADDRESS: &str = "10.77.0.2";
/// And of the near one.
pub const NEAR_ADDRESS: &str = "10.77.0.1";

/// Removed when it is dropped, with the link.
#[derive(Debug)]
pub struct Net {
    near: String,
    far: String,
}

impl Net {
    /// The namespaces and an unlimited link.
    ///
    /// # Errors
    /// iproute2 is missing, or the kernel refuses.
    pub fn make(root: &Root) -> Result<Self> {
        for program in ["ip", "tc"] {
            if find(&[program]).is_none() {
                return Err(Error::Missing { program, package: "iproute2" });
            }
        }
        let net = Self { near: name::of_this_process(root, NEAR)?, far: name::of_this_process(root, FAR)? };
        for name in [&net.near, &net.far] {
            ip(&["netns", "add", name])?;
        }
        ip(&[
            "link", "add", DEVICE, "netns", &net.near, "type", "veth", "peer", "name", DEVICE, "netns",
            &net.far,
        ])?;
        for (name, address) in [(&net.near, "10.77.0.1/24"), (&net.far, "10.77.0.2/24")] {
            ip(&["-n", name, "addr", "add", address, "dev", DEVICE])?;
            ip(&["-n", name, "link", "set", DEVICE, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(net)
    }

    /// From now on at this rate, both ways.
    ///
    /// # Errors
    /// The kernel has no token bucket (`sch_tbf`).
    pub fn limit(&self, rate: Rate) -> Result<()> {
        for name in [&self.near, &self.far] {
            // there may be none yet
            let _ = run("tc", &["-n", name, "qdisc", "del", "dev", DEVICE, "root"]);
            if let Some([rate, burst]) = rate.bucket() {
                let bucket = ["rate", rate, "burst", burst, "latency", "50ms"];
                run(
                    "tc",
                    &[&["-n", name, "qdisc", "add", "dev", DEVICE, "root", "tbf"][..], &bucket].concat(),
                )?;
            }
        }
        Ok(())
    }

    /// What stands before a program of the near end.
    pub fn in_near(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.near]
    }

    /// The same of the far end.
    pub fn in_far(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.far]
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Removes the namespaces of dead owners, and kills what runs in them.
///
/// # Errors
/// The kernel's answer.
pub fn sweep(root: &Root) -> Result<()> {
    for name in root.list(NAMES).unwrap_or_default() {
        let is_ours = name.starts_with(NEAR) || name.starts_with(FAR);
        let Some(owner) = name::owner(&name).filter(|_| is_ours) else { continue };
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
    run("ip", args)
}

/// Runs it to its end; what it printed.
pub(super) fn run(program: &str, args: &[&str]) -> Result<String> {
    let path = find(&[program]).unwrap_or_else(|| PathBuf::from(program));
    let mut command = Command::new(path);
    let output = command.args(args).stdin(Stdio::null()).output();
    let output = output.map_err(eke_bench_core::fault::on("start", Path::new(program)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command { command: format!("{program} {}", args.join(" ")), said })
}
