//! Work once a second beside the requests: starts rounds of recompression when processors are idle, tells the admission policy how much
//! room the store has, and releases unlinked files and unused buffers.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_cache_policy::admission::Admission;
use eke_cache_policy::aside::Sample;
use eke_cache_store::{Stats, Store};
use eke_cachefs::fs::Fs;
use eke_cachefs::tier::{Tier, TierReport};
use eke_linux::{Root, parse};
use eke_model::units::Bytes;

use super::aside::Aside;
use super::notices::Notices;
use crate::size::Governor;
use crate::supervisor::deaths::RENEWED;
use crate::warm::remember::Remember;

const TICK: Duration = Duration::from_secs(1);
/// Ticks between the starts of two rounds, at least. Blocks that stay are in the store's main queue by then, so little is recompressed
/// in vain. While the disk limits readers, a high ratio counts more than compression time.
const BETWEEN_ROUNDS: u32 = 2;
/// Idle share of processor time in the last tick. From the first value on a round may start; below the second it stops. The
/// compressors' own time counts as busy.
const BEGIN_IDLE: f64 = 0.5;
const END_IDLE: f64 = 0.1;
/// Ticks in a row with idle time after which processors count as idle for the admission policy. A shorter pause is part of a busy
/// phase: costs of reads that are measured then include waiting for a processor.
const CALM_TICKS: u32 = 5;
/// Ticks between two checks for unlinked files (some thousand calls of statx(2)); unused buffers are released at the same time.
const BETWEEN_CLEANINGS: u64 = 10;
/// The compression ratio that is assumed until the store has measured one (text and code: measured on Silesia with LZ4).
const USUAL_RATIO: f64 = 2.0;

/// The parts of the worker that need maintenance.
pub(super) struct Maintenance {
    pub(super) store: Arc<Store>,
    pub(super) admission: Arc<Admission>,
    pub(super) governor: Arc<Governor>,
    pub(super) fs: Arc<Fs>,
    pub(super) tier: Arc<Tier>,
    pub(super) remember: Option<Arc<Remember>>,
    pub(super) aside: Arc<Aside>,
}

/// Decides when rounds of recompression start and stop. Pure.
#[derive(Debug, Clone, Copy, Default)]
struct RoundSchedule {
    /// Since the last round started or stopped.
    ticks: u32,
    /// Blocks inserted when the last round started.
    insertions: u64,
    under_way: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundAction {
    Begin,
    End,
    Nothing,
}

impl RoundSchedule {
    /// One tick, with its idle share of processor time and the blocks inserted so far.
    fn tick(&mut self, idle: f64, insertions: u64) -> RoundAction {
        self.ticks += 1;
        let due = self.ticks >= BETWEEN_ROUNDS && insertions != self.insertions;
        if due && idle >= BEGIN_IDLE {
            *self = Self { ticks: 0, insertions, under_way: true };
            RoundAction::Begin
        } else if self.under_way && idle < END_IDLE {
            // The next round does the rest.
            *self = Self { ticks: 0, insertions: 0, under_way: false };
            RoundAction::End
        } else {
            RoundAction::Nothing
        }
    }
}

impl Maintenance {
    /// What tells whether the mount is of use.
    fn sample(&self, now: Duration, stats: &Stats) -> Sample {
        let (report, costs, memory) = (self.tier.report(), self.admission.costs(), self.governor.memory());
        Sample {
            now,
            opens: self.fs.opens(),
            hits: report.hits,
            misses: report.misses,
            inserted: stats.insertions,
            evicted: stats.evictions,
            hit_us: report.hit_us,
            miss_us: miss_us(costs.disk_us(), &report),
            miss_bytes: miss_bytes(&report),
            raw: stats.raw,
            held: stats.held,
            limit: stats.limit,
            files: self.fs.footprint().known,
            free: memory.free,
            available: memory.available,
            is_full: memory.is_full,
            refaulted: memory.refaulted,
        }
    }

    /// After a move: aside the store gives its memory to the page cache of the directory itself, and the kernel forgets the mount's files.
    /// What was hot is written down before.
    fn follow_move(&self, is_aside: bool, notices: &Notices) {
        if let Some(remember) = &self.remember {
            remember.hold(is_aside);
        }
        self.governor.stand_aside(is_aside);
        if is_aside {
            notices.forget_all();
        }
    }

