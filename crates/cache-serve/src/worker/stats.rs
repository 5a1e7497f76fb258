//! The worker's stats, for `eke cache status`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use eke_cache_mounts::shared::SharedStats;
use eke_cache_mounts::spill::SpillStats;
use eke_cache_mounts::status::{
    AdmissionStats, FilesStats, NotServed, RememberStats, SizeStats, StoreStats, TierStats, WatchStats,
    WorkerStats,
};
use eke_cache_policy::admission::{self, Admission};
use eke_cache_shared::{self as shared, Shared};
use eke_cache_store::{Stats, Store};
use eke_cachefs::fs::Fs;
use eke_cachefs::node::Footprint;
use eke_cachefs::tier::{self, Tier};
use eke_cachefs::watch::{Change, WatchMode};
use eke_model::units::{Bytes, Nanos};

use crate::size::Governor;
use crate::spill::keep::KeptSpill;
use crate::warm::remember::Remember;

/// The most mounts that are listed: all stats must fit into one message.
const MOST_NOT_SERVED: usize = 16;

/// The sources of the stats.
#[derive(Clone)]
pub(super) struct Sources(Arc<Inside>);

struct Inside {
    store: Arc<Store>,
    fs: Arc<Fs>,
    tier: Arc<Tier>,
    admission: Arc<Admission>,
    governor: Arc<Governor>,
    watch: Mutex<WatchMode>,
    remember: Result<Arc<Remember>, String>,
    spill: Option<Arc<KeptSpill>>,
    shared: Option<Arc<Shared>>,
    changes: AtomicU64,
    everything: AtomicU64,
}

/// What outlives a read: what is remembered, evicted blocks, blocks of the farm.
type Kept = (Result<Arc<Remember>, String>, Option<Arc<KeptSpill>>, Option<Arc<Shared>>);

impl Sources {
    pub(super) fn new(
        fs: &Arc<Fs>,
        (store, tier): (&Arc<Store>, &Arc<Tier>),
        (admission, governor): (&Arc<Admission>, &Arc<Governor>),
        watch: WatchMode,
        (remember, spill, shared): Kept,
    ) -> Self {
        Self(Arc::new(Inside {
            store: Arc::clone(store),
            fs: Arc::clone(fs),
            tier: Arc::clone(tier),
            admission: Arc::clone(admission),
            governor: Arc::clone(governor),
            watch: Mutex::new(watch),
            remember,
            spill,
            shared,
            changes: AtomicU64::new(0),
            everything: AtomicU64::new(0),
        }))
    }

    pub(super) fn tier(&self) -> Arc<Tier> {
        Arc::clone(&self.0.tier)
    }

    /// Why the kernel does not report changes in the backing directory; `None` if it does.
    pub(super) fn not_watched(&self) -> Option<String> {
        match &*self.0.watch.lock().unwrap_or_else(PoisonError::into_inner) {
            WatchMode::Watched => None,
            WatchMode::AtOpens { why } => Some(why.clone()),
        }
    }

    pub(super) fn watch_ended(&self, why: String) {
        *self.0.watch.lock().unwrap_or_else(PoisonError::into_inner) = WatchMode::AtOpens { why };
    }

