//! The log: appended to by many threads, read by the next worker, rewritten when most of it is outdated.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_cachefs::node::Entry;
use eke_model::units::Bytes;
use twox_hash::XxHash64;

use super::medium::{Medium, Memfd};
use super::nodes::Nodes;
use super::record::{Foreign, Owned, decode, encode};

/// `EKELEDG1`.
const MAGIC: u64 = 0x3147_4445_4c45_4b45;
const HEADER: usize = 24;
/// Where the headers of the halves are: each is valid or not, and the later valid one says which half counts.
const HEADERS: [u64; 2] = [0, 64];
/// Where the halves start. Between them is room for more than any machine's memory, and none of it is taken.
const HALVES: [u64; 2] = [4096, 1 << 40];
/// A log below this is not worth rewriting, in bytes.
const SMALL: u64 = 4 << 20;

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
    /// Says which half counts, by its lowest bit.
    generation: u64,
    /// In that half, in bytes.
    len: u64,
    /// As long it was when it was written anew.
    rewritten: u64,
    record: Vec<u8>,
}

/// What a log held.
#[derive(Debug, Default)]
pub struct Replay {
    /// As the last worker had them.
    pub nodes: Nodes,
    /// Why it was not read to its end: a record that did not arrive as a whole is expected after a death, once, at the end.
    pub foreign: Option<Foreign>,
}

impl<M: Medium> Log<M> {
    /// Of what a medium holds, which may be nothing.
    ///
    /// # Errors
    /// The medium cannot be read or written.
    pub fn open(medium: M) -> io::Result<(Self, Replay)> {
        Self::with_small(medium, SMALL)
    }

    fn with_small(medium: M, small: u64) -> io::Result<(Self, Replay)> {
        let generation = generation(&medium)?;
        let (nodes, len, foreign) = replay(&medium, generation)?;
        let tail = Tail { generation, len, rewritten: len, record: Vec::new() };
        clean(&medium, &tail)?;
        let log = Self { medium, tail: Mutex::new(tail), rewriting: Mutex::new(()), small };
        Ok((log, Replay { nodes, foreign }))
    }

    /// What it is written to.
    pub fn into_medium(self) -> M {
        self.medium
    }

    /// Notes an entry: it is there for a next worker when this returns.
    ///
    /// # Errors
    /// No memory for it.
    pub fn append(&self, entry: &Entry<'_>) -> io::Result<()> {
        let outdated = {
            let mut tail = self.tail();
            self.append_to(&mut tail, entry)?;
            tail.len > self.small + 2 * tail.rewritten
        };
        if outdated { self.rewrite() } else { Ok(()) }
    }

    /// What it takes.
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

    /// Writes what counts into the other half. The others go on noting meanwhile; what they note is carried over.
    fn rewrite(&self) -> io::Result<()> {
        let Ok(_alone) = self.rewriting.try_lock() else {
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

    fn append_all(&self, tail: &mut Tail, entries: &[Owned]) -> io::Result<()> {
        entries.iter().try_for_each(|entry| self.append_to(tail, &entry.entry()))
    }

    /// A thread that panics ends the worker, so the tail is never half done.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// That of the half that counts: 0 if nothing was ever rewritten.
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

fn replay<M: Medium>(medium: &M, generation: u64) -> io::Result<(Nodes, u64, Option<Foreign>)> {
    replay_part(medium, generation, 0, u64::MAX)
}

fn replay_part<M: Medium>(
    medium: &M,
    generation: u64,
    from: u64,
    to: u64,
) -> io::Result<(Nodes, u64, Option<Foreign>)> {
    let mut nodes = Nodes::default();
    let (len, foreign) = read(medium, generation, from, to, |entry| nodes.apply(&entry.entry()))?;
    Ok((nodes, len, foreign))
}

fn records<M: Medium>(medium: &M, generation: u64, from: u64, to: u64) -> io::Result<(u64, Vec<Owned>)> {
    let mut entries = Vec::new();
    let (len, _) = read(medium, generation, from, to, |entry| entries.push(entry))?;
    Ok((len, entries))
}

/// Reads the records of a half from `from` to `to`, or to where they end; says where that is, and why if by a foreign one.
fn read<M: Medium>(
    medium: &M,
    generation: u64,
    from: u64,
    to: u64,
    mut each: impl FnMut(Owned),
) -> io::Result<(u64, Option<Foreign>)> {
    /// More than the longest record; read at a time.
    const PIECE: usize = 1 << 20;
    let mut at = from;
    loop {
        let wanted = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
        let bytes = medium.read_at(half(generation) + at, wanted)?;
        let (used, foreign) = read_piece(&bytes, generation, &mut each);
        at += used as u64;
        let more = bytes.len() == PIECE && used > 0;
        match foreign {
            // Perhaps its rest is in the next piece.
            Some(Foreign::Length(_)) if more => {}
            Some(foreign) => return Ok((at, Some(foreign))),
            None if more && used + 4 > bytes.len() => {}
            None => return Ok((at, None)),
        }
    }
}

fn read_piece(bytes: &[u8], generation: u64, each: &mut impl FnMut(Owned)) -> (usize, Option<Foreign>) {
    let mut used = 0;
    loop {
        match decode(&bytes[used..], generation) {
            Ok(Some((entry, len))) => {
                each(entry);
                used += len;
            }
            Ok(None) => return (used, None),
            Err(foreign) => return (used, Some(foreign)),
        }
    }
}

/// What a death left behind the tail, or in the half that does not count, must not be read as records one day.
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
