//! From settings to a mount with a supervisor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use eke_apply::write::write_value;

use eke_cache_mounts::settings::{PassthroughMode, Settings};
use eke_cache_mounts::status::{Refusal, Start};
use eke_cache_mounts::{Device, Socket, SocketDirs};
use eke_cachefs::rights;
use eke_linux::Root;
use eke_model::units::Bytes;
use fuser::InitFlags;

use super::init::{self, Grant};
use super::ledger::Memfd;
use super::log::log_line;
use super::mount::writers::{FoundWriters, WriterScan};
use super::mount::{self, Checked, Error, MountMethod, Mounted, UnmountMode};
use super::served_mount::ServedMount;
use super::shared::SharedPlace;
use super::spill::dir::SpillDir;
use super::supervisor::channel::report_start;
use super::supervisor::{State, Supervisor, SupervisorEnd};
use super::warm::keep::{HotFile, StateDir};
use super::{device, worker};

/// Sessions, one thread each. Far more than processors: opens, lookups and writes wait for the backing disk in them, and hits must not
/// wait for those. Not too many: each has a buffer of 16 MiB in its address space.
const SESSIONS: std::ops::RangeInclusive<usize> = 12..=16;
const SESSIONS_A_PROCESSOR: usize = 4;
/// In KiB. One reader's sequential misses are 40 % faster with 1024 than with the kernel's 128; more gains nothing.
const READ_AHEAD_KIB: std::ops::RangeInclusive<u64> = 128..=1024;
/// This fraction of the memory that a store could have here may be read ahead for one reader. With little memory the pages of many
/// streams would evict each other before they are read. It does not depend on the store's own limit, since read-ahead pages are in the
/// page cache.
const READ_AHEAD_SHARE: u64 = 512;

/// The inputs of `eke-cache serve` besides the settings.
#[derive(Debug)]
pub struct ServeOptions {
    /// A byte arrives for each signal to end.
    pub shutdown: UnixStream,
    /// The start is reported here, in one line.
    pub report: File,
    /// Mount also over a directory where programs have files open for writing, or that an NFS server exports.
    pub force: bool,
    /// Options for tests alone.
    pub tests: TestOptions,
}

/// Options for tests alone.
#[derive(Debug, Clone, Default)]
pub struct TestOptions {
    /// Behave as on a kernel before 6.9: a dead worker is not replaced.
    pub no_resend: bool,
    /// Keep the limits of the caller's shell.
    pub keep_limits: bool,
    /// How long the kernel caches names and attributes, instead of a second.
    pub ttl: Option<Duration>,
    /// How long reads wait for a shared tier, whatever the origin takes.
    pub patience: Option<Duration>,
    /// How long is looked before the mount stands aside or returns, instead of the default.
    pub window: Option<Duration>,
    /// A directory for the lists of what was hot, instead of the user's own.
    pub state: Option<PathBuf>,
}

/// Mounts, and serves until the mount is gone. The process must have one thread, since workers are forks of it.
pub fn serve(settings: Settings, options: ServeOptions) -> ExitCode {
    if !options.tests.keep_limits {
        worker::lift_limits(&Root::host());
    }
    // Until the socket listens, which tells other processes that the mount is served.
    let turn = turn();
    let supervisor = match prepare(settings, &options) {
        Ok(prepared) => {
            if let Err(e) = rights::settle_supervisor() {
                log_line(&format!("the supervisor keeps all of root's capabilities: {e}"));
            }
            prepared.supervisor(options)
        }
        Err(refusal) => {
            log_line(&refusal.what);
            report_start(&options.report, &Start::Error(refusal));
            return ExitCode::FAILURE;
        }
    };
    drop(turn);
    // Of the scans, before others begin as copies of this process.
    worker::give_back_memory();
    match supervisor.run() {
        SupervisorEnd::Worker(inputs) => worker::run(*inputs),
        SupervisorEnd::Unmounted => ExitCode::SUCCESS,
        SupervisorEnd::NotStarted(Refusal { what, .. }) | SupervisorEnd::GaveUp(what) => {
            log_line(&what);
            ExitCode::FAILURE
        }
    }
}

