//! From settings to a mount with a supervisor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use eke_apply::write::write_value;
use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::{Refusal, Start};
use eke_cache_mounts::{Device, Dirs, Socket};
use eke_cachefs::rights;
use eke_linux::Root;
use eke_model::units::Bytes;
use fuser::InitFlags;

use super::init::{self, Grant};
use super::ledger::Memfd;
use super::log::say;
use super::mount::writers::{Found, Look};
use super::mount::{self, By, Checked, Error, How, Mounted};
use super::supervisor::{Ended, Now, Supervisor};
use super::{device, worker};

/// Sessions: far more than processors, since opens, lookups and writes wait for the backing disk in them, and what is held must not
/// wait for that; not too many, for each has a buffer of 16 MiB in its address space.
const SESSIONS: std::ops::RangeInclusive<usize> = 12..=16;
const SESSIONS_A_PROCESSOR: usize = 4;
/// In KiB. One reader's sequential misses are 40 % faster with 1024 than with the kernel's 128, and more gains nothing.
const READ_AHEAD_KIB: std::ops::RangeInclusive<u64> = 128..=1024;
/// So much of what the mount could have in memory may be read ahead for one reader: in little memory the pages of many streams
/// would push each other out before they are read. Not of the store's: what is read ahead lies in the page cache.
const READ_AHEAD_SHARE: u64 = 512;

/// What `eke-cache serve` is given besides the settings.
#[derive(Debug)]
pub struct Options {
    /// A byte for each signal to end.
    pub shutdown: UnixStream,
    /// Where the one line of the start goes.
    pub report: File,
    /// Also where programs have files open for writing that would be covered.
    pub force: bool,
    /// What only tests ask for.
    pub tests: Tests,
}

/// What only tests ask for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tests {
    /// As on a kernel before 6.9: no worker follows a dead one.
    pub no_resend: bool,
    /// How long the kernel believes names and attributes, instead of a second.
    pub ttl: Option<Duration>,
}

/// Mounts and serves until the mount is gone. The process must have one thread, since workers are forks of it.
pub fn serve(settings: Settings, options: Options) -> ExitCode {
    worker::raise_open_files();
    let supervisor = match prepare(settings, &options) {
        Ok(prepared) => {
            if let Err(e) = rights::settle_supervisor() {
                say(&format!("the supervisor keeps all of root's capabilities: {e}"));
            }
            prepared.supervisor(options)
        }
        Err(refusal) => {
            say(&refusal.what);
            tell(&options.report, &Start::Error(refusal));
            return ExitCode::FAILURE;
        }
    };
    match supervisor.run() {
        Ended::Worker(parts) => worker::run(*parts),
        Ended::Unmounted => ExitCode::SUCCESS,
        Ended::NotStarted(Refusal { what, .. }) | Ended::GaveUp(what) => {
            say(&what);
            ExitCode::FAILURE
        }
    }
}

fn tell(mut report: &File, start: &Start) {
    use std::io::Write as _;
    let mut line = serde_json::to_vec(start).unwrap_or_default();
    line.push(b'\n');
    let _ = report.write_all(&line);
}

/// A mount that has agreed with the kernel.
struct Prepared {
    settings: Settings,
    dir: OwnedFd,
    mounted: Mounted,
    grant: Grant,
    memfd: Memfd,
    slots: Memfd,
    clones: Vec<OwnedFd>,
    notes: Vec<String>,
}

fn prepare(settings: Settings, options: &Options) -> Result<Prepared, Refusal> {
    let checked = mount::check(&settings)?;
    let memfd = || Memfd::new().map_err(|e| failed(&checked, "no memory for what outlives a worker", e));
    let (ledger, slots) = (memfd()?, memfd()?);
    let (mounted, notes) = mount_unless_written(&settings, &checked, options.force)?;
    match agree(&mounted, options) {
        Ok(grant) => {
            let clones = clones(&mounted.device);
            Ok(Prepared { settings, dir: checked.dir, mounted, grant, memfd: ledger, slots, clones, notes })
        }
        Err(e) => {
            // Nobody has answered anything yet, so nothing can hang once the device is closed.
            let _ = mount::unmount(&mounted.shown, mounted.by, How::Force);
            Err(failed(&checked, "no agreement with the kernel", e))
        }
    }
}

