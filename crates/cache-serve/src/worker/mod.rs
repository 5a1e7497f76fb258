//! The worker: serves the requests. It may die at any moment.

mod aside;
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
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_cache_mounts::{Device, Mount, at};
use eke_linux::Root;

use super::init::Grant;
use super::ledger::{Ledger, Replay};
use super::log::log_line;
use super::mount::MountMethod;
use super::served_mount::{LastMove, ServedMount};
use super::supervisor::aside::may_stand_aside;
use super::supervisor::channel::{FromWorker, send};

use aside::Aside;
use control::Jobs;

pub use build::{capabilities, memory, most_memory};
pub(crate) use process::{give_back_memory, lift_limits, too_few_files};

/// Sessions of a worker that starts aside. More are added while requests wait.
const FEW_SESSIONS: usize = 2;

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
    /// Where the mount went last.
    pub moved: Option<LastMove>,
}

/// Serves until the connection ends (exit status 0). After any other end the supervisor starts the next worker.
pub fn run(inputs: WorkerInputs) -> ExitCode {
    process::prepare();
    if inputs.moved.is_some_and(|moved| moved.is_aside) {
        process::use_little_memory();
    }
    match serve(inputs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            log_line(&format!("the worker exits: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(inputs: WorkerInputs) -> io::Result<()> {
    let may = may_stand_aside(&inputs.mount);
    let WorkerInputs { mount, kept, sockets, takes_over, moved } = inputs;
    let ServedMount {
        settings,
        ttl,
        window,
        dir,
        by,
        shown,
        devices,
        grant,
        memfd,
        slots,
        hot,
        spill,
        shared,
    } = mount;
    let WorkerSockets { channel, keeper, guard } = sockets;
    let starts = || drop(send(channel.as_fd(), &FromWorker::Starts));
    let (ledger, replay) = Ledger::open(memfd.into(), keeper, starts)?;
    log_bad_record(&replay);
    let (root, ledger, slots) = (Root::host(), Arc::new(ledger), slots.into());
    let least_disk_us = self::aside::least_disk_us(&root, device_of(&dir));
    let built = build::BuildInputs {
        settings: &settings,
        ttl,
        shown: &shown,
        root,
        dir,
        ledger: Arc::clone(&ledger) as Arc<dyn eke_cachefs::node::Ledger>,
        replay,
        starts: &starts,
        kept,
        slots,
        takes_over,
        aside: Aside::new((may, grant.resends()), least_disk_us, moved, window),
        hot,
        spill,
        shared,
    };
    let built = built_or_told(built, channel.as_fd())?;
    process::give_back_memory();
    std::thread::Builder::new().name("ledger".to_owned()).spawn(move || ledger.run())?;
    serve_built(built, (channel, guard), (by, shown), (devices, grant))
}

/// Serves until the connection ends.
fn serve_built(
    built: build::BuiltWorker,
    (channel, guard): (OwnedFd, Option<OwnedFd>),
    mount: (MountMethod, Mount),
    (mut devices, grant): (Vec<OwnedFd>, Grant),
) -> io::Result<()> {
    if built.maintenance.aside.is_small() {
        devices.truncate(FEW_SESSIONS);
    }
    let served = built.filesystem();
    let sessions = sessions::open(&served, &devices, &grant)?;
    if let Some(first) = sessions.first() {
        built.fs.notify_by(first.notifier());
    }
    send(channel.as_fd(), &FromWorker::Ready(built.notes()))?;
    let sources = built.sources.clone();
    let warming = built.start_warming(channel.try_clone()?)?;
    let advice = Arc::new(channel.try_clone()?);
    let jobs = Jobs {
        stats: Box::new(move || sources.stats()),
        warming,
        aside: Arc::clone(&built.maintenance.aside),
        fs: Arc::clone(&built.fs),
        advice: Arc::clone(&advice),
    };
    control::start(channel, mount, jobs)?;
    let (fs, remember, spill) =
        (Arc::clone(&built.fs), built.maintenance.remember.clone(), built.spill.clone());
    let device = devices.first().ok_or(io::ErrorKind::NotConnected)?.try_clone()?;
    built.start(guard, device, advice)?;
    let ended = sessions::run(sessions, served, devices, grant, Root::host());
    if let Some(remember) = remember {
        remember.save();
    }
    if let Some(spill) = spill {
        spill.save(fs.tier());
    }
    // A fault ends this worker alone: the next one uses what this one has registered with the kernel, so nothing is closed.
    std::mem::forget(fs);
    ended
}

fn device_of(dir: &OwnedFd) -> Device {
    let found = at::stat(dir).map(|s| Device { major: s.stx_dev_major, minor: s.stx_dev_minor });
    found.unwrap_or(Device { major: 0, minor: 0 })
}

/// Builds the worker, or tells the supervisor why it cannot.
fn built_or_told(
    inputs: build::BuildInputs<'_>,
    supervisor: BorrowedFd<'_>,
) -> io::Result<build::BuiltWorker> {
    build::build(inputs).map_err(|what| {
        let refusal = Refusal { what, kind: RefusalKind::Failed };
        let _ = send(supervisor, &FromWorker::Failed(refusal));
        io::Error::other("it could not be built")
    })
}

/// A death may leave an incomplete record at the end.
fn log_bad_record(replay: &Replay) {
    if let Some(bad_record) = replay.bad_record {
        log_line(&format!(
            "the ledger ends with bytes that are no record ({bad_record}); the records before them are used"
        ));
    }
}
