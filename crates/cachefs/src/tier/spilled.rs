//! Blocks that were evicted to a faster disk: read from there, and what is known of their files over an unmount.
//!
//! A block from there enters the store by the ticket of the miss, as one from the backing file, and only if the spill still has it then.
//! So no change in between is lost. What an earlier mount left is used for a file only if its first open finds the same stamp as then.

use eke_cache_spill::{SavedFile, Spill};
use eke_cache_store::{FileId, Ticket};

use super::Tier;
use super::clock::Timer;
use super::file_ids::FileIds;
use super::flight::Lead;
use super::piece::PieceState;
use super::read::Reading;

impl<'t> Reading<'t, '_> {
    /// Fills a missing piece from the spill, and lands. Gives the lead back if the block must be read from the backing file.
    pub fn unless_spilled(
        &mut self,
        index: usize,
        ticket: Ticket,
        lead: Option<Lead<'t>>,
    ) -> Option<Option<Lead<'t>>> {
        let spill = self.tier.spill.as_deref().filter(|spill| spill.contains(ticket.key()));
        let Some(spill) = spill.filter(|_| self.tier.counters.reads_spill()) else { return Some(lead) };
        let mut buffer = std::mem::take(&mut self.context.spilled);
        let len = self.fill_from(spill, &mut buffer, index, ticket);
        self.context.spilled = buffer;
        let Some(len) = len else { return Some(lead) };
        let is_all = self.context.pieces[index].is_all_of(len);
        let mut keep = || self.tier.recent.put(ticket, len, &mut self.context.spare);
        match lead {
            Some(lead) if is_all => lead.land(keep),
            // The rest of the block is probably requested next.
            _ if !is_all => keep(),
            _ => {}
        }
        None
    }

    /// Reads the block, fills the piece, and admits the block. Returns its length; `None`: it must be read from the backing file.
    fn fill_from(
        &mut self,
        spill: &Spill,
        buffer: &mut Vec<u8>,
        index: usize,
        ticket: Ticket,
    ) -> Option<usize> {
        let (timer, key) = (Timer::start(&*self.tier.clock), ticket.key());
        let found = spill.read(key, buffer)?;
        let len = found.block.raw_len;
        let out = self.context.spare.room(len).filter(|_| len <= self.store.block_size())?;
        if !self.store.decompress(self.context.scratch.as_mut()?, &found.block, out) {
            return None;
        }
        if !self.is_whole(&self.context.pieces[index], len) {
            // The file once ended with this block, and has grown.
            let _ = self.store.drop_block(key);
            return None;
        }
        let counters = &self.tier.counters;
        counters.spill.note(len, timer.elapsed(&*self.tier.clock));
        let piece = &mut self.context.pieces[index];
        piece.copy(self.context.spare.bytes(len), self.context.reply.bytes_mut(self.len));
        piece.state = PieceState::Filled(piece.bytes_of(len));
        counters.spill_hits.add(1);
        counters.bytes_from_spill.add(piece.bytes_of(len));
        let admitted = self.store.readmit(ticket, &found.block, || spill.is_at(key, found.place));
        counters.note_admitted(admitted);
        Some(len)
    }
}

impl Tier {
    /// The versions of those of these files that are as they were when their blocks were read, as far as that is known.
    pub fn versions(&self, files: &[u64]) -> Vec<SavedFile> {
        let files = files.iter().filter(|&&file| FileIds::is_inode(file));
        files.filter_map(|&file| self.stamps.version(FileId(file))).collect()
    }

    /// Notes versions of files of an earlier mount, before any of them is opened. `dev` and `ino` are those of the backing directory.
    pub fn restore_versions(&self, (dev, ino): (u64, u64), files: &[SavedFile]) {
        // Numbers of inodes are those of its device from now on.
        let _ = self.id(dev, ino);
        files.iter().for_each(|file| self.stamps.restore(*file));
    }
}
