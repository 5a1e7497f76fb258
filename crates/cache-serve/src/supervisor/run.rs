//! The supervisor's loop: waits, and does what it was woken for.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use eke_cache_mounts::holders::{elsewhere, holders};
use eke_cache_mounts::status::{Kind, Refusal, Request, Response, Start, Status, WorkerStats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};

use super::clients::{Client, Waits};
use super::deaths::Death;
use super::guard::is_there;
use super::leave::Leaving;
use super::talk::{Ask, Say, hear, tell};
use super::{Ended, Supervisor, Worker, flags, raw};
use crate::log::say;
use crate::mount::{By, How};

/// How long a worker may take to answer; then it is said to be busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a worker may take to come up. Building the store is a matter of milliseconds.
const START: Duration = Duration::from_secs(30);
/// How long workers may take to end after the mount has; what reads the backing file has to come back first.
const LET_GO: Duration = Duration::from_secs(5);
/// The same of the guard, which waits for nothing then.
const GUARD_ENDS: Duration = Duration::from_secs(2);
/// A fork that fails for lack of memory or processes is tried again so often.
const FORKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// Of processes that keep it busy.
const MOST_NAMES: usize = 5;

/// What woke us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Shutdown,
    Listener,
    Died,
    Talk,
    Keeper,
    Left,
    Client(usize),
    Mounts,
}

impl Woken {
    fn flags(self) -> PollFlags {
        if self == Self::Mounts { PollFlags::PRI } else { PollFlags::IN }
    }
}

impl Supervisor {
    /// Starts the first worker and goes on until the mount is gone.
    pub fn run(mut self) -> Ended {
        let ended = match self.first_or_next_worker() {
            Some(ended) => ended,
            None => loop {
                let woken = self.wait();
                if let Some(ended) = self.serve_all(&woken) {
                    break ended;
                }
            },
        };
        if !matches!(ended, End::Worker(_) | End::Unmounted) {
            self.leave_by_force();
        }
        match ended {
            End::Worker(ends) => Ended::Worker(Box::new(self.into_parts(ends))),
            End::Unmounted => {
                self.let_go();
                Ended::Unmounted
            }
            End::GaveUp(why) => {
                self.let_go();
                Ended::GaveUp(why)
            }
            End::NotStarted(refusal) => {
                self.report(&Start::Error(refusal.clone()));
                self.let_go();
                Ended::NotStarted(refusal)
            }
        }
    }

    /// Closes all that is held of the backing directory, and has the guard do so; then tells who asked for the end. The workers are
    /// dead by now.
    fn let_go(self) {
        let Self { dir, devices, memfd, slots, socket, shown, mut now, .. } = self;
        let guard = now.guard.take().is_none_or(|guard| guard.dismiss(GUARD_ENDS));
        drop((now.kept, now.leaving.take(), dir, devices, memfd, slots, socket));
        if !now.unmounted {
            return;
        }
        let held = || {
            held(
                &shown.place,
                "its guard (eke-cache-guard) still holds the backing directory; it ends by itself",
            )
        };
        answer_unmount(&mut now.clients, &if guard { Response::Done } else { held() });
    }

    fn first_or_next_worker(&mut self) -> Option<End> {
        for _ in 0..FORKS {
            match self.start_worker() {
                Ok(in_child) => return in_child.map(End::Worker),
                Err(e) => say(&format!("cannot start a worker: {e}")),
            }
            std::thread::sleep(PAUSE);
        }
        Some(End::GaveUp("no worker can be started".into()))
    }

