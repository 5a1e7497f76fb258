//! Builds the worker: store, tier, file system, and the threads beside the sessions.

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
use eke_cache_shared::Shared;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::backing::{is_remote, tick};
use eke_cachefs::fs::{Fetchers, Fs, Options, Serve};
use eke_cachefs::node::{DESCRIPTOR, Ledger};
use eke_cachefs::passthrough::Passthrough;
use eke_cachefs::tier::{self, Tier};
use eke_cachefs::watch::{Watch, WatchMode};
use eke_linux::{Root, magic};
use eke_model::units::Bytes;
use fuser::InitFlags;
use rustix::fs::{fstat, fstatfs};
use rustix::process::{Resource, getrlimit};

use super::aside::Aside;
use super::control::Warming;
use super::maintain::Maintenance;
use super::notices::Notices;
use super::stats::Sources;
use super::watcher::Watcher;
use crate::ledger::Replay;
use crate::log::log_line;
use crate::shared::SharedPlace;
use crate::shared::link::WorkerShared;
use crate::size::{Governor, SignalsReader, Traffic};
use crate::spill::dir::SpillDir;
use crate::spill::keep::KeptSpill;
use crate::warm::keep::HotFile;
use crate::warm::remember::Remember;
use crate::warm::request::{StoppedJobs, Warmer};

/// The compressor threads' nice value: when processors are scarce, requests come first.
const COMPRESSORS_NICE: i32 = 5;

/// The major number of loop devices (Documentation/admin-guide/devices.txt).
const LOOP_MAJOR: u32 = 7;

/// Nodes between two reports that they are still restored.
const REPORTED: usize = 100_000;

/// Files that stay open after they were closed. All are looked at every second.
const MOST_LINGERING: usize = 4096;

/// How long one write(2) of another program may take on a mount without a watch, so that no open during it shows old bytes later.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// The most forgotten inodes. Each is checked every ten seconds.
const MOST_FORGOTTEN: usize = 8192;
/// The fewest nodes with a backing descriptor, however small the store is: enough to list directories one after the other.
const FEWEST_PATHS: usize = 512;

/// The parts that a worker is built from.
pub(super) struct BuildInputs<'a> {
    pub(super) settings: &'a Settings,
    /// Instead of the default.
    pub(super) ttl: Option<Duration>,
    /// The mount.
    pub(super) shown: &'a Mount,
    pub(super) root: Root,
    /// The backing directory.
    pub(super) dir: OwnedFd,
    pub(super) ledger: Arc<dyn Ledger>,
    /// Nodes that earlier workers recorded, and files that they had kept.
    pub(super) replay: Replay,
    /// Tells the supervisor that the worker still reads them.
    pub(super) starts: &'a dyn Fn(),
    pub(super) kept: HashMap<u64, OwnedFd>,
    /// Which files earlier workers opened by passthrough.
    pub(super) slots: OwnedFd,
    /// An earlier worker served this mount.
    pub(super) takes_over: bool,
    /// Where the mount is.
    pub(super) aside: Aside,
    /// The file with the list of what was hot, or why there is none.
    pub(super) hot: Result<HotFile, String>,
    /// The directory for evicted blocks.
    pub(super) spill: Option<SpillDir>,
    /// The tier that a farm shares.
    pub(super) shared: Option<SharedPlace>,
}

/// A worker that serves nothing yet.
pub(super) struct BuiltWorker {
    pub(super) fs: Arc<Fs>,
    pub(super) sources: Sources,
    pub(super) maintenance: Maintenance,
    pub(super) watcher: Option<Watcher>,
    /// Evicted blocks on a faster disk.
    pub(super) spill: Option<Arc<KeptSpill>>,
    /// Blocks that a farm shares.
    shared: Option<WorkerShared>,
    fetchers: Fetchers,
    root: Root,
    compress: Compress,
    limit: Bytes,
    /// How often the kernel counts what is read from the backing directory as a read of this machine's disks.
    counted: u64,
}

/// The `FUSE_*` flags to request from the kernel.
pub fn capabilities() -> InitFlags {
    eke_cachefs::fs::capabilities()
}

/// The most memory that the store may have, as requested; 0 if the machine's memory cannot be read.
pub fn memory(settings: &Settings) -> Bytes {
    resolved(settings.memory)
}

/// The most memory that any store could have on this machine.
pub fn most_memory() -> Bytes {
    resolved(Memory::Percent(100))
}

