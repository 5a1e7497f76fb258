//! The metrics of one run, from counters read before and after its window. Pure.

use std::collections::BTreeMap;

use eke_bench_core::disk_reads::Reads;
use eke_bench_web::cpu::Ticks;
use eke_bench_web::metrics::{ANSWERED, CLIENTS, MB, MEDIAN, Measurement, of_clients};
pub use eke_bench_web::metrics::{P99, THROUGHPUT};
use eke_results::report::{Metric, less, more};

use crate::cache::Tiers;
use crate::hosts::Host;

/// Counters read before and after the window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// Reads of the origin's disk.
    pub reads: Reads,
    /// Bytes that each host sent.
    pub sent: BTreeMap<Host, u64>,
    /// Bytes of bodies that clients received.
    pub bytes: u64,
    /// CPU time of all nodes.
    pub nodes: Ticks,
    /// CPU time of the origin.
    pub origin: Ticks,
    /// CPU time of the engine.
    pub engine: Ticks,
    /// CPU time of this process: clients, and the slow disk.
    pub own: Ticks,
    /// What the caches of all nodes did; `None` without eke.
    pub tiers: Option<Tiers>,
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
    /// The bytes of all different files requested since the caches were empty.
    pub distinct: u64,
    /// The machine's CPUs.
    pub cpus: usize,
}

/// What the origin's disk reads.
pub const ORIGIN_READS: &str = "read from the origin's disk";
/// The same since the caches were empty, beside what one node needs at least.
pub const BESIDE_ONE: &str = "origin reads beside one node's least";
const ORIGIN_LINK: &str = "sent by the origin";
const ENGINE_LINK: &str = "sent by the engine";
const WIRE: &str = "bytes on the wire";
const STORE: &str = "found in the node's store";
const TIER: &str = "found in the shared tier";
const ORIGIN: &str = "read from the origin";
const LATE: &str = "asked in vain";
const NODES: &str = "CPU, nodes";
const ORIGIN_CPU: &str = "CPU, origin";
const ENGINE_CPU: &str = "CPU, engine";

/// All measurements of a run, without those that make no sense.
pub fn of(window: &Window) -> Vec<Measurement> {
    let bytes = window.after.bytes.saturating_sub(window.before.bytes);
    let mut all = of_clients(bytes, window.seconds, &window.response_ms);
    all.extend(of_the_origin(window));
    all.extend(of_the_wire(window));
    all.extend(of_the_caches(window));
    all.extend(of_the_cpus(window));
    all
}

fn of_the_origin(w: &Window) -> Vec<Measurement> {
    let seconds = w.seconds.max(f64::MIN_POSITIVE);
    let reads = w.after.reads - w.before.reads;
    let mut all = vec![(ORIGIN_READS, "MB/s", reads.bytes as f64 / MB / seconds)];
    if w.distinct > 0 {
        all.push((BESIDE_ONE, "times", w.after.reads.bytes as f64 / w.distinct as f64));
    }
    all
}

fn of_the_wire(w: &Window) -> Vec<Measurement> {
    let seconds = w.seconds.max(f64::MIN_POSITIVE);
    let of = |selected: fn(&Host) -> bool| {
        let sum = |counters: &Counters| {
            counters.sent.iter().filter(|(host, _)| selected(host)).map(|(_, bytes)| bytes).sum::<u64>()
        };
        since(sum(&w.before), sum(&w.after)) / MB / seconds
    };
    vec![
        (WIRE, "MB/s", of(|_| true)),
        (ORIGIN_LINK, "MB/s", of(|host| *host == Host::Origin)),
        (ENGINE_LINK, "MB/s", of(|host| matches!(host, Host::Engine(_)))),
    ]
}

fn of_the_caches(w: &Window) -> Vec<Measurement> {
    let Some((before, after)) = w.before.tiers.zip(w.after.tiers) else { return Vec::new() };
    let t = after.with(before, u64::saturating_sub);
    let all = (t.from_store + t.from_shared + t.from_backing) as f64;
    let share = |part: u64, of: f64| if of > 0.0 { 100.0 * part as f64 / of } else { 0.0 };
    let asked = (t.hits + t.misses + t.late + t.failed) as f64;
    let mut measurements = vec![(STORE, "%", share(t.from_store, all))];
    if asked > 0.0 {
        measurements.push((TIER, "%", share(t.from_shared, all)));
    }
    measurements.push((ORIGIN, "%", share(t.from_backing, all)));
    if asked > 0.0 {
        measurements.push((LATE, "%", share(t.late + t.failed, asked)));
    }
    measurements
}

