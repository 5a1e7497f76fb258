//! The compressed page cache as a file system: requests of the kernel become calls on the backing directory and the store.
//! `eke-cache-serve` has the processes, `eke-cache-policy` the decisions.
//!
//! # Layout
//! - [`backing`]: the backing directory, by descriptors; files read without filling the kernel's page cache
//! - [`node`]: the nodes of the mount and their backing files; the ledger for the next worker
//! - [`fs`]: each request of the kernel as calls on the backing directory
//! - [`rights`]: the ids and capabilities of a root's worker
//! - [`tier`]: blocks of files: from the store, or from the backing file into it
//! - [`passthrough`]: which open files the kernel reads itself
//! - [`watch`]: changes in the backing directory, reported by the kernel
//! - `footprint`: the memory of tables; `sync`: all locks, or shuttle's
//!
//! # Invariants
//! - A write is acknowledged after the backing file has it.
//! - A read returns the backing file's content at some moment since the file was opened, or since the last change that the
//!   mount knows: close-to-open, as NFS.
//! - Lack of memory, a corrupted block or a dead worker costs a read of the backing file, never an error or an old byte.
//!
//! # A read
//! ```text
//!             ┌─ session: are all blocks resident? ── yes ── decompress, answer
//! FUSE_READ ──┤                  │
//!             │                  ├─ another thread reads the last missing one ── wait without a thread ─┐
//!             │                  │                                                                      │
//!             └─ fetcher: claim what is missing, read it and what follows, answer ── landed ────────────┘
//!                                │
//!                                └─ admit by ticket: compress now (sync) or in a worker (async)
//! ```
//!
//! Sessions answer reads of resident blocks, so no hit waits for the disk. A fetcher claims each missing block, so it is read
//! once; others wait for it, by a callback if they must not occupy a thread. Every block is admitted by a ticket that was
//! taken before the file was read. There is no write-back cache: a write goes to the backing file, then drops the blocks that
//! it changed, then is acknowledged.
//!
//! # Design
//! - *Backing directory.* A descriptor of it is opened before the mount covers it. Everything is reached from there, never by
//!   a path that somebody could replace.
//! - *Nodes* have the backing inode's number. The worker keeps parent and name of each. It opens descriptors when they are
//!   needed, compares device and inode, and bounds their number. Inodes of forgotten nodes are kept for a while by a
//!   descriptor each. Otherwise an open of a file whose blocks are all stored would wait for its inode from the disk. The
//!   descriptors of files that others unlink are closed within ten seconds. None are kept of network file systems or of
//!   other mounts inside.
//! - *Take-over.* No request depends on the worker's state, except on the *ledger*: an append-only log in a memfd of the
//!   supervisor, from which the next worker restores the nodes. A file handle only selects the descriptor for an fsync(2), and says
//!   whether reads use the store.
//!   The kernel resends unanswered requests; [`fs`] accepts those that the dead worker had executed.
//! - *A worker never asks the kernel to drop pages.* The call would wait, unkillably, for pages that only a worker can bring.
//!   The guard, another process, makes it.
//! - *Rights.* A root's worker keeps eleven capabilities. For another user it acts with that user's file system ids and five
//!   of them, so the backing file system checks owners, sticky directories, reserved blocks and quotas again. A file is
//!   created with `O_EXCL` only: for an existing one the kernel looks the name up again (ESTALE) and checks permissions.
//! - *Other mounts inside* are entered only if they forbid nothing that eke's mount allows.
//! - *Coherence* is close-to-open. Each open compares size, mtime, ctime and birth time, with those on the server if there is
//!   one. A change drops the blocks and the kernel's pages. Dirty pages are written back before they are read (cachestat(2)),
//!   so that later stores through a mapping change mtime. As root, fanotify also reports changes to open files.
//! - *Locks* of files are the kernel's, among the users of the mount, and survive the worker.

pub mod backing;
mod footprint;
pub mod fs;
pub mod node;
pub mod passthrough;
pub mod rights;
mod sync;
pub mod tier;
pub mod watch;
