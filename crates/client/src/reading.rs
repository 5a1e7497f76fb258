//! What metrics and page show: the snapshot, and the caches of this user.

use eke_cache_mounts::shared::SharedStats;
use eke_metrics::{Reading, SharedTier};
use eke_present::exit::Outcome;

use crate::caches::{self, Cache, CacheState};
use crate::snapshot::Reader;

/// The snapshot that every unprivileged client sees, and the caches of this user.
///
/// # Errors
/// Those of [`Reader::snapshot`].
pub fn reading(reader: &mut Reader) -> Outcome<Reading> {
    let caches = caches::all(reader.root()).iter().filter_map(of_cache).collect();
    Ok(Reading { snapshot: reader.snapshot()?, caches })
}

fn shared(s: &SharedStats) -> SharedTier {
    SharedTier {
        hits: s.hits,
        misses: s.misses,
        failed: s.late + s.failed + s.paused,
        refused: s.refused,
        wire: [s.bytes_in, s.bytes_out],
        open: s.open,
        connected: s.connected,
        engine_memory: s.engine_memory,
        not_stored: s.engine_refused,
        is_unlimited: s.engine_unlimited,
        keeps_all: s.engine_keeps_all,
    }
}

/// `None` if it is another user's.
fn of_cache(cache: &Cache) -> Option<eke_metrics::Cache> {
    if cache.state == CacheState::NotYours {
        return None;
    }
    let place = cache.place.to_string_lossy().into_owned();
    let details = cache.details.as_deref();
    let restarts = details.map_or(0, |d| d.restarts);
    let Some(stats) = details.and_then(|d| d.worker.as_ref()) else {
        return Some(eke_metrics::Cache { place, restarts, ..eke_metrics::Cache::default() });
    };
    Some(eke_metrics::Cache {
        place,
        serving: cache.state == CacheState::Serving,
        memory: stats.store.held,
        limit: stats.store.limit,
        tables: stats.files.memory,
        raw: stats.store.raw,
        hits: stats.store.hits,
        misses: stats.store.misses,
        from_store: stats.tier.from_store,
        from_backing: stats.tier.from_backing,
        from_spill: stats.spill.on.then_some(stats.spill.from_spill),
        from_shared: stats.shared.on.then_some(stats.shared.from_shared),
        shared: stats.shared.on.then(|| shared(&stats.shared)),
        spilled: stats.spill.on.then_some(stats.spill.written),
        written: stats.tier.written,
        store_cost: stats.tier.store_cost_ns,
        backing_cost: stats.tier.backing_cost_ns,
        spill_cost: stats.spill.cost_ns,
        shared_cost: stats.shared.cost_ns,
        restarts,
    })
}
