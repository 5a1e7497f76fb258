//! The one place that names the locks. `tests/schedules.rs` builds the tier's files with shuttle's locks and runs
//! them under thousands of random schedules.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Takes the lock. After a panic of another thread the content is still a cache.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on `condition`; the lock is released meanwhile.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
