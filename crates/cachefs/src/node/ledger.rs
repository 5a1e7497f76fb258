//! What a new worker must know of the old one's nodes.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

use eke_model::units::Bytes;

/// One thing that happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The node is below `parent` under this name from now on: it was looked up, made, renamed or linked.
    Known {
        /// Its number.
        node: u64,
        /// The parent's number.
        parent: u64,
        /// Its name there, any bytes but 0 and `/`.
        name: &'a OsStr,
        /// `st_dev` below.
        dev: u64,
        /// `st_ino` below.
        ino: u64,
        /// The birth time below in nanoseconds since 1970, 0 if unknown: an inode number can be used again.
        born_ns: i128,
        /// FUSE's generation of the node's number.
        generation: u64,
    },
    /// The kernel asks for it no more (FORGET), or it never will.
    Forgotten {
        /// Its number.
        node: u64,
    },
    /// It was opened once more.
    Opened {
        /// Its number.
        node: u64,
    },
    /// It was closed once.
    Released {
        /// Its number.
        node: u64,
    },
}

/// What outlives a worker. Cheap: it is called for every lookup and open.
pub trait Ledger: Send + Sync {
    /// Notes an entry; a worker that dies after this returns has it noted.
    fn record(&self, entry: Entry<'_>);

    /// Keeps a descriptor of an open file that is about to lose its last name, until its last release.
    ///
    /// # Errors
    /// The keeper cannot be reached; then the file must not lose its name.
    fn keep(&self, node: u64, file: BorrowedFd<'_>) -> io::Result<()>;

    /// The kept descriptor is needed no more.
    fn drop_kept(&self, node: u64);

    /// What it takes.
    fn memory(&self) -> Bytes {
        Bytes(0)
    }
}

/// A ledger for a worker that is not to be outlived: tests.
#[derive(Debug, Default, Clone, Copy)]
pub struct Nobody;

impl Ledger for Nobody {
    fn record(&self, _: Entry<'_>) {}

    fn keep(&self, _: u64, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn drop_kept(&self, _: u64) {}
}
