//! Mounts of `eke-cache` as their clients see them: the list of mounts, their settings and status, and messages to their supervisors.
//! Links neither FUSE nor the store.
//!
//! # Layout
//! - [`settings`], [`status`]: what was requested, and what is; [`spill`]: the same of evicted blocks on a faster disk;
//!   [`shared`]: of the tier that a farm shares, [`engine_url`]: where that is
//! - [`mounts`]: the kernel's list of mounts
//! - [`dir`]: the directory with a user's sockets
//! - [`socket`]: listening, connecting, the other end's user
//! - [`connection`]: a connection whose other end may be another user's
//! - [`line`]: one JSON line a message, bounded in size and time
//! - [`ask`]: requests to the supervisors of mounts, to all at once
//! - [`warm`](mod@warm): a request with many answers: files to be read into memory
//! - [`process`]: what a process has open; [`holders`]: which processes keep a mount busy
//! - [`unmount`](mod@unmount): unmounting without the supervisor
//! - [`at`]: names and attributes by descriptors, which no rename or link leads elsewhere
//!
//! # Invariants
//! - Nothing here touches the files of a mount, since its server may be dead: names and numbers come from the kernel's list. Sockets of
//!   other users are reached without a step onto a file system that one of them serves.
//! - A socket is reached through a directory that only its user can write to, and the other end's user is checked. Descriptors that it passes are dropped by another process.

pub mod ask;
pub mod at;
pub mod connection;
pub mod dir;
pub mod engine_url;
pub mod holders;
pub mod line;
pub mod mounts;
pub mod process;
pub mod settings;
pub mod shared;
pub mod socket;
pub mod spill;
pub mod status;
pub mod unmount;
pub mod warm;

pub use ask::{AskError, Asked, ask, ask_all};
pub use dir::SocketDirs;
pub use mounts::{Device, Mount};
pub use socket::{Peer, Socket, remove_dead};
pub use unmount::unmount;
