//! Unmounting: the attempt, and what its clients are told.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use eke_cache_mounts::Mount;
use eke_cache_mounts::holders::{Holder, elsewhere, holders};
use eke_cache_mounts::status::{Refusal, RefusalKind, Response};

use super::attempt::Attempt;
use super::clients::{Client, Pending};
use super::{Supervisor, raw};
use crate::log::log_line;
use crate::mount::{MountMethod, UnmountMode, unmount, users};

/// How long a worker may take to exit after the mount is gone: its reads of the backing file must return first, and its lists be written,
/// on disks that may be busy. `eke cache umount` waits a little longer.
const RELEASE_WITHIN: Duration = Duration::from_secs(12);
/// Processes that a message names, at most.
const MOST_NAMES: usize = 5;

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

impl Supervisor {
    pub(super) fn start_unmount(&mut self, mode: UnmountMode) {
        self.finish_move();
        if self.state.unmounting.is_none() {
            match Unmounting::start(&self.mount.shown, self.mount.by, mode, self.state.aside.has_moved()) {
                Ok(unmounting) => self.state.unmounting = Some(unmounting),
                Err(e) => self.answer_unmount(&Response::Refused(Refusal {
                    what: format!("cannot start the process that unmounts: {e}"),
                    kind: RefusalKind::Failed,
                })),
            }
        }
    }

    pub(super) fn unmount_ended(&mut self) {
        let Some(unmounting) = self.state.unmounting.take() else { return };
        let mode = unmounting.mode;
        match unmounting.attempt.result() {
            Ok(()) => {
                self.state.unmounted = true;
                if mode == UnmountMode::IfUnused {
                    self.state.release_by = Some(Instant::now() + RELEASE_WITHIN);
                } else {
                    self.answer_unmount(&Response::Done);
                }
            }
            Err(refusal) if self.state.must_end && mode == UnmountMode::IfUnused => {
                log_line(&self.with_holders(refusal).what);
                self.start_unmount(UnmountMode::Lazy);
            }
            Err(refusal) => {
                let refusal = self.with_holders(refusal);
                log_line(&refusal.what);
                self.answer_unmount(&Response::Refused(refusal));
            }
        }
    }

    /// Explains why the backing directory is not free though the mount is gone.
    pub(super) fn not_released(&self) -> Response {
        let others = elsewhere(Path::new("/proc"), &self.mount.shown);
        let why = if others.is_empty() {
            let worker = self.state.worker.as_ref().map_or(0, |w| raw(w.pid));
            format!(
                "its worker ({worker}) still has the backing directory open; perhaps it waits for a disk that does not answer. It exits when the disk has answered"
            )
        } else {
            format!(
                "these processes have a copy of it in their own mount namespace: {}. It serves them, and keeps the backing directory open, until they exit or unmount it",
                names(&others)
            )
        };
        still_open(&self.mount.shown.place, &why)
    }

    /// Adds the processes that keep the mount busy, as far as this user can see them.
    fn with_holders(&self, mut refusal: Refusal) -> Refusal {
        if refusal.kind == RefusalKind::Busy {
            let ours: Vec<u32> =
                self.state.worker.iter().map(|w| raw(w.pid)).chain([std::process::id()]).collect();
            let mut holders = holders(Path::new("/proc"), &self.mount.shown);
            holders.retain(|holder| !ours.contains(&holder.pid));
            let by = if holders.is_empty() { "another user's process".to_owned() } else { names(&holders) };
            refusal.what = format!(
                "{} is in use by {by}. Close its open files, or use --lazy: then open files go on until they are closed",
                self.mount.shown.place.display(),
            );
        }
        refusal
    }

    pub(super) fn answer_unmount(&mut self, response: &Response) {
        answer_unmount(&mut self.state.clients, response);
    }
}

pub(super) fn answer_unmount(clients: &mut [Client], response: &Response) {
    let waiting = clients.iter_mut().filter(|c| c.pending == Pending::Unmount);
    waiting.for_each(|client| client.answer(response));
}

/// The first [`MOST_NAMES`] of them, with their numbers.
fn names(holders: &[Holder]) -> String {
    let named = holders.iter().take(MOST_NAMES).map(|h| format!("{} ({})", h.name, h.pid));
    named.collect::<Vec<_>>().join(", ")
}

/// The answer if the backing directory stays open after the unmount.
pub(super) fn still_open(place: &Path, why: &str) -> Response {
    let what = format!("{} is unmounted, but {why}", place.display());
    Response::Refused(Refusal { what, kind: RefusalKind::Failed })
}
