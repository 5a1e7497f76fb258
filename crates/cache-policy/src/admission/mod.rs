//! Admission: running costs, and what follows for each file.
//!
//! # Layout
//! - [`cost`]: the cost of a block on each path, and the decisions; pure, with the formulas
//! - `decision`: what happens to a file, and the reason as a sentence
//! - `table`: the statistics of each file, in bounded memory
//!
//! No decision is final. Of a declined file, one run of blocks in [`cost::TRY_ONE_IN`] is still admitted, and now and then
//! an open of a passthrough file does not use passthrough ([`FIRST_PROBE`]). So a disk that becomes slow, or content that
//! changes, is noticed. A file that stays open with passthrough is not probed until it is closed: the kernel has one mode
//! for an inode while it is open.

pub mod cost;
mod decision;
mod table;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

pub use cost::Costs;
pub use decision::{Content, FileAdmission, Reason};
use table::{FileRow, Table};

/// Probes: opens of passthrough files that are cached, counted over all files. They are number 16, 32, 64 and so on, then
/// every 256th. Probes take longer, the first ones show most, and one file's costs hold for the whole disk.
pub const FIRST_PROBE: u32 = 16;
const PROBE_ONE_IN: u32 = 256;

/// Files with statistics.
const FILES: usize = 4096;

/// The last decisions that the report has.
const REASONS: usize = 8;

/// A file is decided on again after this many runs.
const DECIDE_EVERY: u32 = 16;

/// The block size of all costs, in bytes.
const BLOCK: u64 = 64 << 10;

/// Which files use passthrough to the backing file, without the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PassthroughMode {
    /// Files for which the store costs more than it saves, by running estimates.
    #[default]
    Auto,
    /// No file: for measurements.
    Never,
    /// All files whose first open only reads or only writes: for measurements.
    Always,
}

/// The path of an open file's reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    /// Through the kernel's page cache of the mount, and this process.
    Cached,
    /// The kernel reads and writes the backing file itself.
    Passthrough,
}

/// The result of the decision at an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenDecision {
    /// From its next first open the file uses passthrough, so its stored blocks are of no use.
    NowPassthrough,
    /// No change to passthrough.
    Unchanged,
}

/// Costs and decisions, for the status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdmissionReport {
    /// The cost of a block on each path, over all files.
    pub costs: Costs,
    /// Known files whose blocks are admitted.
    pub admitted: u64,
    /// Known files whose blocks are declined.
    pub declined: u64,
    /// Known files that use passthrough from their next open.
    pub passthrough: u64,
    /// Why passthrough is not available; `None`: it is, as far as is known.
    pub no_passthrough: Option<String>,
    /// The last decisions with their costs, newest last.
    pub reasons: VecDeque<Reason>,
}

/// The running estimates and decisions of one mount. A file is identified by a well-mixed hash.
#[derive(Debug)]
pub struct Admission {
    asked: PassthroughMode,
    table: Table,
    /// Over all files: microseconds for a block, as bits of an `f32`.
    backing_us: AtomicU32,
    backing_least_us: AtomicU32,
    hit_us: AtomicU32,
    compress_us: AtomicU32,
    /// The number of blocks behind these estimates.
    backing_blocks: AtomicU64,
    hit_blocks: AtomicU64,
    /// First opens of passthrough files; wraps.
    passthrough_opens: AtomicU32,
    /// Blocks of files that the store has room for.
    room_blocks: AtomicU64,
    busy: AtomicBool,
    /// The share of blocks that do not compress, as bits of an `f32`.
    failing: AtomicU32,
    reasons: Mutex<VecDeque<Reason>>,
    no_passthrough: Mutex<Option<String>>,
}

impl Admission {
    /// Without any statistics.
    pub fn new(asked: PassthroughMode) -> Self {
        Self {
            asked,
            table: Table::new(FILES),
            backing_us: AtomicU32::new(0),
            backing_least_us: AtomicU32::new(0),
            hit_us: AtomicU32::new(0),
            compress_us: AtomicU32::new(0),
            backing_blocks: AtomicU64::new(0),
            hit_blocks: AtomicU64::new(0),
            passthrough_opens: AtomicU32::new(0),
            room_blocks: AtomicU64::new(u64::MAX),
            busy: AtomicBool::new(false),
            failing: AtomicU32::new(0),
            reasons: Mutex::new(VecDeque::new()),
            no_passthrough: Mutex::new(None),
        }
    }

