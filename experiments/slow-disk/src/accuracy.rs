//! Measures a slow disk with fio, and compares the results with the profile's nominal values.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::disk::SlowDisk;
use super::error::{Error, Result};
use super::fio::{self, Job};
use super::profile::Profile;
use super::stats::Stats;

/// One metric of the disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The metric's name.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The value from the profile.
    pub nominal: f64,
    /// The value from fio.
    pub measured: f64,
    /// Measured divided by nominal; 1 is exact.
    pub ratio: f64,
}

/// A disk and its metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// The profile's name.
    pub profile: String,
    /// The disk's size.
    pub size: Bytes,
    /// The overhead of the loop device and the server, which is subtracted from each request.
    pub path: Nanos,
    /// The metrics.
    pub rows: Vec<Row>,
    /// The disk's counters during the measurement.
    pub stats: Stats,
}

/// Number of metrics; each takes as long as the caller requests.
pub const METRICS: u32 = 5;

const JOBS: [(&str, Job); METRICS as usize] = [
    ("sequential read", job("read", "256k", 4)),
    ("sequential write", job("write", "256k", 4)),
    ("random 4 KiB read, depth 1", job("randread", "4k", 1)),
    ("random 4 KiB read, depth 8", job("randread", "4k", 8)),
    ("random 4 KiB write, depth 1", job("randwrite", "4k", 1)),
];

const fn job(rw: &'static str, block: &'static str, depth: usize) -> Job {
    Job { rw, block, depth, read_percent: None }
}

/// Measures each metric with fio for `seconds`. Overwrites the disk's content. If fio is missing, root gets it
/// installed (`apt-get`).
///
/// # Errors
/// fio is missing or fails, or `Interrupted` once `stop` is set (checked between two metrics).
pub fn measure(disk: &SlowDisk, seconds: u32, stop: &AtomicBool) -> Result<Accuracy> {
    fio::ensure()?;
    let mut rows = Vec::new();
    for (what, job) in JOBS {
        let result = job.run(disk.device(), seconds);
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        rows.push(row(what, &job, &disk.spec().profile, &result?));
    }
    let spec = disk.spec();
    let stats = disk.stats();
    Ok(Accuracy { profile: spec.profile.name.clone(), size: spec.size, path: disk.path(), rows, stats })
}

fn row(what: &'static str, job: &Job, profile: &Profile, result: &fio::FioResult) -> Row {
    let random = job.rw.starts_with("rand");
    let (unit, nominal, measured) = if random {
        ("IOPS", profile.nominal_iops(job.depth), result.iops)
    } else {
        ("MB/s", profile.rate as f64 / 1e6, result.bw_bytes / 1e6)
    };
    Row { what, unit, nominal, measured, ratio: measured / nominal }
}

/// The table as text.
pub fn render(accuracy: &Accuracy) -> String {
    let Accuracy { profile, size, path, stats, .. } = accuracy;
    let mut text = format!("slow disk \"{profile}\", {size}; {path} of overhead is subtracted\n\n");
    let _ = writeln!(text, "{:<30}{:>10}{:>10}{:>8}", "", "nominal", "measured", "ratio");
    for r in &accuracy.rows {
        let what = format!("{}, {}", r.what, r.unit);
        let digits = usize::from(r.nominal < 1000.0);
        let _ =
            writeln!(text, "{what:<34}{:>6.digits$}{:>10.digits$}{:>8.2}", r.nominal, r.measured, r.ratio);
    }
    let requests = stats.reads.requests + stats.writes.requests + stats.flushes.requests;
    let late = Nanos(stats.late.0 / requests.max(1));
    let _ = writeln!(text, "\n{requests} requests; answers came {late} late on average");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_compares_with_the_profile() {
        let result = fio::FioResult { iops: 132.0, bw_bytes: 54e6 };
        let p = Profile::laptop();
        let sequential = row("s", &JOBS[0].1, &p, &result);
        assert_eq!((sequential.unit, sequential.nominal, sequential.measured), ("MB/s", 60.0, 54.0));
        let random = row("r", &JOBS[2].1, &p, &result);
        assert!((random.ratio - 1.1).abs() < 0.001, "{random:?}");
    }

    #[test]
    fn the_table_has_a_line_for_each_metric() {
        let result = fio::FioResult { iops: 132.0, bw_bytes: 54e6 };
        let rows = JOBS.iter().map(|(what, job)| row(what, job, &Profile::laptop(), &result)).collect();
        let text = render(&Accuracy {
            profile: "laptop".into(),
            size: Bytes::mib(1024),
            path: Nanos::micros(120),
            rows,
            stats: Stats::default(),
        });
        assert!(text.contains("sequential read, MB/s") && text.contains("60.0"), "{text}");
        assert_eq!(text.lines().count(), 2 + 1 + JOBS.len() + 2, "{text}");
    }
}
