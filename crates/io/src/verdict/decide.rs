//! The verdict on a disk, from a window's figures. Pure.

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::causes::{Program, Since};
use crate::class::Operation;
use crate::figures::Device;

/// Fewer reads than these tell nothing.
pub const LEAST_READS: u64 = 20;
/// Reads are slow if more than this share of them took longer than the target.
pub const MISSED: f64 = 0.10;
/// More than this share of the bytes is written: writers are in the way.
const WRITERS_SHARE: f64 = 0.5;
/// A storm: so many flushes a second, and the disk does little else than flushing.
const STORM_PER_S: f64 = 10.0;
const STORM_BUSY: f64 = 0.3;
/// Tasks wait for a CPU, and what packs data has this share of all.
const CPU_SOME: f64 = 0.25;
const PACKING_SHARE: f64 = 0.5;
/// A disk that is busy for this share of the time has no more to give.
const BUSY: f64 = 0.9;

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The disk in the window.
    pub device: &'a Device,
    /// How long the window was, in seconds.
    pub seconds: f64,
    /// Reads should be answered within this time.
    pub target: Nanos,
    /// Who did what meanwhile.
    pub since: &'a Since,
}

/// What is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Too little is read to tell.
    Unknown,
    /// Reads are answered in time.
    Healthy,
    /// Reads wait in the disk behind writes.
    StarvedInDevice,
    /// Reads wait before the disk behind writes.
    StarvedInQueue,
    /// Reads are answered in time, but programs wait for a CPU, which is used to pack what is written.
    StarvedForCpu,
    /// The disk empties its cache all the time.
    FlushStorm,
    /// The disk has no more to give, to readers alone.
    AtLimit,
    /// The disk is slower than the target with little to do.
    SlowDevice,
}

impl Kind {
    /// Are writes the cause, so that holding writers back would help?
    pub fn is_by_writes(self) -> bool {
        matches!(self, Self::StarvedInDevice | Self::StarvedInQueue)
    }

    /// In a word or three.
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
    /// What is the matter.
    pub kind: Kind,
    /// The figures behind it, and who causes it: a sentence.
    pub why: String,
}

/// Judges.
pub fn decide(facts: &Facts<'_>) -> Verdict {
    let (kind, why) = judge(facts);
    Verdict { device: facts.device.name.clone(), kind, why }
}

fn judge(facts: &Facts<'_>) -> (Kind, String) {
    let Some(is_slow) = slow(facts) else {
        let count = facts.device.awaited_reads().whole.count;
        return storm(facts).unwrap_or((
            Kind::Unknown,
            format!("{count} reads in {:.1} s are too few to tell.", facts.seconds),
        ));
    };
    if is_slow {
        storm(facts).or_else(|| by_writes(facts)).unwrap_or_else(|| alone(facts))
    } else {
        storm(facts)
            .or_else(|| for_cpu(facts))
            .unwrap_or_else(|| (Kind::Healthy, format!("{}.", reads(facts))))
    }
}

/// Do reads miss the target? `None`: too few to tell. Reads that are under way while none is answered are slow, not unknown: a loop that
/// took "nothing completed" for "all is well" stood still for tens of seconds (Linux commit f91ffe89b201, io.cost).
fn slow(facts: &Facts<'_>) -> Option<bool> {
    let reads = facts.device.awaited_reads().whole;
    let waits = facts.device.reads_in_flight.unwrap_or(0) > 0;
    if reads.is_empty() && waits && facts.seconds * 1e9 > facts.target.0 as f64 {
        return Some(true);
    }
    // few are enough where somebody waited for half of the time: slow answers make few reads
    let waited = reads.sum_ns as f64 / 1e9 >= 0.5 * facts.seconds;
    if reads.is_empty() || (reads.count < LEAST_READS && !waited) {
        return None;
    }
    let by_mean = reads.mean_ns().map(|mean| mean > facts.target.0 as f64);
    reads.share_over(facts.target.0).map(|share| share > MISSED).or(by_mean)
}

fn storm(facts: &Facts<'_>) -> Option<(Kind, String)> {
    let flushes = facts.device.of(Operation::Flush).whole;
    let per_s = flushes.count as f64 / facts.seconds.max(1e-9);
    let busy = flushes.sum_ns as f64 / 1e9 / facts.seconds.max(1e-9);
    let mean = flushes.mean_ns().unwrap_or(0.0);
    (per_s >= STORM_PER_S && busy >= STORM_BUSY).then(|| {
        let caused = caused_by("Most is written by", facts.since.writer.as_ref());
        let why = format!("{per_s:.0} flushes a second of {} each; {}.{caused}", time(mean), reads(facts));
        (Kind::FlushStorm, why)
    })
}

