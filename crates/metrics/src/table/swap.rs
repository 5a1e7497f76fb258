//! Compressed swap: size, cost, prediction, traffic.

use eke_model::step::Prediction;

use super::machine::bytes;
use crate::metric::{Kind, Metric, Sample, maybe, one};
use crate::reading::Reading;

pub const METRICS: [Metric; 14] = [
    Metric::gauge("eke_plan_applied", "", "1 while eke's plan is applied, else 0.", |r| {
        one(f64::from(u8::from(r.snapshot.applied)))
    }),
    Metric {
        name: "eke_backend",
        kind: Kind::Info,
        unit: "",
        labels: &["backend"],
        help: "The compressed swap in use, also if eke did not set it up: zram or zswap with its algorithm, or none.",
        get: |r| vec![Sample::of("backend", r.snapshot.backend.clone(), 1.0)],
    },
    Metric::gauge(
        "eke_compressed_held_bytes",
        "bytes",
        "Size of the compressed pages in RAM before compression.",
        |r| bytes(r.snapshot.model.held),
    ),
    Metric::gauge("eke_compressed_pool_bytes", "bytes", "RAM that the compressed pages take.", |r| {
        bytes(r.snapshot.model.pool)
    }),
    Metric::gauge(
        "eke_compressed_saved_bytes",
        "bytes",
        "RAM that compression saves: eke_compressed_held_bytes minus eke_compressed_pool_bytes.",
        |r| bytes(r.snapshot.model.saved),
    ),
    Metric::gauge(
        "eke_compressed_effective_ratio",
        "ratio",
        "Uncompressed bytes for each byte of RAM. Absent below 1 MiB of compressed pages.",
        |r| maybe(r.snapshot.model.effective_ratio),
    ),
    Metric::gauge(
        "eke_incompressible_ratio",
        "ratio",
        "Share of these pages that did not compress, 0 to 1. Absent where the kernel does not count them (zswap).",
        |r| maybe(r.snapshot.model.incompressible_share),
    ),
    Metric::gauge(
        "eke_written_back_bytes",
        "bytes",
        "Data that zram wrote back to a disk and still has there. Absent without a backing device.",
        |r| maybe(r.snapshot.machine.written_back.map(|b| b.0 as f64)),
    ),
    Metric::gauge("eke_swap_size_bytes", "bytes", "Size of all swap areas, compressed or not.", |r| {
        bytes(r.snapshot.machine.memory.swap_total)
    }),
    Metric::gauge("eke_swap_free_bytes", "bytes", "Free space in all swap areas.", |r| {
        bytes(r.snapshot.machine.memory.swap_free)
    }),
    Metric::counter(
        "eke_swap_in_bytes",
        "bytes",
        "Bytes swapped in from swap areas (zram included) or from zswap, since boot.",
        |r| through(r, r.snapshot.machine.vm.pswpin, r.snapshot.machine.vm.zswpin),
    )
    .by(&["through"]),
    Metric::counter(
        "eke_swap_out_bytes",
        "bytes",
        "Bytes swapped out to swap areas or to zswap, since boot.",
        |r| through(r, r.snapshot.machine.vm.pswpout, r.snapshot.machine.vm.zswpout),
    )
    .by(&["through"]),
    Metric::gauge(
        "eke_predicted_effective_ratio",
        "ratio",
        "eke_compressed_effective_ratio as the applied plan predicted it. Absent without a plan.",
        |r| predicted(r, |p| p.ratio),
    ),
    Metric::gauge(
        "eke_predicted_load_seconds",
        "seconds",
        "Swap-in latency as the applied plan predicted it: median and 99th percentile.",
        loads,
    )
    .by(&["percentile"]),
];

fn through(reading: &Reading, area: u64, zswap: u64) -> Vec<Sample> {
    let page = reading.snapshot.machine.page_bytes as f64;
    vec![
        Sample::of("through", "area", area as f64 * page),
        Sample::of("through", "zswap", zswap as f64 * page),
    ]
}

fn predicted(reading: &Reading, of: fn(&Prediction) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.prediction.as_ref().map(of))
}

fn loads(reading: &Reading) -> Vec<Sample> {
    let Some(p) = &reading.snapshot.prediction else { return Vec::new() };
    let sample = |percentile, ns: u64| Sample::of("percentile", percentile, ns as f64 / 1e9);
    vec![sample("50", p.load_p50_ns), sample("99", p.load_p99_ns)]
}
