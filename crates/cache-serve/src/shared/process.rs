//! The engine's process, held by the supervisor: started with its ends of the sockets, and started again when it has died. It ends by itself when the
//! engine refuses its password or certificate: each start reads their files anew.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_cache_mounts::engine_url::{EngineConfig, LIVED};
use eke_cache_mounts::shared::SharedSettings;
use eke_cache_shared::frame::VERSION;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

use super::error::SharedError;
use super::secrets::config_now;
use crate::log::log_line;
use crate::supervisor::channel::pair;
use crate::supervisor::fork::fork;

/// The pause before the first start after a death, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

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
    program: PathBuf,
    settings: SharedSettings,
    /// With the files as they were at the mount.
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
    pub fn start(settings: SharedSettings, config: EngineConfig) -> Result<Self, SharedError> {
        let (asks, offers) = (pair().map_err(SharedError::Kernel)?, pair().map_err(SharedError::Kernel)?);
        for socket in [&asks.0, &asks.1, &offers.0, &offers.1] {
            // With less room offers wait more often.
            let _ = set_socket_send_buffer_size(socket, BUFFER);
        }
        let worker = Sockets { asks: asks.0, offers: offers.0 };
        let engine = Sockets { asks: asks.1, offers: offers.1 };
        let program = std::env::current_exe().map_err(SharedError::Kernel)?;
        let program = program.with_file_name("eke-cache-shared");
        if let Err(source) = std::fs::metadata(&program) {
            return Err(SharedError::Process { path: program, source });
        }
        let (running, pause, again) = (None, PAUSE.0, None);
        let mut process = Self { program, settings, config, worker, engine, running, pause, again };
        process.spawn().map_err(SharedError::Kernel)?;
        Ok(process)
    }

    /// Forks, and executes the program in the child. It waits for neither: the program, its libraries or the secrets may be below the mount, whose
    /// worker may be dead.
    fn spawn(&mut self) -> io::Result<()> {
        // Copies that are open in the new process. This one has one thread, so no other child gets them.
        let (asks, offers) = (self.engine.asks.try_clone()?, self.engine.offers.try_clone()?);
        for copy in [&asks, &offers] {
            fcntl_setfd(copy, FdFlags::empty())?;
        }
        let mut command = Command::new(&self.program);
        command.args([asks.as_raw_fd(), offers.as_raw_fd()].map(|fd| fd.to_string())).arg(VERSION);
        command.env_clear().stdout(Stdio::null());
        let Some(pid) = fork()? else {
            let error = match self.config_file() {
                Ok(config) => command.stdin(config).exec(),
                Err(e) => e,
            };
            log_line(&format!("cannot execute {}: {error}", self.program.display()));
            std::process::exit(1)
        };
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.running = Some(Running { pid, pidfd, since: Instant::now() });
        Ok(())
    }

    /// The configuration as a file in memory, of which nobody else knows.
    fn config_file(&self) -> io::Result<File> {
        let mut file = File::from(memfd_create(c"eke-cache-shared", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&config_now(&self.settings, &self.config))?)?;
        file.rewind()?;
        Ok(file)
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
            log_line(&format!("the engine's process (eke-cache-shared) cannot be started: {e}"));
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
