//! The compressed page cache as a file system: each request of the kernel to calls on one directory below and on the store. The
//! processes that serve it are `eke-cache-serve`'s, its decisions `eke-cache-policy`'s.
//!
//! # Layout
//! - [`below`]: the directory below, by descriptors: metadata, names, and files read without filling the kernel's cache
//! - [`node`]: which file below a node of the mount is; the ledger that a new worker reads
//! - [`fs`]: each request of the kernel to calls on what is below
//! - [`rights`]: with which ids and capabilities a root's worker acts
//! - [`tier`]: blocks of files: from the store, or from below into it
//! - [`passthrough`]: which open files the kernel reads below itself
//! - [`watch`]: changes made below, told by the kernel
//! - `footprint`: what tables take of memory
//! - `sync`: the locks of the tier, or shuttle's
//!
//! # Invariants
//! - A write is acknowledged after the file below has it.
//! - What is read is what the file below held at some moment since the file was opened, or since the last change that the
//!   mount knows of: close-to-open, as NFS.
//! - Lack of memory, a corrupted block or a dead worker costs a read from below, never an error or an old byte.

pub mod below;
mod footprint;
pub mod fs;
pub mod node;
pub mod passthrough;
pub mod rights;
mod sync;
pub mod tier;
pub mod watch;