fn of_the_cpus(w: &Window) -> Vec<Measurement> {
    let of_all = Ticks::PER_SECOND * w.seconds.max(f64::MIN_POSITIVE) * w.cpus.max(1) as f64;
    let percent =
        |part: fn(&Counters) -> Ticks| 100.0 * (part(&w.after) - part(&w.before)).sum() as f64 / of_all;
    vec![
        (NODES, "%", percent(|c| c.nodes)),
        (ORIGIN_CPU, "%", percent(|c| c.origin)),
        (ENGINE_CPU, "%", percent(|c| c.engine)),
        (CLIENTS, "%", percent(|c| c.own)),
    ]
}

fn since(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64
}

/// The metrics, in the order of the report.
pub fn metrics() -> Vec<Metric> {
    vec![
        more(THROUGHPUT, "bytes of replies that all clients received in the window"),
        more(ANSWERED, "complete files in the window"),
        less(MEDIAN, "from the request to the last byte; files have 16 KiB to 1 MiB"),
        less(P99, "from the request to the last byte"),
        less(ORIGIN_READS, "bytes of the disk's own counters in the window"),
        less(
            BESIDE_ONE,
            "bytes read from the origin's disk since the caches were empty, divided by the bytes of the different files that were requested: no node alone can read less",
        ),
        less(WIRE, "what all hosts sent, with all headers: replies, the origin's disk, the engine, requests"),
        less(ORIGIN_LINK, "by the port of the switch"),
        less(ENGINE_LINK, "by the ports of the switch, all members together"),
        more(STORE, "share of the bytes that eke read, in the window"),
        more(TIER, "share of the same bytes"),
        less(ORIGIN, "share of the same bytes"),
        less(
            LATE,
            "share of the blocks asked of the tier that did not come: too late, the engine failed, or its breaker was open",
        ),
        less(NODES, "share of all CPUs: servers, caches and network disks of all nodes"),
        less(ORIGIN_CPU, "share of all CPUs"),
        less(ENGINE_CPU, "share of all CPUs"),
        less(CLIENTS, "share of all CPUs: the clients and the slow disk, which run on the same machine"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let counters = |n: u64| Counters {
            reads: Reads { requests: 10 * n, bytes: 30_000_000 * n },
            sent: [(Host::Origin, 40_000_000 * n), (Host::Engine(1), 10_000_000 * n), (Host::Client, n)]
                .into(),
            bytes: 100_000_000 * n,
            nodes: Ticks { user: 100 * n, system: 100 * n },
            tiers: Some(Tiers {
                from_store: 50 * n,
                from_shared: 30 * n,
                from_backing: 20 * n,
                hits: 9 * n,
                late: n,
                ..Tiers::default()
            }),
            ..Counters::default()
        };
        Window {
            seconds: 10.0,
            response_ms: (1..=50).map(f64::from).collect(),
            before: counters(1),
            after: counters(3),
            distinct: 60_000_000,
            cpus: 2,
        }
    }

    #[test]
    fn metrics_cover_the_window_and_the_ratio_all() {
        let all = of(&window());
        for (metric, expected) in [
            (THROUGHPUT, 20.0),
            (P99, 50.0),
            (ORIGIN_READS, 6.0),
            (BESIDE_ONE, 1.5),
            (ORIGIN_LINK, 8.0),
            (ENGINE_LINK, 2.0),
            (STORE, 50.0),
            (TIER, 30.0),
            (ORIGIN, 20.0),
            (LATE, 10.0),
            (NODES, 20.0),
        ] {
            let value = all.iter().find(|m| m.0 == metric).unwrap().2;
            assert!((value - expected).abs() < 1e-9, "{metric}: {value} instead of {expected}");
        }
        let metrics = metrics();
        assert!(all.iter().all(|(name, ..)| metrics.iter().any(|m| m.name == *name)));
        assert_eq!(metrics[0].name, THROUGHPUT);
    }

    #[test]
    fn metrics_without_meaning_are_left_out() {
        let all = of(&Window::default());
        assert!(all.iter().all(|(name, _, value)| value.is_finite() && ![TIER, STORE, P99].contains(name)));
    }
}
