//! The processes of `eke-cache`: the supervisor, its workers, mounting, take-over, the socket.
//!
//! - [`mount`]: checks, mounting and unmounting, their errors
//! - [`init`]: `FUSE_INIT`, once to the kernel and made up for each worker
//! - [`device`]: clones of the device, and the order to send again
//! - [`ledger`]: what outlives a worker
//! - [`supervisor`]: the loop, workers' deaths, the socket's clients
//! - [`worker`]: the process that serves
//! - [`size`]: the loop that keeps the store at the size that memory allows
//!
//! # What dies, and what is seen then
//! - *The worker*: the supervisor reaps it, makes the kernel send again what was unanswered, and forks the next one.
//!   Callers wait for some milliseconds.
//! - *The supervisor*: the guard, a third process, takes the mount away, and the worker ends. The backing directory shows.
//! - *All three at once*: the kernel ends the connection with the last descriptor. The mount stays and answers ENOTCONN to
//!   everything, nothing hangs; `eke cache umount` (or umount(8)) takes it away.
//! - *Workers that die at once, or a kernel before 6.9*: unmounted lazily, and the connection ends.

pub mod device;
pub mod init;
pub mod ledger;
pub mod log;
pub mod mount;
pub mod size;
mod start;
pub mod supervisor;
pub mod touched;
pub mod worker;

pub use start::{Options, Tests, serve};
