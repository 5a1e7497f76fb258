//! The supervisor's loop: it waits for events and handles them.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use eke_cache_mounts::status::{Refusal, RefusalKind, Request, Response, Start, Status, WorkerStats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};

use super::aside::Goal;
use super::channel::{FromWorker, ToWorker, receive, send};
use super::clients::{Client, Pending};
use super::deaths::Death;
use super::guard::is_mounted;
use super::unmounting::{answer_unmount, still_open};
use super::{Supervisor, SupervisorEnd, Worker, flags, raw};
use crate::log::log_line;
use crate::mount::{MountMethod, UnmountMode, aside};

/// How long a worker may take to send its stats. Then the status is sent without them.
const STATS_WITHIN: Duration = Duration::from_secs(1);
/// How long the guard may take to exit. It waits for nothing then.
const GUARD_WITHIN: Duration = Duration::from_secs(2);
/// Attempts to fork: fork(2) fails for lack of memory or processes.
const FORKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// An event, by its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Shutdown,
    Listener,
    WorkerDied,
    Channel,
    Keeper,
    UnmountEnded,
    Moved,
    Client(usize),
    Mounts,
    EngineDied,
}

impl Event {
    fn flags(self) -> PollFlags {
        if self == Self::Mounts { PollFlags::PRI } else { PollFlags::IN }
    }
}

impl Supervisor {
    /// Starts the first worker and goes on until the mount is gone.
    pub fn run(mut self) -> SupervisorEnd {
        let end = match self.fork_worker() {
            Some(end) => end,
            None => loop {
                let events = self.wait();
                if let Some(end) = self.handle_all(&events) {
                    break end;
                }
            },
        };
        if !matches!(end, LoopEnd::Worker(_) | LoopEnd::Unmounted) {
            self.unmount_by_force();
        }
        match end {
            LoopEnd::Worker(sockets) => SupervisorEnd::Worker(Box::new(self.into_inputs(sockets))),
            LoopEnd::Unmounted => {
                self.release();
                SupervisorEnd::Unmounted
            }
            LoopEnd::GaveUp(why) => {
                self.release();
                SupervisorEnd::GaveUp(why)
            }
            LoopEnd::NotStarted(refusal) => {
                self.report(&Start::Error(refusal.clone()));
                self.release();
                SupervisorEnd::NotStarted(refusal)
            }
        }
    }

    /// Closes every descriptor of the backing directory, ends the guard, and answers the client that requested the unmount. The worker
    /// is dead by now.
    fn release(self) {
        let Self { mut mount, socket, mut state, .. } = self;
        let place = mount.shown.place.clone();
        if let Some(shared) = mount.shared.take() {
            shared.process.end(GUARD_WITHIN);
        }
        let guard_ended = state.guard.take().is_none_or(|guard| guard.dismiss(GUARD_WITHIN));
        let device = mount.shown.device;
        drop((state.kept, state.unmounting.take(), mount, socket));
        aside::clear(device);
        if !state.unmounted {
            return;
        }
        let why = "its guard (eke-cache-guard) still has the backing directory open; it will exit by itself";
        let response = if guard_ended { Response::Done } else { still_open(&place, why) };
        answer_unmount(&mut state.clients, &response);
    }

    fn fork_worker(&mut self) -> Option<LoopEnd> {
        for _ in 0..FORKS {
            match self.start_worker() {
                Ok(in_child) => return in_child.map(LoopEnd::Worker),
                Err(e) => log_line(&format!("cannot start a worker: {e}")),
            }
            std::thread::sleep(PAUSE);
        }
        Some(LoopEnd::GaveUp("no worker can be started".into()))
    }

