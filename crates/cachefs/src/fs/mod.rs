//! Each request of the kernel to calls on the backing directory.
//!
//! - [`Serve`]: decodes a request, calls a plain function of [`Fs`], encodes what it returned
//! - `names`, `removal`, `attributes`, `files`, `directories`, `xattrs`, `space`: these functions
//! - [`Fetchers`]: reads that wait
//! - [`Caller`]: who asks, and acting as that one
//! - `foreign`: what is shown of a mount inside that is not served
//! - `again`: requests that a dead worker may have done already
//!
//! Whatever a request needs comes from its node, so that any worker can serve it; a file handle only says which descriptor an
//! fsync(2) goes to (`handles`).
//!
//! # Limits
//! - FUSE sends one group of who asks. The kernel has checked permissions with all of them; where the others matter below, proc(5)
//!   is asked for them ([`crate::rights`]).
//! - `O_TMPFILE`, ioctl(2) on files and syncfs(2) do not reach the backing file system (fuser 0.18 lacks them).

mod again;
mod attributes;
mod caller;
mod directories;
mod error;
mod fetchers;
mod files;
mod foreign;
mod handles;
mod names;
mod removal;
mod serve;
mod space;
mod xattrs;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use eke_cache_policy::admission::{Admission, PassthroughMode};
use eke_cache_store::FileId;
use eke_model::units::Bytes;
use fuser::{FileAttr, INodeNo, InitFlags, Notifier};

use crate::backing::{File, Stamp};
use crate::node::{Access, Footprint, Ledger, Node, Nodes};
use crate::passthrough::Passthrough;
use crate::tier::{ReadContext, Seen, Tier};
use handles::Handles;

pub use attributes::{Change, Time, attr_of};
pub use caller::Caller;
pub use fetchers::Fetchers;
pub use names::Kind;
pub use removal::End;
pub use serve::Serve;

/// How a mount serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long the kernel believes names and attributes without asking.
    pub ttl: Duration,
    /// Descriptors that are kept of nodes that the kernel has forgotten.
    pub forgotten: usize,
    /// Threads' buffers that are kept, of up to 3 MiB each: of as many as read from the backing file at once.
    pub context: usize,
    /// Nodes with a backing descriptor, at most.
    pub paths: usize,
    /// open(2) below asks the server for the file's attributes: NFS.
    pub opens_ask: bool,
}

impl Default for Options {
    /// One second, as NFS has it at least (`acregmin` is 3).
    fn default() -> Self {
        Self { ttl: Duration::from_secs(1), forgotten: 0, context: 4, paths: usize::MAX, opens_ask: false }
    }
}

/// What the mount asks of the kernel in FUSE_INIT. What an older kernel lacks may be left out, but for
/// `FUSE_ATOMIC_O_TRUNC`, `FUSE_POSIX_ACL` with `FUSE_DONT_MASK`, and `FUSE_HAS_RESEND` where workers are to be outlived.
///
/// - `DONT_MASK` and `POSIX_ACL`: a default ACL replaces the umask, which only the backing file system can know.
/// - `HANDLE_KILLPRIV_V2` (5.11): without it the kernel asks for `security.capability` before every write.
/// - Not `AUTO_INVAL_DATA`: the mount's own writes change mtime, so it would drop the pages after each. A change of size
///   drops them in any case, other changes at the next open (close-to-open).
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

/// A directory as a file system. Several sessions may share one.
#[derive(Debug)]
pub struct Fs {
    nodes: Nodes,
    tier: Arc<Tier>,
    ttl: Duration,
    context: Mutex<Vec<ReadContext>>,
    contexts_kept: usize,
    passthrough: Passthrough,
    notifier: OnceLock<Notifier>,
    handles: Handles,
    opens_ask: bool,
}

/// How long the kernel may believe these attributes: not at all where a program would run with another's rights. Those bits go with
/// a write, of which the kernel does not know them gone.
fn believed(ttl: Duration, attr: &FileAttr) -> Duration {
    let set_id = attr.kind == fuser::FileType::RegularFile && attr.perm & 0o6000 != 0;
    if set_id { Duration::ZERO } else { ttl }
}

