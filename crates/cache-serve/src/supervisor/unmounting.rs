//! A running unmount.

use std::io;

use eke_cache_mounts::Mount;

use super::attempt::Attempt;
use crate::mount::{MountMethod, UnmountMode, unmount, users};

/// A running attempt to unmount.
#[derive(Debug)]
pub(super) struct Unmounting {
    pub(super) attempt: Attempt,
    pub(super) mode: UnmountMode,
}

impl Unmounting {
    /// Starts the attempt. A mount that has moved is not busy by files that were opened before.
    pub(super) fn start(
        shown: &Mount,
        by: MountMethod,
        mode: UnmountMode,
        has_moved: bool,
    ) -> io::Result<Self> {
        let act = || {
            if has_moved && mode == UnmountMode::IfUnused {
                users::check_no_file(shown)?;
            }
            unmount(shown, by, mode)
        };
        Ok(Self { attempt: Attempt::start(act)?, mode })
    }
}