    /// Sets how many bytes of files the store has room for: its limit times its ratio.
    pub fn has_room_for(&self, room: Bytes) {
        self.room_blocks.store(room.0 / BLOCK, Ordering::Relaxed);
    }

    /// Sets whether no processor was idle recently.
    pub fn processors_are_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// Sets the share of blocks read lately that do not compress, 0 to 1.
    pub fn blocks_fail(&self, failing: f32) {
        self.failing.store(failing.to_bits(), Ordering::Relaxed);
    }

    /// The path of an open of `file`. Call it only if the node is not open: while it is, its path is fixed.
    /// `is_new`: the open is for writing only, and nothing was written yet; the store has nothing of such a file, and each write through
    /// this process is a round trip.
    pub fn data_path(&self, file: u64, is_new: bool) -> DataPath {
        let passthrough = match self.asked {
            _ if lock(&self.no_passthrough).is_some() => false,
            PassthroughMode::Never => false,
            PassthroughMode::Always => true,
            PassthroughMode::Auto if is_new => true,
            PassthroughMode::Auto => {
                self.table.row(file).admission() == FileAdmission::Passthrough && !self.probes()
            }
        };
        if passthrough { DataPath::Passthrough } else { DataPath::Cached }
    }

    /// False if no open of this mount ever uses passthrough.
    pub fn may_pass_through(&self) -> bool {
        self.asked != PassthroughMode::Never
    }

