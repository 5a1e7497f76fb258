//! The disk, and what lies on it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_bench_core::random::Random;
use eke_bench_core::stage::Scratch;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use rustix::fs::{Advice, fadvise};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use super::plan::Writer;
use super::{Bench, Error};

/// Its size: the reader's places and six files of 64 MiB.
const SIZE: Bytes = Bytes::mib(1024);
const WRITTEN: u64 = 64 << 20;
const PATIENCE: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(100);

/// A slow disk with a file system, in the order in which they must go.
///
/// The file system is mounted, but nowhere (fsmount(2), Linux 5.2): who makes a mount namespace meanwhile (`ip netns exec`, a service, a
/// container) gets a copy of every mount that is somewhere, and the disk would be in use until that namespace goes. It is reached by
/// this process's descriptor, and gone with it.
#[derive(Debug)]
pub struct Place {
    mount: Option<OwnedFd>,
    disk: Option<SlowDisk>,
    scratch: Scratch,
}

impl Place {
    /// Makes it. What dead experiments left is taken down first.
    ///
    /// # Errors
    /// The disk, or a program that makes or mounts file systems.
    pub fn make(bench: &Bench<'_>, writer: Writer) -> Result<Self, Error> {
        let profile = Profile::named(&bench.options.disk);
        let profile =
            profile.ok_or_else(|| Error::Usage(format!("no disk is called {}", bench.options.disk)))?;
        // disks are this machine's, also where settings and their journal are those of a directory that stands for it
        let host = Root::host();
        let _ = eke_bench_core::stage::sweep(&host);
        let scratch = Scratch::in_run(&host)?;
        let disk = SlowDisk::attach(&host, SlowDiskSpec::new(Image::Memory, SIZE, profile))?;
        let mut place = Self { mount: None, disk: Some(disk), scratch };
        place.fill(writer)?;
        Ok(place)
    }

    fn fill(&mut self, writer: Writer) -> Result<(), Error> {
        let device = self.device().display().to_string();
        let (kind, options): (&str, &[(&str, &str)]) = match writer {
            Writer::Btrfs => {
                command("mkfs.btrfs", &["-q", "-f", &device])?;
                ("btrfs", &[("compress-force", "zlib:9")])
            }
            _ => {
                command(
                    "mkfs.ext4",
                    &["-q", "-i", "1048576", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device],
                )?;
                ("ext4", &[])
            }
        };
        let failed = |what: &str, e: std::io::Error| Error::Program {
            program: format!("{what} {device} with {kind}"),
            why: e.to_string(),
        };
        self.mount = Some(mount(kind, &device, options).map_err(|e| failed("mount", e.into()))?);
        make_written(&self.written()).map_err(|e| failed("fill", e))?;
        copy_program(&self.dir()).map_err(|e| failed("fill", e))?;
        command("sync", &["-f", &self.dir().display().to_string()])
    }

    fn disk(&self) -> Option<&SlowDisk> {
        self.disk.as_ref()
    }

    /// `/dev/loopN`.
    pub fn device(&self) -> PathBuf {
        self.disk().map(|disk| disk.device().to_owned()).unwrap_or_default()
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        SIZE.0
    }

    /// Its top directory, while this lives, for this process and its children.
    pub fn dir(&self) -> PathBuf {
        let number = self.mount.as_ref().map_or(-1, |mount| mount.as_raw_fd());
        PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()))
    }

    /// What is written: half of it can be compressed away.
    pub fn written(&self) -> PathBuf {
        self.scratch.path().join("written")
    }

    /// A program on it, cold.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn cold_program(&self) -> std::io::Result<PathBuf> {
        let path = self.dir().join("program");
        fadvise(File::open(&path)?, 0, None, Advice::DontNeed)?;
        Ok(path)
    }

    /// Takes it down. A writer that was killed may wait for the disk still, and everything that is dirty is written.
    ///
    /// # Errors
    /// It is in use, after two minutes.
    pub fn strike(mut self) -> Result<(), Error> {
        self.unmount();
        self.disk.take().map_or(Ok(()), |disk| Ok(disk.detach()?))
    }

    /// The file system goes with its last user.
    fn unmount(&mut self) {
        if self.mount.take().is_none() {
            return;
        }
        let device = self.device();
        for _ in 0..PATIENCE {
            if !is_mounted(&device) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Where a run failed: its writers may wait for the disk still.
impl Drop for Place {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Whoever mounts a device holds it exclusively, and nobody else can have it so then (open(2), O_EXCL of block devices).
fn is_mounted(device: &Path) -> bool {
    let exclusively = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    exclusively.is_err_and(|e| e.kind() == std::io::ErrorKind::ResourceBusy)
}

fn mount(kind: &str, device: &str, options: &[(&str, &str)]) -> rustix::io::Result<OwnedFd> {
    let wish = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (option, value) in [("source", device)].iter().chain(options) {
        fsconfig_set_string(&wish, *option, *value)?;
    }
    fsconfig_create(&wish)?;
    fsmount(&wish, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// Random letters: four bits each.
fn make_written(path: &Path) -> std::io::Result<()> {
    let mut random = Random::new(7);
    let mut block = Vec::with_capacity(1 << 20);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    for _ in 0..WRITTEN >> 20 {
        block.clear();
        while block.len() < 1 << 20 {
            let bits = random.below(1 << 60);
            block.extend((0..15).map(|i| b'a' + (bits >> (4 * i) & 15) as u8));
        }
        file.write_all(&block[..1 << 20])?;
    }
    Ok(())
}

/// This program: it is of some size, and can say its version.
fn copy_program(target: &Path) -> std::io::Result<()> {
    let to = target.join("program");
    std::fs::copy(std::env::current_exe()?, to).map(drop)
}

fn command(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let failed = |why: String| Error::Program { program: program.to_owned(), why };
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin");
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{} ({})", String::from_utf8_lossy(&output.stderr).trim(), output.status)))
}
