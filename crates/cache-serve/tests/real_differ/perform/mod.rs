//! Does an operation in a tree, by the calling thread. Answers of two trees can be compared.

pub mod attributes;
mod files;
mod names;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use super::op::{At, Op};
use crate::common::tree;

/// The result of an operation.
#[derive(PartialEq, Eq, Clone)]
pub enum Answer {
    Done,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => f.write_str(&tree::summary(bytes)),
        }
    }
}

pub type Answered = Result<Answer, Errno>;

/// A user's view of a tree: open files and working directory.
pub struct Tree {
    root: OwnedFd,
    working: Option<OwnedFd>,
    slots: [Option<OwnedFd>; 3],
}

impl Tree {
    pub fn new(root: OwnedFd) -> Self {
        Self { root, working: None, slots: [None, None, None] }
    }

    /// Forgets the slot of an open that the mount refused.
    pub fn forget(&mut self, op: &Op) {
        if let Op::Open { slot, .. } = op {
            self.slots[usize::from(*slot)] = None;
        }
    }

    fn at(&self, at: At) -> (BorrowedFd<'_>, &'static Path) {
        let base = self.working.as_ref().filter(|_| at.1).unwrap_or(&self.root);
        (base.as_fd(), at.path())
    }

    fn slot(&self, slot: u8) -> Result<&OwnedFd, Errno> {
        self.slots[usize::from(slot)].as_ref().ok_or(Errno::BADF)
    }
}

fn done<T>(result: Result<T, Errno>) -> Answered {
    result.map(|_| Answer::Done)
}

/// Does any operation.
pub fn perform(tree: &mut Tree, op: &Op) -> Answered {
    names::perform(tree, op)
        .or_else(|| attributes::perform(tree, op))
        .or_else(|| files::perform(tree, op))
        .unwrap_or(Err(Errno::NOSYS))
}
