//! Blocks on their way to the engine. Readers leave a note of a block and go on; one thread sends what the store has of it, compressed as it
//! is there. A note costs no block's memory, so the queue does not either.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_store::{CopiedBlock, OutOfMemory, Scratch, Store, Ticket};
use twox_hash::XxHash3_64;

use crate::decide::Bandwidth;
use crate::frame::OfferedBlock;
use crate::key::FileVersion;
use crate::record::{self, StoredBlock};
use crate::shared::Shared;

/// The most notes: 256 MiB of blocks.
const MOST: usize = 4096;

/// A block that is not compressed after so long is not offered.
const WITHIN: Duration = Duration::from_secs(1);

/// Between two looks for blocks that were not compressed yet.
const PAUSE: Duration = Duration::from_millis(10);

/// A block that was read from the origin.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// It entered the store by this.
    pub ticket: Ticket,
    /// The file's version before and after it was read.
    pub version: FileVersion,
    /// Of the bytes that were read: see [`Offer::sum`].
    pub sum: u64,
}

impl Offer {
    /// The checksum of a block's bytes.
    pub fn sum(block: &[u8]) -> u64 {
        XxHash3_64::oneshot(block)
    }
}

#[derive(Debug)]
pub(crate) struct Offers {
    queue: Mutex<Queue>,
    added: Condvar,
}

#[derive(Debug)]
struct Queue {
    notes: VecDeque<(Offer, Instant)>,
    bandwidth: Bandwidth,
    closed: bool,
}

/// What became of a note.
enum Outcome {
    Done,
    NotYet,
    Lost,
}

impl Offers {
    pub fn new(bandwidth: Bandwidth) -> Self {
        let queue = Queue { notes: VecDeque::new(), bandwidth, closed: false };
        Self { queue: Mutex::new(queue), added: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All notes, when there are some; `None`: closed.
    fn take(&self) -> Option<VecDeque<(Offer, Instant)>> {
        let mut queue = self.lock();
        while queue.notes.is_empty() {
            if queue.closed {
                return None;
            }
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut queue.notes))
    }
}

impl Shared {
    /// Notes that this block may be offered. Nobody waits.
    pub fn offer(&self, offer: Offer) {
        let mut queue = self.offers.lock();
        if queue.closed || queue.notes.len() >= MOST || queue.notes.try_reserve(1).is_err() {
            self.counters.not_offered.add(1);
            return;
        }
        queue.notes.push_back((offer, Instant::now()));
        drop(queue);
        self.offers.added.notify_one();
    }

    /// Ends [`Shared::run_offers`].
    pub fn close(&self) {
        self.offers.lock().closed = true;
        self.offers.added.notify_all();
    }

    /// Offers blocks until [`Shared::close`]. The body of a thread.
    ///
    /// # Errors
    /// There is no memory for the codecs.
    pub fn run_offers(&self, store: &Store) -> Result<(), OutOfMemory> {
        let (mut scratch, mut copy, mut raw) = (store.scratch()?, CopiedBlock::default(), Vec::new());
        while let Some(notes) = self.offers.take() {
            let mut later = VecDeque::new();
            for (offer, since) in notes {
                match self.send_offer(store, &offer, (&mut scratch, &mut copy, &mut raw)) {
                    Outcome::Done => {}
                    Outcome::NotYet if since.elapsed() < WITHIN => later.push_back((offer, since)),
                    Outcome::NotYet | Outcome::Lost => self.counters.not_offered.add(1),
                }
            }
            if !later.is_empty() {
                std::thread::sleep(PAUSE);
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
