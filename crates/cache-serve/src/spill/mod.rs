//! Evicted blocks on a faster disk, for one mount. `eke-cache-spill` has the blocks, this the directory with its two files.
//!
//! # Layout
//! - [`dir`]: the directory: checked, locked and opened by the supervisor before the mount
//! - [`keep`]: the index over an unmount, in the worker
//! - [`error`]: messages for the user
//!
//! # Lives
//! - The *supervisor* holds the directory, the file with the blocks and its lock, and hands them to each worker, as all descriptors.
//! - A *worker* removes the index before it uses it, so no later one reads it again; a worker that replaces a dead one begins empty. At
//!   the end of the mount the last worker writes the index.
//! - After a crash of all, or a power cut, there is no index. The blocks are not trusted then, and are overwritten.

pub mod dir;
pub mod error;
pub mod keep;
