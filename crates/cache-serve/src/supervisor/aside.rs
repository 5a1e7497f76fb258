//! Has the mount leave the directory tree while it gains nothing, and return to it ([`crate::mount::aside`]). The worker advises it.

use std::time::Instant;

use eke_cache_mounts::status::{AsideStats, Refusal, RefusalKind};
use eke_cache_policy::aside::{Left, TRIED_AGAIN_WITHIN};

use super::attempt::Attempt;
use super::channel::{ToWorker, send};
use super::clients::Pending;
use super::{Supervisor, raw};
use crate::log::log_line;
use crate::mount::MountMethod;
use crate::mount::aside::{self, MOVED_WITHIN};
use crate::served_mount::{LastMove, ServedMount};
use std::os::fd::AsFd;

/// Where the mount is, and what moves it.
#[derive(Debug, Default)]
pub(super) struct Aside {
    last: Option<LastMove>,
    moving: Option<Moving>,
    /// It was moved at least once, perhaps to where it was before.
    has_moved: bool,
    /// Why the last move failed, and when.
    not_moved: Option<(String, Instant)>,
}

#[derive(Debug)]
struct Moving {
    attempt: Attempt,
    goal: Goal,
    /// Then it is killed: the memory maps of a process can keep whoever reads them waiting.
    until: Instant,
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// To see whether anybody keeps it in the directory tree.
    Look,
    /// To leave.
    Leave(Left),
    /// To return.
    Return,
}

impl Aside {
    /// Readable when a move has ended.
    pub(super) fn ended(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.moving.as_ref().map(|moving| moving.attempt.ended())
    }

    /// When a move that is under way must have ended.
    pub(super) fn until(&self) -> Option<Instant> {
        self.moving.as_ref().map(|moving| moving.until)
    }

    /// The last move, for a worker.
    pub(super) fn last(&self) -> Option<LastMove> {
        self.last
    }

    /// Why it stands aside.
    pub(super) fn left(&self) -> Option<Left> {
        self.last.filter(|last| last.is_aside).map(|last| last.left)
    }

    /// Has it ever moved?
    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// For the status.
    pub(super) fn stats(&self) -> Option<AsideStats> {
        let last = self.last.filter(|last| last.is_aside)?;
        Some(AsideStats { since_s: last.at.elapsed().as_secs(), why: last.left.reason.sentence().into() })
    }

    /// Why it has not moved, for the status. Long after the last attempt nobody wants it to move any more.
    pub(super) fn not_moved(&self) -> Option<String> {
        let (why, at) = self.not_moved.as_ref()?;
        (at.elapsed() < TRIED_AGAIN_WITHIN).then(|| why.clone())
    }
}

/// True if the mount may stand aside: root's, over its own directory, watched, since readers go on while programs write below; without a tier
/// or names that its user has asked for.
pub(crate) fn may_stand_aside(mount: &ServedMount) -> bool {
    let settings = &mount.settings;
    let is_plain = settings.spill.is_none() && settings.shared.is_none() && settings.names_s <= 1;
    is_plain
        && settings.watch
        && !settings.keep_mounted
        && settings.dir == settings.place
        && mount.by == MountMethod::Root
}

impl Supervisor {
    /// After the mount was made. If it fails, a sandbox that shows everything read-only may write there, as to every new mount, and the mount
    /// stays where it is.
    pub(crate) fn restrict_copies(&self) {
        if !may_stand_aside(&self.mount) {
            return;
        }
        let (shown, dir) = (&self.mount.shown, &self.mount.dir);
        let attempt = Attempt::start(|| aside::restrict_copies(shown, dir)).ok();
        if let Some(Err(refusal)) = attempt.map(|attempt| attempt.result_within(MOVED_WITHIN)) {
            log_line(&refusal.what);
        }
    }

