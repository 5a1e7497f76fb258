//! A mount with everything that the supervisor hands to each of its workers.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use eke_cache_mounts::Mount;
use eke_cache_mounts::settings::Settings;
use eke_cache_policy::aside::Left;

use super::init::Grant;
use super::ledger::Memfd;
use super::mount::MountMethod;
use super::shared::SharedPlace;
use super::spill::dir::SpillDir;
use super::warm::keep::HotFile;

/// A mount whose `FUSE_INIT` is answered.
#[derive(Debug)]
pub struct ServedMount {
    /// As requested.
    pub settings: Settings,
    /// For tests: how long the kernel caches names and attributes, instead of the default.
    pub ttl: Option<Duration>,
    /// For tests: how long is looked before the mount stands aside or returns, instead of the default.
    pub window: Option<Duration>,
    /// The backing directory.
    pub dir: OwnedFd,
    /// How it was mounted.
    pub by: MountMethod,
    /// The mount in the kernel's list, when it was made.
    pub shown: Mount,
    /// The device of the mount, and its clones.
    pub devices: Vec<OwnedFd>,
    /// What was agreed on with the kernel.
    pub grant: Grant,
    /// The ledger's log.
    pub memfd: Memfd,
    /// The file with the list of what was hot; or why there is none, as a sentence.
    pub hot: Result<HotFile, String>,
    /// The directory for evicted blocks.
    pub spill: Option<SpillDir>,
    /// The tier that a farm shares.
    pub shared: Option<SharedPlace>,
    /// Which files are open by passthrough, for [`eke_cachefs::passthrough::Passthrough`].
    pub slots: Memfd,
}

/// The last move of the mount to another place. Workers go on from it.
#[derive(Debug, Clone, Copy)]
pub struct LastMove {
    /// When it was.
    pub at: Instant,
    /// Why the mount left, then or before.
    pub left: Left,
    /// It stands aside since then; else it has returned.
    pub is_aside: bool,
}