fn by_writes(facts: &Facts<'_>) -> Option<(Kind, String)> {
    let (read, written) = (facts.device.awaited_reads(), facts.device.of(Operation::Write));
    let all = facts.device.sum(|class| matches!(class.operation, Operation::Read | Operation::Write));
    let share = written.bytes.0 as f64 / all.bytes.0.max(1) as f64;
    // pools have no bytes: then requests count
    let share =
        if all.bytes.0 > 0 { share } else { written.whole.count as f64 / all.whole.count.max(1) as f64 };
    if share <= WRITERS_SHARE && written.whole.count > 0 || written.whole.is_empty() {
        return None;
    }
    let (queue, device) = (read.queue.mean_ns(), read.device.mean_ns());
    let kind = if queue > device { Kind::StarvedInQueue } else { Kind::StarvedInDevice };
    let place = match queue.zip(device) {
        Some((queue, device)) => {
            format!(" ({} of the average before the disk, {} in it)", time(queue), time(device))
        }
        None => " (the source does not tell waiting before the disk from waiting in it)".to_owned(),
    };
    let rate = Bytes((written.bytes.0 as f64 / facts.seconds.max(1e-9)) as u64);
    let caused = caused_by("The writer is", facts.since.writer.as_ref());
    let why = format!(
        "{}{place}, while {rate}/s are written, {:.0} % of all bytes.{caused}",
        reads(facts),
        100.0 * share
    );
    Some((kind, why))
}

fn for_cpu(facts: &Facts<'_>) -> Option<(Kind, String)> {
    let some = facts.since.cpu_some.filter(|some| *some >= CPU_SOME)?;
    let cpus: f64 = facts.since.packing.iter().map(|(_, cpus)| cpus).sum();
    if cpus < PACKING_SHARE * facts.since.cpus {
        return None;
    }
    let (what, _) = facts.since.packing.first()?;
    let caused = caused_by("The writer is", facts.since.writer.as_ref());
    let why = format!(
        "{}, but in {:.0} % of the time some task waited for a CPU, and {what} used {cpus:.1} of {:.0}.{caused}",
        reads(facts),
        100.0 * some,
        facts.since.cpus
    );
    Some((Kind::StarvedForCpu, why))
}

fn alone(facts: &Facts<'_>) -> (Kind, String) {
    let busy = facts.device.busy.unwrap_or(0.0);
    let why = format!(
        "{}; the disk was busy {:.0} % of the time, and little was written.",
        reads(facts),
        100.0 * busy
    );
    if busy >= BUSY {
        (Kind::AtLimit, why + &caused_by("Most is read by", facts.since.reader.as_ref()))
    } else {
        (Kind::SlowDevice, why)
    }
}

