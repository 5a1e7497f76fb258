//! The spill of one worker: with what the last mount left, and over the next unmount.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use eke_cache_mounts::at;
use eke_cache_spill::{Saved, Spill, SpillOptions, decide, saved};
use eke_cache_store::EvictionListener;
use eke_cachefs::backing::Stamp;
use eke_cachefs::tier::Tier;
use eke_linux::Root;
use eke_model::units::Bytes;
use rustix::fs::fstatvfs;
use twox_hash::XxHash3_64;

use super::dir::SpillDir;
use crate::log::log_line;

/// The worker's spill and its directory.
#[derive(Debug)]
pub struct KeptSpill {
    spill: Arc<Spill>,
    dir: SpillDir,
    identity: Identity,
    /// What the last mount left.
    restored: Saved,
    /// The backing directory's device and inode.
    backing: (u64, u64),
}

/// What an index belongs to.
#[derive(Debug, Clone, Copy)]
struct Identity {
    backing: [u64; 3],
    block_size: u64,
    boot: u64,
}

impl KeptSpill {
    /// Takes what the last mount left, unless an earlier worker of this mount has. `store` is the limit of the store's memory.
    ///
    /// # Errors
    /// A sentence: the kernel tells nothing of the backing directory, or no descriptor is free.
    pub fn new(
        dir: SpillDir,
        backing: &OwnedFd,
        (root, takes_over): (&Root, bool),
        (store, block_size): (Bytes, usize),
    ) -> Result<Self, String> {
        let failed = |what: &str, e: std::io::Error| {
            format!("cannot use the directory of --spill: {what}: {e}; mount without it")
        };
        let statx = at::stat(backing).map_err(|e| failed("the backing directory", e))?;
        let fs = fstatvfs(backing).map_err(|e| failed("the backing directory", e.into()))?;
        let born = Stamp::of(&statx).born_ns as u64;
        let boot = root.read("proc/sys/kernel/random/boot_id").unwrap_or_default();
        let identity = Identity {
            backing: [fs.f_fsid, statx.stx_ino, born],
            block_size: block_size as u64,
            boot: if boot.is_empty() { 0 } else { XxHash3_64::oneshot(boot.as_bytes()) },
        };
        let blocks = decide::most_blocks(store);
        let most = saved::length(blocks, blocks, blocks) as u64;
        let index = dir.take_index(most).unwrap_or_else(|why| {
            log_line(&why);
            None
        });
        let index = index.filter(|_| !takes_over);
        let restored = index.and_then(|bytes| Saved::parse(&bytes)).map(|saved| usable(saved, &identity));
        let restored = restored.flatten().unwrap_or_default();
        let options = SpillOptions { size: dir.size, day: dir.day, blocks };
        let medium = dir.medium().map_err(|e| failed("its file", e))?;
        let earlier = (!restored.blocks.is_empty()).then_some(&restored);
        let spill = Arc::new(Spill::new(Box::new(medium), options, earlier, Box::new(now_s)));
        let backing = (at::dev(&statx), statx.stx_ino);
        let restored = Saved { files: restored.files, ..Saved::default() };
        Ok(Self { spill, dir, identity, restored, backing })
    }

    /// For the store.
    pub fn listener(&self) -> Arc<dyn EvictionListener> {
        self.spill.clone()
    }

    /// For the tier.
    pub fn spill(&self) -> Arc<Spill> {
        Arc::clone(&self.spill)
    }

    /// Lets the tier know the files of the last mount, before any of them is opened.
    pub fn restore(&self, tier: &Tier) {
        tier.restore_versions(self.backing, &self.restored.files);
    }

    /// At the end of the mount: writes what is in memory, and the index.
    pub fn save(&self, tier: &Tier) {
        self.spill.close();
        // The versions before the blocks: so no block is of an older version.
        let files = tier.versions(&self.spill.files());
        let Identity { backing, block_size, boot } = self.identity;
        let mut saved = Saved { backing, block_size, boot, saved_s: now_s(), files, ..Saved::default() };
        let bytes = if self.spill.save(&mut saved) { saved.bytes() } else { None };
        match bytes.map(|bytes| self.dir.write_index(&bytes)) {
            Some(Ok(())) => {}
            Some(Err(why)) => log_line(&why),
            None => log_line("evicted blocks are not kept for the next mount: no memory for their index"),
        }
    }
}

/// What of an index can be used here and now. Pure.
fn usable(mut saved: Saved, identity: &Identity) -> Option<Saved> {
    if saved.backing != identity.backing || saved.block_size != identity.block_size {
        return None;
    }
    let same_boot = saved.boot == identity.boot && identity.boot != 0;
    let saved_s = saved.saved_s;
    saved.files.retain(|file| decide::outlives(file, saved_s, same_boot));
    let files = &saved.files;
    saved.blocks.retain(|(key, _)| files.binary_search_by_key(&key.file.0, |file| file.file).is_ok());
    Some(saved)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use eke_cache_spill::{Place, SavedFile};
    use eke_cache_store::{FileId, Key};

    use super::*;

    const HERE: Identity = Identity { backing: [1, 2, 3], block_size: 65_536, boot: 9 };

    fn index() -> Saved {
        let file =
            |file, changed_s: i64| SavedFile { file, size: 1, times_ns: [0, changed_s * 1_000_000_000, 0] };
        let block = |file| (Key::new(FileId(file), 0), Place { segment: 0, offset: 0, len: 100 });
        Saved {
            backing: HERE.backing,
            block_size: HERE.block_size,
            boot: HERE.boot,
            saved_s: 10_000,
            next: 1,
            slots: vec![0],
            files: vec![file(4, 10), file(6, 9990)],
            blocks: vec![block(4), block(5), block(6)],
        }
    }

    fn files(saved: Option<Saved>) -> Option<Vec<u64>> {
        Some(saved?.blocks.iter().map(|(key, _)| key.file.0).collect())
    }

    #[test]
    fn blocks_without_a_version_are_not_used() {
        assert_eq!(files(usable(index(), &HERE)), Some(vec![4, 6]));
    }

    #[test]
    fn after_a_reboot_files_that_changed_shortly_before_are_not_used() {
        for boot in [0, 8] {
            assert_eq!(files(usable(index(), &Identity { boot, ..HERE })), Some(vec![4]));
        }
        assert_eq!(files(usable(Saved { boot: 0, ..index() }, &Identity { boot: 0, ..HERE })), Some(vec![4]));
    }

    #[test]
    fn an_index_of_another_directory_or_block_size_is_not_used() {
        let others = [
            Saved { backing: [1, 2, 4], ..index() },
            Saved { backing: [0, 2, 3], ..index() },
            Saved { block_size: 4096, ..index() },
        ];
        assert!(others.into_iter().all(|saved| usable(saved, &HERE).is_none()));
    }
}
