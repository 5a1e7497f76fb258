//! The verdict on a disk, from a window. Pure.

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::activity::{Activity, Program};
use crate::class::Operation;
use crate::counters::Device;

/// Fewer reads than these are too few for a verdict.
pub const LEAST_READS: u64 = 20;
/// Reads are slow if more than this share of them took longer than the target.
pub const MISSED: f64 = 0.10;
/// Writers are in the way if more than this share of the bytes is written.
const WRITERS_SHARE: f64 = 0.5;
/// A flush storm has at least so many flushes a second,
const STORM_PER_S: f64 = 10.0;
/// which take at least this share of the time.
const STORM_BUSY: f64 = 0.3;
/// CPU is short if some task waits for one in this share of the time,
const CPU_SOME: f64 = 0.25;
/// and compression is the cause if it uses this share of all CPUs.
const COMPRESSION_SHARE: f64 = 0.5;
/// A disk that is busy for this share of the time has no more to give.
const BUSY: f64 = 0.9;

/// What a verdict is based on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The disk in the window.
    pub device: &'a Device,
    /// How long the window was, in seconds.
    pub seconds: f64,
    /// The latency that reads should have.
    pub target: Nanos,
    /// The activity of processes in the window.
    pub activity: &'a Activity,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Too few reads.
    Unknown,
    /// Reads meet the target.
    Healthy,
    /// Reads wait in the disk behind writes.
    StarvedInDevice,
    /// Reads wait before the disk behind writes.
    StarvedInQueue,
    /// Reads meet the target, but programs wait for a CPU while kernel threads compress.
    StarvedForCpu,
    /// The disk flushes its cache most of the time.
    FlushStorm,
    /// Reads alone use all of the disk's time.
    AtLimit,
    /// The disk misses the target under little load.
    SlowDevice,
}

impl VerdictKind {
    /// As on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::StarvedInDevice => "reads starve in the device",
            Self::StarvedInQueue => "reads starve in the queue",
            Self::StarvedForCpu => "reads starve for CPU",
            Self::FlushStorm => "flush storm",
            Self::AtLimit => "at its limit",
            Self::SlowDevice => "slow device",
        }
    }
}

/// The verdict on one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Which.
    pub device: String,
    /// What is wrong.
    pub kind: VerdictKind,
    /// The numbers and the process that causes it, as a sentence.
    pub why: String,
}

/// Decides on one disk.
pub fn decide(evidence: &Evidence<'_>) -> Verdict {
    let (kind, why) = judge(evidence);
    Verdict { device: evidence.device.name.clone(), kind, why }
}

fn judge(evidence: &Evidence<'_>) -> (VerdictKind, String) {
    let Some(is_slow) = slow(evidence) else {
        let count = evidence.device.awaited_reads().whole.count;
        return storm(evidence).unwrap_or((
            VerdictKind::Unknown,
            format!("{count} reads in {:.1} s are too few for a verdict.", evidence.seconds),
        ));
    };
    if is_slow {
        storm(evidence).or_else(|| by_writes(evidence)).unwrap_or_else(|| alone(evidence))
    } else {
        storm(evidence)
            .or_else(|| for_cpu(evidence))
            .unwrap_or_else(|| (VerdictKind::Healthy, format!("{}.", reads(evidence))))
    }
}

/// Do reads miss the target? `None`: too few. Reads in flight while none completes are slow, not unknown: io.cost took "nothing completed" for
/// "targets met" and did not act for tens of seconds (Linux commit f91ffe89b201).
fn slow(evidence: &Evidence<'_>) -> Option<bool> {
    let reads = evidence.device.awaited_reads().whole;
    let waits = evidence.device.reads_in_flight.unwrap_or(0) > 0;
    if reads.is_empty() && waits && evidence.seconds * 1e9 > evidence.target.0 as f64 {
        return Some(true);
    }
    // few are enough where a process waited for half of the time: slow answers make few reads
    let waited = reads.sum_ns as f64 / 1e9 >= 0.5 * evidence.seconds;
    if reads.is_empty() || (reads.count < LEAST_READS && !waited) {
        return None;
    }
    let by_mean = reads.mean_ns().map(|mean| mean > evidence.target.0 as f64);
    reads.share_over(evidence.target.0).map(|share| share > MISSED).or(by_mean)
}

fn storm(evidence: &Evidence<'_>) -> Option<(VerdictKind, String)> {
    let flushes = evidence.device.of(Operation::Flush).whole;
    let per_s = flushes.count as f64 / evidence.seconds.max(1e-9);
    let busy = flushes.sum_ns as f64 / 1e9 / evidence.seconds.max(1e-9);
    let mean = flushes.mean_ns().unwrap_or(0.0);
    (per_s >= STORM_PER_S && busy >= STORM_BUSY).then(|| {
        let caused = caused_by("Most is written by", evidence.activity.writer.as_ref());
        let why = format!("{per_s:.0} flushes a second of {} each; {}.{caused}", time(mean), reads(evidence));
        (VerdictKind::FlushStorm, why)
    })
}