    /// Waits for events. Returns them in the order in which they must be handled: those of the worker first.
    fn wait(&self) -> Vec<Event> {
        let sources = self.sources();
        let mut fds: Vec<_> =
            sources.iter().map(|(event, fd)| PollFd::from_borrowed_fd(*fd, event.flags())).collect();
        let limit = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let limit = limit.and_then(|l| Timespec::try_from(l).ok());
        if poll(&mut fds, limit.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = fds.iter().zip(&sources).filter(|(fd, _)| !fd.revents().is_empty());
        ready.map(|(_, (event, _))| *event).collect()
    }

    fn sources(&self) -> Vec<(Event, BorrowedFd<'_>)> {
        let state = &self.state;
        let worker = state.worker.iter().flat_map(|w| {
            [
                (Event::Keeper, w.keeper.as_fd()),
                (Event::Channel, w.channel.as_fd()),
                (Event::WorkerDied, w.pidfd.as_fd()),
            ]
        });
        let unmounting = state.unmounting.iter().map(|u| (Event::UnmountEnded, u.attempt.ended()));
        let moved = state.aside.ended().map(|fd| (Event::Moved, fd));
        let listener = self.socket.iter().map(|s| (Event::Listener, s.listener().as_fd()));
        let clients = state.clients.iter().enumerate().map(|(i, c)| (Event::Client(i), c.as_fd()));
        let mounts = state.mount_changes.iter().map(|list| (Event::Mounts, list.as_fd()));
        let engine = self.mount.shared.iter().filter_map(|shared| shared.process.ended());
        let engine = engine.map(|fd| (Event::EngineDied, fd));
        let shutdown = std::iter::once((Event::Shutdown, self.shutdown.as_fd()));
        // Clients from the last to the first: removing one changes the indices after it.
        worker
            .chain(engine)
            .chain(unmounting)
            .chain(moved)
            .chain(shutdown)
            .chain(mounts)
            .chain(clients.rev())
            .chain(listener)
            .collect()
    }

    fn deadline(&self) -> Option<Instant> {
        let starting = self.state.worker.iter().filter_map(Worker::starts_by);
        let pending = self.state.clients.iter().filter_map(|c| match c.pending {
            Pending::WorkerStats(_, until) => Some(until),
            _ => None,
        });
        let engine = self.mount.shared.iter().filter_map(|shared| shared.process.again());
        let moving = self.state.aside.until();
        starting.chain(pending).chain(engine).chain(self.state.release_by).chain(moving).min()
    }

    fn handle_all(&mut self, events: &[Event]) -> Option<LoopEnd> {
        for event in events {
            let end = match *event {
                Event::Keeper => self.serve_keeper(),
                Event::Channel => self.receive_from_worker(),
                Event::WorkerDied => self.reap(),
                Event::UnmountEnded => {
                    self.unmount_ended();
                    None
                }
                Event::Moved => {
                    self.moved();
                    None
                }
                Event::Shutdown => self.shut_down(),
                Event::Client(index) => self.serve_client(index),
                Event::Listener => self.accept(),
                Event::Mounts => self.follow_flags(),
                Event::EngineDied => self.reap_engine(),
            };
            if end.is_some() {
                return end;
            }
        }
        self.handle_deadlines();
        None
    }

    fn reap_engine(&mut self) -> Option<LoopEnd> {
        if let Some(shared) = &mut self.mount.shared {
            shared.process.reap();
        }
        None
    }

    fn follow_flags(&self) -> Option<LoopEnd> {
        if self.mount.by == MountMethod::Root {
            if let Err(e) = flags::follow(&self.mount.dir, &self.mount.shown) {
                log_line(&format!("cannot copy new mount flags of the backing directory to the mount: {e}"));
            }
        }
        None
    }

    fn accept(&mut self) -> Option<LoopEnd> {
        let client = Client::accept(self.socket.as_ref()?.listener(), self.state.clients.len());
        self.state.clients.extend(client);
        None
    }

    /// Handles every message of the worker's that has arrived, so that none is left when its death is handled.
    fn serve_keeper(&mut self) -> Option<LoopEnd> {
        let worker = self.state.worker.as_ref()?;
        while self.state.kept.serve(worker.keeper.as_fd()).is_ok() {}
        None
    }

    fn receive_from_worker(&mut self) -> Option<LoopEnd> {
        let worker = self.state.worker.as_mut()?;
        match receive(worker.channel.as_fd(), false) {
            Ok(Some(FromWorker::Starts)) => worker.goes_on(Instant::now()),
            Ok(Some(FromWorker::Ready(notes))) => {
                worker.ready = Some(Instant::now());
                self.report_ready(notes);
            }
            Ok(Some(FromWorker::Failed(refusal))) if self.report.is_some() => {
                return Some(LoopEnd::NotStarted(refusal));
            }
            Ok(Some(FromWorker::Failed(refusal))) => log_line(&refusal.what),
            Ok(Some(FromWorker::WorkerStats(number, stats))) => self.answer_stats(number, *stats),
            Ok(Some(FromWorker::Warming(number, progress))) => self.report_warming(number, progress),
            Ok(Some(FromWorker::Warmed(number, progress))) => self.end_warming(number, progress),
            Ok(Some(FromWorker::MayLeave)) => self.move_mount(Goal::Look),
            Ok(Some(FromWorker::Leave(left))) => self.move_mount(Goal::Leave(left)),
            Ok(Some(FromWorker::Return)) => self.move_mount(Goal::Return),
            Ok(None) => {}
            // It is dead, dying or broken. Its pidfd reports the end.
            Err(_) => self.kill_worker(),
        }
        None
    }

    fn kill_worker(&self) {
        if let Some(worker) = &self.state.worker {
            let _ = pidfd_send_signal(&worker.pidfd, Signal::KILL);
        }
    }

    /// Reaps the dead worker. After waitpid(2) none of its threads is left that could still answer a request.
    fn reap(&mut self) -> Option<LoopEnd> {
        self.serve_keeper();
        let worker = self.state.worker.take()?;
        let status = waitpid(Some(worker.pid), WaitOptions::empty()).ok().flatten();
        let death = status.map_or(Death::Exit(-1), |(_, status)| Death::of(status));
        if death == Death::Disconnected {
            // The connection may end before the process that unmounts.
            self.unmount_ended();
            return Some(self.disconnected());
        }
        if death == Death::Renewed {
            self.fail_warming("the worker has made room for another one");
            self.resend();
            return self.fork_worker();
        }
        self.after_death(&worker, death)
    }

    /// It was unmounted, or the connection was aborted (`/sys/fs/fuse/connections`), and then the dead mount is still there.
    fn disconnected(&mut self) -> LoopEnd {
        self.finish_move();
        if !self.state.unmounted && is_mounted(&self.mount.shown) {
            self.unmount_by_force();
        }
        LoopEnd::Unmounted
    }

    fn after_death(&mut self, worker: &Worker, death: Death) -> Option<LoopEnd> {
        let what = format!("the worker died: {death}");
        log_line(&what);
        self.fail_warming(&what);
        if self.report.is_some() {
            return Some(LoopEnd::NotStarted(Refusal { what, kind: RefusalKind::Failed }));
        }
        if !self.mount.grant.resends() {
            return Some(LoopEnd::GaveUp(format!(
                "{what}; this kernel (before Linux 6.9) cannot send its requests to another one"
            )));
        }
        let lived = worker.ready.map(|at| at.elapsed());
        if !self.state.deaths.allow_restart(self.state.since.elapsed(), lived, death) {
            return Some(LoopEnd::GaveUp(format!(
                "{what}; so did the workers before it, so no other is started"
            )));
        }
        self.state.restarts += 1;
        self.state.last_death = Some(death.to_string());
        self.resend();
        self.fork_worker()
    }

    /// A signal to end: unmounts. After a second one, files that are still open get errors.
    fn shut_down(&mut self) -> Option<LoopEnd> {
        let _ = self.shutdown.read(&mut [0; 64]);
        if self.state.must_end {
            return Some(if self.state.unmounted {
                LoopEnd::Unmounted
            } else {
                LoopEnd::GaveUp("a second signal to end has arrived".into())
            });
        }
        self.state.must_end = true;
        self.start_unmount(UnmountMode::IfUnused);
        None
    }

    fn serve_client(&mut self, index: usize) -> Option<LoopEnd> {
        let client = self.state.clients.get_mut(index)?;
        let is_warming = matches!(client.pending, Pending::Warming(_));
        let request = client.request();
        if matches!(request, Ok(Some(Request::Warm { .. }))) {
            self.finish_move();
        }
        let client = self.state.clients.get_mut(index)?;
        match request {
            // It waits for an answer, so all that it may do is close.
            Ok(Some(_)) if is_warming => self.remove_client(index),
            Ok(None) => {}
            Ok(Some(Request::Status)) => self.request_stats(index),
            Ok(Some(Request::Umount { lazy })) if client.is_owner() => {
                client.pending = Pending::Unmount;
                self.start_unmount(if lazy { UnmountMode::Lazy } else { UnmountMode::IfUnused });
            }
            Ok(Some(Request::Umount { .. })) => {
                let what = "only root and the user who mounted it may unmount it".to_owned();
                client.answer(&Response::Refused(Refusal { what, kind: RefusalKind::NotPermitted }));
            }
            Ok(Some(Request::Warm { .. })) if self.state.aside.left().is_some() => {
                let what = "it stands aside, because it gains nothing (`eke cache status`): what is read goes into the page cache".to_owned();
                client.answer(&Response::Refused(Refusal { what, kind: RefusalKind::Failed }));
            }
            Ok(Some(Request::Warm { path })) if client.is_owner() => self.start_warming(index, path),
            Ok(Some(Request::Warm { .. })) => {
                let what = "only root and the user who mounted it may have files read into memory".to_owned();
                client.answer(&Response::Refused(Refusal { what, kind: RefusalKind::NotPermitted }));
            }
            Err(_) => self.remove_client(index),
        }
        None
    }

    fn request_stats(&mut self, index: usize) {
        self.state.next_request += 1;
        let number = self.state.next_request;
        let message = ToWorker::WorkerStats(number);
        let sent = self.state.worker.as_ref().map(|w| send(w.channel.as_fd(), &message));
        let within = if matches!(sent, Some(Ok(()))) { STATS_WITHIN } else { Duration::ZERO };
        if let Some(client) = self.state.clients.get_mut(index) {
            client.pending = Pending::WorkerStats(number, Instant::now() + within);
        }
    }

    fn answer_stats(&mut self, number: u64, stats: WorkerStats) {
        let status = self.status(Some(stats));
        let requested = |c: &&mut Client| matches!(c.pending, Pending::WorkerStats(n, _) if n == number);
        if let Some(client) = self.state.clients.iter_mut().find(requested) {
            client.answer(&Response::Status(Box::new(status)));
        }
    }

    /// Answers clients whose time is over without the worker's stats, and kills a worker that does not start.
    fn handle_deadlines(&mut self) {
        let at = Instant::now();
        if let Some(shared) = &mut self.mount.shared {
            shared.process.start_again();
        }
        if self.state.worker.as_ref().and_then(Worker::starts_by).is_some_and(|by| by < at) {
            log_line("the worker does not start");
            self.kill_worker();
        }
        if self.state.aside.until().is_some_and(|until| until <= at) {
            self.finish_move();
        }
        if self.state.release_by.is_some_and(|by| by <= at) {
            self.state.release_by = None;
            self.answer_unmount(&self.not_released());
        }
        let status = Response::Status(Box::new(self.status(None)));
        let late = |c: &&mut Client| matches!(c.pending, Pending::WorkerStats(_, until) if until <= at);
        self.state.clients.iter_mut().filter(late).for_each(|client| client.answer(&status));
    }

    fn status(&self, worker: Option<WorkerStats>) -> Status {
        Status {
            place: self.mount.shown.place.clone(),
            dir: self.mount.settings.dir.clone(),
            uid: rustix::process::geteuid().as_raw(),
            pid: std::process::id(),
            worker_pid: self.state.worker.as_ref().map(|w| raw(w.pid)),
            restarts: self.state.restarts,
            last_death: self.state.last_death.clone(),
            up_s: self.state.since.elapsed().as_secs(),
            aside: self.state.aside.stats(),
            not_moved: self.state.aside.not_moved(),
            settings: self.mount.settings.clone(),
            worker,
        }
    }
}

/// Why the loop ended; like [`SupervisorEnd`], but a new worker has its sockets only.
enum LoopEnd {
    Unmounted,
    GaveUp(String),
    NotStarted(Refusal),
    Worker(crate::worker::WorkerSockets),
}
