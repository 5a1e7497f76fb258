//! The log. Many threads append to it; the next worker reads it; when most of it is outdated, a thread of its own rewrites it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use eke_cachefs::node::Entry;
use eke_model::units::Bytes;
use twox_hash::XxHash64;

use super::halves::{HALVES, half, read, side};
use super::medium::{Medium, Memfd};
use super::nodes::Nodes;
use super::record::{RecordError, encode};
use super::rewrite::NewHalf;

/// `EKELEDG1`.
const MAGIC: u64 = 0x3147_4445_4c45_4b45;
const HEADER: usize = 24;
/// Offsets of the halves' headers. The valid header with the higher generation marks the current half.
const HEADERS: [u64; 2] = [0, 64];
/// A log shorter than this is not rewritten, in bytes.
const SMALL: u64 = 4 << 20;
/// When it is opened, a shorter one: there is nobody who waits.
const SMALL_AT_OPENING: u64 = 64 << 10;

/// When all but so many bytes are copied, the rest is copied while nobody appends.
const REST: u64 = 64 << 10;
/// Copies of what was appended meanwhile, at most: each is of less, unless records come faster than they are copied.
const ROUNDS: usize = 8;
/// Records between two reports of the progress.
const REPORTED: u64 = 100_000;

/// The log of a worker.
#[derive(Debug)]
pub struct Log<M: Medium = Memfd> {
    medium: M,
    tail: Mutex<Tail>,
    /// Wakes the thread that rewrites.
    outdated: Condvar,
    rewriting: Mutex<()>,
    /// Bytes of memory that a rewrite takes beside the log.
    beside: AtomicU64,
    small: u64,
}

/// Where the log ends.
#[derive(Debug, Default)]
struct Tail {
    /// Its lowest bit selects the current half.
    generation: u64,
    /// Bytes in that half.
    len: u64,
    /// Bytes in that half when it was rewritten last.
    rewritten: u64,
    /// Most of it is outdated.
    outdated: bool,
    record: Vec<u8>,
}

/// What was read from a log.
#[derive(Debug, Default)]
pub struct Replay {
    /// The nodes of the last worker.
    pub nodes: Nodes,
    /// Why it was not read to its end. A death may leave one incomplete record, at the end.
    pub bad_record: Option<RecordError>,
}

impl<M: Medium> Log<M> {
    /// Reads the log of a medium, which may be empty.
    ///
    /// # Errors
    /// The medium cannot be read or written.
    pub fn open(medium: M) -> io::Result<(Self, Replay)> {
        Self::open_reporting(medium, || ())
    }

    /// The same. Calls `progress` now and then, since millions of records take seconds.
    ///
    /// # Errors
    /// The medium cannot be read or written.
    pub fn open_reporting(medium: M, progress: impl FnMut()) -> io::Result<(Self, Replay)> {
        Self::with_small(medium, SMALL, progress)
    }

    fn with_small(medium: M, small: u64, progress: impl FnMut()) -> io::Result<(Self, Replay)> {
        let generation = generation(&medium)?;
        let (nodes, len, bad_record) = replay(&medium, generation, progress)?;
        let tail = Tail { generation, len, rewritten: len, ..Tail::default() };
        clean(&medium, &tail)?;
        let (tail, outdated, rewriting) = (Mutex::new(tail), Condvar::new(), Mutex::new(()));
        let log = Self { medium, tail, outdated, rewriting, beside: AtomicU64::new(0), small };
        if len > small.min(SMALL_AT_OPENING) + 2 * nodes.shortest() {
            // Without memory for another one, this one is read again next time.
            let _ = log.rewrite();
        }
        Ok((log, Replay { nodes, bad_record }))
    }

    /// The medium that it is written to.
    pub fn into_medium(self) -> M {
        self.medium
    }