/// Longer than a mount takes, and shorter than `eke` waits for one.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// Other mounts of this user wait meanwhile. Without it, two for one place at the same moment could cover each other.
fn turn() -> Option<OwnedFd> {
    let turn = SocketDirs::host().turn(TURN_WITHIN);
    turn.map_err(|e| log_line(&format!("it does not wait for other mounts: {e}"))).ok()
}

/// A mount, and warnings for the user.
struct Prepared {
    mount: ServedMount,
    notes: Vec<String>,
}

fn prepare(settings: Settings, options: &ServeOptions) -> Result<Prepared, Refusal> {
    let checked = mount::check(&settings)?;
    has_enough_files(&checked, options)?;
    let memfd =
        || Memfd::new().map_err(|e| failed(&checked, "no memory for the state that outlives a worker", e));
    let (ledger, slots) = (memfd()?, memfd()?);
    // Before the mount, which may cover it.
    let hot = hot_file(&settings, options);
    let spill = settings.spill.as_ref().map(|spill| SpillDir::open(spill, &checked)).transpose()?;
    let shared = shared_place(&settings, &checked, options)?;
    let (mounted, notes) = mount_unless_used(&settings, &checked, options.force)?;
    match agree(&mounted, &settings, options) {
        Ok(grant) => {
            let Mounted { by, device, shown } = mounted;
            let clones = clones(&device);
            let devices = std::iter::once(device).chain(clones).collect();
            let (ttl, window, dir) = (options.tests.ttl, options.tests.window, checked.dir);
            let memfd = ledger;
            let mount = ServedMount {
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
            };
            Ok(Prepared { mount, notes })
        }
        Err(e) => {
            // No request was answered yet, so nothing can hang once the device is closed.
            let _ = mount::unmount(&mounted.shown, mounted.by, UnmountMode::Force);
            Err(failed(&checked, "the kernel's FUSE_INIT cannot be answered", e))
        }
    }
}

/// Nobody could open files on a mount whose limit could not be lifted.
fn has_enough_files(checked: &Checked, options: &ServeOptions) -> Result<(), Error> {
    match worker::too_few_files().filter(|_| !options.tests.keep_limits) {
        Some((most, needed)) => Err(Error::FewFiles { place: checked.place.clone(), most, needed }),
        None => Ok(()),
    }
}

fn shared_place(
    settings: &Settings,
    checked: &Checked,
    options: &ServeOptions,
) -> Result<Option<SharedPlace>, Refusal> {
    let Some(shared) = &settings.shared else { return Ok(None) };
    let mut place = SharedPlace::open(shared, &settings.dir, checked)?;
    place.patience = options.tests.patience;
    Ok(Some(place))
}

/// The file with the list of what was hot.
fn hot_file(settings: &Settings, options: &ServeOptions) -> Result<HotFile, String> {
    if !settings.remember {
        return Err("not requested".into());
    }
    let of_test = options.tests.state.clone().map(|state| StateDir::new(state, &["eke", "caches"]));
    let state = of_test.or_else(StateDir::host);
    let state = state.ok_or("there is no place for the list: neither XDG_STATE_HOME nor HOME is set")?;
    HotFile::open(&state, &settings.dir, &settings.place)
}

/// Mounts. Where programs write, or an NFS server exports the place, only with `force`. Returns warnings for the user, too.
fn mount_unless_used(
    settings: &Settings,
    checked: &Checked,
    force: bool,
) -> Result<(Mounted, Vec<String>), Error> {
    let exported = check_not_exported(checked, force)?;
    let (mounted, notes) = mount_unless_written(settings, checked, force)?;
    Ok((mounted, notes.into_iter().chain(exported).collect()))
}

/// Checks that no client of an NFS server gets to the mount, here and at a second place. With `force` it is a warning for the user.
fn check_not_exported(checked: &Checked, force: bool) -> Result<Option<String>, Error> {
    let Some(export) = mount::export_of(&Root::host(), &checked.place) else { return Ok(None) };
    if !force {
        return Err(Error::Exported { place: checked.place.clone(), export });
    }
    Ok(Some(format!(
        "the kernel's NFS server exports {export:?}: its clients get the error ESTALE (\"Stale file handle\") for files of the mount that the kernel has forgotten"
    )))
}

