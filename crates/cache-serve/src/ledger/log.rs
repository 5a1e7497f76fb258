//! The log. Many threads append to it; the next worker reads it; when most of it is outdated, it is rewritten.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_cachefs::node::Entry;
use eke_model::units::Bytes;
use twox_hash::XxHash64;

use super::medium::{Medium, Memfd};
use super::nodes::Nodes;
use super::record::{OwnedEntry, RecordError, decode, encode};

/// `EKELEDG1`.
const MAGIC: u64 = 0x3147_4445_4c45_4b45;
const HEADER: usize = 24;
/// Offsets of the halves' headers. The valid header with the higher generation marks the current half.
const HEADERS: [u64; 2] = [0, 64];
/// Offsets of the halves. The first has room for more than any machine's memory; unwritten room takes no memory.
const HALVES: [u64; 2] = [4096, 1 << 40];
/// A log shorter than this is not rewritten, in bytes.
const SMALL: u64 = 4 << 20;
/// When it is opened, a shorter one: there is nobody who waits.
const SMALL_AT_OPENING: u64 = 64 << 10;

/// The log of a worker.
#[derive(Debug)]
pub struct Log<M: Medium = Memfd> {
    medium: M,
    tail: Mutex<Tail>,
    rewriting: Mutex<()>,
    small: u64,
}

/// Where the log ends.
#[derive(Debug, Clone, Default)]
struct Tail {
    /// Its lowest bit selects the current half.
    generation: u64,
    /// Bytes in that half.
    len: u64,
    /// Bytes in that half when it was rewritten last.
    rewritten: u64,
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
        Self::with_small(medium, SMALL)
    }

    fn with_small(medium: M, small: u64) -> io::Result<(Self, Replay)> {
        let generation = generation(&medium)?;
        let (nodes, len, bad_record) = replay(&medium, generation)?;
        let tail = Tail { generation, len, rewritten: len, record: Vec::new() };
        clean(&medium, &tail)?;
        let log = Self { medium, tail: Mutex::new(tail), rewriting: Mutex::new(()), small };
        if len > small.min(SMALL_AT_OPENING) + 2 * shortest(&nodes, generation) {
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
        let outdated = {
            let mut tail = self.tail();
            self.append_to(&mut tail, entry)?;
            tail.len > self.small + 2 * tail.rewritten
        };
        if outdated { self.rewrite() } else { Ok(()) }
    }

    /// The memory that it uses.
    pub fn memory(&self) -> Bytes {
        Bytes(HALVES[0] + self.tail().len)
    }

    fn append_to(&self, tail: &mut Tail, entry: &Entry<'_>) -> io::Result<()> {
        let Tail { generation, len, record, .. } = tail;
        encode(entry, *generation, record);
        self.medium.write_at(record, half(*generation) + *len)?;
        *len += record.len() as u64;
        Ok(())
    }

    /// Writes the current nodes to the other half. Other threads go on appending; their entries are copied at the end.
    fn rewrite(&self) -> io::Result<()> {
        let Ok(_rewriting) = self.rewriting.try_lock() else {
            return Ok(());
        };
        let old = self.tail().clone();
        let (nodes, ..) = replay_part(&self.medium, old.generation, 0, old.len)?;
        let mut new = Tail { generation: old.generation + 1, ..Tail::default() };
        nodes.iter().try_for_each(|entry| self.append_to(&mut new, &entry))?;
        let mut tail = self.tail();
        let (_, since) = records(&self.medium, old.generation, old.len, tail.len)?;
        self.append_all(&mut new, &since)?;
        new.rewritten = new.len;
        self.medium.write_at(&header(new.generation), HEADERS[side(new.generation)])?;
        let old = std::mem::replace(&mut *tail, new);
        drop(tail);
        self.medium.punch(half(old.generation), old.len)
    }

    fn append_all(&self, tail: &mut Tail, entries: &[OwnedEntry]) -> io::Result<()> {
        entries.iter().try_for_each(|entry| self.append_to(tail, &entry.entry()))
    }

    /// A thread that panics ends the worker, so nobody sees a half-updated tail.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The length of the shortest log of these nodes.
fn shortest(nodes: &Nodes, generation: u64) -> u64 {
    let mut record = Vec::new();
    let len = |entry| {
        encode(&entry, generation, &mut record);
        record.len() as u64
    };
    nodes.iter().map(len).sum()
}

fn half(generation: u64) -> u64 {
    HALVES[side(generation)]
}

fn side(generation: u64) -> usize {
    usize::from(generation % 2 == 1)
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

fn replay<M: Medium>(medium: &M, generation: u64) -> io::Result<(Nodes, u64, Option<RecordError>)> {
    replay_part(medium, generation, 0, u64::MAX)
}

fn replay_part<M: Medium>(
    medium: &M,
    generation: u64,
    from: u64,
    to: u64,
) -> io::Result<(Nodes, u64, Option<RecordError>)> {
    let mut nodes = Nodes::default();
    let (len, bad_record) = read(medium, generation, from, to, |entry| nodes.apply(&entry.entry()))?;
    Ok((nodes, len, bad_record))
}

fn records<M: Medium>(medium: &M, generation: u64, from: u64, to: u64) -> io::Result<(u64, Vec<OwnedEntry>)> {
    let mut entries = Vec::new();
    let (len, _) = read(medium, generation, from, to, |entry| entries.push(entry))?;
    Ok((len, entries))
}

/// Reads the records of a half from `from` to `to`, or to their end. Returns where it ended, and the bad record if one was the reason.
fn read<M: Medium>(
    medium: &M,
    generation: u64,
    from: u64,
    to: u64,
    mut each: impl FnMut(OwnedEntry),
) -> io::Result<(u64, Option<RecordError>)> {
    /// Bytes read at a time: more than the longest record.
    const PIECE: usize = 1 << 20;
    let mut at = from;
    loop {
        let len = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
        let bytes = medium.read_at(half(generation) + at, len)?;
        let (used, bad_record) = read_piece(&bytes, generation, &mut each);
        at += used as u64;
        let more = bytes.len() == PIECE && used > 0;
        match bad_record {
            // Its rest may be in the next piece.
            Some(RecordError::Length(_)) if more => {}
            Some(bad_record) => return Ok((at, Some(bad_record))),
            None if more && used + 4 > bytes.len() => {}
            None => return Ok((at, None)),
        }
    }
}

fn read_piece(
    bytes: &[u8],
    generation: u64,
    each: &mut impl FnMut(OwnedEntry),
) -> (usize, Option<RecordError>) {
    let mut used = 0;
    loop {
        match decode(&bytes[used..], generation) {
            Ok(Some((entry, len))) => {
                each(entry);
                used += len;
            }
            Ok(None) => return (used, None),
            Err(bad_record) => return (used, Some(bad_record)),
        }
    }
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