    /// True if this open of a passthrough file is a probe.
    fn probes(&self) -> bool {
        is_probe(self.passthrough_opens.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Passthrough is not available: everything is cached from now on.
    pub fn no_passthrough(&self, why: String) {
        *lock(&self.no_passthrough) = Some(why);
    }

    /// Costs and decisions so far.
    pub fn report(&self) -> AdmissionReport {
        let counted = self.table.count();
        AdmissionReport {
            costs: self.costs(),
            admitted: counted[FileAdmission::Admit as usize],
            declined: counted[FileAdmission::Decline as usize],
            passthrough: counted[FileAdmission::Passthrough as usize],
            no_passthrough: lock(&self.no_passthrough).clone(),
            reasons: lock(&self.reasons).clone(),
        }
    }

    /// Decides on `file`. Call it at each open, before [`Self::data_path`], also while the file is already open: a file that
    /// is never closed must not keep a path that does not pay. `passes`: the open may choose passthrough. No other open
    /// decides for it: the file would lose its blocks, and still be read through this process. `size` returns its bytes and is
    /// called only if needed; without a size nothing is decided.
    pub fn decide_at_open(
        &self,
        file: u64,
        passes: bool,
        size: impl FnOnce() -> Option<u64>,
        content: Content,
    ) -> OpenDecision {
        if self.asked != PassthroughMode::Auto || lock(&self.no_passthrough).is_some() {
            return OpenDecision::Unchanged;
        }
        let Some(size) = size() else { return OpenDecision::Unchanged };
        let row = self.table.row(file);
        row.set_size(size.div_ceil(BLOCK));
        let before = row.admission();
        let decided = cost::at_open(before, &row.history(), &self.costs(), content)
            .filter(|reason| passes || reason.admission() != FileAdmission::Passthrough);
        let now = self.change(row, decided);
        if now == FileAdmission::Passthrough && before != now {
            OpenDecision::NowPassthrough
        } else {
            OpenDecision::Unchanged
        }
    }

    /// The cost of a block on each path, over all files.
    pub fn costs(&self) -> Costs {
        let us = |bits: &AtomicU32| f32::from_bits(bits.load(Ordering::Relaxed));
        Costs {
            backing_us: us(&self.backing_us),
            backing_least_us: us(&self.backing_least_us),
            busy: self.busy.load(Ordering::Relaxed),
            failing: us(&self.failing),
            hit_us: us(&self.hit_us),
            compress_us: us(&self.compress_us),
            backing_blocks: self.backing_blocks.load(Ordering::Relaxed),
            hit_blocks: self.hit_blocks.load(Ordering::Relaxed),
        }
    }

    /// Records a decision, if it is a change. The reasons that the report has differ: of equal ones, only the newest stays.
    fn change(&self, row: &FileRow, decided: Option<Reason>) -> FileAdmission {
        let Some(reason) = decided else { return row.admission() };
        row.decide(reason.admission());
        let mut reasons = lock(&self.reasons);
        reasons.retain(|other| *other != reason);
        if reasons.len() == REASONS {
            reasons.pop_front();
        }
        reasons.push_back(reason);
        reason.admission()
    }
}

impl Admission {
    /// True if a run of blocks, read from the backing file from `block` on, should be admitted to the store. Stored blocks
    /// are served in any case.
    pub fn admit(&self, file: u64, block: u64) -> bool {
        let row = self.table.row(file);
        let number = row.read_at(block);
        if number % DECIDE_EVERY == 0 {
            let room = self.room_blocks.load(Ordering::Relaxed);
            self.change(row, cost::while_reading(row.admission(), &row.history(), &self.costs(), room));
        }
        row.admission() == FileAdmission::Admit || number % cost::TRY_ONE_IN == 0
    }

    /// Records a read of `bytes` from the backing file. `took` is the reader's time without waiting for a processor, divided
    /// by the number of concurrent reads: the disk's time for it.
    pub fn note_backing_read(&self, file: u64, bytes: usize, took: Duration) {
        let (blocks, us) = per_block(bytes, took);
        note(&self.backing_us, us, cost::running);
        if blocks >= cost::MIN_RUN_FOR_LEAST {
            note(&self.backing_least_us, us, cost::undisturbed);
        }
        self.backing_blocks.fetch_add(u64::from(blocks), Ordering::Relaxed);
        self.table.row(file).note_backing_read(blocks, us);
    }

    /// Records that `bytes` of the backing file came from the kernel's page cache: a miss, of unknown cost to the disk.
    pub fn note_page_cache_read(&self, file: u64, bytes: usize) {
        self.table.row(file).note_misses(per_block(bytes, Duration::ZERO).0);
    }

    /// Records `bytes` decompressed from the store in `took`.
    pub fn note_hit(&self, file: u64, bytes: usize, took: Duration) {
        let (blocks, us) = per_block(bytes, took);
        note(&self.hit_us, us, cost::running);
        self.hit_blocks.fetch_add(u64::from(blocks), Ordering::Relaxed);
        self.table.row(file).note_hit(blocks);
    }

    /// Records that `blocks` blocks of any files were compressed in `took`, the time of a worker or a reader without waiting
    /// for a processor.
    pub fn note_compressed(&self, blocks: usize, took: Duration) {
        if blocks > 0 {
            note(&self.compress_us, micros(took) / blocks as f32, cost::running);
        }
    }
}

/// True if the open of a passthrough file with this number, from 1 on, is a probe.
fn is_probe(number: u32) -> bool {
    number % PROBE_ONE_IN == 0 || (number >= FIRST_PROBE && number.is_power_of_two())
}

/// The number of blocks, and the time of one. A part of a block counts as a whole one.
fn per_block(bytes: usize, took: Duration) -> (u32, f32) {
    let blocks = u32::try_from((bytes as u64).div_ceil(BLOCK)).unwrap_or(u32::MAX).max(1);
    (blocks, micros(took) / blocks as f32)
}

fn micros(took: Duration) -> f32 {
    took.as_secs_f32() * 1e6
}

/// Adds a value to a running estimate. Two concurrent calls may lose one value.
fn note(estimate: &AtomicU32, us: f32, next: impl Fn(f32, f32) -> f32) {
    let old = f32::from_bits(estimate.load(Ordering::Relaxed));
    estimate.store(next(old, us).to_bits(), Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
