//! Which file below a node of the mount is.
//!
//! A node's number is the inode's number below, so that `st_ino` is the same on both sides and from mount to mount. The
//! root is 1 (FUSE says so), and what lies on another device than the root has numbers with the highest bit set.

pub mod ledger;

pub use ledger::{Entry, Ledger, Nobody};
