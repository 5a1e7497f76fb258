//! Which records of a log still hold, and the copy of these to the other half. It has the bytes of the log and no node in memory: two
//! passes over the records, with a number and an offset for each node.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use eke_cachefs::node::Entry;

use super::halves::{half, read};
use super::medium::Medium;
use super::nodes::Opens;
use super::record::{copy, encode};

/// Bytes that are written at a time.
const PIECE: usize = 64 << 10;
/// Nodes between two counts of the memory.
const COUNTED: usize = 1 << 16;

/// A half that is being written.
pub(super) struct NewHalf<'a, M> {
    medium: &'a M,
    /// The half that is read.
    from: u64,
    /// The generation of the half that is written.
    pub generation: u64,
    /// Its bytes, without what is still buffered.
    pub len: u64,
    buffer: Vec<u8>,
    record: Vec<u8>,
    /// The memory that this takes, in bytes.
    memory: &'a AtomicU64,
}

impl<'a, M: Medium> NewHalf<'a, M> {
    /// Of the half with the generation `from` to the other one.
    pub fn new(medium: &'a M, from: u64, memory: &'a AtomicU64) -> Self {
        let (buffer, record) = (Vec::with_capacity(PIECE * 2), Vec::new());
        Self { medium, from, generation: from + 1, len: 0, buffer, record, memory }
    }

    /// Copies the records that still hold, of those in the first `to` bytes.
    ///
    /// # Errors
    /// The medium cannot be read or written.
    pub fn copy_valid(&mut self, to: u64) -> io::Result<()> {
        let (latest, open) = self.index(to)?;
        self.each(0, to, |new, at, record, entry| match entry {
            Entry::Known { node, .. } if latest.get(&node) == Some(&at) => new.put(record),
            _ => Ok(()),
        })?;
        open.iter().try_for_each(|entry| self.put_entry(&entry))?;
        drop(latest);
        self.memory.store(self.len, Relaxed);
        Ok(())
    }

    /// Copies all records from `from` to `to`.
    ///
    /// # Errors
    /// The medium cannot be read or written.
    pub fn copy_all(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.each(from, to, |new, _, record, _| new.put(record))
    }

    /// Where the latest record of each known node begins, and what is open.
    fn index(&self, to: u64) -> io::Result<(HashMap<u64, u64>, Opens)> {
        let (mut latest, mut open) = (HashMap::new(), Opens::default());
        read(self.medium, self.from, 0, to, |at, _, entry| {
            open.apply(&entry);
            match entry {
                Entry::Known { node, .. } => drop(latest.insert(node, at)),
                Entry::Forgotten { node } => drop(latest.remove(&node)),
                Entry::Opened { .. } | Entry::Released { .. } => {}
            }
            if latest.len() % COUNTED == 0 {
                self.memory.store(memory_of(&latest), Relaxed);
            }
        })?;
        self.memory.store(memory_of(&latest), Relaxed);
        Ok((latest, open))
    }

    /// Calls `act` with each record and its offset. The first error ends it.
    fn each(
        &mut self,
        from: u64,
        to: u64,
        mut act: impl FnMut(&mut Self, u64, &[u8], Entry<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (medium, half, mut done) = (self.medium, self.from, Ok(()));
        read(medium, half, from, to, |at, record, entry| {
            if done.is_ok() {
                done = act(self, at, record, entry);
            }
        })?;
        done
    }

    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        copy(record, self.generation, &mut self.buffer);
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn put_entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let mut record = std::mem::take(&mut self.record);
        encode(entry, self.generation, &mut record);
        let done = self.put(&record);
        self.record = record;
        done
    }

    /// The bytes of the half that may have been written.
    pub fn touched(&self) -> u64 {
        self.len + self.buffer.len() as u64
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The medium cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.medium.write_at(&self.buffer, half(self.generation) + self.len)?;
        self.len += self.buffer.len() as u64;
        self.memory.fetch_add(self.buffer.len() as u64, Relaxed);
        self.buffer.clear();
        Ok(())
    }
}

/// A map has room for a seventh more than its capacity, and a byte beside each place.
fn memory_of(latest: &HashMap<u64, u64>) -> u64 {
    (latest.capacity() * (size_of::<(u64, u64)>() + 1) * 8 / 7) as u64
}
