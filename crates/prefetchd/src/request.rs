//! What the stages pass on: parts of files that are to be in memory, and how urgent that is.

use std::path::PathBuf;

use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::pages::Pages;

use crate::io_class::Class;

/// A part of a file to read into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The file, from the host's root, without symbolic links.
    pub path: PathBuf,
    /// A file, a directory or a device.
    pub kind: Kind,
    /// The identity that was learned. `dev` is compared only for [`Kind::Device`], whose own number it is.
    pub stamp: Stamp,
    /// The pages; of a directory none.
    pub pages: Pages,
}

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Before anybody asked: idle I/O class, and others come first.
    Ahead,
    /// For a program that has started: the normal class, without giving way. It ends when its caller says that the launch is over.
    AtExec,
}

impl Priority {
    /// The I/O class of its threads.
    pub(crate) fn io_class(self) -> Class {
        if self == Self::Ahead { Class::Idle } else { Class::Normal }
    }
}
