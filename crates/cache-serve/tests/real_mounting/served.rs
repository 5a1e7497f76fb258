//! A directory that the real program serves at a given place, or refuses to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eke_cache_mounts::line::{parse, send};
use eke_cache_mounts::settings::{Compress, Memory, Settings};
use eke_cache_mounts::socket::connect;
use eke_cache_mounts::status::{Refusal, Request, Response, Status, WorkerStats};
use eke_cache_mounts::{Mount, SocketDirs, ask, mounts, unmount};
use eke_model::units::Bytes;
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::common::mount::settings;
use crate::common::server::Server;

/// A hung test fails after this long; nothing is measured by it.
const LONG: Duration = Duration::from_secs(60);

/// Lets one test of this binary run at a time: a process with its own mount namespace has copies of all mounts, and would keep those of
/// other tests busy. `None` if the test cannot run here, for the reason `missing`.
pub fn alone(test: &str, missing: Option<String>) -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    match missing {
        None => Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner)),
        Some(why) => {
            skip(test, &why);
            None
        }
    }
}

/// A mount. Drop unmounts it.
pub struct Served {
    pub server: Server,
    /// The mount in the kernel's list.
    pub shown: Mount,
}

impl Served {
    /// Serves `dir` at `place` to all users; `args` are further arguments of the program.
    pub fn start(dir: &Path, place: &Path, args: &[&str]) -> Result<Self, Refusal> {
        Self::with(dir, place, args, |_| {})
    }

    /// The same with other settings.
    pub fn with(
        dir: &Path,
        place: &Path,
        args: &[&str],
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, Refusal> {
        let memory = Memory::Bytes(Bytes::mib(32));
        let mut settings =
            Settings { memory, compress: Compress::Async, watch: true, ..settings(dir, place) };
        change(&mut settings);
        let server = Server::start(&settings, args, &[])?;
        let shown =
            wait_for("a mount", || mounts::read().unwrap().into_iter().rfind(|mount| mount.dir == dir));
        Ok(Self { server, shown })
    }

    pub fn place(&self) -> PathBuf {
        self.shown.place.clone()
    }

    /// Does a warning of the start contain this text?
    pub fn warns_of(&self, text: &str) -> bool {
        self.server.ready.notes.iter().any(|note| note.contains(text))
    }

    fn ask(&self, request: Request) -> Option<Response> {
        ask(&SocketDirs::host(), &self.shown, request, LONG).unwrap()
    }

    /// Unmounts as `eke cache umount` does.
    pub fn umount(&self) -> Response {
        self.ask(Request::Umount { lazy: false }).expect("an answer")
    }

    /// Has a path below the directory read into the store.
    pub fn warm(&self, path: &str) -> Response {
        let connection = connect(&SocketDirs::host(), self.shown.device, self.shown.uid).unwrap().unwrap();
        send(&connection, &Request::Warm { path: path.into() }, LONG).unwrap();
        ioctl_fionbio(&connection, false).unwrap();
        set_socket_timeout(&connection, Timeout::Recv, Some(LONG)).unwrap();
        let answers =
            BufReader::new(&connection).lines().map(|line| parse(line.unwrap().as_bytes()).unwrap());
        answers.into_iter().find(|answer| !matches!(answer, Response::Warming(_))).unwrap()
    }

    pub fn status(&self) -> Status {
        match self.ask(Request::Status) {
            Some(Response::Status(status)) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub fn stats(&self) -> WorkerStats {
        self.status().worker.expect("the worker's stats")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = unmount(&self.shown, true);
    }
}
