//! The worker: serves the requests. It may die at any moment.

mod build;
mod control;
mod maintain;
mod process;
mod sessions;
mod stats;
mod watcher;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use eke_cache_mounts::Mount;
use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_linux::Root;

use super::init::Grant;
use super::ledger::{Ledger, Memfd, Replay};
use super::log::log_line;
use super::mount::MountMethod;
use super::supervisor::channel::{FromWorker, send};

pub use build::{capabilities, memory, most_memory};
pub(crate) use process::raise_open_files;

/// A worker's sockets.
#[derive(Debug)]
pub struct WorkerSockets {
    /// To the supervisor: messages.
    pub channel: OwnedFd,
    /// To the supervisor: descriptors to keep.
    pub keeper: OwnedFd,
    /// To the guard: nodes whose pages the kernel must drop.
    pub guard: Option<OwnedFd>,
}

/// A worker's inputs, all from its supervisor.
#[derive(Debug)]
pub struct WorkerInputs {
    /// As requested.
    pub settings: Settings,
    /// For tests: how long the kernel caches names and attributes, instead of the default.
    pub ttl: Option<Duration>,
    /// The backing directory.
    pub dir: OwnedFd,
    /// How it was mounted.
    pub by: MountMethod,
    /// The mount in the kernel's list.
    pub shown: Mount,
    /// The device of the mount, and its clones.
    pub devices: Vec<OwnedFd>,
    /// What was agreed on with the kernel.
    pub grant: Grant,
    /// The ledger's log.
    pub memfd: Memfd,
    /// Which files are open by passthrough: another memfd that outlives workers.
    pub slots: Memfd,
    /// Open files without a name, by node.
    pub kept: HashMap<u64, OwnedFd>,
    /// To the supervisor and the guard.
    pub sockets: WorkerSockets,
}

/// Serves until the connection ends (exit status 0). After any other end the supervisor starts the next worker.
pub fn run(inputs: WorkerInputs) -> ExitCode {
    process::prepare();
    match serve(inputs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            log_line(&format!("the worker exits: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(inputs: WorkerInputs) -> io::Result<()> {
    let WorkerInputs { settings, ttl, dir, by, shown, devices, grant, memfd, slots, kept, sockets } = inputs;
    let (ledger, replay) = Ledger::open(memfd.into(), sockets.keeper)?;
    log_bad_record(&replay);
    let (root, ledger, slots) = (Root::host(), Arc::new(ledger), slots.into());
    let built = build::build(build::BuildInputs {
        settings: &settings,
        ttl,
        shown: &shown,
        root,
        dir,
        ledger,
        replay,
        kept,
        slots,
    });
    let built = match built {
        Ok(built) => built,
        Err(what) => {
            let refusal = Refusal { what, kind: RefusalKind::Failed };
            let _ = send(sockets.channel.as_fd(), &FromWorker::Failed(refusal));
            return Err(io::Error::other("it could not be built"));
        }
    };
    let sessions = sessions::open(&built.filesystem(), &devices, &grant)?;
    if let Some(first) = sessions.first() {
        built.fs.notify_by(first.notifier());
    }
    send(sockets.channel.as_fd(), &FromWorker::Ready(built.notes()))?;
    let sources = built.sources.clone();
    control::start(sockets.channel, by, shown, Box::new(move || sources.stats()))?;
    let fs = Arc::clone(&built.fs);
    built.start(sockets.guard)?;
    let ended = sessions::run(sessions);
    // A fault ends this worker alone: the next one uses what this one has registered with the kernel, so nothing is closed.
    std::mem::forget(fs);
    ended
}

/// A death may leave an incomplete record at the end.
fn log_bad_record(replay: &Replay) {
    if let Some(bad_record) = replay.bad_record {
        log_line(&format!(
            "the ledger ends with bytes that are no record ({bad_record}); the records before them are used"
        ));
    }
}
