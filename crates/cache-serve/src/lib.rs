//! The processes of `eke-cache`: the supervisor, its workers and the guard.
//!
//! - `start`: from settings to a mount with a supervisor; [`log`]: lines on standard error
//! - [`mount`]: checks, mounting and unmounting, their errors
//! - [`init`]: `FUSE_INIT`, once with the kernel and again for each worker's sessions
//! - [`served_mount`]: what the supervisor hands to each worker
//! - [`device`]: clones of the device, and the order to resend requests
//! - [`ledger`]: state that outlives a worker
//! - [`supervisor`]: its loop, workers' deaths, the socket's clients
//! - [`worker`]: the process that serves
//! - [`size`]: the loop that keeps the store at the size that memory allows
//! - [`warm`]: blocks that are read before anybody requests them
//! - [`spill`]: evicted blocks on a faster disk
//! - [`shared`]: blocks that a farm shares, in an engine
//! - [`prefault`]: the allocator of the program
//! - [`fstab`]: the arguments of mount(8)
//!
//! # Deaths and their effects
//! - *The worker*: the supervisor reaps it, has the kernel resend the unanswered requests, and forks the next worker. Callers wait some
//!   milliseconds.
//! - *The supervisor*: the guard, a third process, unmounts, and the worker exits. The backing directory is visible again.
//! - *All three at once*: the kernel ends the connection with the last descriptor. The mount stays and answers ENOTCONN to everything.
//!   Nothing hangs; `eke cache umount` (or umount(8)) removes it.
//! - *Workers that die repeatedly, or one worker before Linux 6.9*: the supervisor unmounts lazily, and the connection ends.

pub mod device;
pub mod fstab;
pub mod init;
pub mod ledger;
pub mod log;
pub mod mount;
pub mod prefault;
pub mod served_mount;
pub mod shared;
pub mod size;
pub mod spill;
mod start;
pub mod supervisor;
pub mod warm;
pub mod worker;

pub use start::{ServeOptions, TestOptions, serve};
