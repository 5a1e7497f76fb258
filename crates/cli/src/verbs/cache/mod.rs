//! `eke cache ...`: the compressed page cache. What serves it is `eke-cache`, a process of the user who mounts.
//!
//! # Layout
//! - [`fuse`]: what this machine has of FUSE
//! - [`checks`]: is what is asked for possible?
//! - [`mount`], [`umount`], [`status`]: the verbs
//! - [`start`]: from a process started to a mount, or to nothing left of it
//! - [`place`]: which mount a path means

pub mod checks;
pub mod fuse;
mod mount;
mod place;
mod start;
pub mod status;
mod umount;

use std::time::Duration;

use eke_present::exit::{Failure, Outcome, Status};

use super::Context;
use crate::args::Cache;

/// A supervisor that has not answered in this time is said to be silent.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Unmounting waits for what is on its way.
const UMOUNT_WITHIN: Duration = Duration::from_secs(15);

/// The verb.
pub fn run(context: &Context, cache: &Cache) -> Outcome {
    if !context.root.is_host() {
        return Err(Failure::new(Status::Usage, "a cache can be mounted on the running machine only"));
    }
    match cache {
        Cache::Mount(options) => mount::run(context, options),
        Cache::Umount { place, lazy } => umount::run(context, place, *lazy),
        Cache::Status { place } => status::run(context, place.as_deref()),
    }
}

/// With the status that belongs to the kind.
fn refused(refusal: &eke_cache_mounts::status::Refusal) -> Failure {
    use eke_cache_mounts::status::RefusalKind;
    let status = match refusal.kind {
        RefusalKind::Failed | RefusalKind::Busy => Status::Failed,
        RefusalKind::Usage => Status::Usage,
        RefusalKind::NotPermitted => Status::NotPermitted,
    };
    Failure::new(status, &refusal.what)
}
