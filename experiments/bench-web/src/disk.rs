//! The content's image on its disk, mounted read-only.

use std::path::{Path, PathBuf};
use std::process::Command;

use eke_apply::state::make_dir;
use eke_bench_core::disk_reads::{Reads, iostat};
use eke_bench_core::fault::on;
use eke_bench_core::settings;
use eke_bench_core::test_image::{self, Scratch, mount_point};
use eke_linux::Root;
use eke_slow_disk::SlowDisk;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::content::FileSystem;
use super::error::Result;

/// A mounted image. Drop unmounts it. This process serves the slow disk, so it must never be in the box that uses the disk.
#[derive(Debug)]
pub struct Disk {
    // Dropped in this order: the disk unmounts its file system.
    slow: Option<SlowDisk>,
    mounted: Scratch,
    root: Root,
}

impl Disk {
    /// Attaches the image to the slow disk of this name, or to a plain loop device, and mounts it. None of it is in the page cache.
    ///
    /// # Errors
    /// The disk cannot be made, or the kernel does not know the file system. Everything is removed then.
    pub fn mount(root: &Root, image: &Path, fs: FileSystem, profile: Option<&str>) -> Result<Self> {
        let profile = profile.map(test_image::profile).transpose()?;
        let mounted = Scratch::in_run(root)?;
        let target = mount_point(mounted.path());
        make_dir(root, &target, 0o755).map_err(on("make", &target))?;
        let slow = profile.map(|profile| test_image::attach(root, image, profile)).transpose()?;
        let disk = Self { slow, mounted, root: root.clone() };
        match &disk.slow {
            Some(slow) => {
                mount(slow.device(), &target, fs.name(), MountFlags::NOATIME | MountFlags::RDONLY, None)
                    .map_err(on("mount", slow.device()))?
            }
            None => disk.mount_loop(image, fs)?,
        }
        settings::note_mount(root, fs.name(), &disk.dir());
        Ok(disk)
    }

    /// Mounts a loop device that ends with the mount. It bypasses the page cache of the image.
    fn mount_loop(&self, image: &Path, fs: FileSystem) -> Result<()> {
        let mut command = Command::new("mount");
        test_image::run(command.args(["-t", fs.name(), "-o", "loop,noatime,ro"]).arg(image).arg(self.dir()))?;
        if let Some(device) = self.device() {
            test_image::run(Command::new("losetup").arg("--direct-io=on").arg(device))?;
        }
        Ok(())
    }

    /// The content's directory.
    pub fn dir(&self) -> PathBuf {
        mount_point(self.mounted.path())
    }

    /// The reads since the disk was attached, counted by the slow disk or the loop device
    /// (Documentation/admin-guide/iostats.rst).
    pub fn reads(&self) -> Reads {
        if let Some(slow) = &self.slow {
            let reads = slow.stats().reads;
            return Reads { requests: reads.requests, bytes: reads.bytes.0 };
        }
        let stat = self.attribute("stat").unwrap_or_default();
        iostat(&stat).unwrap_or_default()
    }

    /// The kernel's read-ahead for the file system, in KiB. File systems set their own.
    pub fn read_ahead_kib(&self) -> Option<u64> {
        let stat = rustix::fs::stat(self.dir()).ok()?;
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        read_ahead(&self.root, major, minor)
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let device = self.device()?;
        let device = device.file_name()?;
        self.root.read(Path::new("sys/block").join(device).join(name)).ok()
    }

    fn device(&self) -> Option<PathBuf> {
        match &self.slow {
            Some(slow) => Some(slow.device().to_owned()),
            None => test_image::source(&self.root.read("proc/mounts").ok()?, &self.dir()),
        }
    }

    /// Unmounts and detaches the disk.
    ///
    /// # Errors
    /// Something still uses it. It is no longer visible, and ends with its last user.
    pub fn teardown(mut self) -> Result<()> {
        let target = self.dir();
        let unmounted = unmount(&target, UnmountFlags::empty()).map_err(|e| on("unmount", &target)(e).into());
        let detached = self.slow.take().map_or(Ok(()), SlowDisk::detach);
        unmounted.and(detached.map_err(Into::into))
    }
}

/// Reads `/sys/class/bdi/MAJOR:MINOR/read_ahead_kb` (Documentation/ABI/testing/sysfs-class-bdi).
pub(super) fn read_ahead(root: &Root, major: u32, minor: u32) -> Option<u64> {
    root.read(format!("sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?.trim().parse().ok()
}
