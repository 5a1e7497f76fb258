//! Which open files the kernel reads itself (FUSE passthrough).
//!
//! - [`Passthrough`]: the admission policy's choice for each open, and what the kernel answers
//! - [`opens`]: the opens of each node, and their backing ids; `slots`: what a new worker must know of that

pub mod opens;
mod slots;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use eke_cache_policy::admission::{Admission, Way};
use eke_cache_store::FileId;
use fuser::BackingId;

pub use opens::{Opens, Register};

/// The open files, which of them use passthrough, and the policy that chooses.
#[derive(Debug)]
pub struct Passthrough {
    /// Who chooses.
    pub admission: Arc<Admission>,
    /// The open files.
    pub opens: Opens,
}

impl Passthrough {
    /// With nothing open. `slots` is a file of the supervisor's that outlives this worker (a memfd); without one no worker
    /// may follow this one while files are open by passthrough.
    pub fn new(admission: Arc<Admission>, slots: Option<File>) -> Self {
        Self { admission, opens: Opens::new(slots) }
    }

    /// Counts an open of `node`, which is `file`; `below` is open for reading at least; without it the
    /// open is cached. With an id it is to be
    /// answered by `opened_passthrough`, and without any flag but `FOPEN_NOFLUSH`; with `None` by `opened`. Each open
    /// that was answered must be counted, and each release told to `opens`.
    pub fn open<R: Register<Id = BackingId>>(
        &self,
        node: u64,
        file: FileId,
        reply: &R,
        below: Option<BorrowedFd<'_>>,
    ) -> Option<Arc<BackingId>> {
        self.opens.open(node, reply, below, || self.way(file), |e| self.refused(&e))
    }

    /// What is refused to one file (its file system is stacked) may be granted to the next.
    fn refused(&self, e: &io::Error) {
        if matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOTTY | libc::ENOSYS)) {
            self.admission.no_passthrough(format!(
                "cannot have the kernel read backing files itself: {e}; it needs root and Linux 6.9 with CONFIG_FUSE_PASSTHROUGH"
            ));
        }
    }

    fn way(&self, file: FileId) -> Way {
        self.admission.way(file.hash())
    }
}
