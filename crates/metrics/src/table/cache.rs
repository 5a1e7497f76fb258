//! The mounted caches of this user, or all for root. Absent without caches.

use eke_model::units::Nanos;

use crate::metric::{Metric, Sample};
use crate::reading::{Cache, Reading};

pub const METRICS: [Metric; 12] = [
    Metric::gauge(
        "eke_cache_serving",
        "",
        "1 while the mount serves, 0 while it does not (eke cache status shows why).",
        |r| each(r, |c| f64::from(u8::from(c.serving))),
    )
    .by(PLACE),
    Metric::gauge("eke_cache_memory_bytes", "bytes", "Memory in use by the store.", |r| {
        each(r, |c| c.memory.0 as f64)
    })
    .by(PLACE),
    Metric::gauge("eke_cache_memory_limit_bytes", "bytes", "The store's memory limit now.", |r| {
        each(r, |c| c.limit.0 as f64)
    })
    .by(PLACE),
    Metric::gauge(
        "eke_cache_tables_bytes",
        "bytes",
        "Memory for metadata of files. Part of the requested memory.",
        |r| each(r, |c| c.tables.0 as f64),
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_files_bytes",
        "bytes",
        "Size of the cached data before compression.",
        |r| each(r, |c| c.raw.0 as f64),
    )
    .by(PLACE),
    Metric::counter("eke_cache_hits", "", "Block lookups that hit. Starts at 0 with each worker.", |r| {
        each(r, |c| c.hits as f64)
    })
    .by(PLACE),
    Metric::counter(
        "eke_cache_misses",
        "",
        "Block lookups that missed. Starts at 0 with each worker.",
        |r| each(r, |c| c.misses as f64),
    )
    .by(PLACE),
    Metric::counter(
        "eke_cache_read_bytes",
        "bytes",
        "Bytes that reads took from the store, from the backing file system, and from the spill, if there is one.",
        |r| {
            by_source(r, |c| {
                [Some(c.from_store.0 as f64), Some(c.from_backing.0 as f64), c.from_spill.map(|b| b.0 as f64)]
            })
        },
    )
    .by(&["place", "from"]),
    Metric::counter("eke_cache_written_bytes", "bytes", "Bytes written to the backing file system.", |r| {
        each(r, |c| c.written.0 as f64)
    })
    .by(PLACE),
    Metric::counter(
        "eke_cache_spilled_bytes",
        "bytes",
        "Bytes of evicted blocks written to the spill. Absent without one.",
        |r| {
            let spilled = r.caches.iter().filter_map(|c| Some((c, c.spilled?)));
            spilled.map(|(c, bytes)| Sample::of("place", c.place.clone(), bytes.0 as f64)).collect()
        },
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_block_seconds",
        "seconds",
        "Running mean cost of a block from the store, from the backing file system, and from the spill. Absent before the first block.",
        |r| by_source(r, |c| [c.store_cost, c.backing_cost, c.spill_cost].map(|cost| cost.map(Nanos::seconds))),
    )
    .by(&["place", "from"]),
    Metric::counter("eke_cache_restarts", "", "Workers that were restarted.", |r| {
        each(r, |c| c.restarts as f64)
    })
    .by(PLACE),
];

const PLACE: &[&str] = &["place"];

fn each(reading: &Reading, value: fn(&Cache) -> f64) -> Vec<Sample> {
    reading.caches.iter().map(|c| Sample::of("place", c.place.clone(), value(c))).collect()
}

fn by_source(reading: &Reading, values: fn(&Cache) -> [Option<f64>; 3]) -> Vec<Sample> {
    let samples = reading.caches.iter().flat_map(|c| {
        let named = ["store", "backing", "spill"].into_iter().zip(values(c));
        named.filter_map(|(from, v)| Some(Sample::of("place", c.place.clone(), v?).and("from", from)))
    });
    samples.collect()
}
