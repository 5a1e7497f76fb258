//! The class of a request: its operation, and whether a process waits for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `REQ_OP_READ`.
    Read,
    /// `REQ_OP_WRITE`.
    Write,
    /// `REQ_OP_DISCARD`.
    Discard,
    /// `REQ_OP_FLUSH`: the disk's cache to its medium.
    Flush,
    /// All others: write zeroes, secure erase, zones, commands of a driver.
    Other,
}

impl Operation {
    /// All, in the order of tables.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Discard, Self::Flush, Self::Other];

    /// As in tables and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }
}

/// Does a process wait for it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Yes: a read that bypasses the page cache or is of metadata, a write of O_DIRECT or fsync (`op_is_sync()`).
    Sync,
    /// Not for writeback. For a read of the page cache mostly yes: file systems mark as readahead what a process waits for and what follows it.
    Async,
    /// No: a read of the idle class, which asks to wait.
    Idle,
    /// The source does not distinguish them.
    Any,
}

/// The class of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Class {
    /// Its operation.
    pub operation: Operation,
    /// Does a process wait?
    pub mode: Mode,
}

impl Class {
    /// A class.
    pub const fn new(operation: Operation, mode: Mode) -> Self {
        Self { operation, mode }
    }

    /// Is it a read that a process waits for? If the source does not distinguish them, any read.
    pub fn is_awaited_read(self) -> bool {
        self.operation == Operation::Read && self.mode != Mode::Idle
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.operation.name();
        match (self.operation, self.mode) {
            (Operation::Flush, _) | (_, Mode::Any) => f.pad(name),
            (Operation::Read, Mode::Async) => f.pad("readahead"),
            (_, Mode::Idle) => f.pad(&format!("{name}, idle")),
            (_, Mode::Sync) => f.pad(&format!("{name}, sync")),
            (_, Mode::Async) => f.pad(&format!("{name}, async")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_names_for_people() {
        let named = |operation, mode| Class::new(operation, mode).to_string();
        assert_eq!(named(Operation::Read, Mode::Async), "readahead");
        assert_eq!(named(Operation::Write, Mode::Sync), "write, sync");
        assert_eq!(named(Operation::Flush, Mode::Sync), "flush");
        assert_eq!(named(Operation::Write, Mode::Any), "write");
        assert!(Class::new(Operation::Read, Mode::Any).is_awaited_read());
        assert_eq!(named(Operation::Read, Mode::Idle), "read, idle");
        assert!(Class::new(Operation::Read, Mode::Async).is_awaited_read(), "a miss of the page cache");
        assert!(!Class::new(Operation::Read, Mode::Idle).is_awaited_read());
    }
}
