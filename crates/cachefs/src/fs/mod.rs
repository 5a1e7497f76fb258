//! Each request of the kernel as calls on the backing directory.
//!
//! - [`Serve`]: decodes a request, calls a function of [`Fs`], encodes the result; `reply`: the answers
//! - `names`, `removal`, `attributes`, `files`, `directories`, `xattrs`, `space`: these functions
//! - `data_path`: which opens use passthrough
//! - [`Fetchers`]: reads that wait; `read_order`: which of these is next
//! - [`Caller`]: the caller of a request, and acting with its identity
//! - [`Lifetimes`]: how long the kernel may believe an answer
//! - `warm`, `known_paths`: files that are read ahead of any request, and the paths of files with stored blocks
//! - `bare`: entries with number and type only: of other mounts, of damaged inodes, `.` and `..`
//! - `leased`: opens that a lease keeps waiting
//! - `elsewhere`: the share of requests on other mounts inside, whose file system may hang
//! - `turns`: the share of a user's requests that wait for the directory's own disk; `late`: threads for those that no session answers
//! - `places`: how many may wait, for a user and in all
//! - `resent`: requests that a dead worker may have executed already
//!
//! All that a request needs comes from its node, so that any worker can serve it. A file handle only selects the descriptor
//! for an fsync(2) and says whether reads use the store (`handles`), a directory's the one that is listed (`listings`).
//!
//! # Limits
//! - FUSE sends one group of the caller. The kernel has checked permissions with all of them. Where the others matter on the
//!   backing file, they are read from proc(5) ([`crate::rights`]).
//! - `O_TMPFILE`, ioctl(2) on files and syncfs(2) do not reach the backing file system (fuser 0.18 lacks them).

mod attributes;
mod bare;
mod caller;
mod data_path;
mod directories;
mod elsewhere;
mod error;
mod fetchers;
mod files;
mod hand_over;
mod handles;
mod known_paths;
mod late;
mod leased;
mod lifetime;
mod lingering;
mod listings;
mod names;
mod places;
mod read_order;
mod removal;
mod reply;
mod resent;
mod serve;
mod space;
mod turns;
mod warm;
mod xattrs;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use eke_cache_policy::admission::{Admission, PassthroughMode};
use eke_cache_store::FileId;
use eke_model::units::Bytes;
use fuser::{FileAttr, INodeNo, InitFlags, Notifier};

use crate::backing::{File, Stamp, has_no_writer, ignores_case, is_local, is_remote, may_ignore_case};
use crate::node::{Access, Footprint, Inode, Ledger, Node, Nodes, ROOT, is_foreign};
use crate::passthrough::Passthrough;
use crate::sync::lock;
use crate::tier::{ReadContext, Reporting, Tier};
use data_path::as_owner;
use handles::Handles;
use known_paths::KnownPaths;
use lingering::Lingering;
use listings::Listings;

pub use attributes::{AttrChange, SetTime, attr_of};
pub use caller::Caller;
pub use elsewhere::MOST as MOST_ELSEWHERE;
pub use fetchers::Fetchers;
pub use lifetime::{Asked, Lifetime, Lifetimes};
pub use names::NewNode;
pub use removal::EntryRef;
pub use serve::Serve;
pub use warm::{FileToWarm, Surveyed, ToWarm};

/// The options of a served directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long the kernel may use names and attributes without asking, while their changes are not reported.
    pub ttl: Duration,
    /// Descriptors that are kept of nodes that the kernel has forgotten.
    pub forgotten: usize,
    /// Read contexts that are kept, of up to 3 MiB each: as many as concurrent reads of the backing file.
    pub context: usize,
    /// The most nodes with a backing descriptor.
    pub paths: usize,
    /// Bytes of paths that are kept of files with blocks in the store; 0: none.
    pub known_paths: usize,
    /// open(2) of a backing file asks the server for attributes: NFS.
    pub opens_ask: bool,
    /// The most files that stay open for a moment after they were closed; 0: none. Only files of a local file system do.
    pub lingering: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ttl: lifetime::DEFAULT,
            forgotten: 0,
            context: 4,
            paths: usize::MAX,
            known_paths: 0,
            opens_ask: false,
            lingering: 0,
        }
    }
}

