//! The figures of one run, from what was read before and after its window. Pure.

use eke_results::report::Metric;
use eke_results::report::groups::quantile;
use eke_results::report::{less, more};

use super::cpu::{Cpu, Ticks};
use super::ours::Store;
use super::plan::Axis;
use super::room::Memory;
use eke_bench_core::disk_reads::Reads;

/// Ticks a second (`USER_HZ`).
const HZ: f64 = 100.0;
const MB: f64 = 1e6;
const MIB: f64 = 1048576.0;

/// What is read before and after the window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// Of the disk.
    pub reads: Reads,
    /// Of bodies that clients got, in bytes.
    pub bytes: u64,
    /// In the box.
    pub cpu: Cpu,
    /// Of this process: clients, and the slow disk.
    pub own: Ticks,
    /// Of eke's store.
    pub store: Option<Store>,
}

/// A window of measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// How long it was.
    pub seconds: f64,
    /// Response times of what was answered in it, in milliseconds.
    pub response_ms: Vec<f64>,
    /// At its start.
    pub before: Counters,
    /// At its end.
    pub after: Counters,
    /// At its end.
    pub memory: Memory,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Does the file system below have files as they are? Then bytes of the disk and bytes of replies can be compared.
    pub plain_below: bool,
}

/// What the experiment is about.
pub const THROUGHPUT: &str = "throughput";
const ANSWERED: &str = "answered requests";
const MEDIAN: &str = "response time, median";
const P99: &str = "response time, 99th percentile";
/// What is to be less by half.
pub const READS: &str = "disk reads per request";
/// The same in bytes.
pub const READ: &str = "read from the disk per request";
const FOUND: &str = "found in memory";
const CACHE: &str = "cache";
const PAGE_CACHE: &str = "page cache";
const STORE: &str = "store";
const STORED: &str = "content in the store";
const SHARE: &str = "compressed share";
const PROGRAMS: &str = "memory of programs";
const USER: &str = "CPU, user";
const SYSTEM: &str = "CPU, system";
const KERNEL: &str = "CPU, kernel threads";
const PACKING: &str = "CPU, compression";
const UNPACKING: &str = "CPU, decompression";
const CLIENTS: &str = "CPU, clients and slow disk";

/// One figure: metric, unit, value.
pub type Figure = (&'static str, &'static str, f64);

/// All that is known of a run. What has no sense or cannot be known is not there.
pub fn of(window: &Window) -> Vec<Figure> {
    let mut figures = of_clients(window);
    figures.extend(of_the_disk(window));
    figures.extend(of_memory(window));
    figures.extend(of_the_cpus(window));
    figures
}

fn of_clients(w: &Window) -> Vec<Figure> {
    let bytes = w.after.bytes.saturating_sub(w.before.bytes) as f64;
    let seconds = w.seconds.max(f64::MIN_POSITIVE);
    let mut figures = vec![
        (THROUGHPUT, "MB/s", bytes / MB / seconds),
        (ANSWERED, "/s", w.response_ms.len() as f64 / seconds),
    ];
    figures.extend(quantile(&w.response_ms, 0.5).map(|ms| (MEDIAN, "ms", ms)));
    figures.extend(quantile(&w.response_ms, 0.99).map(|ms| (P99, "ms", ms)));
    figures
}

fn of_the_disk(w: &Window) -> Vec<Figure> {
    let reads = w.after.reads - w.before.reads;
    let requests = w.response_ms.len() as f64;
    let bytes = w.after.bytes.saturating_sub(w.before.bytes) as f64;
    let mut figures = Vec::new();
    if requests > 0.0 {
        figures.push((READS, "reads", reads.requests as f64 / requests));
        figures.push((READ, "MB", reads.bytes as f64 / MB / requests));
    }
    if bytes > 0.0 && w.plain_below {
        figures.push((FOUND, "%", (100.0 * (1.0 - reads.bytes as f64 / bytes)).max(0.0)));
    }
    figures
}

fn of_memory(w: &Window) -> Vec<Figure> {
    let page_cache = w.memory.page_cache.0 as f64;
    let store = w.after.store.unwrap_or_default();
    let held = store.held as f64;
    let programs = (w.memory.programs.0 as f64 - held).max(0.0);
    let mut figures = vec![
        (CACHE, "MiB", (page_cache + held) / MIB),
        (PAGE_CACHE, "MiB", page_cache / MIB),
        (PROGRAMS, "MiB", programs / MIB),
    ];
    if w.after.store.is_some() {
        figures.push((STORE, "MiB", held / MIB));
        figures.push((STORED, "MiB", store.raw as f64 / MIB));
        figures.push((SHARE, "%", 100.0 * held / (held + page_cache).max(1.0)));
    }
    figures
}

