//! Does it pay? Running costs, and which files use passthrough.
//!
//! # Layout
//! - [`cost`]: what a block costs on each way, and what follows: pure, with the formulas
//! - `table`: what is known of each file, in bounded memory
//!
//! A decision is never for good: of a file whose blocks are not taken in, one run of blocks in [`cost::TRY_ONE_IN`] is
//! taken in still, and an open of a passthrough file is not passthrough now and then ([`FIRST_PROBE`]). So a disk that gets slow, or a
//! content that changes, is seen. A file that stays open by passthrough is not looked at until it is closed: the kernel has one way
//! for an inode while it is open.

pub mod cost;
mod table;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

pub use cost::{Costs, Reason, Verdict};
use table::{Row, Table};

/// Opens of passthrough files that are not passthrough, over all files: those of this number, twice it, four times, and so on, and then
/// one in so many: they take longer, the first have shown most of what can be seen, and what one file shows of the disk holds
/// for all.
pub const FIRST_PROBE: u32 = 16;
const PROBE_ONE_IN: u32 = 256;

/// Files of which something is known.
const FILES: usize = 4096;

/// The last decisions that the report has.
const REASONS: usize = 8;

/// A file is judged again after so many blocks.
const JUDGE_EVERY: u32 = 16;

/// The bytes that a block of costs stands for.
const BLOCK: u64 = 64 << 10;

/// Which files use passthrough to the backing disk, without the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PassthroughMode {
    /// Those where the store costs more than it gives, by running estimates.
    #[default]
    Auto,
    /// None: for measurements.
    Never,
    /// All: for measurements.
    Always,
}

/// Which way an open file's reads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Through the kernel's page cache over the mount, and this process.
    Cached,
    /// The kernel reads the backing file itself.
    Passthrough,
}

/// What came of judging a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// It uses passthrough from its next first open on: what is held of it will not be asked for.
    TurnedToPassthrough,
    /// Nothing of that kind.
    AsBefore,
}

/// What is believed, for the status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// What a block costs on each way, over all files.
    pub costs: Costs,
    /// Files known whose blocks are taken in.
    pub taken_in: u64,
    /// Files known whose blocks are not.
    pub not_taken_in: u64,
    /// Files known that use passthrough at their next open.
    pub passthrough: u64,
    /// Why passthrough cannot be had; none: it can, as far as is known.
    pub no_passthrough: Option<String>,
    /// The last decisions with their stats, newest last.
    pub reasons: VecDeque<Reason>,
}

/// The running estimates and decisions of one mount. A file is a number that is well mixed: its hash.
#[derive(Debug)]
pub struct Admission {
    asked: PassthroughMode,
    table: Table,
    /// Over all files: microseconds for a block as bits of an `f32`.
    backing_us: AtomicU32,
    backing_least_us: AtomicU32,
    hit_us: AtomicU32,
    compress_us: AtomicU32,
    /// Blocks that these are from.
    backing_blocks: AtomicU64,
    hit_blocks: AtomicU64,
    /// First opens of passthrough files, in a number that wraps.
    passthrough_opens: AtomicU32,
    /// Blocks of files that the store has room for.
    room_blocks: AtomicU64,
    busy: AtomicBool,
    reasons: Mutex<VecDeque<Reason>>,
    no_passthrough: Mutex<Option<String>>,
}

