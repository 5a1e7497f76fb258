//! The ring buffer: records as bytes.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::super::way::Refused;

/// Records one after the other.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// Each record.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.bytes.get(start..*end))
    }
}

/// The reader's side of the ring buffer.
#[derive(Debug)]
pub struct Buffer {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Records>>,
}

/// Records read in one go, at most: while others write without end there is an end to reading.
const RECORDS: usize = 8192;

impl Buffer {
    /// Of this map.
    pub fn of(map: &MapHandle) -> Result<Self, Refused> {
        let records = Rc::new(RefCell::new(Records::default()));
        let into = Rc::clone(&records);
        let mut builder = RingBufferBuilder::new();
        let built = builder
            .add(map, move |bytes| {
                into.borrow_mut().push(bytes);
                0
            })
            .map(|_| ())
            .and_then(|()| builder.build());
        Ok(Self { ring: built.map_err(|e| Refused::new("map the BPF ring buffer", e))?, records })
    }

    /// Waits until the kernel's side wakes it, at most so long.
    pub fn wait(&self, at_most: Duration) {
        // an interrupted wait is a wait that ended
        let most = Duration::from_secs(3600);
        _ = self.ring.poll_raw(at_most.min(most));
    }

    /// What came since the last time.
    pub fn take(&self) -> Records {
        _ = self.ring.consume_raw_n(RECORDS);
        self.records.take()
    }

    /// Readable when it was woken.
    pub fn fd(&self) -> BorrowedFd<'_> {
        #[expect(unsafe_code, reason = "libbpf gives a plain number")]
        // SAFETY: the descriptor is the ring's own, and is closed when that is dropped, which this borrow outlives not
        unsafe {
            BorrowedFd::borrow_raw(self.ring.epoll_fd())
        }
    }
}