fn resolved(requested: Memory) -> Bytes {
    let signals = SignalsReader::new(Root::host()).read();
    signals.map_or(Bytes(0), |signals| resolve(requested, &signals))
}

/// # Errors
/// As a sentence: the machine's memory cannot be read, there is none for the store, or the backing directory is gone.
pub(super) fn build(inputs: BuildInputs<'_>) -> Result<BuiltWorker, String> {
    let BuildInputs { settings, ttl, shown, root, dir, ledger, replay, kept, slots, takes_over, hot, .. } =
        inputs;
    let (spill, shared, aside) = (inputs.spill, inputs.shared, Arc::new(inputs.aside));
    let governor = Arc::new(Governor::new(settings.memory));
    governor.stand_aside(aside.is_aside());
    let limit = governor.first(&root).map_err(|e| e.to_string())?;
    let (mut spec, most) = sizes(limit, memory(settings));
    let shared = shared.map(|shared| WorkerShared::new(shared.into_worker(spec.block_size)));
    let of_farm = shared.as_ref().map(|shared| Arc::clone(&shared.shared));
    let spill = spill.map(|spill| KeptSpill::new(spill, &dir, (&root, takes_over), most)).transpose()?;
    let spill = spill.map(Arc::new);
    spec.listener = spill.as_ref().map(|spill| spill.listener());
    let store = Arc::new(Store::new(spec).map_err(|e| format!("cannot make the store: {e}"))?);
    let admission = Arc::new(Admission::new(settings.passthrough));
    let (watch, report) = watch(settings, &dir);
    let options = tier_options((&admission, of_farm.clone()), limit, &dir, watch.is_some());
    let tier = if aside.is_small() {
        Arc::new(Tier::without_store(options))
    } else {
        tier(&store, settings.compress, options, spill.as_deref())
    };
    let short = ttl.unwrap_or(Duration::from_secs(settings.names_s.into()));
    let (counted, needs_paths) = (counted(&dir), hot.is_ok() || aside.may());
    let options = fs_options(short, limit, &dir, needs_paths);
    let fs = Fs::new(dir, Arc::clone(&tier), ledger, options)
        .map_err(|e| format!("{}: {e}", settings.dir.display()))?;
    restore(&fs, &replay, kept, inputs.starts);
    drop(replay);
    let passthrough = Passthrough::new(Arc::clone(&admission), Some(File::from(slots)));
    fs.nodes().served_by(shown.id);
    let fs = fs.with_passthrough(passthrough);
    let fs = Arc::new(if takes_over { fs.taking_over() } else { fs });
    let places = (&*settings.dir, &*settings.place);
    let remember = hot.map(|file| Arc::new(Remember::new(file, places, Arc::clone(&fs), Arc::clone(&store))));
    remember.iter().for_each(|remember| remember.hold(aside.is_aside()));
    let kept = (remember.clone(), spill.clone(), of_farm);
    let sources = Sources::new(&fs, (&store, &tier), (&admission, &governor), report, kept);
    fs.lifetimes().set_reported(ttl.is_none() && watch.as_ref().is_some_and(Watch::reports_names));
    let watcher = watch.map(|watch| Watcher {
        watch,
        fs: Arc::clone(&fs),
        tier: Arc::clone(&tier),
        sources: sources.clone(),
    });
    let maintenance =
        Maintenance { store, admission, governor, fs: Arc::clone(&fs), tier, remember: remember.ok(), aside };
    let (fetchers, compress) = (Fetchers::new(), settings.compress);
    Ok(BuiltWorker {
        fs,
        sources,
        maintenance,
        watcher,
        spill,
        shared,
        fetchers,
        root,
        compress,
        limit,
        counted,
    })
}

/// The store's options, and what the spill's index is made for. Both stay as they are, so they are made for what may be available later.
fn sizes(limit: Bytes, asked: Bytes) -> (StoreSpec, (Bytes, usize)) {
    let spec = StoreSpec { limit, ..StoreSpec::for_cpus(limit.max(Bytes(asked.0 / 8)), cpus()) };
    let most = (limit.max(asked), spec.block_size);
    (spec, most)
}

/// Takes over the nodes of an earlier worker. Calls `starts` now and then: millions of nodes take seconds.
fn restore(fs: &Fs, replay: &Replay, kept: HashMap<u64, OwnedFd>, starts: &dyn Fn()) {
    let entries = replay.nodes.iter().enumerate().map(|(nth, entry)| {
        if nth % REPORTED == 0 {
            starts();
        }
        entry
    });
    fs.nodes().restore(entries, kept.into_iter().collect());
}

