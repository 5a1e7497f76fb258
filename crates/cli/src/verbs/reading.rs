//! What `eke metrics` and `eke dash` show: the snapshot, and the caches of this user.

use eke_metrics::{Cache, Reading};
use eke_present::exit::Outcome;

use super::{Context, cache, status};
use crate::documents::{self, CacheState};

/// The snapshot that every unprivileged client sees, and the caches of this user.
pub fn reading(context: &Context) -> Outcome<Reading> {
    let caches = cache::status::caches(&context.root).iter().filter_map(of_cache).collect();
    Ok(Reading { snapshot: status::snapshot(context)?, caches })
}

/// `None` if it is another user's.
fn of_cache(cache: &documents::Cache) -> Option<Cache> {
    if cache.state == CacheState::NotYours {
        return None;
    }
    let place = cache.place.to_string_lossy().into_owned();
    let details = cache.details.as_deref();
    let restarts = details.map_or(0, |d| d.restarts);
    let Some(stats) = details.and_then(|d| d.worker.as_ref()) else {
        return Some(Cache { place, restarts, ..Cache::default() });
    };
    Some(Cache {
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
        written: stats.tier.written,
        store_cost: stats.tier.store_cost_ns,
        backing_cost: stats.tier.backing_cost_ns,
        restarts,
    })
}
