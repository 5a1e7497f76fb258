//! The document of `eke status --json` in the form that `eke top` needs.

use eke_cache_mounts::status::WorkerStats;
use eke_client::Cache;
use eke_present::refresh::{Cache as Mount, CacheStats, Reads, Refresh};

use crate::documents::Status;

/// The document for the screen, with control characters of names escaped.
pub fn refresh(document: &Status) -> Refresh {
    Refresh {
        snapshot: document.snapshot.clone(),
        caches: document.caches.iter().map(mount).collect(),
        reads: reads(document),
    }
}

/// Read latencies, if the governor runs and measures them.
fn reads(document: &Status) -> Option<Reads> {
    let io = document.snapshot.io.as_ref()?;
    Some(Reads { p50: io.reads_p50?, p99: io.reads_p99? })
}

fn mount(cache: &Cache) -> Mount {
    let worker = cache.details.as_ref().and_then(|d| d.worker.as_ref());
    Mount {
        place: super::cache::shown(&cache.place),
        stats: worker.map(stats).ok_or_else(|| super::cache::short(cache)),
    }
}

fn stats(f: &WorkerStats) -> CacheStats {
    let (s, t) = (&f.store, &f.tier);
    CacheStats {
        held: s.held,
        limit: s.limit,
        raw: s.raw,
        hits: s.hits,
        misses: s.misses,
        fast: s.fast,
        recompressed: s.recompressed,
        plain: s.uncompressed + s.zero,
        from_store: t.from_store,
        from_backing: t.from_backing,
        store_cost: t.store_cost_ns,
        backing_cost: t.backing_cost_ns,
    }
}
