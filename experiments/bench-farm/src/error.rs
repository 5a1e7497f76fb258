//! Why the experiment could not run.

pub use eke_bench_web::error::{Error, Result};

/// Whether other runs can go on.
pub fn is_of_one_run(error: &Error) -> bool {
    matches!(
        error,
        // Another mount namespace may have a copy of the origin's mount; the disk goes with it.
        Error::Disk(_) | Error::Program { .. } | Error::Client(_) | Error::Command { .. }
    )
}