/// Mounts. Over the directory itself only if no program writes there, or with `force`. It scans before the mount and once more after
/// it, since a program may have opened a file in between. Returns warnings for the user, too.
fn mount_unless_written(
    settings: &Settings,
    checked: &Checked,
    force: bool,
) -> Result<(Mounted, Vec<String>), Error> {
    if settings.dir != settings.place {
        return Ok((mount::mount(settings, checked)?, Vec::new()));
    }
    let mut scan = WriterScan::new(checked);
    let check_none = |found: &FoundWriters| if force { Ok(()) } else { found.check_none(checked) };
    check_none(&scan.scan(None))?;
    let mounted = mount::mount(settings, checked)?;
    let found = scan.scan(Some(&mounted.shown));
    if let Err(e) = check_none(&found) {
        let _ = mount::unmount(&mounted.shown, mounted.by, UnmountMode::Force);
        return Err(e);
    }
    Ok((mounted, found.notes()))
}

fn failed(checked: &Checked, what: &'static str, source: io::Error) -> Refusal {
    Error::Failed { place: checked.place.clone(), what, source }.into()
}

/// Passthrough makes the mount one of the two layers that the kernel allows, so it is not requested if it is never used.
fn agree(mounted: &Mounted, settings: &Settings, options: &ServeOptions) -> io::Result<Grant> {
    let passes = mounted.by == MountMethod::Root && settings.passthrough != PassthroughMode::Never;
    let mut grant = init::agree(mounted.device.as_fd(), worker::capabilities().bits(), passes)?;
    if options.tests.no_resend {
        grant.flags &= !InitFlags::FUSE_HAS_RESEND.bits();
    }
    Ok(grant)
}

/// A clone of the device for each session but the first. If this user may not open the device, one session serves.
fn clones(device: &OwnedFd) -> Vec<OwnedFd> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let more = (processors * SESSIONS_A_PROCESSOR).clamp(*SESSIONS.start(), *SESSIONS.end()) - 1;
    let clones: io::Result<_> = (0..more).map(|_| device::open_clone(device.as_fd())).collect();
    clones.unwrap_or_else(|e| {
        log_line(&format!("one session only: the device cannot be cloned: {e}"));
        Vec::new()
    })
}

impl Prepared {
    fn supervisor(self, options: ServeOptions) -> Supervisor {
        let device = self.mount.shown.device;
        if self.mount.by == MountMethod::Root {
            read_ahead(&device.to_string(), worker::most_memory());
        }
        let supervisor = Supervisor {
            mount: self.mount,
            notes: self.notes,
            socket: listen(device),
            shutdown: options.shutdown,
            report: Some(options.report),
            state: State::default(),
        };
        supervisor.restrict_copies();
        supervisor
    }
}

/// Without a socket the mount serves all the same, and umount(8) ends it.
fn listen(device: Device) -> Option<Socket> {
    let listening = Socket::listen(&SocketDirs::host(), device).and_then(|socket| {
        socket.listener().set_nonblocking(true)?;
        Ok(socket)
    });
    listening.map_err(|e| log_line(&format!("its status is not available: no socket: {e}"))).ok()
}

/// Sets the mount's readahead. Nothing is written to the journal, since the setting belongs to the mount and goes with it.
fn read_ahead(device: &str, memory: Bytes) {
    let kib = (memory.0 / 1024 / READ_AHEAD_SHARE).clamp(*READ_AHEAD_KIB.start(), *READ_AHEAD_KIB.end());
    // The kernel counts pages.
    let page_kib = Root::host().page_size().bytes() / 1024;
    let kib = kib / page_kib * page_kib;
    if let Err(e) = write_value(&Root::host(), "bdi.read_ahead_kb", device, &kib.to_string()) {
        log_line(&format!("the mount keeps the kernel's default readahead: {e}"));
    }
}
