//! The near end: ssh in the client's namespace, on a CPU made slower.

use std::ffi::OsString;

use eke_apply::cgroup::quota::Quota;
use eke_bench_core::Environment;
use eke_link::measure::Ssh;
use eke_linux::Root;

use super::error::{Error, Result};
use super::net::Net;
use super::plan::{ATOM_MB_PER_S, Cpu, study};
use super::server::Server;
use super::trial::{self, Lengths};

/// ssh and its CPU quota. Drop removes the quota's group.
#[derive(Debug)]
pub struct Client {
    /// How to start ssh.
    pub ssh: Ssh,
    /// The quota in thousandths of one CPU; `None` for no limit.
    pub permille: Option<u64>,
    /// The rate of AES128-CTR from the server, at the calibrated quota.
    pub calibrated_mb_per_s: Option<f64>,
    _quota: Option<Quota>,
}

/// How often calibration corrects the quota at most.
const TRIES: usize = 6;
/// Calibration ends at this deviation from the target rate.
const CLOSE_ENOUGH: f64 = 0.03;
/// The quota may differ from the one computed from CPU time at most by this factor. CPU time alone gives too small a quota: a process
/// that is throttled for most of each period finds pipes and the window empty or full when it may run again.
const MOST_CORRECTED: f64 = 2.0;
/// One CPU, in thousandths.
const WHOLE: u64 = 1000;
/// The smallest quota that the kernel grants, in thousandths of a CPU.
const LEAST: f64 = 100.0;
/// OPENSSL_ia32cap works on x86 only.
const ARCHITECTURES: [&str; 2] = ["x86_64", "x86"];

impl Client {
    /// The client with this CPU. Calibration takes some seconds; the link must be unlimited meanwhile.
    ///
    /// # Errors
    /// The architecture is not x86, there is no CPU controller, or the CPU cannot be made so slow.
    pub fn make(environment: &Environment<'_>, net: &Net, server: &Server, cpu: Cpu) -> Result<Self> {
        if cpu != Cpu::Full && !ARCHITECTURES.contains(&std::env::consts::ARCH) {
            return Err(Error::Environment(format!(
                "\"{}\" is for x86: OPENSSL_ia32cap hides instructions there",
                cpu.name()
            )));
        }
        let quota = (cpu == Cpu::Atom).then(|| Quota::make(environment.root, "linkcpu")).transpose()?;
        let words = words(net, cpu, quota.as_ref());
        let ssh = Ssh { words, config: Some(server.config()), ..Ssh::default() };
        let mut client = Self { ssh, permille: None, calibrated_mb_per_s: None, _quota: None };
        if let Some(quota) = quota {
            client.calibrate(environment, &quota)?;
            client._quota = Some(quota);
        }
        Ok(client)
    }

    /// Computes the quota from the CPU time per MB, which does not depend on background load. Then corrects it by the rate, within
    /// bounds: background load lowers the rate, and a larger quota must not hide that.
    fn calibrate(&mut self, environment: &Environment<'_>, quota: &Quota) -> Result<()> {
        quota.permille(WHOLE)?;
        let (_, cpu_per_mb) = trial::to_here(environment, &self.ssh, &study(), Lengths::CALIBRATION)?;
        let by_cpu = (ATOM_MB_PER_S * cpu_per_mb * 1000.0).clamp(LEAST, WHOLE as f64);
        let mut permille = by_cpu;
        let mut nearest = f64::INFINITY;
        for _ in 0..TRIES {
            quota.permille(permille.round() as u64)?;
            let (rate, _) = trial::to_here(environment, &self.ssh, &study(), Lengths::CALIBRATION)?;
            let off = (rate / ATOM_MB_PER_S - 1.0).abs();
            if off < nearest {
                nearest = off;
                (self.permille, self.calibrated_mb_per_s) = (Some(permille.round() as u64), Some(rate));
            }
            if off <= CLOSE_ENOUGH {
                break;
            }
            let next = permille * ATOM_MB_PER_S / rate.max(1.0);
            permille =
                next.clamp(by_cpu / MOST_CORRECTED, by_cpu * MOST_CORRECTED).clamp(LEAST, WHOLE as f64);
        }
        self.permille.map_or(Ok(()), |nearest| Ok(quota.permille(nearest)?))
    }
}

/// The command before ssh's arguments. A shell joins the quota's group, then executes ssh: the measured process.
fn words(net: &Net, cpu: Cpu, quota: Option<&Quota>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(quota) = quota {
        words.extend(["sh", "-c", "echo 0 >\"$0\" && exec \"$@\""].map(OsString::from));
        words.push(quota.entry().into());
    }
    words.extend(net.in_client().map(OsString::from));
    if let Some(mask) = cpu.mask() {
        words.extend(["env".into(), format!("OPENSSL_ia32cap={mask}").into()]);
    }
    words.push("ssh".into());
    words
}

/// Removes the groups of dead experiments.
///
/// # Errors
/// A group cannot be removed.
pub fn sweep(root: &Root) -> Result<()> {
    Ok(eke_apply::cgroup::quota::sweep(root)?)
}
