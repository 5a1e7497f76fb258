//! Blocks on their way to the engine. Readers leave a note of a block and go on; one thread sends what the store has of it, compressed as it
//! is there.

use std::time::Duration;

use eke_cache_store::{CopiedBlock, OutOfMemory, Scratch, Store};

use crate::frame::OfferedBlock;
use crate::notes::{Notes, Offer};
use crate::record::{self, HEAD, StoredBlock};
use crate::shared::Shared;

/// A block that cannot go after so long, because it is not compressed or nobody asks its part, is not offered. A machine whose
/// CPUs are all busy needs seconds to compress.
const WITHIN: Duration = Duration::from_secs(10);

/// Between two looks for blocks that could not go.
const PAUSE: Duration = Duration::from_millis(10);
/// The same after looks in vain: each doubles it, up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// What became of a note.
#[derive(Clone, Copy)]
enum Outcome {
    Done,
    NotYet,
    Lost,
    /// No bytes are left: no other note can go now either.
    Spent,
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
            let all = notes.len();
            let later =
                self.round(notes, |offer| self.send_offer(store, offer, (&mut scratch, &mut copy, &mut raw)));
            pause = if later.len() < all { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            if !later.is_empty() {
                std::thread::sleep(pause);
            }
            self.offers.put_back(later);
        }
        Ok(())
    }

    /// Sends notes until no bytes are left. Returns those that could not go yet. A note that waits costs nothing but its look into the store.
    fn round(&self, notes: Notes, mut send: impl FnMut(&Offer) -> Outcome) -> Notes {
        let (mut later, mut is_spent) = (Notes::new(), false);
        for (offer, since) in notes {
            let outcome = if is_spent { Outcome::Spent } else { send(&offer) };
            is_spent = matches!(outcome, Outcome::Spent);
            match outcome {
                Outcome::Done => {}
                Outcome::NotYet | Outcome::Spent if since.elapsed() < WITHIN => {
                    later.push_back((offer, since))
                }
                Outcome::NotYet | Outcome::Spent | Outcome::Lost => self.counters.not_offered.add(1),
            }
        }
        later
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
        let (block, now_us) = (copy.block(key), self.now_us());
        // Before what takes time. A sealed block has a shorter head.
        let bytes = (HEAD + block.compressed.len()) as u64;
        if !self.offers.lock().bandwidth.take(bytes, now_us) {
            return Outcome::Spent;
        }
        raw.resize(block.raw_len, 0);
        // The store may have got other bytes of the block since.
        let is_same = store.decompress(scratch, &block, raw) && Offer::sum(raw) == offer.sum;
        if !is_same || !store.is_current(&offer.ticket) {
            return Outcome::Lost;
        }
        let stored = StoredBlock { form: block.form, raw_len: block.raw_len, compressed: block.compressed };
        let Some(value) = self.value(&name, &stored) else { return Outcome::Lost };
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Instant;

    use eke_cache_store::{FileId, Key, StoreSpec};
    use eke_model::units::Bytes;

    use super::*;
    use crate::shared::SharedOptions;
    use crate::{FileVersion, Link, Origin};

    struct Nowhere;

    impl Link for Nowhere {
        fn ask(&self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn offer(&self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn when_no_bytes_are_left_the_other_notes_wait_unread() {
        let options = SharedOptions {
            origin: Origin::named("farm"),
            block_size: 65_536,
            is_cluster: false,
            seal: None,
            bandwidth: 1 << 20,
            settled_ns: 0,
            patience: None,
        };
        let shared = Shared::new(Box::new(Nowhere), options);
        let store = Store::new(StoreSpec::for_cpus(Bytes::mib(64), 1)).unwrap();
        let version = FileVersion { file: 7, size: 1 << 30, times_ns: [1, 2, 3] };
        let note = |block, since| {
            (Offer { ticket: store.ticket(Key::new(FileId(7), block)), version, sum: 0 }, since)
        };
        let now = Instant::now();
        let mut notes: Notes = (0..100).map(|block| note(block, now)).collect();
        // One waits too long already.
        notes.extend(now.checked_sub(WITHIN).map(|long_ago| note(100, long_ago)));
        let outcomes = [Outcome::NotYet, Outcome::Done, Outcome::Lost, Outcome::Spent];
        let mut sent = outcomes.into_iter();
        let later = shared.round(notes, |_| sent.next().unwrap());
        let blocks: Vec<u64> = later.iter().map(|(offer, _)| offer.ticket.key().block).collect();
        assert_eq!(blocks, [0].into_iter().chain(3..100).collect::<Vec<_>>());
        assert_eq!(shared.stats().not_offered, 2);
    }
}
