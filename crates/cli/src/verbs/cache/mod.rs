//! `eke cache ...`: the compressed page cache. `eke-cache` serves it, as a process of the user who mounts.
//!
//! # Layout
//! - [`fuse`]: this machine's support for FUSE
//! - [`checks`]: errors that are known before the mount
//! - [`mount`], [`umount`], [`enable`], [`warm`], [`status`]: the verbs
//! - [`notify_ready`]: tells systemd that it is mounted
//! - [`start`]: starts the process and waits for the mount; removes both on failure
//! - [`place`]: the mount at a path; [`dead`]: removes one that nobody serves any more

pub mod checks;
mod dead;
mod enable;
pub mod fuse;
mod mount;
mod notify_ready;
mod place;
mod start;
mod status;
mod umount;
mod warm;

use std::time::Duration;

use eke_present::exit::{Failure, Outcome, Status};

use super::Context;
use crate::args::Cache;

/// Unmounting waits for pending writes.
const UMOUNT_WITHIN: Duration = Duration::from_secs(15);

/// The verb.
pub fn run(context: &Context, cache: &Cache) -> Outcome {
    if !context.root.is_host() {
        return Err(Failure::new(Status::Usage, "a cache can be mounted only on the running machine"));
    }
    match cache {
        Cache::Mount(options) => mount::run(context, options),
        Cache::Umount { place, lazy } => umount::run(context, place, *lazy),
        Cache::Enable(options) => enable::enable(context, options),
        Cache::Disable { place, .. } => enable::disable(context, place.as_deref()),
        Cache::Warm { paths } => warm::run(context, paths),
        Cache::Status { place } => status::run(context, place.as_deref()),
    }
}

/// The refusal with the exit status of its kind.
fn refused(refusal: &eke_cache_mounts::status::Refusal) -> Failure {
    use eke_cache_mounts::status::RefusalKind;
    let status = match refusal.kind {
        RefusalKind::Failed | RefusalKind::Busy => Status::Failed,
        RefusalKind::Usage => Status::Usage,
        RefusalKind::NotPermitted => Status::NotPermitted,
    };
    Failure::new(status, &refusal.what)
}
