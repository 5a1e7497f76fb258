//! What outlives a worker: an append-only log in a memfd of the supervisor's, and descriptors that the supervisor keeps.
//!
//! The log has two halves, of which one counts. A record is one write(2) at its end; its checksum says whether all of it
//! arrived, so a worker may die at any instruction. When most of a half is outdated, what still counts is written to the
//! other half, and one write to the header makes that one count.

mod kept;
mod log;
mod medium;
mod nodes;
pub mod record;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use eke_model::units::Bytes;

use eke_cachefs::node;

pub use kept::{Kept, Note};
pub use log::{Log, Replay};
pub use medium::{Medium, Memfd};
pub use nodes::{Node, Nodes};
pub use record::{Foreign, Owned};

use kept::Keeper;

/// The ledger of a worker.
#[derive(Debug)]
pub struct Ledger {
    log: Log<Memfd>,
    keeper: Keeper,
}

impl Ledger {
    /// Of the supervisor's memfd, and the worker's end of the keeper's pair of sockets; with what earlier workers noted.
    ///
    /// # Errors
    /// The memfd cannot be read.
    pub fn open(memfd: OwnedFd, keeper: OwnedFd) -> io::Result<(Self, Replay)> {
        let (log, replay) = Log::open(Memfd::of(memfd))?;
        Ok((Self { log, keeper: Keeper::new(keeper) }, replay))
    }
}

impl node::Ledger for Ledger {
    fn record(&self, entry: node::Entry<'_>) {
        if let Err(e) = self.log.append(&entry) {
            crate::log::say(&format!("a node could not be noted ({e}): a next worker will not know it"));
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