    /// Waits for anything, in the order in which it is to be done: a worker that is gone first.
    fn wait(&self) -> Vec<Woken> {
        let sources = self.sources();
        let mut fds: Vec<_> =
            sources.iter().map(|(woken, fd)| PollFd::from_borrowed_fd(*fd, woken.flags())).collect();
        let limit = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let limit = limit.and_then(|l| Timespec::try_from(l).ok());
        if poll(&mut fds, limit.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = fds.iter().zip(&sources).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, (woken, _))| *woken).collect()
    }

    fn sources(&self) -> Vec<(Woken, BorrowedFd<'_>)> {
        let now = &self.now;
        let worker = now.worker.iter().flat_map(|w| {
            [(Woken::Keeper, w.keeper.as_fd()), (Woken::Talk, w.talk.as_fd()), (Woken::Died, w.pidfd.as_fd())]
        });
        let left = now.leaving.iter().map(|l| (Woken::Left, l.ended()));
        let listener = self.socket.iter().map(|s| (Woken::Listener, s.listener().as_fd()));
        let clients = now.clients.iter().enumerate().map(|(i, c)| (Woken::Client(i), c.as_fd()));
        let mounts = now.changes.iter().map(|list| (Woken::Mounts, list.as_fd()));
        let shutdown = std::iter::once((Woken::Shutdown, self.shutdown.as_fd()));
        // Clients from the last to the first, since one that is gone moves those behind it.
        worker.chain(left).chain(shutdown).chain(mounts).chain(clients.rev()).chain(listener).collect()
    }

    fn deadline(&self) -> Option<Instant> {
        let starting = self.now.worker.iter().filter(|w| w.ready.is_none()).map(|w| w.started + START);
        let waiting = self.now.clients.iter().filter_map(|c| match c.waits {
            Waits::WorkerStats(_, until) => Some(until),
            _ => None,
        });
        starting.chain(waiting).chain(self.now.let_go_by).min()
    }

    fn serve_all(&mut self, woken: &[Woken]) -> Option<End> {
        for event in woken {
            let end = match *event {
                Woken::Keeper => self.keep(),
                Woken::Talk => self.listen_to_worker(),
                Woken::Died => self.reap(),
                Woken::Left => self.left(),
                Woken::Shutdown => self.told_to_end(),
                Woken::Client(index) => self.serve_client(index),
                Woken::Listener => self.accept(),
                Woken::Mounts => self.follow_flags(),
            };
            if end.is_some() {
                return end;
            }
        }
        self.overdue();
        None
    }

    fn follow_flags(&self) -> Option<End> {
        if self.by == By::Root {
            if let Err(e) = flags::follow(&self.dir, &self.shown) {
                say(&format!("the mount does not forbid what the directory's own does by now: {e}"));
            }
        }
        None
    }

    fn accept(&mut self) -> Option<End> {
        let client = Client::accept(self.socket.as_ref()?.listener(), self.now.clients.len());
        self.now.clients.extend(client);
        None
    }

    /// As many as there are: they are in order before the worker's death.
    fn keep(&mut self) -> Option<End> {
        let worker = self.now.worker.as_ref()?;
        while self.now.kept.serve(worker.keeper.as_fd()).is_ok() {}
        None
    }

    fn listen_to_worker(&mut self) -> Option<End> {
        let worker = self.now.worker.as_mut()?;
        match hear(worker.talk.as_fd(), false) {
            Ok(Some(Say::Ready(notes))) => {
                worker.ready = Some(Instant::now());
                self.report_ready(notes);
            }
            Ok(Some(Say::Failed(refusal))) if self.report.is_some() => return Some(End::NotStarted(refusal)),
            Ok(Some(Say::Failed(refusal))) => say(&refusal.what),
            Ok(Some(Say::WorkerStats(number, stats))) => self.stats(number, *stats),
            // It is gone or about to be; its end is told by the other descriptor.
            Ok(None) => {}
            Err(_) => self.kill_worker(),
        }
        None
    }

    fn kill_worker(&self) {
        if let Some(worker) = &self.now.worker {
            let _ = pidfd_send_signal(&worker.pidfd, Signal::KILL);
        }
    }

    /// The worker is dead: nobody is left of it when waitpid(2) has returned, so nobody could still answer a request.
    fn reap(&mut self) -> Option<End> {
        self.keep();
        let worker = self.now.worker.take()?;
        let status = waitpid(Some(worker.pid), WaitOptions::empty()).ok().flatten();
        let how = status.map_or(Death::Exit(-1), |(_, status)| Death::of(status));
        if how == Death::Disconnected {
            // The kernel ended the connection before the process that unmounts ended.
            self.left();
            return Some(self.disconnected());
        }
        self.after_death(&worker, how)
    }

    /// Unmounted; or aborted by somebody (`/sys/fs/fuse/connections`), and the dead mount still stands there.
    fn disconnected(&self) -> End {
        if !self.now.unmounted && self.is_mounted() {
            self.leave_by_force();
        }
        End::Unmounted
    }

    fn is_mounted(&self) -> bool {
        is_there(&self.shown)
    }

    fn after_death(&mut self, worker: &Worker, how: Death) -> Option<End> {
        let what = format!("the worker died: {how}");
        say(&what);
        if self.report.is_some() {
            return Some(End::NotStarted(Refusal { what, kind: Kind::Failed }));
        }
        if !self.grant.resends() {
            return Some(End::GaveUp(format!(
                "{what}; this kernel (before Linux 6.9) cannot give its requests to another one"
            )));
        }
        let lived = worker.ready.map(|at| at.elapsed());
        if !self.now.deaths.another_try(self.now.since.elapsed(), lived, how) {
            return Some(End::GaveUp(format!("{what}; so did those before it, so another one is of no use")));
        }
        self.now.restarts += 1;
        self.now.last_death = Some(how.to_string());
        self.resend();
        self.first_or_next_worker()
    }

    fn told_to_end(&mut self) -> Option<End> {
        let _ = self.shutdown.read(&mut [0; 64]);
        if self.now.must_leave {
            // Asked twice: files that are still open get errors from now on.
            return Some(if self.now.unmounted {
                End::Unmounted
            } else {
                End::GaveUp("told twice to end".into())
            });
        }
        self.now.must_leave = true;
        self.leave(How::IfUnused);
        None
    }

    fn leave(&mut self, how: How) {
        if self.now.leaving.is_none() {
            match Leaving::start(&self.shown, self.by, how) {
                Ok(leaving) => self.now.leaving = Some(leaving),
                Err(e) => self.answer_unmount(&Response::Refused(Refusal {
                    what: format!("no process can be started that unmounts: {e}"),
                    kind: Kind::Failed,
                })),
            }
        }
    }

    fn left(&mut self) -> Option<End> {
        let leaving = self.now.leaving.take()?;
        let how = leaving.how;
        match leaving.result() {
            Ok(()) => {
                self.now.unmounted = true;
                if how == How::IfUnused {
                    self.now.let_go_by = Some(Instant::now() + LET_GO);
                } else {
                    self.answer_unmount(&Response::Done);
                }
            }
            Err(refusal) if self.now.must_leave && how == How::IfUnused => {
                say(&self.with_holders(refusal).what);
                self.leave(How::Lazily);
            }
            Err(refusal) => {
                let refusal = self.with_holders(refusal);
                say(&refusal.what);
                self.answer_unmount(&Response::Refused(refusal));
            }
        }
        None
    }

    /// Why the backing directory is not free though the mount is gone.
    fn still_held(&self) -> Response {
        let others = elsewhere(Path::new("/proc"), &self.shown);
        if others.is_empty() {
            let worker = self.now.worker.as_ref().map_or(0, |w| raw(w.pid));
            return held(
                &self.shown.place,
                &format!(
                    "its worker ({worker}) still holds the backing directory, perhaps because the disk does not answer; it ends when that does"
                ),
            );
        }
        let names: Vec<_> =
            others.iter().take(MOST_NAMES).map(|h| format!("{} ({})", h.name, h.pid)).collect();
        let names = names.join(", ");
        held(
            &self.shown.place,
            &format!(
                "these have a copy of it in a mount namespace of their own: {names}. It serves them, and holds the backing directory, until they end or unmount it"
            ),
        )
    }

    /// Who keeps it busy, if that can be told.
    fn with_holders(&self, mut refusal: Refusal) -> Refusal {
        if refusal.kind == Kind::Busy {
            let ours: Vec<u32> =
                self.now.worker.iter().map(|w| raw(w.pid)).chain([std::process::id()]).collect();
            let holders = holders(Path::new("/proc"), &self.shown);
            let others = holders.iter().filter(|h| !ours.contains(&h.pid)).take(MOST_NAMES);
            let names: Vec<_> = others.map(|h| format!("{} ({})", h.name, h.pid)).collect();
            let by = if names.is_empty() { "another user's process".to_owned() } else { names.join(", ") };
            refusal.what = format!(
                "{} is in use by {by}. Close what is open there, or say --lazy: open files go on then until they are closed",
                self.shown.place.display(),
            );
        }
        refusal
    }

    fn answer_unmount(&mut self, response: &Response) {
        answer_unmount(&mut self.now.clients, response);
    }

    fn serve_client(&mut self, index: usize) -> Option<End> {
        let client = self.now.clients.get_mut(index)?;
        match client.request() {
            Ok(None) => {}
            Ok(Some(Request::Status)) => self.ask_stats(index),
            Ok(Some(Request::Umount { lazy })) if client.may_unmount() => {
                client.waits = Waits::Unmount;
                self.leave(if lazy { How::Lazily } else { How::IfUnused });
            }
            Ok(Some(Request::Umount { .. })) => {
                let what = "only who mounted it, or root, may unmount it".to_owned();
                client.answer(&Response::Refused(Refusal { what, kind: Kind::NotPermitted }));
            }
            Err(_) => drop(self.now.clients.remove(index)),
        }
        None
    }

    fn ask_stats(&mut self, index: usize) {
        self.now.next_number += 1;
        let number = self.now.next_number;
        let asked = self.now.worker.as_ref().map(|w| tell(w.talk.as_fd(), &Ask::WorkerStats(number)));
        let until = if matches!(asked, Some(Ok(()))) { PATIENCE } else { Duration::ZERO };
        if let Some(client) = self.now.clients.get_mut(index) {
            client.waits = Waits::WorkerStats(number, Instant::now() + until);
        }
    }

    fn stats(&mut self, number: u64, stats: WorkerStats) {
        let status = self.status(Some(stats));
        let waits = |c: &&mut Client| matches!(c.waits, Waits::WorkerStats(n, _) if n == number);
        if let Some(client) = self.now.clients.iter_mut().find(waits) {
            client.answer(&Response::Status(Box::new(status)));
        }
    }

    /// Who waited long enough is told without the worker; a worker that does not come up is ended.
    fn overdue(&mut self) {
        let at = Instant::now();
        if self.now.worker.as_ref().is_some_and(|w| w.ready.is_none() && w.started + START < at) {
            say("the worker does not come up");
            self.kill_worker();
        }
        if self.now.let_go_by.is_some_and(|by| by <= at) {
            self.now.let_go_by = None;
            self.answer_unmount(&self.still_held());
        }
        let status = Response::Status(Box::new(self.status(None)));
        let late = |c: &&mut Client| matches!(c.waits, Waits::WorkerStats(_, until) if until <= at);
        self.now.clients.iter_mut().filter(late).for_each(|client| client.answer(&status));
    }

    fn status(&self, worker: Option<WorkerStats>) -> Status {
        Status {
            place: self.shown.place.clone(),
            dir: self.settings.dir.clone(),
            uid: rustix::process::geteuid().as_raw(),
            pid: std::process::id(),
            worker_pid: self.now.worker.as_ref().map(|w| raw(w.pid)),
            restarts: self.now.restarts,
            last_death: self.now.last_death.clone(),
            up_s: self.now.since.elapsed().as_secs(),
            settings: self.settings.clone(),
            worker,
        }
    }
}

fn answer_unmount(clients: &mut [Client], response: &Response) {
    let waiting = clients.iter_mut().filter(|c| c.waits == Waits::Unmount);
    waiting.for_each(|client| client.answer(response));
}

/// The answer where the end takes long.
fn held(place: &Path, why: &str) -> Response {
    let what = format!("{} is unmounted, but {why}", place.display());
    Response::Refused(Refusal { what, kind: Kind::Failed })
}

/// As [`Ended`], before this process knows whose it is.
enum End {
    Unmounted,
    GaveUp(String),
    NotStarted(Refusal),
    Worker(crate::worker::Ends),
}
