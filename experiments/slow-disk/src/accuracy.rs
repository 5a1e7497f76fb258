//! How true a slow disk is: nominal figures beside what fio measures.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::disk::SlowDisk;
use super::error::{Error, Result};
use super::fio::{self, Job};
use super::profile::Profile;
use super::stats::Stats;

/// One figure of the disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// By the profile.
    pub nominal: f64,
    /// By fio.
    pub measured: f64,
    /// Measured for each nominal: 1 is exact.
    pub ratio: f64,
}

/// A disk and its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// The profile's name.
    pub profile: String,
    /// The disk's size.
    pub size: Bytes,
    /// What the way to the disk takes by itself, taken off each request.
    pub path: Nanos,
    /// The figures.
    pub rows: Vec<Row>,
    /// What the disk saw meanwhile.
    pub stats: Stats,
}

/// How many figures a measurement has; each takes as long as the caller says.
pub const FIGURES: u32 = 5;

const JOBS: [(&str, Job); FIGURES as usize] = [
    ("sequential read", Job { rw: "read", block: "256k", depth: 4 }),
    ("sequential write", Job { rw: "write", block: "256k", depth: 4 }),
    ("random 4 KiB read, depth 1", Job { rw: "randread", block: "4k", depth: 1 }),
    ("random 4 KiB read, depth 8", Job { rw: "randread", block: "4k", depth: 8 }),
    ("random 4 KiB write, depth 1", Job { rw: "randwrite", block: "4k", depth: 1 }),
];

/// Measures with fio, each figure for `seconds`. Overwrites what is in the disk. Root gets fio installed where it lacks
/// (`apt-get`).
///
/// # Errors
/// No fio, fio's own, or `Interrupted` once `stop` is set (asked between two figures).
pub fn measure(disk: &SlowDisk, seconds: u32, stop: &AtomicBool) -> Result<Accuracy> {
    fio::ensure()?;
    let mut rows = Vec::new();
    for (what, job) in JOBS {
        let figures = job.run(disk.device(), seconds);
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        rows.push(row(what, &job, &disk.spec().profile, &figures?));
    }
    let spec = disk.spec();
    let stats = disk.stats();
    Ok(Accuracy { profile: spec.profile.name.clone(), size: spec.size, path: disk.path(), rows, stats })
}

fn row(what: &'static str, job: &Job, profile: &Profile, figures: &fio::Figures) -> Row {
    let random = job.rw.starts_with("rand");
    let (unit, nominal, measured) = if random {
        ("IOPS", profile.nominal_iops(job.depth), figures.iops)
    } else {
        ("MB/s", profile.rate as f64 / 1e6, figures.bw_bytes / 1e6)
    };
    Row { what, unit, nominal, measured, ratio: measured / nominal }
}

/// The table for people.
pub fn render(accuracy: &Accuracy) -> String {
    let Accuracy { profile, size, path, stats, .. } = accuracy;
    let mut text = format!("slow disk \"{profile}\", {size}; the way to it takes {path}, taken off\n\n");
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
        let figures = fio::Figures { iops: 132.0, bw_bytes: 54e6 };
        let p = Profile::laptop();
        let sequential = row("s", &JOBS[0].1, &p, &figures);
        assert_eq!((sequential.unit, sequential.nominal, sequential.measured), ("MB/s", 60.0, 54.0));
        let random = row("r", &JOBS[2].1, &p, &figures);
        assert!((random.ratio - 1.1).abs() < 0.001, "{random:?}");
    }

    #[test]
    fn the_table_has_a_line_for_each_figure() {
        let figures = fio::Figures { iops: 132.0, bw_bytes: 54e6 };
        let rows = JOBS.iter().map(|(what, job)| row(what, job, &Profile::laptop(), &figures)).collect();
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