impl Admission {
    /// With nothing known.
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
            reasons: Mutex::new(VecDeque::new()),
            no_passthrough: Mutex::new(None),
        }
    }

    /// Tells how much of files the store has room for: its limit times its ratio.
    pub fn has_room_for(&self, room: Bytes) {
        self.room_blocks.store(room.0 / BLOCK, Ordering::Relaxed);
    }

    /// Tells whether no processor was idle of late.
    pub fn processors_are_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// The way of an open of `file` whose node is not open otherwise; while it is, the way is that one's, and this is not asked.
    pub fn way(&self, file: u64) -> Way {
        let passthrough = match self.asked {
            _ if lock(&self.no_passthrough).is_some() => false,
            PassthroughMode::Never => false,
            PassthroughMode::Always => true,
            PassthroughMode::Auto => self.table.row(file).verdict() == Verdict::Passthrough && !self.probes(),
        };
        if passthrough { Way::Passthrough } else { Way::Cached }
    }

    /// Is this open of a passthrough file one that shows what the way through takes?
    fn probes(&self) -> bool {
        is_probe(self.passthrough_opens.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Passthrough cannot be had: all is cached from now on.
    pub fn no_passthrough(&self, why: String) {
        *lock(&self.no_passthrough) = Some(why);
    }

    /// What is believed.
    pub fn report(&self) -> Report {
        let counted = self.table.count();
        Report {
            costs: self.costs(),
            taken_in: counted[Verdict::TakenIn as usize],
            not_taken_in: counted[Verdict::NotTakenIn as usize],
            passthrough: counted[Verdict::Passthrough as usize],
            no_passthrough: lock(&self.no_passthrough).clone(),
            reasons: lock(&self.reasons).clone(),
        }
    }

    /// To be called at each open of `file` before its way is asked for, also while it is open otherwise: a file that is never closed
    /// must not be held for ever by a way that does not pay. `size` tells its bytes, and is asked only where that decides
    /// something; of a file without one nothing is decided.
    pub fn judge_open(&self, file: u64, size: impl FnOnce() -> Option<u64>) -> Judged {
        if self.asked != PassthroughMode::Auto || lock(&self.no_passthrough).is_some() {
            return Judged::AsBefore;
        }
        let Some(size) = size() else { return Judged::AsBefore };
        let row = self.table.row(file);
        row.set_size(size.div_ceil(BLOCK));
        let before = row.verdict();
        let now = self.change(row, cost::at_open(before, &row.seen(), &self.costs()));
        if now == Verdict::Passthrough && before != now {
            Judged::TurnedToPassthrough
        } else {
            Judged::AsBefore
        }
    }

    fn costs(&self) -> Costs {
        let us = |bits: &AtomicU32| f32::from_bits(bits.load(Ordering::Relaxed));
        Costs {
            backing_us: us(&self.backing_us),
            backing_least_us: us(&self.backing_least_us),
            busy: self.busy.load(Ordering::Relaxed),
            hit_us: us(&self.hit_us),
            compress_us: us(&self.compress_us),
            backing_blocks: self.backing_blocks.load(Ordering::Relaxed),
            hit_blocks: self.hit_blocks.load(Ordering::Relaxed),
        }
    }

    /// Enters what was decided, if it is new.
    fn change(&self, row: &Row, decided: Option<Reason>) -> Verdict {
        let Some(reason) = decided else { return row.verdict() };
        row.decide(reason.verdict());
        let mut reasons = lock(&self.reasons);
        if reasons.len() == REASONS {
            reasons.pop_front();
        }
        reasons.push_back(reason);
        reason.verdict()
    }
}

impl Admission {
    /// Shall a run of blocks of this file, read from the backing file from `block` on, be taken into the store? What is held is served all
    /// the same.
    pub fn admit(&self, file: u64, block: u64) -> bool {
        let row = self.table.row(file);
        let turn = row.read_at(block);
        if turn % JUDGE_EVERY == 0 {
            let room = self.room_blocks.load(Ordering::Relaxed);
            self.change(row, cost::on_the_way(row.verdict(), &row.seen(), &self.costs(), room));
        }
        row.verdict() == Verdict::TakenIn || turn % cost::TRY_ONE_IN == 0
    }

    /// So many bytes were read from the backing file at once. `took` is the reader's time, without what it waited for a processor, divided
    /// by how many read at once: what the disk took for it.
    pub fn note_backing_read(&self, file: u64, bytes: usize, took: Duration) {
        let (blocks, us) = per_block(bytes, took);
        note(&self.backing_us, us, cost::running);
        if blocks >= cost::TELLING {
            note(&self.backing_least_us, us, cost::undisturbed);
        }
        self.backing_blocks.fetch_add(u64::from(blocks), Ordering::Relaxed);
        self.table.row(file).note_backing_read(blocks, us);
    }

    /// So many bytes were decompressed out of the store, in so much time.
    pub fn note_hit(&self, file: u64, bytes: usize, took: Duration) {
        let (blocks, us) = per_block(bytes, took);
        note(&self.hit_us, us, cost::running);
        self.hit_blocks.fetch_add(u64::from(blocks), Ordering::Relaxed);
        self.table.row(file).note_hit(blocks);
    }

    /// So many blocks, of any files, were compressed, in so much time of a worker's or of a reader's, without waiting for a
    /// processor.
    pub fn note_compressed(&self, blocks: usize, took: Duration) {
        if blocks > 0 {
            note(&self.compress_us, micros(took) / blocks as f32, cost::running);
        }
    }
}

/// Is an open of a passthrough file with this number, from 1 on, to show what the way through takes?
fn is_probe(number: u32) -> bool {
    number % PROBE_ONE_IN == 0 || (number >= FIRST_PROBE && number.is_power_of_two())
}

/// Blocks, and what one took; a part of a block is work like a whole one.
fn per_block(bytes: usize, took: Duration) -> (u32, f32) {
    let blocks = u32::try_from((bytes as u64).div_ceil(BLOCK)).unwrap_or(u32::MAX).max(1);
    (blocks, micros(took) / blocks as f32)
}

fn micros(took: Duration) -> f32 {
    took.as_secs_f32() * 1e6
}

/// A new value in a running estimate. Two at once may lose one.
fn note(estimate: &AtomicU32, us: f32, next: impl Fn(f32, f32) -> f32) {
    let old = f32::from_bits(estimate.load(Ordering::Relaxed));
    estimate.store(next(old, us).to_bits(), Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
