//! An operation, done to a tree by the thread that calls; what it answered, in a form that two trees can be compared by.

pub mod attributes;
mod files;
mod names;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use super::op::{At, Op};
use crate::model::tree;

/// What an operation answered.
#[derive(PartialEq, Eq, Clone)]
pub enum Answer {
    Done,
    Number(i64),
    Words(String),
    Bytes(Vec<u8>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Words(words) => f.write_str(words),
            Self::Bytes(bytes) => f.write_str(&tree::summary(bytes)),
        }
    }
}

pub type Answered = Result<Answer, Errno>;

/// A tree as one user has it: open files, working directory.
pub struct Tree {
    root: OwnedFd,
    working: Option<OwnedFd>,
    slots: [Option<OwnedFd>; 3],
}

impl Tree {
    pub fn new(root: OwnedFd) -> Self {
        Self { root, working: None, slots: [None, None, None] }
    }

    /// As after the mount refused it.
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

/// Any operation.
pub fn perform(tree: &mut Tree, op: &Op) -> Answered {
    names::perform(tree, op)
        .or_else(|| attributes::perform(tree, op))
        .or_else(|| files::perform(tree, op))
        .unwrap_or(Err(Errno::NOSYS))
}