    /// Runs for ever. Advice goes to the supervisor while the backing directory is watched.
    pub(super) fn run(
        &self,
        root: &Root,
        notices: &Notices,
        is_watched: impl Fn() -> bool,
        supervisor: &OwnedFd,
    ) {
        let mut schedule = RoundSchedule::default();
        let (mut before, mut ticks, mut calm) = (processor_time(root), 0_u64, CALM_TICKS);
        loop {
            std::thread::sleep(TICK);
            let now = processor_time(root);
            let stats = self.store.stats();
            self.admission.has_room_for(room(&stats));
            self.admission.blocks_fail(self.store.failing());
            self.tier.follow_limit();
            self.governor.set_beside(self.fs.footprint().total());
            notices.check();
            if let Some(is_aside) = self.aside.has_moved() {
                self.follow_move(is_aside, notices);
            }
            if self.aside.should_end(self.fs.footprint().known) {
                // Nothing is closed: the next one takes over what is still open.
                std::process::exit(RENEWED);
            }
            // Readers from before a move would not see what is written below.
            if is_watched() {
                self.aside.advise(supervisor, |now| self.sample(now, &stats));
            }
            self.fs.close_lingering_files(Instant::now());
            ticks += 1;
            if ticks % BETWEEN_CLEANINGS == 0 {
                self.fs.nodes().close_unused();
                notices.drop_left();
                self.fs.give_back_buffers();
                self.fs.give_up_ids();
            }
            let idle = idle(before, now);
            calm = if now.0 > before.0 && idle < END_IDLE { 0 } else { calm.saturating_add(1) };
            self.admission.processors_are_busy(calm < CALM_TICKS);
            match schedule.tick(idle, stats.insertions) {
                RoundAction::Begin => self.store.begin_round(),
                RoundAction::End => self.store.end_round(),
                RoundAction::Nothing => {}
            }
            before = now;
        }
    }
}

/// What a block takes from the disk. What was in the kernel's page cache tells little of the disk, but more than nothing.
fn miss_us(disk_us: f32, report: &TierReport) -> f64 {
    let known = std::iter::once(disk_us.into()).chain(report.backing_us);
    known.into_iter().find(|&us| us > 0.0).unwrap_or(0.0)
}

/// The mean size of a block from the disk.
fn miss_bytes(report: &TierReport) -> u32 {
    let mean = report.bytes_from_backing.checked_div(report.misses).unwrap_or(0);
    u32::try_from(mean).unwrap_or(u32::MAX)
}

/// Bytes of files for which the store has room.
fn room(stats: &Stats) -> Bytes {
    stats.limit.scaled(stats.ratio().unwrap_or(USUAL_RATIO).max(1.0))
}

/// All processors' time and their idle time since the machine started, in ticks of proc_stat(5).
fn processor_time(root: &Root) -> (u64, u64) {
    parse::stat::machine(&root.read("proc/stat").unwrap_or_default())
}

fn idle(before: (u64, u64), now: (u64, u64)) -> f64 {
    let (all, idle) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    if all == 0 { 0.0 } else { idle as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_when_processors_are_idle_and_blocks_are_new() {
        let mut schedule = RoundSchedule::default();
        let first = (1..100).find(|_| schedule.tick(0.9, 5) == RoundAction::Begin);
        assert_eq!(first, Some(BETWEEN_ROUNDS));
        assert!((0..100).all(|_| schedule.tick(0.9, 5) == RoundAction::Nothing), "nothing new");
        assert!((0..100).all(|_| schedule.tick(0.2, 6) == RoundAction::Nothing), "busy");
        assert_eq!(schedule.tick(0.9, 6), RoundAction::Begin);
    }

    #[test]
    fn a_round_ends_when_processors_are_busy_and_another_one_follows() {
        let mut schedule = RoundSchedule::default();
        assert!((0..BETWEEN_ROUNDS).any(|_| schedule.tick(1.0, 5) == RoundAction::Begin));
        let busy = (schedule.tick(0.05, 5), schedule.tick(0.05, 5));
        assert_eq!(busy, (RoundAction::End, RoundAction::Nothing));
        assert!((0..BETWEEN_ROUNDS).any(|_| schedule.tick(1.0, 5) == RoundAction::Begin));
    }

    #[test]
    fn idle_time_is_a_share() {
        assert!((idle((100, 50), (200, 125)) - 0.75).abs() < 1e-9);
        assert!(idle((100, 50), (100, 50)).abs() < 1e-9);
    }
}
