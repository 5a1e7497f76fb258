//! ssh in the near namespace, on a CPU that is made smaller.

use std::ffi::OsString;

use eke_apply::cgroup::quota::Quota;
use eke_link::measure::Ssh;
use eke_linux::Root;

use super::Bench;
use super::error::{Error, Result};
use super::net::Net;
use super::plan::{ATOM_MB_PER_S, Cpu, study};
use super::server::Server;
use super::trial::{self, Lengths};

/// See the module. The group goes when it is dropped.
#[derive(Debug)]
pub struct Near {
    /// How ssh is called.
    pub ssh: Ssh,
    /// Thousandths of one CPU; `None`: all of all.
    pub permille: Option<u64>,
    /// What AES128-CTR did when it was calibrated, to here.
    pub calibrated_mb_per_s: Option<f64>,
    _quota: Option<Quota>,
}

/// How often the quota is set anew, and how near is near enough.
const TRIES: usize = 6;
const NEAR_ENOUGH: f64 = 0.03;
/// So far from what the CPU time says, and no further. It says too little: one that is held back for most of each period finds the pipes
/// and the window empty or full when it may run again.
const MOST_CORRECTED: f64 = 2.0;
/// One CPU, in thousandths, and the least of it that the kernel gives.
const WHOLE: u64 = 1000;
const LEAST: f64 = 100.0;
/// The CPUs of all x86 alone have masks.
const ARCHITECTURES: [&str; 2] = ["x86_64", "x86"];

impl Near {
    /// The near end with this CPU. Calibrating takes some seconds; the link must be unlimited meanwhile.
    ///
    /// # Errors
    /// Another architecture, no CPU controller, or a CPU that cannot be made so slow.
    pub fn make(bench: &Bench<'_>, net: &Net, server: &Server, cpu: Cpu) -> Result<Self> {
        if cpu != Cpu::Full && !ARCHITECTURES.contains(&std::env::consts::ARCH) {
            return Err(Error::Place(format!(
                "\"{}\" is for x86: OPENSSL_ia32cap hides instructions there",
                cpu.name()
            )));
        }
        let quota = (cpu == Cpu::Atom).then(|| Quota::make(bench.root, "linkcpu")).transpose()?;
        let words = words(net, cpu, quota.as_ref());
        let ssh = Ssh { words, config: Some(server.config()), ..Ssh::default() };
        let mut near = Self { ssh, permille: None, calibrated_mb_per_s: None, _quota: None };
        if let Some(quota) = quota {
            near.calibrate(bench, &quota)?;
            near._quota = Some(quota);
        }
        Ok(near)
    }

    /// First by the CPU time of each MB, which does not depend on what else runs, then by the rate, within bounds: on a busy machine it
    /// is lower, and must not be bought with a larger CPU.
    fn calibrate(&mut self, bench: &Bench<'_>, quota: &Quota) -> Result<()> {
        quota.permille(WHOLE)?;
        let (_, cpu_per_mb) = trial::to_here(bench, &self.ssh, &study(), Lengths::CALIBRATION)?;
        let by_cpu = (ATOM_MB_PER_S * cpu_per_mb * 1000.0).clamp(LEAST, WHOLE as f64);
        let mut permille = by_cpu;
        let mut nearest = f64::INFINITY;
        for _ in 0..TRIES {
            quota.permille(permille.round() as u64)?;
            let (rate, _) = trial::to_here(bench, &self.ssh, &study(), Lengths::CALIBRATION)?;
            let off = (rate / ATOM_MB_PER_S - 1.0).abs();
            if off < nearest {
                nearest = off;
                (self.permille, self.calibrated_mb_per_s) = (Some(permille.round() as u64), Some(rate));
            }
            if off <= NEAR_ENOUGH {
                break;
            }
            let next = permille * ATOM_MB_PER_S / rate.max(1.0);
            permille =
                next.clamp(by_cpu / MOST_CORRECTED, by_cpu * MOST_CORRECTED).clamp(LEAST, WHOLE as f64);
        }
        self.permille.map_or(Ok(()), |nearest| Ok(quota.permille(nearest)?))
    }
}

/// A shell moves into the group, then becomes ssh: the process that is measured.
fn words(net: &Net, cpu: Cpu, quota: Option<&Quota>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(quota) = quota {
        words.extend(["sh", "-c", "echo 0 >\"$0\" && exec \"$@\""].map(OsString::from));
        words.push(quota.entry().into());
    }
    words.extend(net.in_near().map(OsString::from));
    if let Some(mask) = cpu.mask() {
        words.extend(["env".into(), format!("OPENSSL_ia32cap={mask}").into()]);
    }
    words.push("ssh".into());
    words
}

/// Removes what dead experiments left.
///
/// # Errors
/// The kernel's answer.
pub fn sweep(root: &Root) -> Result<()> {
    Ok(eke_apply::cgroup::quota::sweep(root)?)
}