    /// Appends an entry. When this returns, the next worker will read it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn append(&self, entry: &Entry<'_>) -> io::Result<()> {
        let mut tail = self.tail();
        self.append_to(&mut tail, entry)?;
        let is_new = !tail.outdated && tail.len > self.small + 2 * tail.rewritten;
        tail.outdated |= is_new;
        drop(tail);
        if is_new {
            self.outdated.notify_one();
        }
        Ok(())
    }

    /// The memory that it uses.
    pub fn memory(&self) -> Bytes {
        Bytes(HALVES[0] + self.tail().len + self.beside.load(Relaxed))
    }

    fn append_to(&self, tail: &mut Tail, entry: &Entry<'_>) -> io::Result<()> {
        let Tail { generation, len, record, .. } = tail;
        encode(entry, *generation, record);
        self.medium.write_at(record, half(*generation) + *len)?;
        *len += record.len() as u64;
        Ok(())
    }

    /// Waits until most of the log is outdated, and rewrites it. Call it again and again, on a thread of its own: it takes seconds for
    /// millions of nodes, and others append meanwhile.
    ///
    /// # Errors
    /// There is no memory for it. It is tried again when the log has grown.
    pub fn rewrite_when_outdated(&self) -> io::Result<()> {
        let mut tail = self.tail();
        while !tail.outdated {
            tail = self.outdated.wait(tail).unwrap_or_else(PoisonError::into_inner);
        }
        drop(tail);
        self.rewrite()
    }

    fn rewrite(&self) -> io::Result<()> {
        let _rewriting = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, len) = {
            let tail = self.tail();
            (tail.generation, tail.len)
        };
        let mut new = NewHalf::new(&self.medium, generation, &self.beside);
        let switched = self.switch(&mut new, len);
        let punched = match &switched {
            Ok(old) => self.medium.punch(half(generation), *old),
            Err(_) => {
                let mut tail = self.tail();
                (tail.rewritten, tail.outdated) = (tail.len, false);
                drop(tail);
                // Else the next attempt's half would go on with records of this one.
                self.medium.punch(half(new.generation), new.touched())
            }
        };
        self.beside.store(0, Relaxed);
        switched.and(punched)
    }

    /// Writes the current nodes to the other half, and makes it the current one. Others go on appending; their entries are copied at the
    /// end. Returns the bytes of the former half.
    fn switch(&self, new: &mut NewHalf<'_, M>, len: u64) -> io::Result<u64> {
        new.copy_valid(len)?;
        let mut copied = len;
        for _ in 0..ROUNDS {
            let len = self.tail().len;
            if len - copied <= REST {
                break;
            }
            new.copy_all(copied, len)?;
            copied = len;
        }
        let mut tail = self.tail();
        new.copy_all(copied, tail.len)?;
        new.flush()?;
        self.medium.write_at(&header(new.generation), HEADERS[side(new.generation)])?;
        let record = std::mem::take(&mut tail.record);
        let (generation, len) = (new.generation, new.len);
        let now = Tail { generation, len, rewritten: len, outdated: false, record };
        Ok(std::mem::replace(&mut *tail, now).len)
    }

    /// A thread that panics ends the worker, so nobody sees a half-updated tail.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn header(generation: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..8].copy_from_slice(&MAGIC.to_le_bytes());
    out[8..16].copy_from_slice(&generation.to_le_bytes());
    out[16..].copy_from_slice(&XxHash64::oneshot(MAGIC, &generation.to_le_bytes()).to_le_bytes());
    out
}

/// The generation of the current half: 0 if the log was never rewritten.
fn generation<M: Medium>(medium: &M) -> io::Result<u64> {
    let mut found = 0;
    for at in HEADERS {
        let bytes = medium.read_at(at, HEADER)?;
        let number = bytes.get(8..16).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        if bytes == header(number) {
            found = found.max(number);
        }
    }
    Ok(found)
}

fn replay<M: Medium>(
    medium: &M,
    generation: u64,
    mut progress: impl FnMut(),
) -> io::Result<(Nodes, u64, Option<RecordError>)> {
    let (mut nodes, mut records) = (Nodes::default(), 0);
    let (len, bad_record) = read(medium, generation, 0, u64::MAX, |_, _, entry| {
        nodes.apply(&entry);
        records += 1;
        if records % REPORTED == 0 {
            progress();
        }
    })?;
    Ok((nodes, len, bad_record))
}

/// Erases what a death left after the tail and in the other half, so that it is never read as records.
fn clean<M: Medium>(medium: &M, tail: &Tail) -> io::Result<()> {
    let end = medium.end()?;
    let [first, second] = HALVES;
    let (from, to) = if tail.generation % 2 == 0 { (first, second) } else { (second, end) };
    medium.punch(from + tail.len, to.min(end).saturating_sub(from + tail.len))?;
    let (from, to) = if tail.generation % 2 == 0 { (second, end) } else { (first, second) };
    medium.punch(from, to.min(end).saturating_sub(from))
}

#[cfg(test)]
mod tests;
