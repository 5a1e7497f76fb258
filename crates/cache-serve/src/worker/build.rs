//! Puts the worker together: store, tier, file system, and the threads beside the sessions.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_cache_mounts::Mount;
use eke_cache_mounts::settings::{Compress, Memory, Settings};
use eke_cache_policy::admission::Admission;
use eke_cache_policy::size::decide::resolve;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::backing::{is_remote, tick};
use eke_cachefs::fs::{Fetchers, Fs, Options, Serve};
use eke_cachefs::node::{DESCRIPTOR, Ledger};
use eke_cachefs::passthrough::Passthrough;
use eke_cachefs::tier::{self, Tier};
use eke_cachefs::watch::{Watch, WatchMode};
use eke_linux::Root;
use eke_model::units::Bytes;
use fuser::InitFlags;
use rustix::fs::fstatfs;

use super::maintain::Maintenance;
use super::stats::Sources;
use super::watcher::Watcher;
use crate::ledger::Replay;
use crate::log::say;
use crate::size::{Governor, Reader};

/// With blocks compressed beside the sessions, requests come first when processors are scarce.
const COMPRESSORS_NICE: i32 = 5;

/// Looked at every ten seconds, so not too many.
const MOST_FORGOTTEN: usize = 8192;
/// However small the store is: directories that are listed in turn.
const FEWEST_PATHS: usize = 512;
/// `include/uapi/linux/magic.h`.
const NFS: u32 = 0x6969;

/// What the worker is built from.
pub(super) struct Plan<'a> {
    pub(super) settings: &'a Settings,
    /// If not as usual.
    pub(super) ttl: Option<Duration>,
    /// The mount.
    pub(super) shown: &'a Mount,
    pub(super) root: Root,
    /// The backing directory.
    pub(super) dir: OwnedFd,
    pub(super) ledger: Arc<dyn Ledger>,
    /// What earlier workers noted, and had kept.
    pub(super) replay: Replay,
    pub(super) kept: HashMap<u64, OwnedFd>,
    /// Which files earlier workers opened by passthrough.
    pub(super) slots: OwnedFd,
}

/// A worker that serves nothing yet.
pub(super) struct Built {
    pub(super) fs: Arc<Fs>,
    pub(super) sources: Sources,
    pub(super) maintenance: Maintenance,
    pub(super) watcher: Option<Watcher>,
    fetchers: Fetchers,
    root: Root,
    compress: Compress,
    limit: Bytes,
}

/// `FUSE_*` that are wanted of the kernel.
pub fn capabilities() -> InitFlags {
    eke_cachefs::fs::capabilities()
}

/// The most memory that the store may have, as asked for; 0 if the machine's memory cannot be read.
pub fn memory(settings: &Settings) -> Bytes {
    resolved(settings.memory)
}

/// The most that any store could have here.
pub fn most_memory() -> Bytes {
    resolved(Memory::Percent(100))
}

fn resolved(asked: Memory) -> Bytes {
    let signals = Reader::new(Root::host()).read();
    signals.map_or(Bytes(0), |signals| resolve(asked, &signals))
}

/// # Errors
/// In words: the machine's memory cannot be read, there is none for the store, or the backing directory is gone.
pub(super) fn build(plan: Plan<'_>) -> Result<Built, String> {
    let Plan { settings, ttl, shown, root, dir, ledger, replay, kept, slots } = plan;
    let governor = Arc::new(Governor::new(settings.memory));
    let limit = governor.first(&root).map_err(|e| e.to_string())?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let spec = StoreSpec::for_cpus(limit, cpus);
    let store = Arc::new(Store::new(spec).map_err(|e| format!("no store can be had: {e}"))?);
    let admission = Arc::new(Admission::new(settings.passthrough));
    let options = tier::Options {
        policy: admission.clone(),
        tick: tick(&dir),
        recent_blocks: recent(limit),
        at_once: at_once(limit),
        ..tier::Options::default()
    };
    let tier = Arc::new(Tier::new(Arc::clone(&store), settings.compress, options));
    let watch = watch(settings, &dir);
    let usual = Options::default();
    let options = Options {
        ttl: ttl.unwrap_or(usual.ttl),
        forgotten: forgotten(limit, &dir),
        context: fetching(limit),
        paths: paths(limit),
        opens_ask: fstatfs(&dir).is_ok_and(|fs| fs.f_type as u32 == NFS),
    };
    let fs = Fs::new(dir, Arc::clone(&tier), ledger, options)
        .map_err(|e| format!("{}: {e}", settings.dir.display()))?;
    fs.nodes().restore(replay.nodes.iter(), kept.into_iter().collect());
    drop(replay);
    let passthrough = Passthrough::new(Arc::clone(&admission), Some(File::from(slots)));
    let fs = Arc::new(fs.served_by(shown.id).with_passthrough(passthrough));
    let (watch, report) = match watch {
        Ok(watch) => (Some(watch), WatchMode::Watched),
        Err(report) => (None, report),
    };
    let sources = Sources::new(&store, &fs, &tier, (&admission, &governor), report);
    let watcher = watch.map(|watch| Watcher {
        watch,
        fs: Arc::clone(&fs),
        tier: Arc::clone(&tier),
        sources: sources.clone(),
    });
    let maintenance = Maintenance { store, admission, governor, fs: Arc::clone(&fs) };
    let fetchers = Fetchers::new();
    Ok(Built { fs, sources, maintenance, watcher, fetchers, root, compress: settings.compress, limit })
}