/// Over itself only where nobody goes on writing below, or if `force`d: looked at before, and once more when who opens a file gets
/// the mount's, for somebody may have been in between. With what should be known.
fn mount_unless_written(
    settings: &Settings,
    checked: &Checked,
    force: bool,
) -> Result<(Mounted, Vec<String>), Error> {
    if settings.dir != settings.place {
        return Ok((mount::mount(settings, checked)?, Vec::new()));
    }
    let mut look = Look::new(checked);
    let none = |found: &Found| if force { Ok(()) } else { found.none(checked) };
    none(&look.find(None))?;
    let mounted = mount::mount(settings, checked)?;
    let found = look.find(Some(&mounted.shown));
    if let Err(e) = none(&found) {
        let _ = mount::unmount(&mounted.shown, mounted.by, How::Force);
        return Err(e);
    }
    Ok((mounted, found.notes()))
}

fn failed(checked: &Checked, what: &'static str, source: io::Error) -> Refusal {
    Error::Failed { place: checked.place.clone(), what, source }.into()
}

fn agree(mounted: &Mounted, options: &Options) -> io::Result<Grant> {
    let mut grant =
        init::agree(mounted.device.as_fd(), worker::capabilities().bits(), mounted.by == By::Root)?;
    if options.tests.no_resend {
        grant.flags &= !InitFlags::FUSE_HAS_RESEND.bits();
    }
    Ok(grant)
}

/// As many devices more as there are sessions less one. Without them (a device that this user may not open) one session
/// serves.
fn clones(device: &OwnedFd) -> Vec<OwnedFd> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let more = (processors * SESSIONS_A_PROCESSOR).clamp(*SESSIONS.start(), *SESSIONS.end()) - 1;
    let made: io::Result<_> = (0..more).map(|_| device::another(device.as_fd())).collect();
    made.unwrap_or_else(|e| {
        say(&format!("one session only: the device cannot be cloned: {e}"));
        Vec::new()
    })
}

impl Prepared {
    fn supervisor(self, options: Options) -> Supervisor {
        let shown = self.mounted.shown;
        if self.mounted.by == By::Root {
            read_ahead(&shown.device.to_string(), worker::most_memory());
        }
        let socket = listen(shown.device);
        let devices = std::iter::once(self.mounted.device).chain(self.clones).collect();
        Supervisor {
            settings: self.settings,
            ttl: options.tests.ttl,
            dir: self.dir,
            by: self.mounted.by,
            shown,
            notes: self.notes,
            devices,
            grant: self.grant,
            memfd: self.memfd,
            slots: self.slots,
            socket,
            shutdown: options.shutdown,
            report: Some(options.report),
            now: Now::default(),
        }
    }
}

/// Without a socket the mount serves all the same; umount(8) ends it.
fn listen(device: Device) -> Option<Socket> {
    let listening = Socket::listen(&Dirs::host(), device).and_then(|socket| {
        socket.listener().set_nonblocking(true)?;
        Ok(socket)
    });
    listening.map_err(|e| say(&format!("nobody can ask for its status: no socket: {e}"))).ok()
}

/// No intent is written to the journal: the setting is of an object of ours, new with the mount and gone with it.
fn read_ahead(device: &str, memory: Bytes) {
    let kib = (memory.0 / 1024 / READ_AHEAD_SHARE).clamp(*READ_AHEAD_KIB.start(), *READ_AHEAD_KIB.end());
    if let Err(e) = write_value(&Root::host(), "bdi.read_ahead_kb", device, &kib.to_string()) {
        say(&format!("the mount reads ahead as the kernel does by default: {e}"));
    }
}
