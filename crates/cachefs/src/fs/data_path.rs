//! Which opens use passthrough.
//!
//! With passthrough the kernel opens the backing file by the flags of open(2), and what happens there is not reported. So the first
//! open of a file, which chooses for all that follow it, uses passthrough only if it is plain ([`is_plain`]). What the others need:
//!
//! - *Mappings* (mmap) of a passthrough file are of the backing file and outlive their open. Beside cached pages they would show
//!   other bytes, and stores would be lost. So a file that may be mapped still is cached only after the file system has said that
//!   nobody else has it open ([`is_sole`]); until then it uses passthrough again.
//! - *Stores through a mapping* change times and blocks without a report: until then the kernel believes attributes for a short time only.
//! - *Flags* may be changed after open(2). Those that decide where or how is written (`O_APPEND`, `O_DIRECT`) the kernel tells to this
//!   process with each request, but not to the backing file. So the requests of such an open come here ([`comes_here`]).
//! - *A file that may only grow* (chattr(1), `a`): the kernel forbids to map it for writing by an attribute that inodes of FUSE lack. It
//!   never uses passthrough. If it got the attribute while it does, nobody opens it in a way that can be mapped for writing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use eke_cache_policy::admission::{DataPath, OpenDecision};
use fuser::{BackingId, FileAttr, FileHandle, FileType, FopenFlags};
use rustix::fs::fstatvfs;
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use super::Fs;
use super::handles::past_store;
use crate::backing::{File, at, is_remote, is_sole};
use crate::node::{Access, Node, is_foreign};
use crate::passthrough::{NewOpen, Register};
use crate::rights;

/// Any other flag makes an open with passthrough fail (`FOPEN_PASSTHROUGH_MASK` in fs/fuse/fuse_i.h).
const PASSTHROUGH: FopenFlags = FopenFlags::FOPEN_NOFLUSH;

/// Bytes that are left for all users.
const PLENTY: u64 = 1 << 30;

