//! The compressed page cache as a file system: each request of the kernel to calls on one directory below and on the store. The
//! processes that serve it are `eke-cache-serve`'s, its decisions `eke-cache-policy`'s.
//!
//! # Layout
//! - [`backing`]: the backing directory, by descriptors: metadata, names, and files read without filling the kernel's cache
//! - [`node`]: which file below a node of the mount is; the ledger that a new worker reads
//! - [`fs`]: each request of the kernel to calls on the backing directory
//! - [`rights`]: with which ids and capabilities a root's worker acts
//! - [`tier`]: blocks of files: from the store, or from the backing file into it
//! - [`passthrough`]: which open files the kernel reads itself
//! - [`watch`]: changes made in the backing directory, told by the kernel
//! - `footprint`: what tables take of memory
//! - `sync`: the locks of the tier, or shuttle's
//!
//! # Invariants
//! - A write is acknowledged after the backing file has it.
//! - What is read is what the backing file held at some moment since the file was opened, or since the last change that the
//!   mount knows of: close-to-open, as NFS.
//! - Lack of memory, a corrupted block or a dead worker costs a read from the backing file, never an error or an old byte.

pub mod backing;
mod footprint;
pub mod fs;
pub mod node;
pub mod passthrough;
pub mod rights;
mod sync;
pub mod tier;
pub mod watch;
