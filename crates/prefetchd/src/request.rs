//! The data that stages pass on: parts of files to read into memory, and their priority.

use std::path::PathBuf;

use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::pages::Pages;

use eke_linux::io_class::Class;

/// A part of a file to read into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The file, from the host's root, without symbolic links.
    pub path: PathBuf,
    /// A file, a directory or a device.
    pub kind: Kind,
    /// The learned version of the file. `dev` is compared only for [`Kind::Device`], where it is the device's own number.
    pub stamp: Stamp,
    /// The pages; none for a directory.
    pub pages: Pages,
    /// The user that it is read for: files of others except root are not read.
    pub user: u32,
    /// Whether it is the program itself or lies beside it: another file there is a new version of the program.
    pub is_own: bool,
}

/// The priority of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Before a predicted launch: idle I/O class, and others' I/O comes first.
    Ahead,
    /// For a started program: normal I/O class, without giving way. The caller stops it when the launch is over.
    AtExec,
}

impl Priority {
    /// The I/O class of its threads.
    pub(crate) fn io_class(self) -> Class {
        if self == Self::Ahead { Class::Idle } else { Class::Normal }
    }

    /// Ahead, the calling thread leaves the CPU to everybody else (nice 19; on Linux the value is a thread's own, setpriority(2)).
    pub(crate) fn yield_cpu(self) {
        if self == Self::Ahead {
            // A larger value needs no right.
            let _ = rustix::process::setpriority_process(None, 19);
        }
    }
}
