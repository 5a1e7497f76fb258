//! Blocks on their way to the engine. Readers leave a note of a block and go on; one thread sends what the store has of it, compressed as it
//! is there.

use std::collections::VecDeque;
use std::time::Duration;

use eke_cache_store::{CopiedBlock, OutOfMemory, Scratch, Store};

use crate::frame::OfferedBlock;
use crate::notes::Offer;
use crate::record::{self, StoredBlock};
use crate::shared::Shared;

/// A block that cannot go after so long, because it is not compressed or nobody asks its part, is not offered. A machine whose
/// CPUs are all busy needs seconds to compress.
const WITHIN: Duration = Duration::from_secs(10);

/// Between two looks for blocks that could not go.
const PAUSE: Duration = Duration::from_millis(10);
/// The same after looks in vain: each doubles it, up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// What became of a note.
enum Outcome {
    Done,
    NotYet,
    Lost,
}

impl Shared {
    /// Notes that this block may be offered. Nobody waits.
    pub fn offer(&self, offer: Offer) {
        if !self.offers.add(offer) {
            self.counters.not_offered.add(1);
        }
    }

    /// Ends [`Shared::run_offers`].
    pub fn close(&self) {
        self.offers.close();
    }

    /// Offers blocks until [`Shared::close`]. The body of a thread.
    ///
    /// # Errors
    /// There is no memory for the codecs.
    pub fn run_offers(&self, store: &Store) -> Result<(), OutOfMemory> {
        let (mut scratch, mut copy, mut raw) = (store.scratch()?, CopiedBlock::default(), Vec::new());
        let mut pause = PAUSE;
        while let Some(notes) = self.offers.take() {
            let (all, mut later) = (notes.len(), VecDeque::new());
            for (offer, since) in notes {
                match self.send_offer(store, &offer, (&mut scratch, &mut copy, &mut raw)) {
                    Outcome::Done => {}
                    Outcome::NotYet if since.elapsed() < WITHIN => later.push_back((offer, since)),
                    Outcome::NotYet | Outcome::Lost => self.counters.not_offered.add(1),
                }
            }
            pause = if later.len() < all { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            if !later.is_empty() {
                std::thread::sleep(pause);
                let mut queue = self.offers.lock();
                later.append(&mut queue.notes);
                queue.notes = later;
            }
        }
        Ok(())
    }

    /// Sends what the store has of the block, if that is what was read.
    fn send_offer(
        &self,
        store: &Store,
        offer: &Offer,
        (scratch, copy, raw): (&mut Scratch, &mut CopiedBlock, &mut Vec<u8>),
    ) -> Outcome {
        let key = offer.ticket.key();
        let name = self.name(offer.version, key.block);
        let engine_key = name.key(self.secret());
        if !store.is_current(&offer.ticket) {
            return Outcome::Lost;
        }
        if self.is_open(engine_key.group) || !store.copy_compressed(key, copy) {
            return Outcome::NotYet;
        }
        let block = copy.block(key);
        raw.resize(block.raw_len, 0);
        // The store may have got other bytes of the block since.
        let is_same = store.decompress(scratch, &block, raw) && Offer::sum(raw) == offer.sum;
        if !is_same || !store.is_current(&offer.ticket) {
            return Outcome::Lost;
        }
        let stored = StoredBlock { form: block.form, raw_len: block.raw_len, compressed: block.compressed };
        let Some(value) = self.value(&name, &stored) else { return Outcome::Lost };
        let now_us = self.now_us();
        if !self.offers.lock().bandwidth.take(value.len() as u64, now_us) {
            return Outcome::NotYet;
        }
        let message = OfferedBlock { key: engine_key, value: &value }.encode();
        if self.link().offer(&message).is_err() {
            return Outcome::Lost;
        }
        self.counters.offered.add(1);
        self.counters.bytes_out.add(value.len());
        Outcome::Done
    }

    fn value(&self, name: &crate::key::Name, block: &StoredBlock<'_>) -> Option<Vec<u8>> {
        let Some(seal) = &self.options.seal else { return Some(record::encode(name, block)) };
        let mut nonce = [0; 24];
        let random = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
        seal.seal(name, block, nonce).filter(|_| random == Ok(nonce.len()))
    }
}
