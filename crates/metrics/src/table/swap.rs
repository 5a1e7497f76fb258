//! Compressed swap: what it holds and costs, what was predicted, what goes through it.

use eke_model::step::Prediction;

use super::machine::bytes;
use crate::metric::{Kind, Metric, Sample, maybe, one};
use crate::reading::Reading;

pub const METRICS: [Metric; 14] = [
    Metric::gauge("eke_plan_applied", "", "1 while a plan of eke's is applied, else 0.", |r| {
        one(f64::from(u8::from(r.snapshot.applied)))
    }),
    Metric {
        name: "eke_backend",
        kind: Kind::Info,
        unit: "",
        labels: &["backend"],
        help: "The compressed swap in use, whoever set it up: zram or zswap with its algorithm, or none.",
        get: |r| vec![Sample::of("backend", r.snapshot.backend.clone(), 1.0)],
    },
    Metric::gauge(
        "eke_compressed_held_bytes",
        "bytes",
        "What is held compressed in RAM, by its size before compression.",
        |r| bytes(r.snapshot.model.held),
    ),
    Metric::gauge("eke_compressed_pool_bytes", "bytes", "RAM that holding it takes.", |r| {
        bytes(r.snapshot.model.pool)
    }),
    Metric::gauge(
        "eke_compressed_saved_bytes",
        "bytes",
        "RAM that compression saves: held less pool.",
        |r| bytes(r.snapshot.model.saved),
    ),
    Metric::gauge(
        "eke_compressed_effective_ratio",
        "ratio",
        "Bytes held for each byte of RAM. Absent while less than 1 MiB is held.",
        |r| maybe(r.snapshot.model.effective_ratio),
    ),
    Metric::gauge(
        "eke_incompressible_ratio",
        "ratio",
        "Share of the held pages that did not compress, 0 to 1. Absent where the kernel does not count them (zswap).",
        |r| maybe(r.snapshot.model.incompressible_share),
    ),
    Metric::gauge(
        "eke_written_back_bytes",
        "bytes",
        "What zram wrote on to a disk and still has there. Absent where it has none.",
        |r| maybe(r.snapshot.machine.written_back.map(|b| b.0 as f64)),
    ),
    Metric::gauge("eke_swap_size_bytes", "bytes", "Size of all swap areas, compressed or not.", |r| {
        bytes(r.snapshot.machine.memory.swap_total)
    }),
    Metric::gauge("eke_swap_free_bytes", "bytes", "What of them is unused.", |r| {
        bytes(r.snapshot.machine.memory.swap_free)
    }),
    Metric::counter(
        "eke_swap_in_bytes",
        "bytes",
        "What came back from swap areas (zram is one), or from zswap before them, since boot.",
        |r| through(r, r.snapshot.machine.vm.pswpin, r.snapshot.machine.vm.zswpin),
    )
    .by(&["through"]),
    Metric::counter(
        "eke_swap_out_bytes",
        "bytes",
        "What went to swap areas, or to zswap before them, since boot.",
        |r| through(r, r.snapshot.machine.vm.pswpout, r.snapshot.machine.vm.zswpout),
    )
    .by(&["through"]),
    Metric::gauge(
        "eke_predicted_effective_ratio",
        "ratio",
        "What the applied plan said eke_compressed_effective_ratio would be. Absent where no plan is applied.",
        |r| predicted(r, |p| p.ratio),
    ),
    Metric::gauge(
        "eke_predicted_load_seconds",
        "seconds",
        "What the applied plan said it takes until a page is back: the median and the 99th percentile.",
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
