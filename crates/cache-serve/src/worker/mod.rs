//! The worker: serves the requests, and may die at any moment.

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
use eke_cache_mounts::status::{Kind, Refusal};
use eke_linux::Root;

use super::init::Grant;
use super::ledger::{Ledger, Memfd, Replay};
use super::log::say;
use super::mount::By;
use super::supervisor::talk::{Say, tell};

pub use build::{capabilities, memory, most_memory};
pub(crate) use process::raise_open_files;

/// A worker's ends of the pairs of sockets to its supervisor.
#[derive(Debug)]
pub struct Ends {
    /// Questions and answers.
    pub talk: OwnedFd,
    /// Descriptors to keep.
    pub keeper: OwnedFd,
    /// To the guard, which tells the kernel what its cache must drop.
    pub notes: Option<OwnedFd>,
}

/// What a worker begins with, all of it from its supervisor.
#[derive(Debug)]
pub struct Parts {
    /// As asked for.
    pub settings: Settings,
    /// How long the kernel believes names and attributes, if not as long as usual: for tests.
    pub ttl: Option<Duration>,
    /// The backing directory.
    pub dir: OwnedFd,
    /// Who mounted it.
    pub by: By,
    /// The mount, as the kernel shows it.
    pub shown: Mount,
    /// `/dev/fuse` as it was mounted, and its clones.
    pub devices: Vec<OwnedFd>,
    /// What was agreed on with the kernel.
    pub grant: Grant,
    /// The ledger's log.
    pub memfd: Memfd,
    /// Which files are open by passthrough: a memfd that outlives workers, too.
    pub slots: Memfd,
    /// Open files without a name, by node.
    pub kept: HashMap<u64, OwnedFd>,
    /// To the supervisor.
    pub ends: Ends,
}

/// Serves until the connection ends (status 0); any other end makes the supervisor start the next worker.
pub fn run(parts: Parts) -> ExitCode {
    process::prepare();
    match serve(parts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say(&format!("the worker ends: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(parts: Parts) -> io::Result<()> {
    let Parts { settings, ttl, dir, by, shown, devices, grant, memfd, slots, kept, ends } = parts;
    let (ledger, replay) = Ledger::open(memfd.into(), ends.keeper)?;
    said_foreign(&replay);
    let (root, ledger, slots) = (Root::host(), Arc::new(ledger), slots.into());
    let built = build::build(build::Plan {
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
            let _ = tell(ends.talk.as_fd(), &Say::Failed(Refusal { what, kind: Kind::Failed }));
            return Err(io::Error::other("it could not be built"));
        }
    };
    let sessions = sessions::open(&built.filesystem(), &devices, &grant)?;
    if let Some(first) = sessions.first() {
        built.fs.notify_by(first.notifier());
    }
    tell(ends.talk.as_fd(), &Say::Ready(built.notes()))?;
    let sources = built.sources.clone();
    control::start(ends.talk, by, shown, Box::new(move || sources.stats()))?;
    let fs = Arc::clone(&built.fs);
    built.start(ends.notes)?;
    let ended = sessions::run(sessions);
    // A fault ends this worker only: what it registered with the kernel is the next one's, and is not closed.
    std::mem::forget(fs);
    ended
}

/// Half a record at the end is what a death leaves; anything else should not be.
fn said_foreign(replay: &Replay) {
    if let Some(foreign) = replay.foreign {
        say(&format!(
            "the ledger ends with bytes that are no record ({foreign}); what came before them is used"
        ));
    }
}
