//! The supervisor: one thread that owns all state that must outlive a worker, and waits for events.

pub(crate) mod aside;
mod attempt;
pub mod channel;
mod clients;
pub(crate) mod deaths;
mod flags;
pub(crate) mod fork;
pub mod guard;
pub mod notice;
mod run;
pub mod signals;
mod unmounting;
mod warming;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use eke_cache_mounts::Socket;
use eke_cache_mounts::status::{Ready, Refusal, Start};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::ledger::KeptFiles;
use super::log::log_line;
use super::mount::UnmountMode;
use super::served_mount::ServedMount;
use super::{device, worker};
use aside::Aside;
use clients::Client;
use deaths::Deaths;
use guard::Guard;
use unmounting::Unmounting;

/// The supervisor of a mount.
#[derive(Debug)]
pub struct Supervisor {
    /// The mount.
    pub mount: ServedMount,
    /// Warnings for the line of the start.
    pub notes: Vec<String>,
    /// Clients connect here.
    pub socket: Option<Socket>,
    /// A byte arrives for each signal to end.
    pub shutdown: UnixStream,
    /// The start is reported here, in one line; `None` once that is done.
    pub report: Option<File>,
    /// Everything that changes.
    pub state: State,
}

/// A supervisor's changing state.
#[derive(Debug)]
pub struct State {
    since: Instant,
    worker: Option<Worker>,
    guard: Option<Guard>,
    kept: KeptFiles,
    deaths: Deaths,
    /// Workers that were started.
    workers: u64,
    restarts: u64,
    last_death: Option<String>,
    clients: Vec<Client>,
    /// Signals that flags of mounts have changed.
    mount_changes: Option<File>,
    next_request: u64,
    unmounting: Option<Unmounting>,
    aside: Aside,
    /// A signal to end has arrived: if the mount is busy, unmount lazily.
    must_end: bool,
    /// The mount is out of the directory tree; open files may go on.
    unmounted: bool,
    /// The client that requested the unmount is answered when the backing directory is free, or at this moment that it is not.
    release_by: Option<Instant>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            worker: None,
            guard: None,
            kept: KeptFiles::default(),
            deaths: Deaths::default(),
            workers: 0,
            restarts: 0,
            last_death: None,
            clients: Vec::new(),
            mount_changes: flags::changes(),
            next_request: 0,
            unmounting: None,
            aside: Aside::default(),
            must_end: false,
            unmounted: false,
            release_by: None,
        }
    }
}

/// The living worker.
#[derive(Debug)]
struct Worker {
    pid: Pid,
    pidfd: OwnedFd,
    channel: OwnedFd,
    keeper: OwnedFd,
    /// When it was started, or told last that it goes on starting.
    heard: Instant,
    ready: Option<Instant>,
}

/// How long a worker may take to start, or to read a part of what earlier workers recorded.
const START_WITHIN: Duration = Duration::from_secs(30);

impl Worker {
    /// When it must be ready, or be heard again. `None`: it is ready.
    fn starts_by(&self) -> Option<Instant> {
        self.ready.is_none().then(|| self.heard + START_WITHIN)
    }

    /// It has said at this moment that it goes on starting.
    fn goes_on(&mut self, at: Instant) {
        self.heard = at;
    }
}

/// Why a supervisor ended.
#[derive(Debug)]
pub enum SupervisorEnd {
    /// The mount is gone, as requested.
    Unmounted,
    /// It could not go on: a sentence.
    GaveUp(String),
    /// It could not start.
    NotStarted(Refusal),
    /// This process is a worker now.
    Worker(Box<worker::WorkerInputs>),
}

impl Supervisor {
    /// Starts a worker. In the worker itself it returns the worker's ends of the sockets.
    fn start_worker(&mut self) -> io::Result<Option<worker::WorkerSockets>> {
        self.ensure_guard();
        let guard = self.state.guard.as_ref().and_then(|guard| guard.notices().ok());
        let (channel, their_channel) = channel::pair()?;
        let (keeper, their_keeper) = channel::pair()?;
        let Some(pid) = fork::fork()? else {
            return Ok(Some(worker::WorkerSockets { channel: their_channel, keeper: their_keeper, guard }));
        };
        self.state.workers += 1;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.state.worker = Some(Worker { pid, pidfd, channel, keeper, heard: Instant::now(), ready: None });
        Ok(None)
    }

    /// Starts a guard unless one is running.
    fn ensure_guard(&mut self) {
        if self.state.guard.as_ref().is_some_and(Guard::is_alive) {
            return;
        }
        let started = self.mount.devices.first().map(|d| Guard::start(d, self.mount.by, &self.mount.shown));
        self.state.guard = match started {
            Some(Ok(guard)) => Some(guard),
            Some(Err(e)) => {
                log_line(&format!(
                    "no guard can be started ({e}): a worker that dies while it tells the kernel of a change may hang"
                ));
                None
            }
            None => None,
        };
    }

    /// In a worker: takes what the worker needs and closes the rest.
    fn into_inputs(mut self, sockets: worker::WorkerSockets) -> worker::WorkerInputs {
        // The supervisor still uses the socket's file.
        self.socket.into_iter().for_each(Socket::close_copy);
        let takes_over = self.state.workers > 0;
        let moved = self.state.aside.last();
        worker::WorkerInputs { mount: self.mount, kept: self.state.kept.take(), sockets, takes_over, moved }
    }

    /// Unmounts now, without a worker. It gives up after a few seconds: the connection ends with this process.
    fn unmount_by_force(&mut self) {
        self.finish_move();
        let attempt = Unmounting::start(&self.mount.shown, self.mount.by, UnmountMode::Force, false)
            .map_err(|e| e.to_string());
        let done = attempt
            .and_then(|a| a.attempt.result_within(Duration::from_secs(5)).map_err(|refusal| refusal.what));
        if let Err(what) = done {
            let place = self.mount.shown.place.display();
            log_line(&format!("{what}; `eke cache umount {place}` removes the dead mount"));
        }
    }

    /// Has the kernel send the unanswered requests again, to the next worker.
    fn resend(&self) {
        if let Some(Err(e)) = self.mount.devices.first().map(|d| device::resend(d.as_fd())) {
            log_line(&format!("the kernel does not resend unanswered requests: {e}"));
        }
    }

    fn report(&mut self, start: &Start) {
        if let Some(report) = self.report.take() {
            channel::report_start(&report, start);
        }
    }

    fn report_ready(&mut self, notes: Vec<String>) {
        let worker_pid = self.state.worker.as_ref().map_or(0, |w| raw(w.pid));
        let ready = Ready {
            place: self.mount.shown.place.clone(),
            dir: self.mount.settings.dir.clone(),
            pid: std::process::id(),
            worker_pid,
            memory: worker::memory(&self.mount.settings),
            notes: self.notes.drain(..).chain(notes).collect(),
        };
        self.report(&Start::Ready(ready));
    }
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_heard_may_go_on_starting() {
        let pid = rustix::process::getpid();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let (channel, keeper) = channel::pair().unwrap();
        let started = Instant::now();
        let mut worker = Worker { pid, pidfd, channel, keeper, heard: started, ready: None };
        let first = worker.starts_by().unwrap();
        assert!(first > started);
        worker.goes_on(first);
        assert!(worker.starts_by().unwrap() > first);
        worker.ready = Some(first);
        assert_eq!(worker.starts_by(), None);
    }
}
