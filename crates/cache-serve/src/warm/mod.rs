//! Blocks that are read before anybody requests them: what a user names, and what was hot before the last unmount.
//!
//! # Layout
//! - [`list`]: the list of what was hot, as text; [`choose`]: which blocks it has
//! - [`keep`]: its file
//! - [`give_way`]: when to read and how much, so that others do not wait
//! - [`disk`]: what the disk below does
//! - [`remember`]: the thread that reads the list again and writes it
//! - [`request`]: the thread that reads what a user names
//!
//! # Who may
//! Only root and the user who mounted can have a directory warmed, or see how far it is: the socket's directory is theirs alone, and the
//! supervisor checks the other end. The worker reads with the rights of that user, below the backing directory and without following
//! links. Other users of a shared mount fill the store by reading, as before, through the small queue.

pub mod choose;
pub mod disk;
pub mod give_way;
pub mod keep;
pub mod list;
pub mod remember;
pub mod request;

use std::time::Duration;

use eke_linux::io_class::{self, Class};

/// The nice value of threads that read ahead of requests: they compress, too.
const NICE: i32 = 10;

/// Puts the calling thread behind others: its reads and its compression.
pub(crate) fn step_back() {
    // Without a scheduler of the disk the class has no effect, and on some kernels there is none; then `give_way` alone helps.
    let _ = io_class::set(Class::Idle);
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Splits the bytes `from..to` of a file into pieces that end where a multiple of `block` does, except the last.
fn piece(from: u64, to: u64, most: u64, block: u64) -> std::ops::Range<u64> {
    let end = from.saturating_add(most.max(block)) / block * block;
    from..end.max(from.saturating_add(1)).min(to)
}

/// For tests and the clock of [`give_way`]: time since a moment.
type Clock = Box<dyn Fn() -> Duration + Send + Sync>;