/// Blocks that are kept as they are: a 64th of the store's memory, which is beside it; for the blocks of a few streams that
/// were read ahead, and at most 8 MiB.
fn recent(limit: Bytes) -> usize {
    usize::try_from(limit.0 / 64 / (64 << 10)).unwrap_or(usize::MAX).clamp(32, 128)
}

/// Nodes with a backing descriptor: a 16th of the store's memory.
fn paths(limit: Bytes) -> usize {
    usize::try_from(limit.0 / 16 / DESCRIPTOR.0).unwrap_or(usize::MAX).max(FEWEST_PATHS)
}

/// Backing inodes that are kept in memory though the kernel has forgotten their nodes: about a 64th of the store's memory. None of a
/// file system that is somewhere else: there a number may come again, and an open file that is unlinked stays under another name (NFS).
fn forgotten(limit: Bytes, dir: &OwnedFd) -> usize {
    let most = usize::try_from(limit.0 / 64 / DESCRIPTOR.0).unwrap_or(usize::MAX);
    if is_remote(dir) { 0 } else { most.min(MOST_FORGOTTEN) }
}

/// Blocks that are read at once, each by one of [`fetching`] threads with memory for it: up to 2 MiB, less beside a small store.
fn at_once(limit: Bytes) -> usize {
    usize::try_from(limit.0 / (2 << 20)).unwrap_or(usize::MAX).clamp(4, 32)
}

/// Threads that read from the backing file: each may hold 2 MiB for that, so one to 64 MiB of the store, and no more than keep a fast
/// disk busy.
fn fetching(limit: Bytes) -> usize {
    usize::try_from(limit.0 / (64 << 20)).unwrap_or(usize::MAX).clamp(4, 16)
}

fn watch(settings: &Settings, dir: &OwnedFd) -> Result<Watch, WatchMode> {
    if settings.watch {
        Watch::new(dir.as_fd())
    } else {
        Err(WatchMode::AtOpens { why: "not asked for".into() })
    }
}

impl Built {
    /// As fuser wants it.
    pub(super) fn filesystem(&self) -> Serve {
        Serve::with_fetchers(Arc::clone(&self.fs), &self.fetchers)
    }

    /// What it does without, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let why = self.sources.not_watched();
        why.map(|why| format!("changes made in the backing directory are seen when a file is opened: {why}"))
            .into_iter()
            .collect()
    }

    /// Starts the threads beside the sessions. Through `notes` the kernel is told what its cache must drop.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(self, notes: Option<OwnedFd>) -> io::Result<()> {
        let Self { fs, maintenance, watcher, fetchers, root, compress, sources, limit } = self;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        fetchers.start(&fs, (fetching(limit), cpus), thread)?;
        // With sync blocks are compressed before the reply, and these do the dense rounds alone.
        let compressors = if compress == Compress::Sync { 1 } else { cpus };
        for cpu in 0..compressors {
            let tier = sources.tier();
            thread("compress", move || {
                let _ = rustix::process::setpriority_process(None, COMPRESSORS_NICE);
                if let Err(e) = tier.compress(cpu) {
                    say(&format!("blocks are compressed by fewer threads: {e}"));
                }
            })?;
        }
        let since = Instant::now();
        let (store, governor) = (Arc::clone(&maintenance.store), Arc::clone(&maintenance.governor));
        let governed = root.clone();
        thread("size", move || {
            let wait = |pause| {
                std::thread::sleep(pause);
                false
            };
            governor.run(&governed, &store, || since.elapsed(), wait);
        })?;
        thread("maintain", move || maintenance.run(&root))?;
        watcher.map_or(Ok(()), |watcher| thread("watch", move || watcher.run(notes.as_ref())))
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
