//! Reads records from the BPF ring buffer.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::super::method::TraceError;

/// Records, stored one after the other.
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

    /// The records in order.
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

/// The most records per read, so that reading ends while others keep writing.
const RECORDS: usize = 8192;

impl Buffer {
    /// Maps the ring buffer of this map.
    pub fn of(map: &MapHandle) -> Result<Self, TraceError> {
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
        Ok(Self { ring: built.map_err(|e| TraceError::new("map the BPF ring buffer", e))?, records })
    }

    /// Waits for the kernel's wake-up, for at most `at_most`.
    pub fn wait(&self, at_most: Duration) {
        // an interrupted wait simply ends
        let most = Duration::from_secs(3600);
        _ = self.ring.poll_raw(at_most.min(most));
    }

    /// The records since the last call.
    pub fn take(&self) -> Records {
        _ = self.ring.consume_raw_n(RECORDS);
        self.records.take()
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
