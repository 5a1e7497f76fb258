//! State that outlives a worker: an append-only log in a memfd of the supervisor, and descriptors that the supervisor keeps.
//!
//! The log has two halves, one of them current. Each record is one write(2) at the end, with a checksum that shows whether all of it
//! arrived; so a worker may die at any instruction. When most of a half is outdated, a thread of its own writes the current nodes to the
//! other half, and one write to its header makes that half current.

mod halves;
mod kept;
mod log;
mod medium;
mod nodes;
pub mod record;
mod rewrite;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use eke_model::units::Bytes;

use eke_cachefs::node;

pub use kept::KeptFiles;
pub use log::{Log, Replay};
pub use medium::{Medium, Memfd};
pub use nodes::{Node, Nodes};
pub use record::{OwnedEntry, RecordError};

use crate::log::log_line;
use kept::Keeper;

/// A worker's ledger.
#[derive(Debug)]
pub struct Ledger {
    log: Log<Memfd>,
    keeper: Keeper,
}

impl Ledger {
    /// Opens the supervisor's memfd, and reads what earlier workers recorded; `progress` is called now and then meanwhile. `keeper` is the
    /// worker's end of the pair of sockets for descriptors.
    ///
    /// # Errors
    /// The memfd cannot be read.
    pub fn open(memfd: OwnedFd, keeper: OwnedFd, progress: impl FnMut()) -> io::Result<(Self, Replay)> {
        let (log, replay) = Log::open_reporting(Memfd::of(memfd), progress)?;
        Ok((Self { log, keeper: Keeper::new(keeper) }, replay))
    }

    /// Rewrites the log whenever most of it is outdated. Runs as long as the worker lives.
    pub fn run(&self) {
        loop {
            if let Err(e) = self.log.rewrite_when_outdated() {
                log_line(&format!(
                    "the ledger could not be rewritten ({e}): it keeps outdated records for now"
                ));
            }
        }
    }
}

impl node::Ledger for Ledger {
    fn record(&self, entry: node::Entry<'_>) {
        if let Err(e) = self.log.append(&entry) {
            log_line(&format!("a node could not be recorded ({e}): the next worker will not know it"));
        }
    }

    fn keep(&self, node: u64, file: BorrowedFd<'_>) -> io::Result<()> {
        self.keeper.keep(node, file)
    }

    fn drop_kept(&self, node: u64) {
        self.keeper.drop_kept(node);
    }

    fn memory(&self) -> Bytes {
        self.log.memory()
    }
}
