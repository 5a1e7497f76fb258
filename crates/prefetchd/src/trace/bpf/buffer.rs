//! Reads records from the BPF ring buffers.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::super::method::TraceError;
use super::super::record::at_ns;

/// Records, stored one after the other.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// The time, the first byte and the byte after the last of each.
    places: Vec<(u64, usize, usize)>,
}

impl Records {
    fn push(&mut self, record: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.places.push((at_ns(record), start, self.bytes.len()));
    }

    /// The records in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().filter_map(|(_, start, end)| self.bytes.get(*start..*end))
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Sorts by time, and removes and returns what is later than `until_ns`.
    fn split_after(&mut self, until_ns: u64) -> Self {
        self.places.sort_by_key(|(at, ..)| *at);
        let keep = self.places.partition_point(|(at, ..)| *at <= until_ns);
        let mut later = Self::default();
        for (_, start, end) in self.places.split_off(keep) {
            self.bytes.get(start..end).into_iter().for_each(|record| later.push(record));
        }
        later
    }
}

/// The reader's side of the ring buffers, whose records it merges by time.
#[derive(Debug)]
pub struct Buffer {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Records>>,
}

/// The most records per read, so that reading ends while others keep writing.
const RECORDS: usize = 8192;

impl Buffer {
    /// Maps the ring buffers of these maps. They are read in this order.
    pub fn of(maps: &[MapHandle]) -> Result<Self, TraceError> {
        let failed = |e| TraceError::new("map the BPF ring buffers", e);
        let records = Rc::new(RefCell::new(Records::default()));
        let mut builder = RingBufferBuilder::new();
        for map in maps {
            let into = Rc::clone(&records);
            let take = move |bytes: &[u8]| {
                into.borrow_mut().push(bytes);
                0
            };
            builder.add(map, take).map_err(failed)?;
        }
        Ok(Self { ring: builder.build().map_err(failed)?, records })
    }

    /// Waits for the kernel's wake-up, for at most `at_most`.
    pub fn wait(&self, at_most: Duration) {
        if !self.records.borrow().is_empty() {
            return;
        }
        // an interrupted wait simply ends
        let most = Duration::from_secs(3600);
        _ = self.ring.poll_raw(at_most.min(most));
    }

    /// The records since the last call, by time. Each buffer gets records while the other is read, so those after `now_ns`, the present time by
    /// CLOCK_MONOTONIC, stay until the next call.
    pub fn take(&self, now_ns: u64) -> Records {
        _ = self.ring.consume_raw_n(RECORDS);
        let mut records = self.records.take();
        self.records.replace(records.split_after(now_ns));
        records
    }

    /// Readable after a wake-up.
    pub fn fd(&self) -> BorrowedFd<'_> {
        #[expect(unsafe_code, reason = "libbpf gives a plain number")]
        // SAFETY: the ring owns the descriptor and closes it on drop; this borrow does not outlive the ring
        unsafe {
            BorrowedFd::borrow_raw(self.ring.epoll_fd())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64, name: u8) -> Vec<u8> {
        [&[0; 8][..], &at.to_ne_bytes(), &[name]].concat()
    }

    #[test]
    fn records_of_two_buffers_come_in_the_order_of_their_times() {
        let mut records = Records::default();
        [(5, b'b'), (9, b'd'), (3, b'a'), (7, b'c'), (9, b'e')]
            .iter()
            .for_each(|(at, name)| records.push(&record(*at, *name)));
        let later = records.split_after(8);
        let names = |records: &Records| records.iter().map(|record| record[16]).collect::<Vec<_>>();
        assert_eq!((names(&records), names(&later)), (b"abc".to_vec(), b"de".to_vec()));
        assert!(Records::default().split_after(8).is_empty());
    }
}
