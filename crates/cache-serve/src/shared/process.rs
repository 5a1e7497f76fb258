//! The engine's process, held by the supervisor: started with its ends of the sockets, and started again when it has died.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_cache_mounts::engine_url::EngineConfig;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

use super::error::SharedError;
use crate::log::log_line;
use crate::supervisor::channel::pair;

/// The pause before the first start after a death, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// A process that lived so long has not failed at its start.
const LIVED: Duration = Duration::from_secs(60);

/// The bytes that a socket may hold, if the kernel permits.
const BUFFER: usize = 1 << 20;

/// One end of both pairs.
#[derive(Debug)]
pub struct Sockets {
    /// Asks and answers.
    pub asks: OwnedFd,
    /// Offers.
    pub offers: OwnedFd,
}

/// See the module.
#[derive(Debug)]
pub struct EngineProcess {
    config: EngineConfig,
    worker: Sockets,
    engine: Sockets,
    running: Option<Running>,
    pause: Duration,
    again: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    since: Instant,
}

impl EngineProcess {
    /// Makes the sockets and starts the process.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn start(config: EngineConfig) -> Result<Self, SharedError> {
        let (asks, offers) = (pair().map_err(SharedError::Kernel)?, pair().map_err(SharedError::Kernel)?);
        for socket in [&asks.0, &asks.1, &offers.0, &offers.1] {
            // With less room offers wait more often.
            let _ = set_socket_send_buffer_size(socket, BUFFER);
        }
        let worker = Sockets { asks: asks.0, offers: offers.0 };
        let engine = Sockets { asks: asks.1, offers: offers.1 };
        let mut process = Self { config, worker, engine, running: None, pause: PAUSE.0, again: None };
        process.spawn()?;
        Ok(process)
    }

    fn spawn(&mut self) -> Result<(), SharedError> {
        let program = std::env::current_exe().map_err(SharedError::Kernel)?;
        let path = program.with_file_name("eke-cache-shared");
        let failed = |source| SharedError::Process { path: path.clone(), source };
        // Copies that are open in the new process. This one has one thread, so no other child gets them.
        let asks = self.engine.asks.try_clone().map_err(failed)?;
        let offers = self.engine.offers.try_clone().map_err(failed)?;
        for copy in [&asks, &offers] {
            fcntl_setfd(copy, FdFlags::empty()).map_err(|e| failed(e.into()))?;
        }
        let mut command = Command::new(&path);
        command.arg(asks.as_raw_fd().to_string()).arg(offers.as_raw_fd().to_string());
        let mut child =
            command.env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
        let config = serde_json::to_vec(&self.config).map_err(|e| failed(e.into()))?;
        // A process that has died already is found by its descriptor.
        let _ = child.stdin.take().map(|mut input| input.write_all(&config));
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
        self.running = Some(Running { pid, pidfd, since: Instant::now() });
        Ok(())
    }

    /// For a worker: its ends.
    pub fn into_worker(self) -> Sockets {
        self.worker
    }

    /// Readable when the process has died.
    pub fn ended(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(|running| running.pidfd.as_fd())
    }

    /// When it is started again.
    pub fn again(&self) -> Option<Instant> {
        self.again
    }

    /// Reaps a dead process; another one starts after a pause.
    pub fn reap(&mut self) {
        let Some(running) = self.running.take() else { return };
        let status = waitpid(Some(running.pid), WaitOptions::empty()).ok().flatten();
        let how = status.map_or("unknown".to_owned(), |(_, status)| format!("{status:?}"));
        self.pause = if running.since.elapsed() > LIVED { PAUSE.0 } else { (self.pause * 2).min(PAUSE.1) };
        self.again = Some(Instant::now() + self.pause);
        log_line(&format!(
            "the engine's process (eke-cache-shared) has died ({how}); another one starts in {:.1} s, until then the shared tier is not asked",
            self.pause.as_secs_f64()
        ));
    }

    /// Starts another process if it is time.
    pub fn start_again(&mut self) {
        if self.again.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.again = None;
        if let Err(e) = self.spawn() {
            log_line(&e.to_string());
            self.pause = (self.pause * 2).min(PAUSE.1);
            self.again = Some(Instant::now() + self.pause);
        }
    }

    /// Ends the process: by closing the sockets, or else by a signal.
    pub fn end(self, within: Duration) {
        let Self { worker, engine, running, .. } = self;
        drop((worker, engine));
        let Some(running) = running else { return };
        let within = Timespec::try_from(within).ok();
        let ended = poll(&mut [PollFd::new(&running.pidfd, PollFlags::IN)], within.as_ref());
        if ended != Ok(1) {
            let _ = pidfd_send_signal(&running.pidfd, Signal::KILL);
        }
        let _ = waitpid(Some(running.pid), WaitOptions::empty());
    }
}
