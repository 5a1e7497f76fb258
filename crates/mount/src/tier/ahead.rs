//! Reading ahead: where a file is read from its beginning or on and on, what will be missing next comes with what is missing
//! now. One long read costs a disk that seeks less than two.
//!
//! The kernel reads ahead over the mount too, but begins with a short window for each open, and every one of its requests
//! would be a read of its own below.

use eke_cache::{Key, Ticket};

use super::fetch::{MOST, Run};
use super::flight::{Claim, Lead};
use super::read::Reading;

/// Blocks that follow a run, each to be brought in by its ticket.
pub(super) type Ahead<'t> = [Option<(Ticket, Lead<'t>)>; MOST];

impl<'t> Reading<'t, '_> {
    /// The blocks behind a run at the end of the request that are missing and that nobody reads, up to the first that is not.
    pub fn ahead(&self, run: &Run<'_>) -> Ahead<'t> {
        let mut ahead = Ahead::default();
        let pieces = &self.hands.pieces;
        let (Some(first), Some(last)) = (pieces.get(run.first()), pieces.last()) else { return ahead };
        if run.end() != pieces.len() {
            return ahead;
        }
        let offset = first.block * self.store.block_size() as u64;
        if offset > 0 && !self.below.goes_on_at(offset) {
            return ahead;
        }
        let blocks = last.block + 1..;
        for (slot, block) in ahead.iter_mut().take(MOST - run.len()).zip(blocks) {
            *slot = self.lead(Key::new(self.file, block));
            if slot.is_none() {
                break;
            }
        }
        ahead
    }

    fn lead(&self, key: Key) -> Option<(Ticket, Lead<'t>)> {
        let ticket = self.store.ticket(key);
        let Claim::Lead(lead) = self.tier.flights.claim(ticket) else { return None };
        // After the claim: whoever read it meanwhile has landed before.
        let is_held = self.store.contains(key) || self.tier.recent.get(self.store, key).is_some();
        (!is_held).then_some((ticket, lead))
    }
}
