//! The thread that answers the supervisor, and notices the supervisor's death.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::WorkerStats;
use eke_cachefs::fs::Fs;

use super::aside::Aside;
use crate::log::log_line;
use crate::mount::aside::settle;
use crate::mount::{MountMethod, UnmountMode, unmount};
use crate::supervisor::channel::{FromWorker, ToWorker, receive, send};
use crate::warm::request::{StoppedJobs, WarmJob};

/// Collects the worker's stats.
pub(super) type CollectStats = Box<dyn Fn() -> WorkerStats + Send>;

/// The thread that warms.
pub(super) struct Warming {
    /// To it.
    pub(super) jobs: Sender<WarmJob>,
    /// What it need not go on with.
    pub(super) stopped: Arc<StoppedJobs>,
}

/// What the supervisor's messages are for.
pub(super) struct Jobs {
    pub(super) stats: CollectStats,
    pub(super) warming: Warming,
    pub(super) aside: Arc<Aside>,
    pub(super) fs: Arc<Fs>,
    /// To the supervisor.
    pub(super) advice: Arc<OwnedFd>,
}

/// Starts the thread.
///
/// # Errors
/// No thread can be started.
pub(super) fn start(channel: OwnedFd, (by, shown): (MountMethod, Mount), jobs: Jobs) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("control".into());
    thread.spawn(move || {
        let why = answer(&channel, &jobs);
        log_line(&format!("the supervisor is gone ({why}), so the worker exits"));
        unmount_and_exit(by, &shown)
    })?;
    Ok(())
}

fn answer(channel: &OwnedFd, Jobs { stats, warming, aside, fs, advice }: &Jobs) -> io::Error {
    loop {
        match receive(channel.as_fd(), true) {
            Ok(Some(ToWorker::WorkerStats(number))) => {
                let _ = send(channel.as_fd(), &FromWorker::WorkerStats(number, Box::new(stats())));
            }
            Ok(Some(ToWorker::Warm(number, path))) => {
                let _ = warming.jobs.send(WarmJob { number, path });
            }
            Ok(Some(ToWorker::StopWarming(number))) => warming.stopped.stop(number),
            Ok(Some(ToWorker::MayLeave)) => aside.may_leave(Arc::clone(fs), Arc::clone(advice)),
            Ok(Some(ToWorker::ServedBy(mount))) => fs.nodes().served_by(mount),
            Ok(Some(ToWorker::Left(reason))) => aside.is_now(Some(reason)),
            Ok(Some(ToWorker::Returned)) => aside.is_now(None),
            Ok(None) => {}
            Err(e) => return e,
        }
    }
}

/// Without a supervisor no other worker would be started. The guard unmounts; this does if the guard is gone, too.
fn unmount_and_exit(by: MountMethod, shown: &Mount) {
    // It may have moved.
    if let Ok(shown) = settle(shown) {
        let _ = unmount(&shown, by, UnmountMode::Lazy);
    }
    std::process::exit(1)
}
