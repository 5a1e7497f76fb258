//! Readahead: where a file is read from its beginning or sequentially, the next missing blocks are read together with the
//! missing ones. On a disk that seeks, one long read costs less than two.
//!
//! The kernel reads ahead over the mount too. But it begins with a short window for each open, and each of its requests
//! would be a separate read of the backing file.

use eke_cache_store::{Key, Ticket};

use super::block_run::{Ahead, BlockRun};
use super::flight::{Claim, Lead};
use super::read::Reading;

/// A request this long is kernel readahead, or comes from a program that reads much at once.
pub const LONG: usize = 128 << 10;

/// A request this short at the beginning of a file may be the only one: its type is asked for.
const SHORT: usize = 16 << 10;

/// The most blocks of one read: for such a request, another one and a long one at the beginning of a file, and the least for a file that
/// is read on, by short requests and by long ones.
const AT_THE_FIRST_BYTES: u64 = 2;
const AT_A_SHORT_BEGINNING: u64 = 4;
const AT_A_BEGINNING: u64 = 16;
const ON_BY_SHORT: u64 = 4;
const ON_BY_LONG: u64 = 8;

impl<'t> Reading<'t, '_> {
    /// Claims the blocks after a run at the end of the request that are missing and that nobody reads, up to a longer gap of
    /// others than is worth reading again.
    pub fn ahead(&self, run: &BlockRun<'_>) -> Ahead<'t> {
        let mut ahead = Ahead::default();
        let pieces = &self.context.pieces;
        let (Some(first), Some(last)) = (pieces.get(run.first()), pieces.last()) else { return ahead };
        if run.end() != pieces.len() {
            return ahead;
        }
        let (most, gap) = (self.at_once(first.block).saturating_sub(run.len()), self.tier.counters.gap());
        for (nth, block) in (last.block + 1..).take(most.min(ahead.blocks.len())).enumerate() {
            ahead.blocks[nth] = self.lead(Key::new(self.file, block));
            if ahead.blocks[nth].is_some() {
                ahead.len = nth + 1;
            } else if nth - ahead.len >= gap {
                break;
            }
        }
        ahead
    }

    /// How many blocks one read should fetch from `first` on. For a file that is read on, as many as were read before, so at most
    /// half of the reads are wasted. For a file no longer than one read, all of it.
    fn at_once(&self, first: u64) -> usize {
        let is_long = self.len >= LONG;
        let blocks = match first {
            0 if self.len <= SHORT => AT_THE_FIRST_BYTES,
            0 if !is_long => AT_A_SHORT_BEGINNING,
            0 if self.is_short_file() => self.tier.at_once,
            0 => AT_A_BEGINNING,
            before if is_long && self.goes_on(first) => before.max(ON_BY_LONG),
            _ if is_long => 0,
            _ => match self.read_before(first) {
                0 => 0,
                run => run.max(ON_BY_SHORT),
            },
        };
        let blocks = if self.is_kept_by_recent_alone() { blocks.min(AT_A_BEGINNING) } else { blocks };
        blocks.min(self.tier.at_once) as usize
    }

    /// True if the store keeps no block of the file, because they do not compress. What is read ahead of a slow reader is soon lost then.
    fn is_kept_by_recent_alone(&self) -> bool {
        self.tier.content(self.file).fails()
    }

    fn is_short_file(&self) -> bool {
        let most = self.tier.at_once * self.store.block_size() as u64;
        self.backing.stamp().is_ok_and(|stamp| stamp.size <= most)
    }

    /// The blocks before `first` that were read from the backing file without a gap. Not the position in the file: a database reads
    /// a few neighbours anywhere.
    pub fn read_before(&self, first: u64) -> u64 {
        let size = self.store.block_size() as u64;
        self.backing.run_before(first * size) / size
    }

    /// True if the file was read up to here. Long requests come from readahead, and a stream's earlier blocks are stored here and there:
    /// the position in the file says how long it is.
    fn goes_on(&self, first: u64) -> bool {
        let before = || first.checked_sub(1).map(|block| Key::new(self.file, block));
        self.read_before(first) > 0 || before().is_some_and(|block| self.tier.holds(self.store, block))
    }

    fn lead(&self, key: Key) -> Option<(Ticket, Lead<'t>)> {
        let ticket = self.store.ticket(key);
        let Claim::Lead(lead) = self.tier.flights.claim(ticket) else { return None };
        // After the claim: another reader has landed before.
        (!self.tier.holds(self.store, key)).then_some((ticket, lead))
    }
}
