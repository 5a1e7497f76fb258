//! The mounted caches of this user, or all for root. Absent without caches.

use eke_model::units::Nanos;

use crate::metric::{Metric, Sample};
use crate::reading::{Cache, Reading, SharedTier};

pub const METRICS: [Metric; 18] = [
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
        "Bytes that reads took from the store, from the backing file system, from the spill and from the shared tier, if there is one.",
        |r| {
            by_source(r, |c| {
                [Some(c.from_store), Some(c.from_backing), c.from_spill, c.from_shared].map(|b| b.map(|b| b.0 as f64))
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
        "Running mean cost of a block from the store, from the backing file system, from the spill and from the shared tier. Absent before the first block.",
        |r| {
            by_source(r, |c| {
                [c.store_cost, c.backing_cost, c.spill_cost, c.shared_cost].map(|cost| cost.map(Nanos::seconds))
            })
        },
    )
    .by(&["place", "from"]),
    Metric::counter(
        "eke_cache_shared_blocks",
        "",
        "Blocks requested from the shared tier: hits, misses, failures (late, failed, or not asked after failures), refused ones; and offered blocks that the engine did not store. Absent without a tier.",
        |r| {
            shared(r, "result", |s| {
                vec![
                    ("hit", s.hits),
                    ("miss", s.misses),
                    ("failed", s.failed),
                    ("refused", s.refused),
                    ("not_stored", s.not_stored),
                ]
            })
        },
    )
    .by(&["place", "result"]),
    Metric::counter(
        "eke_cache_shared_wire_bytes",
        "bytes",
        "Bytes of blocks over the wire, from the shared tier's engine (in) and to it (out). Absent without a tier.",
        |r| shared(r, "direction", |s| vec![("in", s.wire[0].0), ("out", s.wire[1].0)]),
    )
    .by(&["place", "direction"]),
    Metric::gauge(
        "eke_cache_shared_open_parts",
        "",
        "Parts of the shared tier's engine that are not asked now, because they failed; of 96. Absent without a tier.",
        |r| one_shared(r, |s| f64::from(s.open)),
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_shared_connections",
        "",
        "Connections to the shared tier's engine that work. Absent without a tier.",
        |r| one_shared(r, |s| f64::from(s.connected)),
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_shared_engine_bytes",
        "bytes",
        "Memory that the shared tier's engine uses, all its nodes together. Absent without a tier.",
        |r| one_shared(r, |s| s.engine_memory.0 as f64),
    )
    .by(PLACE),
    Metric::gauge(
        "eke_cache_shared_engine_fault",
        "",
        "1 if some node of the shared tier's engine has no limit of memory (no_limit), or evicts nothing when it is full (no_eviction). Absent without a tier.",
        |r| {
            shared(r, "fault", |s| {
                vec![("no_limit", s.is_unlimited.into()), ("no_eviction", s.keeps_all.into())]
            })
        },
    )
    .by(&["place", "fault"]),
    Metric::counter("eke_cache_restarts", "", "Workers that were restarted.", |r| {
        each(r, |c| c.restarts as f64)
    })
    .by(PLACE),
];

const PLACE: &[&str] = &["place"];

fn each(reading: &Reading, value: fn(&Cache) -> f64) -> Vec<Sample> {
    reading.caches.iter().map(|c| Sample::of("place", c.place.clone(), value(c))).collect()
}

fn shared(
    reading: &Reading,
    label: &'static str,
    values: fn(&SharedTier) -> Vec<(&'static str, u64)>,
) -> Vec<Sample> {
    let tiers = reading.caches.iter().filter_map(|c| Some((c, c.shared.as_ref()?)));
    let samples = tiers.flat_map(|(c, tier)| {
        let named = values(tier).into_iter();
        named.map(|(name, n)| Sample::of("place", c.place.clone(), n as f64).and(label, name))
    });
    samples.collect()
}

fn one_shared(reading: &Reading, value: fn(&SharedTier) -> f64) -> Vec<Sample> {
    let tiers = reading.caches.iter().filter_map(|c| Some((c, c.shared.as_ref()?)));
    tiers.map(|(c, tier)| Sample::of("place", c.place.clone(), value(tier))).collect()
}

fn by_source(reading: &Reading, values: fn(&Cache) -> [Option<f64>; 4]) -> Vec<Sample> {
    let samples = reading.caches.iter().flat_map(|c| {
        let named = ["store", "backing", "spill", "shared"].into_iter().zip(values(c));
        named.filter_map(|(from, v)| Some(Sample::of("place", c.place.clone(), v?).and("from", from)))
    });
    samples.collect()
}
