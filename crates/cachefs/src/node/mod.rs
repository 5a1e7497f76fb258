//! Nodes of the mount, and their backing files.
//!
//! A node's number is the backing inode's number, so `st_ino` is the same on both sides and from mount to mount. The root is
//! 1, as FUSE requires. Files on another device than the root have numbers with the highest bit set.
//!
//! - [`Table`]: numbers, names, and the kernel's lookups of each node; pure
//! - [`Node`], [`Descriptors`]: a node, and its open descriptors
//! - [`Nodes`]: both together: from a number to a descriptor
//! - `submounts`: other mounts inside, and which of them may be entered; `views`: directories that show at two places
//! - [`Ledger`]: what the next worker needs
//! - `taken`: who holds descriptors for good
//!
//! # Limits
//! A descriptor pins its inode: a file that others unlink keeps its space until its descriptor is closed (when the kernel
//! forgets the node, or others need descriptors). The next worker cannot open a file that others unlinked while it was open
//! here.

mod descriptors;
mod forgotten;
mod identity;
pub mod ledger;
mod nodes;
mod paths;
mod submounts;
mod table;
mod taken;
mod views;

pub use descriptors::{Access, Descriptors, Node, Writer};
pub use identity::Inode;
pub use ledger::{Entry, Ledger, NoLedger};
pub use nodes::{DESCRIPTOR, Footprint, Nodes};
pub use submounts::{RefusedMount, is_kernels};
pub use table::{DirEntry, ROOT, Table, is_foreign};
pub use taken::taken_by;
