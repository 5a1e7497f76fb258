//! The mounted caches of which the asking user may know: one's own, and for root all. Absent where there are none.

use eke_model::units::Nanos;

use crate::metric::{Metric, Sample};
use crate::reading::{Cache, Reading};

pub const METRICS: [Metric; 11] = [
    Metric::gauge(
        "eke_cache_serving",
        "",
        "1 while the mount serves, 0 while it does not (eke cache status says why).",
        |r| each(r, |c| f64::from(u8::from(c.serving))),
    )
    .by(PLACE),
    Metric::gauge("eke_cache_memory_bytes", "bytes", "Memory that the store holds.", |r| {
        each(r, |c| c.memory.0 as f64)
    })
    .by(PLACE),
    Metric::gauge("eke_cache_memory_limit_bytes", "bytes", "The most that it may hold now.", |r| {
        each(r, |c| c.limit.0 as f64)
    })
    .by(PLACE),
    Metric::gauge(
        "eke_cache_tables_bytes",
        "bytes",
        "Memory of what is remembered of files besides their blocks; within the memory asked for.",
        |r| each(r, |c| c.tables.0 as f64),
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_files_bytes",
        "bytes",
        "What it holds of files, by its size before compression.",
        |r| each(r, |c| c.raw.0 as f64),
    )
    .by(PLACE),
    Metric::counter("eke_cache_hits", "", "Blocks asked for and held; begins anew with each worker.", |r| {
        each(r, |c| c.hits as f64)
    })
    .by(PLACE),
    Metric::counter(
        "eke_cache_misses",
        "",
        "Blocks asked for and not held; begins anew with each worker.",
        |r| each(r, |c| c.misses as f64),
    )
    .by(PLACE),
    Metric::counter(
        "eke_cache_read_bytes",
        "bytes",
        "What readers got from the store, and what was read from the disk below.",
        |r| by_source(r, |c| [Some(c.from_store.0 as f64), Some(c.from_below.0 as f64)]),
    )
    .by(&["place", "from"]),
    Metric::counter("eke_cache_written_bytes", "bytes", "What was written to the disk below.", |r| {
        each(r, |c| c.written.0 as f64)
    })
    .by(PLACE),
    Metric::gauge(
        "eke_cache_block_seconds",
        "seconds",
        "Running cost of a block from the store and from the disk below. Absent before the first.",
        |r| by_source(r, |c| [c.store_cost.map(Nanos::seconds), c.below_cost.map(Nanos::seconds)]),
    )
    .by(&["place", "from"]),
    Metric::counter("eke_cache_restarts", "", "How often a worker died and was followed by another.", |r| {
        each(r, |c| c.restarts as f64)
    })
    .by(PLACE),
];

const PLACE: &[&str] = &["place"];

fn each(reading: &Reading, value: fn(&Cache) -> f64) -> Vec<Sample> {
    reading.caches.iter().map(|c| Sample::of("place", c.place.clone(), value(c))).collect()
}

fn by_source(reading: &Reading, values: fn(&Cache) -> [Option<f64>; 2]) -> Vec<Sample> {
    let samples = reading.caches.iter().flat_map(|c| {
        let named = ["store", "below"].into_iter().zip(values(c));
        named.filter_map(|(from, v)| Some(Sample::of("place", c.place.clone(), v?).and("from", from)))
    });
    samples.collect()
}
