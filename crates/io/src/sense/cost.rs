//! What measuring costs.

use std::time::Duration;

use eke_linux::Root;
use serde::{Deserialize, Serialize};

use super::Refused;

/// In a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// How long, in seconds.
    pub seconds: f64,
    /// Requests that were counted, of all disks.
    pub requests: u64,
    /// What the BPF programs took, in nanoseconds, as the kernel counts it.
    pub run_ns: u64,
    /// CPU time of the process that reads the figures every 5 s, in nanoseconds.
    pub reader_ns: u64,
}

impl Cost {
    /// The share of one CPU that `per_s` requests a second would take.
    pub fn share_at(&self, per_s: f64) -> f64 {
        let each = self.run_ns as f64 / self.requests.max(1) as f64;
        each * per_s / 1e9 + self.reader_ns as f64 / 1e9 / self.seconds.max(1e-9)
    }
}

/// Measures as `eke io watch` does, for so long, and says what that cost.
///
/// # Errors
/// BPF programs cannot be loaded, or the kernel does not count their time.
#[cfg(feature = "bpf")]
pub fn measure(root: &Root, time: Duration) -> Result<Cost, Refused> {
    use super::bpf::Bpf;
    use super::bpf::cost::Costs;
    use super::{By, Sense};

    const EVERY: Duration = Duration::from_secs(5);
    let counting = Costs::count()?;
    let mut bpf = Bpf::start(root, By::Nobody)?;
    bpf.read()?;
    let (before, cpu_ns, begun) = (counting.read(), cpu_ns(), std::time::Instant::now());
    while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::sleep(left.min(EVERY));
        bpf.read()?;
    }
    let (now, seconds) = (counting.read(), begun.elapsed().as_secs_f64());
    Ok(Cost {
        seconds,
        requests: now.requests - before.requests,
        run_ns: now.run_ns - before.run_ns,
        reader_ns: self::cpu_ns() - cpu_ns,
    })
}

/// Without BPF there is nothing to measure.
///
/// # Errors
/// Always.
#[cfg(not(feature = "bpf"))]
pub fn measure(_root: &Root, _time: Duration) -> Result<Cost, Refused> {
    Err(Refused::new("measure what BPF costs", "this eke-io was built without it"))
}

#[cfg(feature = "bpf")]
fn cpu_ns() -> u64 {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(cpu.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(cpu.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_grows_with_requests_and_reading_does_not() {
        let cost = Cost { seconds: 10.0, requests: 1_000, run_ns: 500_000, reader_ns: 10_000_000 };
        assert!((cost.share_at(10_000.0) - 0.006).abs() < 1e-12);
        assert!((Cost::default().share_at(10_000.0)).abs() < 1e-12);
    }
}