fn by_writes(evidence: &Evidence<'_>) -> Option<(VerdictKind, String)> {
    let (read, written) = (evidence.device.awaited_reads(), evidence.device.of(Operation::Write));
    let all = evidence.device.sum(|class| matches!(class.operation, Operation::Read | Operation::Write));
    let share = written.bytes.0 as f64 / all.bytes.0.max(1) as f64;
    // ZFS pools have no bytes: compare requests
    let share =
        if all.bytes.0 > 0 { share } else { written.whole.count as f64 / all.whole.count.max(1) as f64 };
    if share <= WRITERS_SHARE && written.whole.count > 0 || written.whole.is_empty() {
        return None;
    }
    let (queue, device) = (read.queue.mean_ns(), read.device.mean_ns());
    let kind = if queue > device { VerdictKind::StarvedInQueue } else { VerdictKind::StarvedInDevice };
    let place = match queue.zip(device) {
        Some((queue, device)) => {
            format!(" ({} of the average before the disk, {} in it)", time(queue), time(device))
        }
        None => " (the source does not measure queue and device apart)".to_owned(),
    };
    let rate = Bytes((written.bytes.0 as f64 / evidence.seconds.max(1e-9)) as u64);
    let caused = caused_by("The writer is", evidence.activity.writer.as_ref());
    let why = format!(
        "{}{place}, while {rate}/s are written, {:.0} % of all bytes.{caused}",
        reads(evidence),
        100.0 * share
    );
    Some((kind, why))
}

fn for_cpu(evidence: &Evidence<'_>) -> Option<(VerdictKind, String)> {
    let some = evidence.activity.cpu_some.filter(|some| *some >= CPU_SOME)?;
    let cpus: f64 = evidence.activity.compression.iter().map(|(_, cpus)| cpus).sum();
    if cpus < COMPRESSION_SHARE * evidence.activity.cpus {
        return None;
    }
    let (what, _) = evidence.activity.compression.first()?;
    let caused = caused_by("The writer is", evidence.activity.writer.as_ref());
    let why = format!(
        "{}, but in {:.0} % of the time some task waited for a CPU, and {what} used {cpus:.1} of {:.0}.{caused}",
        reads(evidence),
        100.0 * some,
        evidence.activity.cpus
    );
    Some((VerdictKind::StarvedForCpu, why))
}

fn alone(evidence: &Evidence<'_>) -> (VerdictKind, String) {
    let busy = evidence.device.busy.unwrap_or(0.0);
    let why = format!(
        "{}; the disk was busy {:.0} % of the time, and little was written.",
        reads(evidence),
        100.0 * busy
    );
    if busy >= BUSY {
        (VerdictKind::AtLimit, why + &caused_by("Most is read by", evidence.activity.reader.as_ref()))
    } else {
        (VerdictKind::SlowDevice, why)
    }
}

/// The latency of reads, as the begin of a sentence.
fn reads(evidence: &Evidence<'_>) -> String {
    let reads = evidence.device.awaited_reads().whole;
    let waiting = evidence.device.reads_in_flight.unwrap_or(0);
    match (reads.share_over(evidence.target.0), reads.mean_ns()) {
        (Some(share), Some(mean)) => format!(
            "{:.0} % of {} reads took longer than {} (average {}, 99 of 100 within {})",
            100.0 * share,
            reads.count,
            evidence.target,
            time(mean),
            time(reads.quantile_ns(0.99).unwrap_or(0.0))
        ),
        (None, Some(mean)) => {
            format!(
                "{} reads took {} on average (the target is {})",
                reads.count,
                time(mean),
                evidence.target
            )
        }
        _ => format!("{waiting} reads wait and none was answered in {:.1} s", evidence.seconds),
    }
}

fn caused_by(words: &str, program: Option<&Program>) -> String {
    program
        .map_or(String::new(), |p| format!(" {words} {} (process {}, {}/s).", p.name, p.pid, p.bytes_per_s))
}

