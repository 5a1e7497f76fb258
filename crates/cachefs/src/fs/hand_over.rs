//! Reads what programs use, and what was warmed for them, through the page cache of the backing directory, so that they find it there when
//! the mount stands aside.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, OFlags};

use super::Fs;
use crate::backing::at;

/// At a time, so that others' reads come between.
const PIECE: usize = 128 << 10;

impl Fs {
    /// Reads all files that were opened lately, and then those that have blocks in the store, at most `most` bytes, each in the order of their
    /// inodes. `stopped` is asked between two pieces. What cannot be read is passed over. Returns the bytes.
    pub fn hand_over(&self, most: u64, stopped: impl Fn() -> bool) -> u64 {
        let mut reading = Reading { buffer: vec![0; PIECE], most, read: 0, stopped };
        let mut stored = self.tier.stored_files();
        let mut numbers = self.nodes.all().0;
        numbers.sort_unstable();
        for node in numbers.into_iter().filter_map(|number| self.nodes.get(number).ok()) {
            let file = self.id(&node);
            if self.tier.known_size(file).is_some_and(|size| size > 0) && !(reading.stopped)() {
                stored.remove(&file);
                let _ = self.nodes.path(&node).and_then(|path| reading.file(&*path));
            }
        }
        // Those that the kernel has forgotten, or never knew: they were warmed.
        let mut stored: Vec<_> = stored.into_iter().collect();
        stored.sort_unstable_by_key(|file| file.0);
        for path in stored.into_iter().filter_map(|file| self.known_paths.get(file)) {
            if !(reading.stopped)() {
                let _ = self.path_below(&path).and_then(|path| reading.file(&path));
            }
        }
        reading.read
    }
}

/// What is read, and how much of it.
struct Reading<S> {
    buffer: Vec<u8>,
    most: u64,
    read: u64,
    stopped: S,
}

impl<S: Fn() -> bool> Reading<S> {
    /// Reads a regular file, if there is room for all of it.
    fn file(&mut self, path: &impl AsFd) -> io::Result<()> {
        let found = at::stat(path)?;
        let is_regular = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        if !is_regular || found.stx_size > self.most - self.read {
            return Ok(());
        }
        // Not the node's own descriptor, whose reads leave no pages.
        let file = at::reopen_at_once(path.as_fd(), OFlags::RDONLY | OFlags::NOATIME)?;
        let end = self.read + found.stx_size;
        let mut done = 0;
        while self.read < end && !(self.stopped)() {
            let read = rustix::io::pread(&file, &mut self.buffer, done)? as u64;
            if read == 0 {
                break;
            }
            done += read;
            self.read = end.min(self.read + read);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::Arc;

    use eke_cache_mounts::settings::Compress;
    use eke_cache_store::{Store, StoreSpec};
    use eke_model::units::Bytes;
    use fuser::OpenFlags;

    use super::*;
    use crate::fs::{Caller, Options, ToWarm};
    use crate::node::{NoLedger, ROOT};
    use crate::tier::{self, Tier};

    #[test]
    fn only_files_that_were_opened_are_read_and_no_more_than_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "never opened"] {
            eke_testkit::tree::put(dir.path(), name, &"x".repeat(300_000));
        }
        let root = std::fs::File::open(dir.path()).unwrap().into();
        let fs = Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap();
        for name in ["a", "b", "never opened"] {
            let number = fs.lookup(ROOT, OsStr::new(name)).unwrap().attr.ino.0;
            if name.len() == 1 {
                fs.open(&Caller { uid: 0, gid: 0, pid: 0, resent: false }, number, OpenFlags(libc::O_RDONLY))
                    .unwrap();
            }
        }
        assert_eq!(fs.hand_over(u64::MAX, || false), 600_000);
        assert_eq!(fs.hand_over(500_000, || false), 300_000);
        assert_eq!(fs.hand_over(u64::MAX, || true), 0);
    }

    #[test]
    fn what_was_warmed_is_read_although_nobody_opened_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["warmed", "other"] {
            eke_testkit::tree::put(dir.path(), name, &"x".repeat(300_000));
        }
        let root = std::fs::File::open(dir.path()).unwrap().into();
        let store = Arc::new(Store::new(StoreSpec::for_cpus(Bytes::mib(8), 1)).unwrap());
        let tier = Arc::new(Tier::new(store, Compress::Sync, tier::Options::default()));
        let options = Options { known_paths: 1 << 10, ..Options::default() };
        let fs = Fs::new(root, tier, Arc::new(NoLedger), options).unwrap();
        for name in ["warmed", "other"].map(Path::new) {
            let ToWarm::File(file) = fs.open_to_warm(name).unwrap() else { panic!("{name:?} is no file") };
            if name == Path::new("warmed") {
                fs.warm(&file, 0..file.size, true).unwrap();
            }
            fs.note_path(file.id, name);
        }
        assert_eq!(fs.hand_over(u64::MAX, || false), 300_000);
        assert_eq!(fs.hand_over(299_999, || false), 0);
    }
}