/// What a name turned out to be.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Its attributes; `ino` is the node's number.
    pub attr: FileAttr,
    /// The generation of the number.
    pub generation: u64,
}

impl Fs {
    /// Of the directory of this descriptor, which may be one of `O_PATH`.
    ///
    /// # Errors
    /// What statx(2) answers.
    pub fn new(
        root: OwnedFd,
        tier: Arc<Tier>,
        ledger: Arc<dyn Ledger>,
        options: Options,
    ) -> io::Result<Self> {
        let nodes = Nodes::new(root, ledger)?.with_paths(options.paths).remembering(options.forgotten);
        let passthrough = Passthrough::new(Arc::new(Admission::new(PassthroughMode::Never)), None);
        Ok(Self {
            nodes,
            tier,
            ttl: options.ttl,
            context: Mutex::default(),
            contexts_kept: options.context,
            passthrough,
            notifier: OnceLock::new(),
            handles: Handles::default(),
            opens_ask: options.opens_ask,
        })
    }

    /// Served by the mount with this number: other mounts inside are entered only if they forbid nothing that it does not.
    pub fn served_by(mut self, mount: u64) -> Self {
        self.nodes.served_by(mount);
        self
    }

    /// With files that use passthrough. A worker that takes over restores its nodes first: the files that are open are
    /// open in one way until they are closed.
    pub fn with_passthrough(mut self, passthrough: Passthrough) -> Self {
        passthrough.opens.adopt(self.nodes.open());
        self.passthrough = passthrough;
        self
    }

    /// Lets the kernel be told when an open finds a file changed that the attributes which it holds are old. Without it a file
    /// that grew below is read up to its old end for the rest of their time.
    pub fn notify_by(&self, notifier: Notifier) {
        let _ = self.notifier.set(notifier);
    }

    /// An offset below 0 stands for attributes alone: no page is waited for, so that this is safe on a session's own thread
    /// (`fuse_reverse_inval_inode` in fs/fuse/inode.c).
    fn attributes_are_old(&self, node: &Node) {
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(node.number), -1, 0);
        }
    }

    /// The nodes: to take over from a dead worker, and to know which one a backing file is.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Nodes that are open by passthrough now.
    pub fn open_passthrough(&self) -> u64 {
        self.passthrough.opens.passthrough()
    }

    /// What is remembered of files, in all tables that grow with them.
    pub fn footprint(&self) -> Footprint {
        let nodes = self.nodes.footprint();
        Footprint { tables: Bytes(nodes.tables.0 + self.tier.tables() as u64), ..nodes }
    }

    fn id(&self, node: &Node) -> FileId {
        self.tier.id(node.inode.dev, node.inode.ino)
    }

    /// The file of a node, and what the tier said if it was opened just now.
    fn file(&self, node: &Arc<Node>, access: Access) -> io::Result<(Arc<File>, Option<Seen>)> {
        let (file, fresh) = self.nodes.file(node, access)?;
        let seen = if fresh { Some(self.tier.opened(self.id(node), self.new_stamp(&file)?)) } else { None };
        Ok((file, seen))
    }

    /// Of a file that was opened below just now.
    fn new_stamp(&self, file: &File) -> io::Result<Stamp> {
        if self.opens_ask { file.stamp() } else { file.fresh_stamp() }
    }

    /// Gives back the buffers that no thread is using, up to 3 MiB each. Threads that need some again get them anew: to be called
    /// every few seconds, so that a mount whose files are not read, or are read by passthrough, holds little.
    pub fn give_back_buffers(&self) {
        let unused = std::mem::take(&mut *self.context.lock().unwrap_or_else(PoisonError::into_inner));
        drop(unused);
    }

    fn with_context<T>(&self, act: impl FnOnce(&mut ReadContext) -> T) -> T {
        let pool = || self.context.lock().unwrap_or_else(PoisonError::into_inner);
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
