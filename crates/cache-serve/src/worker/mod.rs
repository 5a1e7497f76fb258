//! The worker: serves the requests. It may die at any moment.

mod build;
mod control;
mod growth;
mod maintain;
mod notices;
mod process;
mod sessions;
mod stats;
mod watcher;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_linux::Root;

use super::ledger::{Ledger, Replay};
use super::log::log_line;
use super::served_mount::ServedMount;
use super::supervisor::channel::{FromWorker, send};

pub use build::{capabilities, memory, most_memory};
pub(crate) use process::{lift_limits, too_few_files};

/// A worker's sockets.
#[derive(Debug)]
pub struct WorkerSockets {
    /// To the supervisor: messages.
    pub channel: OwnedFd,
    /// To the supervisor: descriptors to keep.
    pub keeper: OwnedFd,
    /// To the guard: notices for the kernel.
    pub guard: Option<OwnedFd>,
}

/// A worker's inputs, all from its supervisor.
#[derive(Debug)]
pub struct WorkerInputs {
    /// The mount.
    pub mount: ServedMount,
    /// Open files without a name, by node.
    pub kept: HashMap<u64, OwnedFd>,
    /// To the supervisor and the guard.
    pub sockets: WorkerSockets,
    /// An earlier worker served this mount.
    pub takes_over: bool,
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
    let WorkerInputs { mount, kept, sockets, takes_over } = inputs;
    let ServedMount { settings, ttl, dir, by, shown, devices, grant, memfd, slots, hot, spill, shared } =
        mount;
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
        takes_over,
        hot,
        spill,
        shared,
    });
    let built = match built {
        Ok(built) => built,
        Err(what) => {
            let refusal = Refusal { what, kind: RefusalKind::Failed };
            let _ = send(sockets.channel.as_fd(), &FromWorker::Failed(refusal));
            return Err(io::Error::other("it could not be built"));
        }
    };
    let served = built.filesystem();
    let sessions = sessions::open(&served, &devices, &grant)?;
    if let Some(first) = sessions.first() {
        built.fs.notify_by(first.notifier());
    }
    send(sockets.channel.as_fd(), &FromWorker::Ready(built.notes()))?;
    let sources = built.sources.clone();
    let warming = built.start_warming(sockets.channel.try_clone()?)?;
    control::start(sockets.channel, (by, shown), Box::new(move || sources.stats()), warming)?;
    let (fs, remember, spill) = (Arc::clone(&built.fs), built.remember.clone(), built.spill.clone());
    let device = devices.first().ok_or(io::ErrorKind::NotConnected)?.try_clone()?;
    built.start(sockets.guard, device)?;
    let ended = sessions::run(sessions, served, devices, grant, Root::host());
    if let Ok(remember) = remember {
        remember.save();
    }
    if let Some(spill) = spill {
        spill.save(fs.tier());
    }
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
