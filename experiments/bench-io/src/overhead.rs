//! `eke bench io-overhead`: the CPU cost of measuring latencies by BPF.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use eke_io::sensor::cost::Cost;
use serde::Serialize;

use super::Error;

/// The promised limit: 1 % of one CPU at [`PER_SECOND`] requests per second.
pub const MOST: f64 = 0.01;
/// The request rate of the promised limit.
pub const PER_SECOND: f64 = 10_000.0;
const MIB: u64 = 64;

/// The measured cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overhead {
    /// The length of the measurement in seconds.
    pub seconds: f64,
    /// Requests per second during the measurement.
    pub per_s: f64,
    /// The BPF programs' time per request in nanoseconds.
    pub each_ns: f64,
    /// The cost of reading the histograms every 5 s, as a share of one CPU.
    pub reading_share: f64,
    /// Both together at 10,000 requests a second, as a share of one CPU.
    pub share_at_10k: f64,
}

impl Overhead {
    fn of(cost: &Cost) -> Self {
        let seconds = cost.seconds.max(1e-9);
        Self {
            seconds,
            per_s: cost.requests as f64 / seconds,
            each_ns: cost.run_ns as f64 / cost.requests.max(1) as f64,
            reading_share: cost.reader_ns as f64 / 1e9 / seconds,
            share_at_10k: cost.share_at(PER_SECOND),
        }
    }

    /// Whether the cost exceeds the promised limit.
    pub fn is_too_much(&self) -> bool {
        self.share_at_10k >= MOST
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.0} requests a second for {:.0} s, on a loop device over memory.",
            self.per_s, self.seconds
        )?;
        writeln!(f, "The BPF programs took {:.0} ns per request, counted by the kernel.", self.each_ns)?;
        writeln!(f, "Reading the histograms every 5 s took {:.3} % of one CPU.", 100.0 * self.reading_share)?;
        writeln!(
            f,
            "At {PER_SECOND:.0} requests a second that is {:.2} % of one CPU (promised: under {:.0} %).",
            100.0 * self.share_at_10k,
            100.0 * MOST
        )
    }
}

/// Measures the overhead for `seconds`, with fio on a loop device over memory. `sensor` is the path of `eke-io`.
///
/// # Errors
/// fio, losetup or BPF is not available. The loop device is removed then, too.
pub fn overhead(sensor: &Path, seconds: u64) -> Result<Overhead, Error> {
    let dir = tempfile::tempdir_in("/dev/shm").map_err(|e| failed("/dev/shm", e))?;
    let image = dir.path().join("image");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&image);
    file.and_then(|file| file.set_len(MIB << 20)).map_err(|e| failed("the image in /dev/shm", e))?;
    let device = Loop::over(&image)?;
    let mut load = Command::new("setpriv");
    load.args(["--pdeathsig", "KILL", "--", "fio", "--name=load", "--rw=randread", "--bs=4k", "--direct=1"]);
    load.args(["--rate_iops=10000", "--time_based", &format!("--runtime={}", seconds + 4)]);
    load.arg(format!("--filename={}", device.0)).arg(format!("--size={MIB}m"));
    let mut load = load.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(|e| failed("fio", e))?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    let measured =
        Command::new(sensor).args(["cost", &seconds.to_string()]).stderr(Stdio::inherit()).output();
    let _ = load.kill();
    let _ = load.wait();
    let output = measured.map_err(|e| failed(&sensor.display().to_string(), e))?;
    let cost = serde_json::from_slice::<Cost>(&output.stdout);
    cost.map(|cost| Overhead::of(&cost)).map_err(|_| failed("eke-io cost", "ended without a measurement"))
}

fn failed(program: &str, why: impl ToString) -> Error {
    Error::Program { program: program.to_owned(), why: why.to_string() }
}

/// A loop device, detached when dropped. The kernel detaches it when fio has closed it, too.
struct Loop(String);

impl Loop {
    fn over(image: &Path) -> Result<Self, Error> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(image).output();
        let output = output.map_err(|e| failed("losetup", e))?;
        if !output.status.success() {
            return Err(failed("losetup", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(Self(String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_scaled_to_the_promised_rate() {
        let cost = Cost { seconds: 10.0, requests: 80_000, run_ns: 40_000_000, reader_ns: 5_000_000 };
        let overhead = Overhead::of(&cost);
        assert_eq!((overhead.per_s, overhead.each_ns, overhead.is_too_much()), (8_000.0, 500.0, false));
        assert!((overhead.share_at_10k - 0.0055).abs() < 1e-12);
        assert!(overhead.to_string().contains("0.55 % of one CPU (promised: under 1 %)"), "{overhead}");
    }
}