/// Not at all from another machine; twice through a loop device, whose own reads count, too.
fn counted(dir: &OwnedFd) -> u64 {
    match fstat(dir) {
        _ if is_remote(dir) => 0,
        Ok(stat) if rustix::fs::major(stat.st_dev) == LOOP_MAJOR => 2,
        _ => 1,
    }
}

fn traffic(tier: &Tier, counted: u64) -> Traffic {
    let report = tier.report();
    let from_disk = report.bytes_from_backing + report.bytes_warmed;
    let from_memory = report.bytes_from_store + report.bytes_from_spill + report.bytes_from_shared;
    let read = Bytes(from_disk * counted + report.bytes_from_spill);
    Traffic { read, served: Bytes(report.bytes_from_backing + from_memory) }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The tier, with what the spill still has.
fn tier(
    store: &Arc<Store>,
    compress: Compress,
    options: tier::Options,
    spill: Option<&KeptSpill>,
) -> Arc<Tier> {
    let options = tier::Options { spill: spill.map(KeptSpill::spill), ..options };
    let tier = Arc::new(Tier::new(Arc::clone(store), compress, options));
    if let Some(spill) = spill {
        spill.restore(&tier);
    }
    tier
}

fn tier_options(
    (admission, shared): (&Arc<Admission>, Option<Arc<Shared>>),
    limit: Bytes,
    dir: &OwnedFd,
    is_watched: bool,
) -> tier::Options {
    tier::Options {
        policy: admission.clone(),
        tick: tick(dir),
        recheck: if is_watched { Duration::ZERO } else { WRITTEN_WITHIN },
        is_remote: is_remote(dir),
        recent_blocks: recent(limit),
        at_once: at_once(limit),
        shared,
        ..tier::Options::default()
    }
}

fn fs_options(ttl: Duration, limit: Bytes, dir: &OwnedFd, needs_paths: bool) -> Options {
    Options {
        ttl,
        forgotten: forgotten(limit, dir),
        context: fetching(limit),
        paths: paths(limit),
        known_paths: known_paths(limit, needs_paths),
        lingering: lingering(limit),
        opens_ask: fstatfs(dir).is_ok_and(|fs| fs.f_type as u32 == magic::NFS),
    }
}

/// Blocks that are kept uncompressed: a 64th of the store's limit, on top of it, and at most 8 MiB. They serve a few streams that were
/// read ahead.
fn recent(limit: Bytes) -> usize {
    usize::try_from(limit.0 / 64 / (64 << 10)).unwrap_or(usize::MAX).clamp(32, 128)
}

/// Nodes with a backing descriptor. Their memory is a 16th of the store's.
fn paths(limit: Bytes) -> usize {
    usize::try_from(limit.0 / 16 / DESCRIPTOR.0).unwrap_or(usize::MAX).max(FEWEST_PATHS)
}

/// Files that stay open for a moment after they were closed. With direct reads each has two descriptors: together they have half of those
/// of files that may stay open to be read (`is_within`).
fn lingering(limit: Bytes) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(descriptors / 8 / 2).unwrap_or(usize::MAX);
    most.min(paths(limit) / 2).min(MOST_LINGERING)
}

/// Bytes of paths of files with stored blocks, for the list of what was hot and to stand aside: a 256th of the store's memory, and no more
/// than a few lists.
fn known_paths(limit: Bytes, are_needed: bool) -> usize {
    let most = usize::try_from(limit.0 / 256).unwrap_or(usize::MAX).clamp(256 << 10, 4 << 20);
    if are_needed { most } else { 0 }
}

/// Backing inodes that stay in memory after the kernel has forgotten their nodes: about a 64th of the store's memory. None on a remote
/// file system (NFS): there an inode number may be reused, and an unlinked open file stays under another name.
fn forgotten(limit: Bytes, dir: &OwnedFd) -> usize {
    let most = usize::try_from(limit.0 / 64 / DESCRIPTOR.0).unwrap_or(usize::MAX);
    if is_remote(dir) { 0 } else { most.min(MOST_FORGOTTEN) }
}

/// Blocks of one read by each of the [`fetching`] threads, which has memory for them: up to 2 MiB, less for a small store.
fn at_once(limit: Bytes) -> usize {
    usize::try_from(limit.0 / (2 << 20)).unwrap_or(usize::MAX).clamp(4, 32)
}

/// Threads that read from backing files. Each may use 2 MiB, so there is one for each 64 MiB of the store; 16 keep a fast disk busy.
fn fetching(limit: Bytes) -> usize {
    usize::try_from(limit.0 / (64 << 20)).unwrap_or(usize::MAX).clamp(4, 16)
}