/// How reads fare, in half a sentence.
fn reads(facts: &Facts<'_>) -> String {
    let reads = facts.device.awaited_reads().whole;
    let waiting = facts.device.reads_in_flight.unwrap_or(0);
    match (reads.share_over(facts.target.0), reads.mean_ns()) {
        (Some(share), Some(mean)) => format!(
            "{:.0} % of {} reads took longer than {} (average {}, 99 of 100 within {})",
            100.0 * share,
            reads.count,
            facts.target,
            time(mean),
            time(reads.quantile_ns(0.99).unwrap_or(0.0))
        ),
        (None, Some(mean)) => {
            format!("{} reads took {} on average (the target is {})", reads.count, time(mean), facts.target)
        }
        _ => format!("{waiting} reads wait and none was answered in {:.1} s", facts.seconds),
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
    use crate::figures::{Figures, Latency};
    use crate::histogram::Histogram;

    const MS: u64 = 1_000_000;

    fn class(operation: Operation, count: u64, queue_ns: u64, device_ns: u64, bytes: u64) -> Figures {
        let mut latency = Latency { bytes: Bytes(count * bytes), ..Latency::default() };
        for _ in 0..count {
            latency.whole.record(queue_ns + device_ns);
            latency.queue.record(queue_ns);
            latency.device.record(device_ns);
        }
        let mode = if operation == Operation::Write { Mode::Async } else { Mode::Sync };
        Figures { class: Class::new(operation, mode), latency }
    }

    fn kind(classes: Vec<Figures>, device: Device, since: &Since) -> (Kind, String) {
        let device = Device { name: "sda".into(), classes, ..device };
        let verdict = decide(&Facts { device: &device, seconds: 1.0, target: Nanos(10 * MS), since });
        (verdict.kind, verdict.why)
    }

    fn quiet(classes: Vec<Figures>) -> (Kind, String) {
        kind(classes, Device::default(), &Since { cpus: 2.0, ..Since::default() })
    }

    #[test]
    fn each_kind_has_its_figures() {
        let fast = || class(Operation::Read, 100, MS, MS, 4096);
        assert_eq!(quiet(vec![fast()]).0, Kind::Healthy);
        assert_eq!(quiet(vec![class(Operation::Read, 5, 50 * MS, 0, 4096)]).0, Kind::Unknown);
        assert_eq!(
            quiet(vec![class(Operation::Read, 2, 400 * MS, 0, 4096)]).0,
            Kind::SlowDevice,
            "few, but slow"
        );
        let writes = || class(Operation::Write, 50, 0, 20 * MS, 1 << 20);
        let (in_device, why) = quiet(vec![class(Operation::Read, 30, MS, 60 * MS, 4096), writes()]);
        assert_eq!(in_device, Kind::StarvedInDevice);
        assert!(
            why.contains("100 % of 30 reads took longer than 10.0 ms")
                && why.contains("50 MiB/s are written"),
            "{why}"
        );
        let (in_queue, _) = quiet(vec![class(Operation::Read, 30, 60 * MS, MS, 4096), writes()]);
        assert_eq!(in_queue, Kind::StarvedInQueue);
        let (storm, why) = quiet(vec![fast(), class(Operation::Flush, 40, 0, 20 * MS, 0)]);
        assert_eq!(storm, Kind::FlushStorm);
        assert!(why.starts_with("40 flushes a second of 20.0 ms each"), "{why}");
        let slow = || vec![class(Operation::Read, 30, 0, 60 * MS, 4096)];
        assert_eq!(quiet(slow()).0, Kind::SlowDevice);
        let busy = Device { busy: Some(1.0), ..Device::default() };
        assert_eq!(kind(slow(), busy, &Since::default()).0, Kind::AtLimit);
    }

    #[test]
    fn what_packs_on_all_cpus_starves_readers_that_the_disk_does_not() {
        let since = Since {
            cpu_some: Some(0.8),
            cpus: 2.0,
            packing: vec![("btrfs' compression".into(), 1.9)],
            writer: Some(Program { name: "tar".into(), pid: 7, bytes_per_s: Bytes::mib(30) }),
            reader: None,
        };
        let (found, why) = kind(vec![class(Operation::Read, 100, 0, MS, 4096)], Device::default(), &since);
        assert_eq!(found, Kind::StarvedForCpu);
        assert!(
            why.contains("80 % of the time") && why.ends_with("The writer is tar (process 7, 30 MiB/s)."),
            "{why}"
        );
        let idle = Since { cpu_some: Some(0.1), ..since };
        assert_eq!(
            kind(vec![class(Operation::Read, 100, 0, MS, 4096)], Device::default(), &idle).0,
            Kind::Healthy
        );
    }

    #[test]
    fn reads_that_are_not_answered_are_not_well() {
        let waiting = Device { reads_in_flight: Some(3), ..Device::default() };
        let (found, why) =
            kind(vec![class(Operation::Write, 50, 0, 20 * MS, 1 << 20)], waiting.clone(), &Since::default());
        assert_eq!(found, Kind::StarvedInDevice);
        assert!(why.starts_with("3 reads wait and none was answered in 1.0 s"), "{why}");
        assert_eq!(kind(vec![], waiting, &Since::default()).0, Kind::SlowDevice);
        assert_eq!(kind(vec![], Device::default(), &Since::default()).0, Kind::Unknown, "nobody reads");
    }

    #[test]
    fn averages_are_judged_by_the_average() {
        let averages = |ms: u64| {
            let latency = Latency { whole: Histogram::of_average(100, 100 * ms * MS), ..Latency::default() };
            vec![
                Figures { class: Class::new(Operation::Read, Mode::Any), latency },
                class(Operation::Write, 9, 0, MS, 1 << 20),
            ]
        };
        assert_eq!((quiet(averages(5)).0, quiet(averages(50)).0), (Kind::Healthy, Kind::StarvedInDevice));
    }
}