    /// As the worker asks or advises.
    pub(super) fn move_mount(&mut self, goal: Goal) {
        let state = &self.state;
        let is_there = state.aside.left().is_some() != (goal == Goal::Return);
        let ends = state.unmounting.is_some() || state.unmounted || state.must_end;
        let warms = state.clients.iter().any(|client| matches!(client.pending, Pending::Warming(_)));
        if is_there || ends || warms || state.aside.moving.is_some() || !may_stand_aside(&self.mount) {
            return;
        }
        let (shown, dir, ours) = (&self.mount.shown, &self.mount.dir, self.ours());
        let started = Attempt::start(|| match goal {
            Goal::Look => aside::may_leave(shown, dir),
            Goal::Leave(_) => aside::leave(shown, dir, &ours),
            Goal::Return => aside::come_back(shown, dir, &ours),
        });
        match started {
            Ok(attempt) => {
                let until = Instant::now() + MOVED_WITHIN;
                self.state.aside.moving = Some(Moving { attempt, goal, until });
            }
            Err(e) => log_line(&format!("the mount stays where it is: no process can be started: {e}")),
        }
    }

    fn ours(&self) -> Vec<u32> {
        let worker = self.state.worker.iter().map(|w| raw(w.pid));
        worker.chain([std::process::id()]).collect()
    }

    /// A move has ended.
    pub(super) fn moved(&mut self) {
        let Some(Moving { attempt, goal, .. }) = self.state.aside.moving.take() else { return };
        self.after_move(attempt.result(), goal);
    }

    /// Waits for a move that is under way: what follows needs the mount in one place.
    pub(super) fn finish_move(&mut self) {
        let Some(Moving { attempt, goal, until }) = self.state.aside.moving.take() else { return };
        self.after_move(attempt.result_within(until.saturating_duration_since(Instant::now())), goal);
    }

    fn after_move(&mut self, result: Result<(), Refusal>, goal: Goal) {
        if let Err(Refusal { kind: RefusalKind::Failed, what }) = &result {
            log_line(&format!("the mount cannot be moved: {what}"));
        }
        let may_leave = goal == Goal::Look && result.is_ok();
        self.state.aside.not_moved = result.err().map(|refusal| (refusal.what, Instant::now()));
        if goal != Goal::Look {
            self.settle(goal);
        }
        let where_it_is = self.state.aside.left().map_or(ToWorker::Returned, ToWorker::Left);
        let message = if may_leave { ToWorker::MayLeave } else { where_it_is };
        self.tell_worker(&message);
    }

    fn tell_worker(&self, message: &ToWorker) {
        let _ = self.state.worker.as_ref().map(|w| send(w.channel.as_fd(), message));
    }

    /// Takes note of where the mount is.
    fn settle(&mut self, goal: Goal) {
        match aside::settle(&self.mount.shown) {
            Ok(shown) => {
                self.tell_worker(&ToWorker::ServedBy(shown.id));
                self.mount.shown = shown;
            }
            Err(e) => log_line(&format!("the mount is not found any more: {e}")),
        }
        let (aside, shown) = (&mut self.state.aside, &self.mount.shown);
        aside.has_moved = true;
        let at = Instant::now();
        match (aside.left(), shown.aside.is_some(), goal) {
            (None, true, Goal::Leave(left)) => {
                aside.last = Some(LastMove { at, left, is_aside: true });
                log_line(&format!("the mount stands aside: {}", left.reason.sentence()));
            }
            (Some(left), false, _) => {
                aside.last = Some(LastMove { at, left, is_aside: false });
                log_line("the mount is back in its place");
            }
            _ => {}
        }
        if shown.aside.is_none() {
            aside::clear(shown.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_dropped_when_nobody_tries_again() {
        let aside = |since| Aside { not_moved: Some(("why".into(), since)), ..Aside::default() };
        let now = Instant::now();
        assert_eq!(aside(now).not_moved().as_deref(), Some("why"));
        assert_eq!(aside(now.checked_sub(TRIED_AGAIN_WITHIN).unwrap()).not_moved(), None);
    }
}