fn of_the_cpus(w: &Window) -> Vec<Figure> {
    let cpu = w.after.cpu.since(&w.before.cpu);
    let of_all = HZ * w.seconds.max(f64::MIN_POSITIVE) * w.cpus.max(1) as f64;
    let percent = |ticks: u64| 100.0 * ticks as f64 / of_all;
    let all = cpu.box_ticks();
    let mut figures = vec![
        (USER, "%", percent(all.user)),
        (SYSTEM, "%", percent(all.system)),
        (KERNEL, "%", percent(cpu.kernel.sum())),
        (CLIENTS, "%", percent((w.after.own - w.before.own).sum())),
    ];
    if w.after.store.is_some() {
        let of = |wanted: fn(&str) -> bool| {
            cpu.threads.iter().filter(|(name, _)| wanted(name)).map(|(_, t)| t.user).sum::<u64>()
        };
        figures.push((PACKING, "%", percent(of(is_packer))));
        figures.push((UNPACKING, "%", percent(of(|name| !is_packer(name)))));
    }
    figures
}

/// Threads of eke's file server that pack; what the others do outside the kernel is unpacking, for the most part.
fn is_packer(thread: &str) -> bool {
    ["pack", "dens", "zstd", "recompress", "compress"].iter().any(|word| thread.contains(word))
}

/// What is shown along an axis. The base point shows all.
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
        _ => format!("{metric}, {}", axis.words()),
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
        more(THROUGHPUT, "bytes of replies that clients got in the window"),
        more(ANSWERED, "whole files in the window"),
        less(MEDIAN, "from asking to the last byte; files have 0.1 to 38 MB"),
        less(P99, "from asking to the last byte, all but the slowest hundredth"),
        less(READS, "read requests at the disk, by its own counters"),
        less(READ, "bytes of these"),
        more(
            FOUND,
            "bytes of replies that did not come from the disk; not for file systems that are packed on it",
        ),
        more(CACHE, "page cache charged to the box, and memory of eke's store"),
        more(PAGE_CACHE, "charged to the box"),
        more(STORE, "memory that eke's store holds"),
        more(STORED, "what that is in files"),
        more(SHARE, "memory of the store, of store and page cache"),
        less(PROGRAMS, "the server's and eke's own, without the store"),
        less(USER, "of all CPUs, by everything in the box outside the kernel"),
        less(SYSTEM, "of all CPUs, by everything in the box in the kernel"),
        less(
            KERNEL,
            "of all CPUs, by the kernel's threads on the whole machine: block layer, btrfs' unpacking",
        ),
        less(
            PACKING,
            "of all CPUs, by the threads of eke-cache that pack; with sync they pack again only, and the first packing is in the row below",
        ),
        less(UNPACKING, "of all CPUs, by the other threads of eke-cache outside the kernel, which unpack"),
        less(super::report::WARM_UP, "until the caches were full"),
        less(CLIENTS, "of all CPUs, by what measures: it runs on the same machine"),
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
                threads: [("pack", 20), ("fuse", 5)]
                    .map(|(name, user)| (name.to_owned(), Ticks { user: user * n, system: n }))
                    .into(),
                kernel: Ticks { user: 0, system: 4 * n },
            },
            own: Ticks { user: n, system: n },
            store: Some(Store { held: 300 << 20, raw: 600 << 20, ..Store::default() }),
        };
        Window {
            seconds: 10.0,
            response_ms: (1..=50).map(f64::from).collect(),
            before: counters(1),
            after: counters(2),
            memory: Memory { usage: Bytes::mib(400), page_cache: Bytes::mib(60), programs: Bytes::mib(310) },
            cpus: 2,
            plain_below: true,
        }
    }

    fn figure(window: &Window, metric: &str) -> Option<f64> {
        of(window).into_iter().find(|(name, ..)| *name == metric).map(|(_, _, value)| value)
    }

    #[test]
    fn figures_are_of_the_window_alone() {
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
            (USER, 0.5),
            (SYSTEM, 1.5),
            (PACKING, 1.0),
            (UNPACKING, 0.25),
        ] {
            let value = figure(&w, metric).unwrap();
            assert!((value - expected).abs() < 1e-9, "{metric}: {value} instead of {expected}");
        }
        assert!((figure(&w, SHARE).unwrap() - 83.33).abs() < 0.01);
    }

    #[test]
    fn what_has_no_sense_is_not_there() {
        let mut w = window();
        (w.plain_below, w.after.store, w.response_ms) = (false, None, Vec::new());
        for metric in [FOUND, STORE, SHARE, PACKING, READS, MEDIAN] {
            assert_eq!(figure(&w, metric), None, "{metric}");
        }
        assert!(of(&Window::default()).iter().all(|(_, _, value)| value.is_finite()));
    }

    #[test]
    fn every_figure_has_a_metric() {
        let metrics = metrics(&Axis::ALL);
        for (name, ..) in of(&window()) {
            assert!(metrics.iter().any(|m| m.name == name), "{name}");
        }
        assert_eq!(metrics[0].name, THROUGHPUT);
        assert!(metrics.iter().any(|m| m.name == "throughput, by connections"));
    }
}
