//! The slow disk with its file system and files.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_bench_core::command::output;
use eke_bench_core::settings;
use eke_bench_core::test_image::Scratch;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_statistics::random::Random;
use rustix::fs::{Advice, fadvise};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use super::Error;
use super::plan::Writer;

/// The disk's size: the reader's area and six files of 64 MiB.
const SIZE: Bytes = Bytes::mib(1024);
/// The size of the writers' source file.
const SOURCE: u64 = 64 << 20;
const PATIENCE: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(100);

/// A slow disk with a file system. The fields are in the order of their teardown.
///
/// The file system is mounted, but not attached to a path (fsmount(2), Linux 5.2). A mount namespace made meanwhile (`ip netns exec`, a
/// service, a container) gets a copy of every attached mount, and would keep the disk in use. This process reaches the file system by a
/// descriptor; it is unmounted when the descriptor closes.
#[derive(Debug)]
pub struct TestDisk {
    mount: Option<OwnedFd>,
    disk: Option<SlowDisk>,
    scratch: Scratch,
}

impl TestDisk {
    /// Makes the disk. First removes the disks of dead experiments.
    ///
    /// # Errors
    /// The disk cannot be made, or its file system cannot be made or mounted.
    pub fn make(disk: &str, writer: Writer) -> Result<Self, Error> {
        let profile = Profile::named(disk);
        let profile = profile.ok_or_else(|| Error::Usage(format!("no disk is called {disk}")))?;
        // Disks belong to the real machine, even if a test directory holds the settings and their journal.
        let host = Root::host();
        let _ = eke_bench_core::test_image::sweep(&host);
        let scratch = Scratch::in_run(&host)?;
        let disk = SlowDisk::attach(&host, SlowDiskSpec::new(Image::Memory, SIZE, profile.clone()))?;
        settings::note_disk(&host, &profile, disk.device(), Path::new("in memory"));
        let mut disk = Self { mount: None, disk: Some(disk), scratch };
        disk.fill(writer)?;
        Ok(disk)
    }

    fn fill(&mut self, writer: Writer) -> Result<(), Error> {
        let device = self.device().display().to_string();
        let (kind, options): (&str, &[(&str, &str)]) = match writer {
            Writer::Btrfs => {
                output(Command::new("mkfs.btrfs").args(["-q", "-f", &device]))?;
                ("btrfs", &[("compress-force", "zlib:9")])
            }
            _ => {
                let options = ["-q", "-i", "1048576", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
                output(Command::new("mkfs.ext4").args(options).arg(&device))?;
                ("ext4", &[])
            }
        };
        let failed = |what: &str, e: std::io::Error| Error::Program {
            program: format!("{what} {device} with {kind}"),
            why: e.to_string(),
        };
        self.mount = Some(mount(kind, &device, options).map_err(|e| failed("mount", e.into()))?);
        make_source(&self.source()).map_err(|e| failed("fill", e))?;
        copy_program(&self.dir()).map_err(|e| failed("fill", e))?;
        output(Command::new("sync").arg("-f").arg(self.dir()))?;
        Ok(())
    }

    fn disk(&self) -> Option<&SlowDisk> {
        self.disk.as_ref()
    }

    /// `/dev/loopN`.
    pub fn device(&self) -> PathBuf {
        self.disk().map(|disk| disk.device().to_owned()).unwrap_or_default()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        SIZE.0
    }

    /// Its top directory, for this process and its children.
    pub fn dir(&self) -> PathBuf {
        let number = self.mount.as_ref().map_or(-1, |mount| mount.as_raw_fd());
        PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()))
    }

    /// The file that writers copy. It compresses 2 to 1.
    pub fn source(&self) -> PathBuf {
        self.scratch.path().join("written")
    }

    /// The path of a program on the disk, evicted from the page cache.
    ///
    /// # Errors
    /// The program cannot be opened.
    pub fn cold_program(&self) -> std::io::Result<PathBuf> {
        let path = self.dir().join("program");
        fadvise(File::open(&path)?, 0, None, Advice::DontNeed)?;
        Ok(path)
    }

    /// Unmounts and detaches the disk. Waits until killed writers have ended and dirty pages are written.
    ///
    /// # Errors
    /// The disk is still in use after two minutes.
    pub fn teardown(mut self) -> Result<(), Error> {
        self.unmount();
        self.disk.take().map_or(Ok(()), |disk| Ok(disk.detach()?))
    }

    /// Closes the mount and waits for the file system's last user.
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

/// For a failed run, whose writers may still wait for the disk.
impl Drop for TestDisk {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Whether the device is mounted: a mount claims it exclusively, so an exclusive open fails (open(2), O_EXCL of block devices).
fn is_mounted(device: &Path) -> bool {
    let exclusively = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    exclusively.is_err_and(|e| e.kind() == std::io::ErrorKind::ResourceBusy)
}

fn mount(kind: &str, device: &str, options: &[(&str, &str)]) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (option, value) in [("source", device)].iter().chain(options) {
        fsconfig_set_string(&context, *option, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// Writes random letters with four bits of entropy each.
fn make_source(path: &Path) -> std::io::Result<()> {
    let mut random = Random::new(7);
    let mut block = Vec::with_capacity(1 << 20);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    for _ in 0..SOURCE >> 20 {
        block.clear();
        while block.len() < 1 << 20 {
            let bits = random.below(1 << 60);
            block.extend((0..15).map(|i| b'a' + (bits >> (4 * i) & 15) as u8));
        }
        file.write_all(&block[..1 << 20])?;
    }
    Ok(())
}

/// Copies this program to the disk: it is large enough and can print its version.
fn copy_program(target: &Path) -> std::io::Result<()> {
    let to = target.join("program");
    std::fs::copy(std::env::current_exe()?, to).map(drop)
}
