//! The records about nodes that a new worker needs.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

use eke_model::units::Bytes;

/// An event of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The node has this name in `parent` from now on: it was looked up, created, renamed or linked.
    Known {
        /// Its number.
        node: u64,
        /// The parent's number.
        parent: u64,
        /// Its name there: any bytes but 0 and `/`.
        name: &'a OsStr,
        /// The backing inode's `st_dev`.
        dev: u64,
        /// The backing inode's `st_ino`.
        ino: u64,
        /// The backing inode's birth in nanoseconds since 1970, 0 if unknown: an inode number can be reused.
        born_ns: i128,
        /// FUSE's generation of the node's number.
        generation: u64,
    },
    /// The kernel has forgotten it (FORGET), or never learned of it.
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

/// Records that outlive a worker. Calls must be cheap: there is one for every lookup and open.
pub trait Ledger: Send + Sync {
    /// Records an entry. It survives the worker once this has returned.
    fn record(&self, entry: Entry<'_>);

    /// Keeps a descriptor of an open file that is about to lose its last name, until its last release.
    ///
    /// # Errors
    /// The keeper cannot be reached. Then the file must not lose its name.
    fn keep(&self, node: u64, file: BorrowedFd<'_>) -> io::Result<()>;

    /// The kept descriptor is no longer needed.
    fn drop_kept(&self, node: u64);

    /// The memory of the ledger.
    fn memory(&self) -> Bytes {
        Bytes(0)
    }
}

/// A ledger for a worker without a successor: tests.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn record(&self, _: Entry<'_>) {}

    fn keep(&self, _: u64, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn drop_kept(&self, _: u64) {}
}
