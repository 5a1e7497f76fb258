//! Blocks of files: from the store if it has them, from below if not; and what a change makes of them.

use std::io;

use eke_cache::FileId;

use crate::below::{File, Stamp};

/// What one thread needs to serve reads. Has a buffer for a reply.
#[derive(Debug, Default)]
pub struct Hands {
    reply: Vec<u8>,
}

/// What an open found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What it was when it was last seen: the kernel may keep its pages (`FOPEN_KEEP_CACHE`).
    Same,
    /// New to us, or changed below since: what was held of it is dropped.
    Changed,
}

/// How a write ends up in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this offset.
    At(u64),
    /// At the end, wherever that is then (`O_APPEND`).
    End,
}

/// The tier.
#[derive(Debug, Default)]
pub struct Tier {}

impl Tier {
    /// What one thread needs.
    pub fn hands(&self) -> Hands {
        Hands::default()
    }

    /// The identity of the file with this device and inode number, the same for as long as this worker lives.
    pub fn id(&self, dev: u64, ino: u64) -> FileId {
        FileId(ino ^ dev.rotate_left(48))
    }

    /// To be called at each open, with what the file is now. `Changed` drops what is held of it.
    pub fn opened(&self, _file: FileId, _now: Stamp) -> Seen {
        Seen::Changed
    }

    /// Reads; less than asked for only at the end of the file.
    ///
    /// # Errors
    /// What the file below answers.
    pub fn read<'h>(
        &self,
        hands: &'h mut Hands,
        _file: FileId,
        below: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<&'h [u8]> {
        hands.reply.resize(len, 0);
        let read = below.read_at(&mut hands.reply, offset)?;
        Ok(&hands.reply[..read])
    }

    /// Writes to the file below, then drops or replaces what is held of it. Returns how much was written.
    ///
    /// # Errors
    /// What the file below answers.
    pub fn write(
        &self,
        _hands: &mut Hands,
        _file: FileId,
        below: &File,
        place: Place,
        data: &[u8],
    ) -> io::Result<usize> {
        match place {
            Place::At(offset) => below.write_at(data, offset),
            Place::End => below.write_at(data, below.stamp()?.size),
        }
    }

    /// Does `change` to the file below (truncation, fallocate, a copy inside the kernel), with what is held of the file
    /// from byte `from` on dropped around it, and its stamp taken anew.
    ///
    /// # Errors
    /// What `change` answers.
    pub fn change<T>(
        &self,
        _file: FileId,
        _from: u64,
        _below: &File,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        change()
    }

    /// The file is gone, or was changed by somebody else: all that is held of it is dropped.
    pub fn forget(&self, _file: FileId) {}
}
