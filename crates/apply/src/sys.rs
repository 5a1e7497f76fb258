//! The system calls that change the machine, as a trait. No other crate can make them: [`of`] and `Host` are not
//! public, and only tests with a simulated machine behind a root (feature `testing`) can name the trait.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{
    DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eke_linux::discard::Discard;
use eke_linux::root::Root;
#[cfg(feature = "testing")]
use eke_linux::source::Source;
use eke_model::process::ProcessId;
use rustix::fs::XattrFlags;
use rustix::process::Signal;

use crate::backing::device::{self, OpenDevice};
use crate::backing::{loop_device, mapping};
use crate::pidfd;
use crate::swapoff::{self, Interrupt};

/// The changes that can be made to a machine. Paths are absolute.
pub trait Sys: Send + Sync {
    /// Writes to an existing file: no create, no truncate, one `write(2)`.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Appends in one `write(2)`; creates the file with mode 0600.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Replaces a file as a whole: written beside it, synced, renamed over it.
    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Puts a symbolic link to `target` in the place of `path`; `beside` is a free name for a moment.
    fn link(&self, path: &Path, beside: &Path, target: &str) -> io::Result<()> {
        symlink(target, beside).and_then(|()| fs::rename(beside, path))
    }
    /// Sets user and group of a file.
    fn give(&self, path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
        chown(path, Some(user), Some(group))
    }
    /// Opens a file that is there to be locked, or creates it; only its owner may.
    fn lock_file(&self, path: &Path) -> io::Result<File> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        // A user who can open the file can lock it, and keep others from starting.
        file.set_permissions(Permissions::from_mode(0o600)).map(|()| file)
    }
    /// Removes such a file.
    fn remove_lock_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
    /// Writes a file or directory to the disk.
    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
    /// Creates a directory and its parents; an existing one is fine.
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Removes an empty directory or cgroup.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// `swapon(2)`; `discard` lets the kernel discard free pages on the device.
    fn swapon(&self, path: &Path, priority: Option<i16>, discard: Option<Discard>) -> io::Result<()>;
    /// `swapoff(2)`. It can take minutes.
    fn swapoff(&self, path: &Path) -> io::Result<()>;
    /// The same, which can be interrupted.
    fn swapoff_until(&self, path: &Path, interrupt: &Interrupt) -> io::Result<()> {
        if interrupt.is_set() { Err(io::ErrorKind::Interrupted.into()) } else { self.swapoff(path) }
    }
    /// Whether it could be written to. A read-only mount answers EROFS, to root too.
    fn may_write(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
    }
    /// Sets an extended attribute (`user.*`) of a file or directory.
    fn set_attribute_of(&self, _path: &Path, _name: &str, _value: &str) -> io::Result<()> {
        Err(not_the_machine())
    }
    /// Sends a signal to a process. ESRCH: it has ended.
    fn signal(&self, _process: ProcessId, _signal: Signal) -> io::Result<()> {
        Err(not_the_machine())
    }
    /// Loads a kernel module and its dependencies; `params` as on modprobe's command line.
    fn load_module(&self, _name: &str, _params: &str) -> io::Result<()> {
        Err(not_the_machine())
    }
    /// Unloads an unused kernel module.
    fn unload_module(&self, _name: &str) -> io::Result<()> {
        Err(not_the_machine())
    }
    /// A file without a name in this directory, with all its blocks.
    fn unnamed_file(&self, _dir: &Path, _bytes: u64) -> io::Result<File> {
        Err(not_the_machine())
    }
    /// A loop device for this file, while it is open.
    fn loop_device(&self, _file: &File) -> io::Result<OpenDevice> {
        Err(not_the_machine())
    }
    /// A mapping of these bytes of the device with a new key, while it is open.
    fn encrypted_device(&self, _name: &str, _below: &Path, _bytes: Range<u64>) -> io::Result<OpenDevice> {
        Err(not_the_machine())
    }
    /// Removes a mapping; a missing one is fine.
    fn remove_mapping(&self, _name: &str) -> io::Result<()> {
        Err(not_the_machine())
    }
}

/// The calls for this root: the machine's, or those of a test.
pub(crate) fn of(root: &Root) -> &dyn Sys {
    match (root.writer::<Arc<dyn Sys>>(), root.inside()) {
        (Some(sys), _) => sys.as_ref(),
        (None, Some(inside)) => inside,
        (None, None) if root.is_host() => &Host,
        (None, None) => &FilesOnly,
    }
}

/// A root over a simulated machine.
#[cfg(feature = "testing")]
pub fn simulated<M: Source + Sys + 'static>(dir: impl Into<PathBuf>, machine: Arc<M>) -> Root {
    let sys: Arc<dyn Sys> = Arc::clone(&machine) as Arc<dyn Sys>;
    Root::simulated(dir, machine, Arc::new(sys))
}

/// The running machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Host;

/// A directory that is not the running machine's root: it has only files.
#[derive(Debug, Clone, Copy, Default)]
pub struct FilesOnly;

macro_rules! files {
    () => {
        fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            write_once(&mut OpenOptions::new().write(true).open(path)?, bytes)
        }
        fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            write_once(&mut OpenOptions::new().append(true).create(true).mode(0o600).open(path)?, bytes)
        }
        fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
            replace_file(path, bytes, mode)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            // On a read-only file system unlink(2) says so of a missing file, too.
            match fs::remove_file(path) {
                Err(e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                    fs::symlink_metadata(path).and(Err(e))
                }
                removed => removed,
            }
        }
        fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
            if path.is_dir() {
                return Ok(());
            }
            fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
            // Independent of the caller's umask.
            fs::set_permissions(path, Permissions::from_mode(mode))
        }
        fn remove_dir(&self, path: &Path) -> io::Result<()> {
            fs::remove_dir(path)
        }
    };
}