fn watch(settings: &Settings, dir: &OwnedFd) -> (Option<Watch>, WatchMode) {
    if !settings.watch {
        return (None, WatchMode::AtOpens { why: "not requested".into() });
    }
    match Watch::new(dir.as_fd()) {
        Ok(watch) => (Some(watch), WatchMode::Watched),
        Err(report) => (None, report),
    }
}

impl BuiltWorker {
    /// The file system, for fuser.
    pub(super) fn filesystem(&self) -> Serve {
        Serve::with_fetchers(Arc::clone(&self.fs), &self.fetchers)
    }

    /// Warnings about what does not work here, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let why = self.sources.not_watched();
        why.map(|why| {
            format!("changes made in the backing directory are noticed when a file is opened: {why}")
        })
        .into_iter()
        .collect()
    }

    /// Starts the thread that reads what users name, and reports to the supervisor by `channel`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start_warming(&self, channel: OwnedFd) -> io::Result<Warming> {
        let (jobs, receiver) = std::sync::mpsc::channel();
        let stopped = Arc::new(StoppedJobs::default());
        let (fs, store) = (Arc::clone(&self.fs), Arc::clone(&self.maintenance.store));
        let warmer = Warmer { fs, store, channel, stopped: Arc::clone(&stopped) };
        let root = self.root.clone();
        thread("warm", move || warmer.run(&root, &receiver))?;
        Ok(Warming { jobs, stopped })
    }

    /// Starts the threads beside the sessions. `guard` tells the kernel of changes, or without one `device` does. Advice to move the mount
    /// goes to the `supervisor`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(
        self,
        guard: Option<OwnedFd>,
        device: OwnedFd,
        supervisor: Arc<OwnedFd>,
    ) -> io::Result<()> {
        let Self { fs, maintenance, watcher, spill, shared, fetchers, root, compress, .. } = self;
        let (sources, limit, counted) = (self.sources, self.limit, self.counted);
        if let Some(spill) = spill {
            thread("spill", move || spill.spill().run())?;
        }
        if let Some(shared) = shared {
            start_shared(&shared, &maintenance.store)?;
        }
        fetchers.start(&fs, (fetching(limit), cpus()), thread)?;
        start_compressors(&sources, compress)?;
        let since = Instant::now();
        let (store, governor) = (Arc::clone(&maintenance.store), Arc::clone(&maintenance.governor));
        let (tier, notices) =
            (Arc::clone(&maintenance.tier), Arc::new(Notices::new(Arc::clone(&fs), guard, device)));
        let governed = root.clone();
        thread("size", move || {
            let wait = |pause| {
                std::thread::sleep(pause);
                false
            };
            governor.run(&governed, &store, || traffic(&tier, counted), || since.elapsed(), wait);
        })?;
        let told = Arc::clone(&notices);
        if let Some(remember) = maintenance.remember.clone() {
            let root = root.clone();
            thread("remember", move || remember.run(&root))?;
        }
        let is_watched = move || sources.not_watched().is_none();
        thread("maintain", move || maintenance.run(&root, &told, is_watched, &supervisor))?;
        watcher.map_or(Ok(()), |watcher| thread("watch", move || watcher.run(&notices)))
    }
}

/// The threads that receive answers of the shared tier, and offer blocks to it.
fn start_shared(shared: &WorkerShared, store: &Arc<Store>) -> io::Result<()> {
    let (answers, offers, store) = (shared.clone(), Arc::clone(&shared.shared), Arc::clone(store));
    thread("shared", move || answers.receive())?;
    thread("offers", move || {
        let _ = rustix::process::setpriority_process(None, COMPRESSORS_NICE);
        if let Err(e) = offers.run_offers(&store) {
            log_line(&format!("no block is offered to the shared tier: {e}"));
        }
    })
}

/// With [`Compress::Sync`] the sessions compress, and one thread recompresses.
fn start_compressors(sources: &Sources, compress: Compress) -> io::Result<()> {
    let compressors = if compress == Compress::Sync { 1 } else { cpus() };
    for cpu in 0..compressors {
        let tier = sources.tier();
        thread("compress", move || {
            let _ = rustix::process::setpriority_process(None, COMPRESSORS_NICE);
            if let Err(e) = tier.compress(cpu) {
                log_line(&format!("fewer threads compress blocks: {e}"));
            }
        })?;
    }
    Ok(())
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
