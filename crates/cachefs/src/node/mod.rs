//! Which file below a node of the mount is.
//!
//! A node's number is the inode's number below, so that `st_ino` is the same on both sides and from mount to mount. The
//! root is 1 (FUSE says so), and what lies on another device than the root has numbers with the highest bit set.
//!
//! - [`Table`]: numbers, names, and how often the kernel holds each node; pure
//! - [`Node`], [`Hold`]: one node, and the descriptors that are open for it
//! - [`Nodes`]: both together: a descriptor for a number
//! - `borders`: other mounts inside, and which of them may be entered
//! - [`Ledger`]: what a next worker must know of it
//!
//! # Limits
//! A descriptor pins its inode: a file that others unlink below keeps its space until its descriptor is closed (when the
//! kernel forgets the node, or others need descriptors). A file that others unlink below while it is open here cannot be
//! opened again by a next worker.

mod borders;
mod forgotten;
mod hold;
mod identity;
pub mod ledger;
mod nodes;
mod paths;
mod table;

pub use borders::{Refused, is_kernels};
pub use hold::{Access, Hold, Node, Writer};
pub use identity::Inode;
pub use ledger::{Entry, Ledger, Nobody};
pub(crate) use nodes::inode;
pub use nodes::{DESCRIPTOR, Footprint, Nodes};
pub use table::{Place, ROOT, Table};
