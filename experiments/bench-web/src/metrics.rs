//! The metrics of one run, from counters read before and after its window. Pure.

use eke_results::report::Metric;
use eke_results::report::groups::quantile;
use eke_results::report::{less, more};

use super::cpu::{Cpu, Ticks};
use super::eke_mount::StoreCounters;
use super::plan::Axis;
use super::server_box::Memory;
use eke_bench_core::disk_reads::Reads;

/// A megabyte of rates.
pub const MB: f64 = 1e6;
const MIB: f64 = 1048576.0;

/// Counters read before and after the window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// The disk's reads.
    pub reads: Reads,
    /// Bytes of bodies that clients received.
    pub bytes: u64,
    /// CPU time in the box.
    pub cpu: Cpu,
    /// CPU time of this process: clients, and the slow disk.
    pub own: Ticks,
    /// The counters of eke's store.
    pub store: Option<StoreCounters>,
}

/// A window of measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// Its length in seconds.
    pub seconds: f64,
    /// The response times of requests answered in it, in milliseconds.
    pub response_ms: Vec<f64>,
    /// The counters at its start.
    pub before: Counters,
    /// The counters at its end.
    pub after: Counters,
    /// The box's memory at its end.
    pub memory: Memory,
    /// The machine's CPUs.
    pub cpus: usize,
    /// Whether the file system on the disk is uncompressed. Then bytes of the disk and bytes of replies are comparable.
    pub plain_backing: bool,
}

/// The main metric.
pub const THROUGHPUT: &str = "throughput";
/// Complete files.
pub const ANSWERED: &str = "answered requests";
/// The usual answer.
pub const MEDIAN: &str = "response time, median";
/// The slowest answers.
pub const P99: &str = "response time, 99th percentile";
/// The metric whose target is half of ext4's.
pub const READS: &str = "disk reads per request";
/// The same reads in megabytes.
pub const READ: &str = "read from the disk per request";
const FOUND: &str = "found in memory";
const CACHE: &str = "cache";
const PAGE_CACHE: &str = "page cache";
const STORE: &str = "store";
const STORED: &str = "content in the store";
const SHARE: &str = "compressed share";
const PROGRAMS: &str = "memory of programs";
const KERNEL_MEMORY: &str = "memory of the kernel for the box";
const USER: &str = "CPU, user";
const SYSTEM: &str = "CPU, system";
const KERNEL: &str = "CPU, kernel threads";
const COMPRESSION: &str = "CPU, compression";
const DECOMPRESSION: &str = "CPU, decompression";
/// What measures, on the same machine.
pub const CLIENTS: &str = "CPU, clients and slow disk";
/// The time until the caches were full. It is not a metric of the window.
pub const WARM_UP: &str = "warm-up";

/// A measurement: metric, unit, value.
pub type Measurement = (&'static str, &'static str, f64);

/// All measurements of a run, without those that make no sense or are unknown.
pub fn of(window: &Window) -> Vec<Measurement> {
    let bytes = window.after.bytes.saturating_sub(window.before.bytes);
    let mut all = of_clients(bytes, window.seconds, &window.response_ms);
    all.extend(of_the_disk(window));
    all.extend(of_memory(window));
    all.extend(of_the_cpus(window));
    all
}

/// What clients saw in a window: bytes of bodies, its length in seconds, the response times in it in milliseconds.
pub fn of_clients(bytes: u64, seconds: f64, response_ms: &[f64]) -> Vec<Measurement> {
    let seconds = seconds.max(f64::MIN_POSITIVE);
    let mut measurements = vec![
        (THROUGHPUT, "MB/s", bytes as f64 / MB / seconds),
        (ANSWERED, "/s", response_ms.len() as f64 / seconds),
    ];
    measurements.extend(quantile(response_ms, 0.5).map(|ms| (MEDIAN, "ms", ms)));
    measurements.extend(quantile(response_ms, 0.99).map(|ms| (P99, "ms", ms)));
    measurements
}