/// The flags that the mount requests in FUSE_INIT. An older kernel may lack some, but not `FUSE_ATOMIC_O_TRUNC`,
/// `FUSE_POSIX_ACL` with `FUSE_DONT_MASK`, and, for take-over, `FUSE_HAS_RESEND`.
///
/// - `DONT_MASK` and `POSIX_ACL`: a default ACL replaces the umask, and only the backing file system knows it.
/// - `HANDLE_KILLPRIV_V2` (5.11): without it the kernel asks for `security.capability` before every write.
/// - Not `AUTO_INVAL_DATA`: the mount's own writes change mtime, so it would drop the pages after each of them. A change of
///   size drops them anyway, other changes at the next open (close-to-open).
/// - Not `WRITEBACK_CACHE`: a write is acknowledged when the backing file has it.
pub fn capabilities() -> InitFlags {
    InitFlags::FUSE_ASYNC_READ
        | InitFlags::FUSE_BIG_WRITES
        | InitFlags::FUSE_MAX_PAGES
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_ATOMIC_O_TRUNC
        | InitFlags::FUSE_PARALLEL_DIROPS
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        | InitFlags::FUSE_DONT_MASK
        | InitFlags::FUSE_POSIX_ACL
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2
        | InitFlags::FUSE_CACHE_SYMLINKS
        | InitFlags::FUSE_HAS_RESEND
        | InitFlags::FUSE_PASSTHROUGH
}

/// A directory as a file system. Several sessions may share it.
#[derive(Debug)]
pub struct Fs {
    nodes: Nodes,
    tier: Arc<Tier>,
    lifetimes: Lifetimes,
    context: Mutex<Vec<ReadContext>>,
    contexts_kept: usize,
    passthrough: Passthrough,
    notifier: OnceLock<Notifier>,
    root_asked: OnceLock<Instant>,
    handles: Handles,
    listings: Listings,
    known_paths: KnownPaths,
    lingering: Lingering<Arc<Node>>,
    opens: AtomicU64,
    opens_ask: bool,
    is_remote: bool,
    /// Directories of the root's file system may ignore case.
    may_ignore_case: bool,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy)]
pub struct FoundNode {
    /// The attributes; `ino` is the node's number.
    pub attr: FileAttr,
    /// The generation of the number.
    pub generation: u64,
}

