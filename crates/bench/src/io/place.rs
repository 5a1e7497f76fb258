//! The disk, and what lies on it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_core::units::Bytes;
use eke_kernel::Root;
use eke_lab::slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::plan::Writer;
use super::{Bench, Error};
use crate::stage::{Scratch, mount_point};
use crate::web::random::Random;

/// Its size: the reader's places and six files of 64 MiB.
const SIZE: Bytes = Bytes::mib(1024);
const WRITTEN: u64 = 64 << 20;
const PATIENCE: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(100);

/// A slow disk with a file system, mounted. In the order in which they must go: the disk unmounts what is on it.
#[derive(Debug)]
pub struct Place {
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
        let _ = crate::stage::sweep(&host);
        let scratch = Scratch::in_run(&host)?;
        let disk = SlowDisk::attach(&host, SlowDiskSpec::new(Image::Memory, SIZE, profile))?;
        let place = Self { disk: Some(disk), scratch };
        place.fill(&host, writer)?;
        Ok(place)
    }

    fn fill(&self, root: &Root, writer: Writer) -> Result<(), Error> {
        let target = mount_point(self.scratch.path());
        let failed =
            |e: std::io::Error| Error::Program { program: target.display().to_string(), why: e.to_string() };
        root.sys().create_dir(&target, 0o755).map_err(failed)?;
        let (device, at) = (self.device().display().to_string(), target.display().to_string());
        match writer {
            Writer::Btrfs => {
                command("mkfs.btrfs", &["-q", "-f", &device])?;
                command("mount", &["-o", "compress-force=zlib:9", &device, &at])?;
            }
            _ => {
                command(
                    "mkfs.ext4",
                    &["-q", "-i", "1048576", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device],
                )?;
                command("mount", &[&device, &at])?;
            }
        }
        make_written(&self.written()).map_err(failed)?;
        copy_program(&target).map_err(failed)?;
        command("sync", &["-f", &at])
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

    /// Where it is mounted.
    pub fn dir(&self) -> PathBuf {
        mount_point(self.scratch.path())
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
        for _ in 0..PATIENCE {
            if !matches!(unmount(self.dir(), UnmountFlags::empty()), Err(Errno::BUSY)) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.disk.take().map_or(Ok(()), |disk| Ok(disk.detach()?))
    }
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