fn of_the_disk(w: &Window) -> Vec<Measurement> {
    let reads = w.after.reads - w.before.reads;
    let requests = w.response_ms.len() as f64;
    let bytes = w.after.bytes.saturating_sub(w.before.bytes) as f64;
    let mut measurements = Vec::new();
    if requests > 0.0 {
        measurements.push((READS, "reads", reads.requests as f64 / requests));
        measurements.push((READ, "MB", reads.bytes as f64 / MB / requests));
    }
    if bytes > 0.0 && w.plain_backing {
        measurements.push((FOUND, "%", (100.0 * (1.0 - reads.bytes as f64 / bytes)).max(0.0)));
    }
    measurements
}

fn of_memory(w: &Window) -> Vec<Measurement> {
    let page_cache = w.memory.page_cache.0 as f64;
    let store = w.after.store.unwrap_or_default();
    let stored = store.memory as f64;
    let programs = (w.memory.programs.0 as f64 - stored).max(0.0);
    let mut measurements = vec![
        (CACHE, "MiB", (page_cache + stored) / MIB),
        (PAGE_CACHE, "MiB", page_cache / MIB),
        (PROGRAMS, "MiB", programs / MIB),
        (KERNEL_MEMORY, "MiB", w.memory.kernel.0 as f64 / MIB),
    ];
    if w.after.store.is_some() {
        measurements.push((STORE, "MiB", stored / MIB));
        measurements.push((STORED, "MiB", store.raw as f64 / MIB));
        measurements.push((SHARE, "%", 100.0 * stored / (stored + page_cache).max(1.0)));
    }
    measurements
}

fn of_the_cpus(w: &Window) -> Vec<Measurement> {
    let cpu = w.after.cpu.since(&w.before.cpu);
    let of_all = Ticks::PER_SECOND * w.seconds.max(f64::MIN_POSITIVE) * w.cpus.max(1) as f64;
    let percent = |ticks: u64| 100.0 * ticks as f64 / of_all;
    let all = cpu.box_ticks();
    let mut measurements = vec![
        (USER, "%", percent(all.user)),
        (SYSTEM, "%", percent(all.system)),
        (KERNEL, "%", percent(cpu.kernel.sum())),
        (CLIENTS, "%", percent((w.after.own - w.before.own).sum())),
    ];
    if w.after.store.is_some() {
        let of = |selected: fn(&str) -> bool| {
            cpu.threads.iter().filter(|(name, _)| selected(name)).map(|(_, t)| t.user).sum::<u64>()
        };
        measurements.push((COMPRESSION, "%", percent(of(is_compressor))));
        measurements.push((DECOMPRESSION, "%", percent(of(|name| !is_compressor(name)))));
    }
    measurements
}

/// Whether a thread of eke's file server compresses. The others mostly decompress, as far as their time in user mode goes.
fn is_compressor(thread: &str) -> bool {
    thread.contains("compress")
}

/// Whether a metric is shown along an axis. The base point shows all.
pub fn is_shown(metric: &str, axis: Axis) -> bool {
    match axis {
        Axis::Base => true,
        Axis::Load | Axis::Share => {
            [THROUGHPUT, MEDIAN, P99, READS, READ, CACHE, SHARE, USER, SYSTEM].contains(&metric)
        }
        _ => [THROUGHPUT, P99, READS].contains(&metric),
    }
}

/// A metric's name along an axis.
pub fn name(metric: &str, axis: Axis) -> String {
    match axis {
        Axis::Base => metric.to_owned(),
        _ => format!("{metric}, {}", axis.suffix()),
    }
}

/// The metrics of these axes, in the order of the report.
pub fn metrics(axes: &[Axis]) -> Vec<Metric> {
    let of = |axis: Axis| {
        let shown = all().into_iter().filter(move |m| is_shown(&m.name, axis));
        shown.map(move |m| Metric { name: name(&m.name, axis), ..m })
    };
    axes.iter().flat_map(|axis| of(*axis)).collect()
}