/// Asks for a lease of the file as its owner ([`is_sole`], [`has_no_writer`](crate::backing::has_no_writer)). False if that cannot be asked. Then it has the
/// rights of root again: ids are closed after this.
pub(super) fn as_owner(node: &Node, file: &File, ask: fn(BorrowedFd<'_>) -> bool) -> bool {
    let owner = at::stat(file.as_fd()).map(|statx| (statx.stx_uid, statx.stx_gid));
    // An open by another thread meanwhile would meet the lease, and fail (EWOULDBLOCK).
    let no_open = node.descriptors();
    let answer =
        owner.and_then(|owner| rights::as_user(owner, CapabilitySet::empty(), || Ok(ask(file.as_fd()))));
    drop(no_open);
    rights::as_root(CapabilitySet::empty()).is_ok() && answer.unwrap_or(false)
}

/// True if the open can neither be mapped for writing, which needs the right to read, too, nor lose a flag that matters.
fn is_plain(flags: i32) -> bool {
    mode(flags) != libc::O_RDWR && flags & (libc::O_APPEND | libc::O_DIRECT) == 0
}

/// True if reads and writes of an open with passthrough are requests to this process. Not of one that reads and appends:
/// sendfile(2) would leave old pages in the kernel.
fn comes_here(flags: i32) -> bool {
    flags & libc::O_DIRECT != 0 || (flags & libc::O_APPEND != 0 && mode(flags) == libc::O_WRONLY)
}

fn mode(flags: i32) -> i32 {
    flags & libc::O_ACCMODE
}

/// Handle and flags of an answer with passthrough.
pub(super) fn by_passthrough(handle: FileHandle, how: FopenFlags, flags: i32) -> (FileHandle, FopenFlags) {
    let how = how & PASSTHROUGH;
    if comes_here(flags) { (past_store(handle), how | FopenFlags::FOPEN_DIRECT_IO) } else { (handle, how) }
}

impl Fs {
    /// True if an open may ever use passthrough.
    pub(super) fn may_pass_through(&self) -> bool {
        rustix::process::geteuid().is_root() && self.passthrough.admission.may_pass_through()
    }

    /// True if the attributes may change by stores through a mapping, which nobody reports.
    pub(super) fn changes_unseen(&self, attr: &FileAttr) -> bool {
        attr.kind == FileType::RegularFile && self.passthrough.opens.leaves(attr.ino.0)
    }

    /// Counts an open that is about to be answered. Returns the backing file's id if the kernel is to read that itself.
    /// Every open is counted, because every release will be. `flags`: those of open(2).
    pub fn passthrough<R: Register<Id = BackingId>>(
        &self,
        number: u64,
        flags: i32,
        reply: &R,
    ) -> Option<Arc<BackingId>> {
        // Ids are closed here too, which needs root's rights.
        rights::as_root(CapabilitySet::empty()).ok()?;
        let node = self.nodes.get(number).ok()?;
        let file = self.file(&node, Access::Read).or_else(|_| self.file(&node, Access::Write)).ok();
        let is_new = self.decide(&node, file.as_deref(), flags);
        let (reads, writes) = (mode(flags) != libc::O_WRONLY, mode(flags) == libc::O_RDWR);
        // Elsewhere the next worker can ask the file system. That of a file on another one inside may be remote, too.
        let leaves = writes || (reads && (self.is_remote || is_foreign(number)));
        let backing = file.as_ref().map(|file| file.as_fd());
        // A server that hangs alone is not asked while the table of all opens is locked: its files are cached.
        let hangs_alone = node.is_elsewhere() && file.as_ref().is_some_and(|file| is_remote(file.as_fd()));
        let choose = |left| {
            let path = |file| self.first_path(&node, file, (flags, is_new), left);
            // Without a descriptor it is cached in any case, and what may be left of it stays known.
            let asked = file.as_deref().filter(|_| !hangs_alone);
            asked.map_or(if left { DataPath::Passthrough } else { DataPath::Cached }, path)
        };
        let id = self.passthrough.open(&NewOpen { node: number, reply, backing, leaves }, choose)?;
        if reads {
            node.set_mapped(true);
        }
        if writes {
            // They were believed for a day.
            self.attributes_are_old(number);
        }
        Some(id)
    }

    /// Lets the policy decide on the file. True if it is opened to be written, and nothing was written yet.
    fn decide(&self, node: &Node, file: Option<&File>, flags: i32) -> bool {
        let id = self.id(node);
        let size = || Some(file?.stamp().ok()?.size);
        let seen = || self.tier.known_size(id).or_else(size);
        let content = self.tier.content(id);
        // The file's blocks are of no use here now, also while it is still open in the other mode. Blocks that later probes
        // leave stay.
        let decided = self.passthrough.admission.decide_at_open(id.hash(), is_plain(flags), seen, content);
        if decided == OpenDecision::NowPassthrough {
            self.tier.drop_blocks(id);
            // Otherwise this open would be cached, too, as one beside an open file.
            self.end_lingering(node.number);
        }
        mode(flags) == libc::O_WRONLY
            && is_plain(flags)
            && size() == Some(0)
            && file.is_some_and(|file| !self.is_remote_at(node, file) && leaves_reserve(file))
    }

    /// True if the node is on a remote file system, as `file` is. Only a file of another one than the root's is asked: on NFS that is
    /// a round trip.
    pub(super) fn is_remote_at(&self, node: &Node, file: impl AsFd) -> bool {
        if is_foreign(node.number) { is_remote(file) } else { self.is_remote }
    }

    /// The path of an open of a node that is not open. `left`: see [`Opens::open`].
    ///
    /// [`Opens::open`]: crate::passthrough::Opens::open
    fn first_path(&self, node: &Node, file: &File, (flags, is_new): (i32, bool), left: bool) -> DataPath {
        let admission = &self.passthrough.admission;
        let chosen = if is_plain(flags) {
            admission.data_path(self.id(node).hash(), is_new)
        } else {
            DataPath::Cached
        };
        let passes = chosen == DataPath::Passthrough || self.is_still_mapped(node, file, left);
        // What the file system does not report, it enforces itself.
        let passes = passes && !file.may_only_grow().unwrap_or(true);
        if passes { DataPath::Passthrough } else { DataPath::Cached }
    }

    /// True if a mapping of an earlier open with passthrough may be left. A network file system cannot tell; there `left` does.
    fn is_still_mapped(&self, node: &Node, file: &File, left: bool) -> bool {
        if !(left || node.may_be_mapped()) || !self.may_pass_through() {
            return false;
        }
        if self.is_remote_at(node, file) {
            node.set_mapped(false);
            return left;
        }
        let is_free = as_owner(node, file, is_sole);
        node.set_mapped(!is_free);
        !is_free
    }

    /// Refuses an open that could be mapped for writing if the file may only grow: while it uses passthrough, the kernel does not.
    ///
    /// # Errors
    /// EPERM; those of statx(2).
    pub(super) fn may_follow(&self, number: u64, file: &File, flags: i32) -> io::Result<()> {
        let maps = mode(flags) == libc::O_RDWR && self.passthrough.opens.is_passthrough(number);
        if maps && file.may_only_grow()? { Err(Errno::PERM.into()) } else { Ok(()) }
    }
}

/// With passthrough nobody writes into the blocks that are reserved for root, and on a network file system all write as root (see
/// [`rights`]): a new file uses it where that makes no difference.
fn leaves_reserve(file: &File) -> bool {
    fstatvfs(file.as_fd()).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) >= PLENTY)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use eke_cache_policy::admission::{Admission, PassthroughMode};
    use eke_testkit::real::skip;

    use super::*;
    use crate::fs::Options;
    use crate::node::{NoLedger, ROOT};
    use crate::passthrough::Passthrough;
    use crate::tier::Tier;

    #[test]
    fn only_opens_that_can_neither_be_mapped_for_writing_nor_lose_a_flag_choose_passthrough() {
        let plain = [libc::O_RDONLY, libc::O_WRONLY, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC];
        assert!(plain.into_iter().all(is_plain));
        let others = [
            libc::O_RDWR,
            libc::O_WRONLY | libc::O_APPEND,
            libc::O_RDONLY | libc::O_DIRECT,
            libc::O_WRONLY | libc::O_DIRECT,
        ];
        assert!(!others.into_iter().any(is_plain));
    }

    #[test]
    fn requests_of_an_open_whose_flags_may_change_come_here() {
        let of = |flags| by_passthrough(FileHandle(1), FopenFlags::FOPEN_KEEP_CACHE, flags);
        assert_eq!(of(libc::O_RDONLY), (FileHandle(1), FopenFlags::empty()));
        assert_eq!(of(libc::O_WRONLY | libc::O_APPEND).1, FopenFlags::FOPEN_DIRECT_IO);
        assert_eq!(of(libc::O_RDWR | libc::O_DIRECT).1, FopenFlags::FOPEN_DIRECT_IO);
    }

    #[test]
    fn no_open_of_another_thread_meets_the_lease() {
        if !rustix::process::geteuid().is_root() {
            return skip("no_open_of_another_thread_meets_the_lease", "not root");
        }
        let dir = tempfile::tempdir().unwrap();
        eke_testkit::tree::put(dir.path(), "file", "text");
        let root = std::fs::File::open(dir.path()).unwrap().into();
        let fs = Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap();
        let admission = Arc::new(Admission::new(PassthroughMode::Auto));
        let fs = fs.with_passthrough(Passthrough::new(admission, None));
        let found = fs.lookup(ROOT, OsStr::new("file")).unwrap();
        let node = fs.nodes.get(found.attr.ino.0).unwrap();
        let file = fs.file(&node, Access::Read).unwrap();
        std::thread::scope(|scope| {
            // The node counts as closed, so each opens the file anew.
            let opens = scope.spawn(|| (0..5000).try_for_each(|_| fs.file(&node, Access::Write).map(drop)));
            while !opens.is_finished() {
                fs.is_still_mapped(&node, &file, true);
            }
            opens.join().unwrap().unwrap();
        });
        assert!(!fs.is_still_mapped(&node, &file, true), "it asked");
    }
}
