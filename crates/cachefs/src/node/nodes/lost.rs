//! Files that a server has removed or replaced (ESTALE).
//!
//! At ESTALE the kernel walks the program's path once more, and asks here for each name (`LOOKUP_REVAL` in fs/namei.c); a second ESTALE reaches the
//! program. But a lookup in the backing directory does not ask its server, which NFS spares for a while (nfs(5), `acdirmin`). So whatever this module
//! finds lost is asked for at once, and the second walk meets nothing else that is old.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;

use super::Nodes;
use crate::backing::{Stamp, at};
use crate::node::{DirEntry, Inode, Node, ROOT};

impl Nodes {
    /// If the file system does not know the node's file any more, the node is gone. The kernel, which looks its name up again, gets a node of the
    /// present file, though that may have the number of the old one where files have no birth (NFS).
    ///
    /// # Errors
    /// That of `result`.
    pub fn lost_if_stale<T>(&self, node: &Node, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(is_stale) {
            self.lose(node.number);
        }
        result
    }

    /// Asks for the names of a lost node, and for those of its directories, as far as these are lost, too.
    fn lose(&self, number: u64) {
        let (mut ahead, mut seen) = (vec![number], HashSet::new());
        while let Some(number) = ahead.pop() {
            if !seen.insert(number) || !self.is_lost(number) {
                continue;
            }
            let names = self.read().names(number);
            ahead.extend(names.iter().filter(|name| self.is_in_lost(name)).map(|name| name.parent));
        }
    }

    /// Also if no descriptor of it is held: then it is not where it was last seen.
    fn is_lost(&self, number: u64) -> bool {
        let Some(node) = self.get(number).ok().filter(|_| number != ROOT) else { return false };
        let held = node.descriptors().any();
        let is_stale = held.as_ref().is_some_and(at::is_stale);
        if is_stale {
            node.set_gone();
        }
        is_stale || held.is_none()
    }

    fn is_in_lost(&self, name: &DirEntry) -> bool {
        let dir = self.get(name.parent).and_then(|dir| self.path(&dir));
        dir.and_then(|dir| ask(&dir, &name.name)).is_err_and(|e| is_stale(&e))
    }

    /// Where files have no birth, one that was found may be another than that whose descriptor the node of this number holds. As long as both are the
    /// same, their attributes are, and no server is asked.
    pub(super) fn part_from_replaced(&self, found: &Inode, statx: &Statx) {
        if found.born_ns != 0 {
            return;
        }
        let Some(node) = self.find(found).filter(|node| node.number != ROOT && !node.is_gone()) else {
            return;
        };
        let held = node.descriptors_at_once().and_then(|held| held.any());
        if held.is_some_and(|held| !has_stamp(&held, Stamp::of(statx)) && at::is_stale(&held)) {
            node.set_gone();
        }
    }
}

fn has_stamp(held: impl AsFd, stamp: Stamp) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let fields = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(held, c"", flags, fields).is_ok_and(|known| Stamp::of(&known) == stamp)
}

/// Has the server asked what the name leads to.
///
/// # Errors
/// Those of statx(2); ESTALE if the directory is lost.
pub(super) fn ask(dir: impl AsFd, name: &OsStr) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_FORCE_SYNC;
    statx(dir, at::name(name)?, flags, StatxFlags::BASIC_STATS)?;
    Ok(())
}

pub(super) fn is_stale(e: &io::Error) -> bool {
    e.raw_os_error() == Some(Errno::STALE.raw_os_error())
}