fn all() -> Vec<Metric> {
    vec![
        more(THROUGHPUT, "bytes of replies that clients received in the window"),
        more(ANSWERED, "complete files in the window"),
        less(MEDIAN, "from the request to the last byte; files have 0.1 to 38 MB"),
        less(P99, "from the request to the last byte"),
        less(READS, "read requests at the disk, by its own counters"),
        less(READ, "bytes of these requests"),
        more(
            FOUND,
            "share of reply bytes that did not come from the disk; not for file systems compressed on it",
        ),
        more(CACHE, "page cache charged to the box, and memory of eke's store"),
        more(PAGE_CACHE, "charged to the box"),
        more(STORE, "memory of eke's store"),
        more(STORED, "uncompressed size of the store's content"),
        more(SHARE, "the store's share of store and page cache"),
        less(PROGRAMS, "memory of the server and of eke, without the store"),
        less(KERNEL_MEMORY, "inodes, names and buffers"),
        less(USER, "share of all CPUs: the box's processes in user mode"),
        less(SYSTEM, "share of all CPUs: the box's processes in the kernel"),
        less(
            KERNEL,
            "share of all CPUs: kernel threads of the whole machine, such as the block layer and decompression of btrfs",
        ),
        less(
            COMPRESSION,
            "share of all CPUs: compressing threads of eke-cache; with sync they only recompress, and the first compression is in the row below",
        ),
        less(
            DECOMPRESSION,
            "share of all CPUs: the other threads of eke-cache in user mode, which decompress",
        ),
        less(WARM_UP, "until the caches were full"),
        less(CLIENTS, "share of all CPUs: the clients and the slow disk, which run on the same machine"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_model::units::Bytes;

    fn window() -> Window {
        let counters = |n: u64| Counters {
            reads: Reads { requests: 100 * n, bytes: 40_000_000 * n },
            bytes: 100_000_000 * n,
            cpu: Cpu {
                programs: [("nginx".to_owned(), Ticks { user: 10 * n, system: 30 * n })].into(),
                threads: [("compress", 20), ("session", 5)]
                    .map(|(name, user)| (name.to_owned(), Ticks { user: user * n, system: n }))
                    .into(),
                kernel: Ticks { user: 0, system: 4 * n },
            },
            own: Ticks { user: n, system: n },
            store: Some(StoreCounters { memory: 300 << 20, raw: 600 << 20 }),
        };
        Window {
            seconds: 10.0,
            response_ms: (1..=50).map(f64::from).collect(),
            before: counters(1),
            after: counters(2),
            memory: Memory {
                usage: Bytes::mib(400),
                page_cache: Bytes::mib(60),
                programs: Bytes::mib(310),
                kernel: Bytes::mib(30),
            },
            cpus: 2,
            plain_backing: true,
        }
    }

    fn value(window: &Window, metric: &str) -> Option<f64> {
        of(window).into_iter().find(|(name, ..)| *name == metric).map(|(_, _, value)| value)
    }

    #[test]
    fn metrics_cover_only_the_window() {
        let w = window();
        for (metric, expected) in [
            (THROUGHPUT, 10.0),
            (ANSWERED, 5.0),
            (MEDIAN, 25.0),
            (P99, 50.0),
            (READS, 2.0),
            (READ, 0.8),
            (FOUND, 60.0),
            (CACHE, 360.0),
            (STORED, 600.0),
            (PROGRAMS, 10.0),
            (KERNEL_MEMORY, 30.0),
            (USER, 0.5),
            (SYSTEM, 1.5),
            (COMPRESSION, 1.0),
            (DECOMPRESSION, 0.25),
        ] {
            let value = value(&w, metric).unwrap();
            assert!((value - expected).abs() < 1e-9, "{metric}: {value} instead of {expected}");
        }
        assert!((value(&w, SHARE).unwrap() - 83.33).abs() < 0.01);
    }

    #[test]
    fn metrics_without_meaning_are_left_out() {
        let mut w = window();
        (w.plain_backing, w.after.store, w.response_ms) = (false, None, Vec::new());
        for metric in [FOUND, STORE, SHARE, COMPRESSION, READS, MEDIAN] {
            assert_eq!(value(&w, metric), None, "{metric}");
        }
        assert!(of(&Window::default()).iter().all(|(_, _, value)| value.is_finite()));
    }

    #[test]
    fn every_measurement_has_a_metric() {
        let metrics = metrics(&Axis::ALL);
        for (name, ..) in of(&window()) {
            assert!(metrics.iter().any(|m| m.name == name), "{name}");
        }
        assert_eq!(metrics[0].name, THROUGHPUT);
        assert!(metrics.iter().any(|m| m.name == "throughput, by connections"));
    }
}
