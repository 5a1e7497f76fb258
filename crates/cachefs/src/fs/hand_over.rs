//! Reads what programs use through the page cache of the backing directory, so that they find it there when the mount stands aside.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};

use super::Fs;
use crate::backing::at;
use crate::node::Node;

/// At a time, so that others' reads come between.
const PIECE: usize = 128 << 10;

impl Fs {
    /// Reads all files that were opened lately, in the order of their inodes, at most `most` bytes. `stopped` is asked between two pieces.
    /// What cannot be read is passed over. Returns the bytes.
    pub fn hand_over(&self, most: u64, stopped: impl Fn() -> bool) -> u64 {
        let mut numbers = self.nodes.all().0;
        numbers.sort_unstable();
        let (mut buffer, mut read) = (vec![0; PIECE], 0);
        for node in numbers.into_iter().filter_map(|number| self.nodes.get(number).ok()) {
            let size = self.tier.known_size(self.id(&node)).unwrap_or(0);
            if size == 0 || read + size > most {
                continue;
            }
            if stopped() {
                break;
            }
            read += self.hand_over_one(&node, &mut buffer, &stopped).unwrap_or(0);
        }
        read
    }

    fn hand_over_one(
        &self,
        node: &Arc<Node>,
        buffer: &mut [u8],
        stopped: &impl Fn() -> bool,
    ) -> io::Result<u64> {
        let path = self.nodes.path(node)?;
        if FileType::from_raw_mode(at::stat(&*path)?.stx_mode.into()) != FileType::RegularFile {
            return Ok(0);
        }
        // Not the node's own descriptor, whose reads leave no pages.
        let file = at::reopen_at_once(path.as_fd(), OFlags::RDONLY | OFlags::NOATIME)?;
        let mut done = 0;
        loop {
            match rustix::io::pread(&file, &mut *buffer, done)? {
                read if read == 0 || stopped() => return Ok(done),
                read => done += read as u64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use fuser::OpenFlags;

    use super::*;
    use crate::fs::{Caller, Options};
    use crate::node::{NoLedger, ROOT};
    use crate::tier::Tier;

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
}