impl Fs {
    /// Serves the directory of this descriptor, which may be of `O_PATH`.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn new(
        root: OwnedFd,
        tier: Arc<Tier>,
        ledger: Arc<dyn Ledger>,
        options: Options,
    ) -> io::Result<Self> {
        let (is_remote, may_ignore_case) = (is_remote(&root), may_ignore_case(&root));
        let lingering = if is_local(&root) { options.lingering } else { 0 };
        let nodes = Nodes::new(root, ledger)?.with_paths(options.paths).remembering(options.forgotten);
        // The first device whose files get an id: there it is the inode's number.
        let root = nodes.get(ROOT)?.inode;
        tier.id(root.dev, root.ino);
        let passthrough = Passthrough::new(Arc::new(Admission::new(PassthroughMode::Never)), None);
        Ok(Self {
            nodes,
            tier,
            lifetimes: Lifetimes::new(options.ttl),
            context: Mutex::default(),
            contexts_kept: options.context,
            passthrough,
            notifier: OnceLock::new(),
            root_asked: OnceLock::new(),
            handles: Handles::default(),
            listings: Listings::default(),
            known_paths: KnownPaths::new(options.known_paths),
            lingering: Lingering::new(lingering),
            opens: AtomicU64::new(0),
            opens_ask: options.opens_ask,
            is_remote,
            may_ignore_case,
        })
    }

    /// With passthrough. A worker that takes over restores its nodes first, because an open file keeps its mode until it is
    /// closed.
    pub fn with_passthrough(mut self, passthrough: Passthrough) -> Self {
        passthrough.opens.adopt(self.nodes.open());
        self.passthrough = passthrough;
        self
    }

    /// Instead of an earlier worker: the kernel may have the root's attributes.
    pub fn taking_over(self) -> Self {
        let _ = self.root_asked.set(Instant::now());
        self
    }

    /// The first time that the kernel asked for the root's attributes. It has those of any other node from its name's answer.
    pub fn root_asked(&self) -> Option<Instant> {
        self.root_asked.get().copied()
    }

    /// Sets the notifier that invalidates the kernel's attributes when an open finds a file changed. Without it, a file that
    /// grew is read up to its old end until they expire.
    pub fn notify_by(&self, notifier: Notifier) {
        let _ = self.notifier.set(notifier);
    }

    /// Tells the kernel that a node's attributes changed. A negative offset stands for attributes alone. It waits for no page,
    /// so it is safe on a session's thread (`fuse_reverse_inval_inode` in fs/fuse/inode.c).
    fn attributes_are_old(&self, node: u64) {
        let _ = self.notifier.get().map(|notifier| notifier.inval_inode(INodeNo(node), -1, 0));
    }

    /// True if the backing directory is on another machine.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// How long the kernel may believe answers.
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// The nodes: to take over from a dead worker, and to find the node of a backing file.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The number of nodes that are open with passthrough.
    pub fn open_passthrough(&self) -> u64 {
        self.passthrough.opens.passthrough()
    }

    /// Files opened so far.
    pub fn opens(&self) -> u64 {
        self.opens.load(Relaxed)
    }

    /// The memory of all tables that grow with the files.
    pub fn footprint(&self) -> Footprint {
        let nodes = self.nodes.footprint();
        let tables = self.tier.tables() + self.known_paths.memory();
        Footprint { tables: Bytes(nodes.tables.0 + tables as u64), ..nodes }
    }

    /// True if several spellings of a name in this directory lead to the same file. Then a name that the kernel holds can lead to
    /// the wrong file after a change of another spelling, of which alone it knows.
    fn ignores_case(&self, directory: u64) -> bool {
        let may = self.may_ignore_case || is_foreign(directory);
        let Some(node) = self.nodes.get(directory).ok().filter(|_| may) else { return false };
        node.ignores_case(|| ignores_case(self.nodes.path(&node).ok()?))
    }

    fn id(&self, node: &Node) -> FileId {
        self.tier.id(node.inode.dev, node.inode.ino)
    }

    /// Changes the file's content by its id. A file that had none, because ids were scarce, may have got one meanwhile, and blocks from
    /// before the change.
    fn changing<T>(&self, node: &Node, change: impl FnOnce(FileId) -> T) -> T {
        let id = self.id(node);
        let done = change(id);
        if is_foreign(node.number) {
            let now = self.id(node);
            if now != id {
                self.tier.forget(now);
            }
        }
        done
    }

    /// Takes ids from files that are not used, if they are scarce. Call it every few seconds.
    pub fn give_up_ids(&self) {
        self.tier.give_up_ids(|dev, ino| self.nodes.find(&Inode { dev, ino, born_ns: 0 }).is_some());
    }

    /// Files on other mounts are not watched. Nor are stores through a mapping, which needs a file that is open for writing: that is asked unless a
    /// program has it open for writing here, too.
    fn reporting(&self, node: &Node, file: &File) -> Reporting {
        let is_written_here = || node.descriptors().file(Access::Write).is_some();
        let is_watched =
            !is_foreign(node.number) && (is_written_here() || as_owner(node, file, has_no_writer));
        if is_watched { Reporting::Watched } else { Reporting::Unwatched }
    }

    /// The file of a node, for a request on an open one. If it had to be opened again, a change is noted for the next open: the kernel
    /// keeps its pages until then.
    fn file(&self, node: &Arc<Node>, access: Access) -> io::Result<Arc<File>> {
        let (file, fresh) = self.nodes.file(node, access)?;
        if fresh {
            self.tier.visited(self.id(node), self.new_stamp(&file)?);
        }
        Ok(file)
    }

    /// The stamp of a backing file that was opened just now.
    fn new_stamp(&self, file: &File) -> io::Result<Stamp> {
        if self.opens_ask { file.stamp() } else { file.fresh_stamp() }
    }

    /// Frees the read contexts that no thread is using, up to 3 MiB each. Threads create new ones when they need them. Call
    /// it every few seconds, so that a mount without reads uses little memory.
    pub fn give_back_buffers(&self) {
        let unused = std::mem::take(&mut *lock(&self.context));
        drop(unused);
    }

    fn with_context<T>(&self, act: impl FnOnce(&mut ReadContext) -> T) -> T {
        let pool = || lock(&self.context);
        let free = pool().pop();
        let mut context = free.unwrap_or_else(|| self.tier.context());
        let done = act(&mut context);
        let mut pool = pool();
        if pool.len() < self.contexts_kept {
            pool.push(context);
        }
        done
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