fn time(ns: f64) -> Nanos {
    Nanos(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Class, Mode};
    use crate::counters::{ClassLatency, Latency};
    use crate::histogram::Histogram;

    const MS: u64 = 1_000_000;

    fn class(operation: Operation, count: u64, queue_ns: u64, device_ns: u64, bytes: u64) -> ClassLatency {
        let mut latency = Latency { bytes: Bytes(count * bytes), ..Latency::default() };
        for _ in 0..count {
            latency.whole.record(queue_ns + device_ns);
            latency.queue.record(queue_ns);
            latency.device.record(device_ns);
        }
        let mode = if operation == Operation::Write { Mode::Async } else { Mode::Sync };
        ClassLatency { class: Class::new(operation, mode), latency }
    }

    fn kind(classes: Vec<ClassLatency>, device: Device, activity: &Activity) -> (VerdictKind, String) {
        let device = Device { name: "sda".into(), classes, ..device };
        let verdict = decide(&Evidence { device: &device, seconds: 1.0, target: Nanos(10 * MS), activity });
        (verdict.kind, verdict.why)
    }

    fn quiet(classes: Vec<ClassLatency>) -> (VerdictKind, String) {
        kind(classes, Device::default(), &Activity { cpus: 2.0, ..Activity::default() })
    }

    #[test]
    fn each_kind_has_its_numbers() {
        let fast = || class(Operation::Read, 100, MS, MS, 4096);
        assert_eq!(quiet(vec![fast()]).0, VerdictKind::Healthy);
        assert_eq!(quiet(vec![class(Operation::Read, 5, 50 * MS, 0, 4096)]).0, VerdictKind::Unknown);
        assert_eq!(
            quiet(vec![class(Operation::Read, 2, 400 * MS, 0, 4096)]).0,
            VerdictKind::SlowDevice,
            "few, but slow"
        );
        let writes = || class(Operation::Write, 50, 0, 20 * MS, 1 << 20);
        let (in_device, why) = quiet(vec![class(Operation::Read, 30, MS, 60 * MS, 4096), writes()]);
        assert_eq!(in_device, VerdictKind::StarvedInDevice);
        assert!(
            why.contains("100 % of 30 reads took longer than 10.0 ms")
                && why.contains("50 MiB/s are written"),
            "{why}"
        );
        let (in_queue, _) = quiet(vec![class(Operation::Read, 30, 60 * MS, MS, 4096), writes()]);
        assert_eq!(in_queue, VerdictKind::StarvedInQueue);
        let (storm, why) = quiet(vec![fast(), class(Operation::Flush, 40, 0, 20 * MS, 0)]);
        assert_eq!(storm, VerdictKind::FlushStorm);
        assert!(why.starts_with("40 flushes a second of 20.0 ms each"), "{why}");
        let slow = || vec![class(Operation::Read, 30, 0, 60 * MS, 4096)];
        assert_eq!(quiet(slow()).0, VerdictKind::SlowDevice);
        let busy = Device { busy: Some(1.0), ..Device::default() };
        assert_eq!(kind(slow(), busy, &Activity::default()).0, VerdictKind::AtLimit);
    }

    #[test]
    fn compression_on_all_cpus_starves_readers_of_a_fast_disk() {
        let activity = Activity {
            cpu_some: Some(0.8),
            cpus: 2.0,
            compression: vec![("btrfs' compression".into(), 1.9)],
            writer: Some(Program { name: "tar".into(), pid: 7, bytes_per_s: Bytes::mib(30) }),
            reader: None,
        };
        let (found, why) = kind(vec![class(Operation::Read, 100, 0, MS, 4096)], Device::default(), &activity);
        assert_eq!(found, VerdictKind::StarvedForCpu);
        assert!(
            why.contains("80 % of the time") && why.ends_with("The writer is tar (process 7, 30 MiB/s)."),
            "{why}"
        );
        let idle = Activity { cpu_some: Some(0.1), ..activity };
        assert_eq!(
            kind(vec![class(Operation::Read, 100, 0, MS, 4096)], Device::default(), &idle).0,
            VerdictKind::Healthy
        );
    }

    #[test]
    fn unanswered_reads_are_slow() {
        let waiting = Device { reads_in_flight: Some(3), ..Device::default() };
        let (found, why) = kind(
            vec![class(Operation::Write, 50, 0, 20 * MS, 1 << 20)],
            waiting.clone(),
            &Activity::default(),
        );
        assert_eq!(found, VerdictKind::StarvedInDevice);
        assert!(why.starts_with("3 reads wait and none was answered in 1.0 s"), "{why}");
        assert_eq!(kind(vec![], waiting, &Activity::default()).0, VerdictKind::SlowDevice);
        assert_eq!(
            kind(vec![], Device::default(), &Activity::default()).0,
            VerdictKind::Unknown,
            "nobody reads"
        );
    }

    #[test]
    fn averages_are_judged_by_the_average() {
        let averages = |ms: u64| {
            let latency = Latency { whole: Histogram::of_average(100, 100 * ms * MS), ..Latency::default() };
            vec![
                ClassLatency { class: Class::new(Operation::Read, Mode::Any), latency },
                class(Operation::Write, 9, 0, MS, 1 << 20),
            ]
        };
        assert_eq!(
            (quiet(averages(5)).0, quiet(averages(50)).0),
            (VerdictKind::Healthy, VerdictKind::StarvedInDevice)
        );
    }
}
