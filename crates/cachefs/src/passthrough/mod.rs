//! FUSE passthrough: which open files the kernel reads itself.
//!
//! - [`Passthrough`]: the admission policy's choice for each open, and the kernel's answer
//! - [`opens`]: the opens of each node, and their backing ids; `slots`: the same for a new worker

pub mod opens;
mod slots;

use std::fs::File;
use std::io;
use std::sync::Arc;

use eke_cache_policy::admission::{Admission, DataPath};
use fuser::BackingId;

pub use opens::{NewOpen, Opens, Register};

/// The open files, those that use passthrough, and the policy that chooses.
#[derive(Debug)]
pub struct Passthrough {
    /// The policy that chooses.
    pub admission: Arc<Admission>,
    /// The open files.
    pub opens: Opens,
}

impl Passthrough {
    /// Without open files. `slots` is a file of the supervisor that outlives this worker (a memfd). Without it no worker can
    /// follow this one while files are open with passthrough.
    pub fn new(admission: Arc<Admission>, slots: Option<File>) -> Self {
        Self { admission, opens: Opens::new(slots) }
    }

    /// Counts an open. `choose` chooses the path, as for [`Opens::open`].
    ///
    /// With an id, reply by `opened_passthrough` with no flag but `FOPEN_NOFLUSH` and `FOPEN_DIRECT_IO`; with `None`, reply by
    /// `opened`. Every open that was answered must be counted here, and every release in `opens`.
    pub fn open<R: Register<Id = BackingId>>(
        &self,
        new: &NewOpen<'_, R>,
        choose: impl FnOnce(bool) -> DataPath,
    ) -> Option<Arc<BackingId>> {
        self.opens.open(new, choose, |e| self.refused(&e))
    }

    /// A refusal for one file (its file system is stacked too deep) does not count for others.
    fn refused(&self, e: &io::Error) {
        if matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOTTY | libc::ENOSYS)) {
            self.admission.no_passthrough(format!(
                "the kernel refuses passthrough: {e}; it needs root and Linux 6.9 with CONFIG_FUSE_PASSTHROUGH"
            ));
        }
    }
}
