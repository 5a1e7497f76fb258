//! The supervisor: one thread that holds what must outlive a worker, and waits.

mod clients;
mod deaths;
mod flags;
mod fork;
pub mod guard;
mod leave;
mod run;
pub mod signals;
pub mod talk;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::{Ready, Refusal, Start};
use eke_cache_mounts::{Mount, Socket};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::init::Grant;
use super::ledger::{Kept, Memfd};
use super::log::say;
use super::mount::{By, How};
use super::{device, worker};
use clients::Client;
use deaths::Deaths;
use guard::Guard;
use leave::Leaving;

/// What it holds.
#[derive(Debug)]
pub struct Supervisor {
    /// As asked for.
    pub settings: Settings,
    /// How long the kernel believes names and attributes, if not as long as usual: for tests.
    pub ttl: Option<Duration>,
    /// The backing directory.
    pub dir: OwnedFd,
    /// Who mounted it.
    pub by: By,
    /// The mount, as the kernel showed it when it was made.
    pub shown: Mount,
    /// What whoever mounts should know, for the one line of the start.
    pub notes: Vec<String>,
    /// `/dev/fuse` as it was mounted, and its clones.
    pub devices: Vec<OwnedFd>,
    /// What was agreed on with the kernel.
    pub grant: Grant,
    /// The ledger's log.
    pub memfd: Memfd,
    /// Which files are open by passthrough, for [`crate::worth`].
    pub slots: Memfd,
    /// Where clients come from.
    pub socket: Option<Socket>,
    /// A byte for each signal to end.
    pub shutdown: UnixStream,
    /// Where the one line of the start goes; none when it is said.
    pub report: Option<File>,
    /// Everything that changes.
    pub now: Now,
}

/// What changes while it runs.
#[derive(Debug)]
pub struct Now {
    since: Instant,
    worker: Option<Worker>,
    guard: Option<Guard>,
    kept: Kept,
    deaths: Deaths,
    restarts: u64,
    last_death: Option<String>,
    clients: Vec<Client>,
    /// Tells that flags of mounts have changed.
    changes: Option<File>,
    next_number: u64,
    leaving: Option<Leaving>,
    /// A signal asked: if busy, then lazily.
    must_leave: bool,
    /// Out of sight; open files may go on.
    unmounted: bool,
    /// Who asked for the end is told when nothing of the backing directory is held any more, or at this moment that something is.
    let_go_by: Option<Instant>,
}

impl Default for Now {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            worker: None,
            guard: None,
            kept: Kept::default(),
            deaths: Deaths::default(),
            restarts: 0,
            last_death: None,
            clients: Vec::new(),
            changes: flags::changes(),
            next_number: 0,
            leaving: None,
            must_leave: false,
            unmounted: false,
            let_go_by: None,
        }
    }
}

/// The living worker.
#[derive(Debug)]
struct Worker {
    pid: Pid,
    pidfd: OwnedFd,
    talk: OwnedFd,
    keeper: OwnedFd,
    started: Instant,
    ready: Option<Instant>,
}

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    /// The mount is gone, as somebody wished.
    Unmounted,
    /// It could not go on: a sentence.
    GaveUp(String),
    /// It could not even begin.
    NotStarted(Refusal),
    /// This process is a worker now.
    Worker(Box<worker::Parts>),
}

impl Supervisor {
    /// Starts a worker; in the worker itself gives the way out.
    fn start_worker(&mut self) -> io::Result<Option<worker::Ends>> {
        self.guard();
        let notes = self.now.guard.as_ref().and_then(|guard| guard.notes().ok());
        let (talk, their_talk) = talk::pair()?;
        let (keeper, their_keeper) = talk::pair()?;
        let Some(pid) = fork::fork()? else {
            return Ok(Some(worker::Ends { talk: their_talk, keeper: their_keeper, notes }));
        };
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.now.worker = Some(Worker { pid, pidfd, talk, keeper, started: Instant::now(), ready: None });
        Ok(None)
    }

    /// There is one while there are workers.
    fn guard(&mut self) {
        if self.now.guard.as_ref().is_some_and(Guard::is_alive) {
            return;
        }
        let device = self.devices.first().map(|d| Guard::start(d, self.by, &self.shown));
        self.now.guard = match device {
            Some(Ok(guard)) => Some(guard),
            Some(Err(e)) => {
                say(&format!(
                    "no guard can be started ({e}): open files do not show changes made in the backing directory"
                ));
                None
            }
            None => None,
        };
    }

    /// In a worker: what it needs of all this. The rest is closed.
    fn into_parts(mut self, ends: worker::Ends) -> worker::Parts {
        // The socket's name stays the supervisor's.
        self.socket.into_iter().for_each(Socket::let_go);
        worker::Parts {
            settings: self.settings,
            ttl: self.ttl,
            dir: self.dir,
            by: self.by,
            shown: self.shown,
            devices: self.devices,
            grant: self.grant,
            memfd: self.memfd,
            slots: self.slots,
            kept: self.now.kept.take(),
            ends,
        }
    }

    /// Takes the mount away now, without a worker. Gives up after a few seconds: the end of this process ends the connection.
    fn leave_by_force(&self) {
        let done =
            Leaving::start(&self.shown, self.by, How::Force).map_err(|e| e.to_string()).and_then(|leaving| {
                leaving.result_within(Duration::from_secs(5)).map_err(|refusal| refusal.what)
            });
        if let Err(what) = done {
            let place = self.shown.place.display();
            say(&format!("{what}; `eke cache umount {place}` takes the dead mount away"));
        }
    }

    /// What was unanswered is given out again, to the next worker.
    fn resend(&self) {
        if let Some(Err(e)) = self.devices.first().map(|d| device::resend(d.as_fd())) {
            say(&format!("the kernel does not send again what was unanswered: {e}"));
        }
    }

    fn report(&mut self, start: &Start) {
        if let Some(mut report) = self.report.take() {
            let mut line = serde_json::to_vec(start).unwrap_or_default();
            line.push(b'\n');
            // Who does not listen any more is served all the same.
            let _ = report.write_all(&line);
        }
    }

    fn report_ready(&mut self, notes: Vec<String>) {
        let worker_pid = self.now.worker.as_ref().map_or(0, |w| raw(w.pid));
        let ready = Ready {
            place: self.shown.place.clone(),
            dir: self.settings.dir.clone(),
            pid: std::process::id(),
            worker_pid,
            memory: worker::memory(&self.settings),
            notes: self.notes.drain(..).chain(notes).collect(),
        };
        self.report(&Start::Ready(ready));
    }
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}
