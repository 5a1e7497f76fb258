//! Measures the CPU time of measuring.

use std::time::Duration;

use eke_io::sensor::Refused;
use eke_io::sensor::cost::Cost;
use eke_linux::Root;

/// Measures as `eke io watch` does for `time`, and returns its cost.
///
/// # Errors
/// BPF programs cannot be loaded, or the kernel does not count their time.
#[cfg(feature = "bpf")]
pub fn measure(root: &Root, time: Duration) -> Result<Cost, Refused> {
    use eke_io::sensor::{Attribution, Sensor};

    use crate::bpf::Bpf;
    use crate::bpf::run_time::RunTimes;

    const EVERY: Duration = Duration::from_secs(5);
    let counting = RunTimes::count()?;
    let mut bpf = Bpf::start(root, Attribution::None)?;
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