    pub(super) fn count_change(&self, change: &Change) {
        let count = if *change == Change::Everything { &self.0.everything } else { &self.0.changes };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Collects all stats.
    pub(super) fn stats(&self) -> WorkerStats {
        WorkerStats {
            store: of_store(&self.0.store.stats()),
            tier: of_tier(&self.0.tier.report()),
            admission: of_admission(self.0.admission.report(), self.0.fs.open_passthrough()),
            size: of_size(&self.0.governor.report()),
            files: of_files(&self.0.fs.footprint()),
            watch: self.of_watch(),
            remember: self.of_remember(),
            spill: self.0.spill.as_ref().map_or_else(SpillStats::default, |spill| {
                of_spill(&spill.spill().stats(), &self.0.tier.report())
            }),
            shared: self.0.shared.as_ref().map_or_else(SharedStats::default, |shared| {
                of_shared(shared.stats(), shared.parts(), &self.0.tier.report())
            }),
            not_served: self.not_served(),
        }
    }

    fn not_served(&self) -> Vec<NotServed> {
        let refused = self.0.fs.nodes().refused().into_iter().take(MOST_NOT_SERVED);
        refused.map(|r| NotServed { place: r.place, why: r.why }).collect()
    }

    fn of_remember(&self) -> RememberStats {
        match &self.0.remember {
            Ok(remember) => remember.stats(),
            Err(why) => RememberStats { why: Some(why.clone()), ..RememberStats::default() },
        }
    }

    fn of_watch(&self) -> WatchStats {
        let why = self.not_watched();
        WatchStats {
            on: why.is_none(),
            why,
            names: self.0.fs.lifetimes().are_reported(),
            changes: self.0.changes.load(Ordering::Relaxed),
            // The first one is the start of the watch.
            overflows: self.0.everything.load(Ordering::Relaxed).saturating_sub(1),
        }
    }
}

fn of_store(s: &Stats) -> StoreStats {
    StoreStats {
        limit: s.limit,
        held: s.held,
        queued: s.queued,
        raw: s.raw,
        compressed: s.compressed,
        ratio: s.ratio(),
        hit_rate: s.hit_rate(),
        zero: s.zero,
        uncompressed: s.uncompressed,
        fast: s.fast,
        recompressed: s.recompressed,
        hits: s.hits,
        misses: s.misses,
        corrupted: s.corrupted,
        insertions: s.insertions,
        incompressible: s.incompressible,
        overrun: s.overrun,
        stale: s.stale,
        no_room: s.no_room + s.no_memory,
        evictions: s.evictions,
        drops: s.drops,
        recompressions: s.recompressions,
    }
}

fn of_tier(report: &tier::TierReport) -> TierStats {
    TierStats {
        from_store: Bytes(report.bytes_from_store),
        from_backing: Bytes(report.bytes_from_backing),
        written: Bytes(report.bytes_written),
        waited: report.waits,
        store_cost_ns: nanos(report.hit_us),
        backing_cost_ns: report.backing_us.iter().copied().find_map(nanos),
        compress_cost_ns: nanos(report.compress_us),
    }
}

fn of_spill(s: &eke_cache_spill::Stats, report: &tier::TierReport) -> SpillStats {
    SpillStats {
        on: true,
        limit: s.limit,
        held: s.held,
        memory: s.memory,
        day_limit: s.day_limit,
        day_written: s.day_written,
        written: Bytes(s.bytes_written),
        blocks: s.blocks,
        restored: s.restored,
        hits: report.spill_hits,
        from_spill: Bytes(report.bytes_from_spill),
        cost_ns: nanos(report.spill_us),
        unrequested: s.unrequested,
        present: s.present,
        behind: s.behind,
        over_day: s.over_day,
        no_room: s.no_room,
        drops: s.drops,
        errors: s.errors,
        corrupted: s.corrupted,
    }
}

fn of_shared(s: shared::Stats, parts: usize, report: &tier::TierReport) -> SharedStats {
    SharedStats {
        on: true,
        hits: s.hits,
        misses: s.misses,
        from_shared: Bytes(report.bytes_from_shared),
        cost_ns: nanos(report.shared_us),
        late: s.late,
        failed: s.failed,
        paused: s.paused,
        refused: s.refused,
        bytes_in: Bytes(s.bytes_in),
        offered: s.offered,
        bytes_out: Bytes(s.bytes_out),
        not_offered: s.not_offered,
        open: s.open,
        parts: parts as u32,
        connected: s.engine.connected,
        engine_memory: Bytes(s.engine.memory),
        engine_limit: Bytes(s.engine.limit),
        engine_evicted: s.engine.evicted,
        engine_refused: s.engine.refused,
        engine_unlimited: s.engine.is_unlimited,
        engine_keeps_all: s.engine.keeps_all,
        why: Some(s.engine.failed).filter(|why| !why.is_empty()),
    }
}

/// `None` before the first measurement.
fn nanos(us: f64) -> Option<Nanos> {
    (us > 0.0).then_some(Nanos((us * 1e3) as u64))
}

fn of_admission(report: admission::AdmissionReport, open_passthrough: u64) -> AdmissionStats {
    AdmissionStats {
        admitted: report.admitted,
        declined: report.declined,
        passthrough: report.passthrough,
        open_passthrough,
        no_passthrough: report.no_passthrough,
        reasons: report.reasons.into_iter().map(admission::Reason::sentence).collect(),
    }
}

fn of_files(footprint: &Footprint) -> FilesStats {
    let Footprint { known, tables, ledger, descriptors } = *footprint;
    FilesStats { known, tables, ledger, descriptors, memory: footprint.total() }
}

fn of_size(report: &eke_cache_policy::size::SizeReport) -> SizeStats {
    SizeStats {
        asked: report.asked,
        now: report.limit,
        last_reason: Some(report.sentence()),
        last_s: report.changed_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_in_nanoseconds_and_none_before_the_first() {
        let report = tier::TierReport {
            hit_us: 42.5,
            backing_us: [0.0, 90.0, 1.0, 1.0],
            ..tier::TierReport::default()
        };
        let stats = of_tier(&report);
        assert_eq!(stats.store_cost_ns, Some(Nanos(42_500)));
        assert_eq!(stats.backing_cost_ns, Some(Nanos(90_000)));
        assert_eq!(stats.compress_cost_ns, None);
    }
}
