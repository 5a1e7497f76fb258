//! A running unmount.

use std::io;

use eke_cache_mounts::Mount;

use super::attempt::Attempt;
use crate::mount::{MountMethod, UnmountMode, unmount};

/// A running attempt to unmount.
#[derive(Debug)]
pub(super) struct Unmounting {
    pub(super) attempt: Attempt,
    pub(super) mode: UnmountMode,
}

impl Unmounting {
    /// Starts the attempt.
    pub(super) fn start(shown: &Mount, by: MountMethod, mode: UnmountMode) -> io::Result<Self> {
        Ok(Self { attempt: Attempt::start(|| unmount(shown, by, mode))?, mode })
    }
}