impl Sys for Host {
    files!();

    fn swapon(&self, path: &Path, priority: Option<i16>, discard: Option<Discard>) -> io::Result<()> {
        if let Some(path) = seen_by_init(path) {
            if swapon(&path, priority, discard).is_ok() {
                return Ok(());
            }
        }
        swapon(path, priority, discard)
    }

    fn swapoff(&self, path: &Path) -> io::Result<()> {
        self.swapoff_until(path, &Interrupt::default())
    }

    fn swapoff_until(&self, path: &Path, interrupt: &Interrupt) -> io::Result<()> {
        swapoff::in_child(path, interrupt)
    }

    fn set_attribute_of(&self, path: &Path, name: &str, value: &str) -> io::Result<()> {
        Ok(rustix::fs::setxattr(path, name, value.as_bytes(), XattrFlags::empty())?)
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> io::Result<()> {
        pidfd::signal(process, signal)
    }

    fn load_module(&self, name: &str, params: &str) -> io::Result<()> {
        modprobe(std::iter::once(name).chain(params.split_whitespace()))
    }

    fn unload_module(&self, name: &str) -> io::Result<()> {
        modprobe(["-r", name])
    }

    fn unnamed_file(&self, dir: &Path, bytes: u64) -> io::Result<File> {
        device::unnamed_file(dir, bytes)
    }

    fn loop_device(&self, file: &File) -> io::Result<OpenDevice> {
        load_for(loop_device::CONTROL, "loop")?;
        loop_device::add(file)
    }

    fn encrypted_device(&self, name: &str, below: &Path, bytes: Range<u64>) -> io::Result<OpenDevice> {
        load_for(mapping::CONTROL, "dm-mod")?;
        mapping::add(name, below, bytes)
    }

    fn remove_mapping(&self, name: &str) -> io::Result<()> {
        mapping::remove(name)
    }
}

impl Sys for FilesOnly {
    files!();

    fn swapon(&self, _: &Path, _: Option<i16>, _: Option<Discard>) -> io::Result<()> {
        Err(not_the_machine())
    }

    fn swapoff(&self, _: &Path) -> io::Result<()> {
        Err(not_the_machine())
    }
}

pub(crate) fn not_the_machine() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this root directory is not the running machine")
}

/// Loads the module that `control` belongs to. With kmod's static nodes the file is there before the module, and opening it loads that.
fn load_for(control: &str, module: &str) -> io::Result<()> {
    if Path::new(control).exists() { Ok(()) } else { modprobe([module]) }
}

/// modprobe (kmod or busybox) handles dependencies, aliases, compression and signatures of modules.
fn modprobe<'a>(args: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let mut command = std::process::Command::new("modprobe");
    // A service's PATH may lack modprobe's directory. The last one is NixOS'.
    command.args(args).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin:/run/current-system/sw/bin");
    let output =
        command.output().map_err(|e| io::Error::new(e.kind(), format!("modprobe cannot be run: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("modprobe failed: {}", message.trim())))
}

pub(crate) fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    match file.write(bytes)? {
        n if n == bytes.len() => Ok(()),
        n => Err(io::Error::other(format!("the kernel took only {n} of {} bytes", bytes.len()))),
    }
}

fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".eke-new");
    let beside = Path::new(&beside);
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(beside).and_then(
            |mut f| {
                f.set_permissions(Permissions::from_mode(mode))?;
                f.write_all(bytes)?;
                f.sync_all()
            },
        );
    let renamed = written.and_then(|()| fs::rename(beside, path));
    if renamed.is_err() {
        let _ = fs::remove_file(beside);
        return renamed;
    }
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// The path of the same device or file in process 1, if this process has mounts of its own (a systemd unit). If
/// swapon(2) gets that path, `/proc/swaps` shows `/dev/zram1` for as long as the machine runs. Uses [`fs::metadata`] of
/// `/proc/1/root`, which needs CAP_SYS_PTRACE but no right to enter a namespace.
fn seen_by_init(path: &Path) -> Option<PathBuf> {
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    if mounts("1")? == mounts("self")? {
        return None;
    }
    let theirs = Path::new("/proc/1/root").join(path.strip_prefix("/").ok()?);
    let (ours, other) = (fs::metadata(path).ok()?, fs::metadata(&theirs).ok()?);
    let same = if ours.file_type().is_block_device() {
        other.file_type().is_block_device() && ours.rdev() == other.rdev()
    } else {
        (ours.dev(), ours.ino()) == (other.dev(), other.ino())
    };
    same.then_some(theirs)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// From `linux/swap.h`: the flags contain a priority.
const SWAP_FLAG_PREFER: i32 = 0x8000;

#[expect(unsafe_code, reason = "neither rustix nor nix has swapon(2)")]
fn swapon(path: &Path, priority: Option<i16>, discard: Option<Discard>) -> io::Result<()> {
    let path = c_path(path)?;
    let preferred = priority.map_or(0, |p| SWAP_FLAG_PREFER | i32::from(p & 0x7fff));
    let flags = preferred | discard.map_or(0, Discard::flags);
    // SAFETY: `path` is a NUL-terminated string that outlives the call.
    match unsafe { libc::swapon(path.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
