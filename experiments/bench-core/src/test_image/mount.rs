//! A stage that stands: the image as a disk, mounted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_apply::state::make_dir;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec, Stats};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::error::{Error, Result};
use super::image::run;
use super::scratch::{Scratch, mount_point, sweep};
use crate::fault::on;

/// How long processes of a session that ended may take to be gone.
const PATIENCE: u32 = 1500;
const PAUSE: Duration = Duration::from_millis(20);
/// Read at once when the image is brought to memory.
const CHUNK: usize = 1 << 20;

/// The stage that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestImageSpec {
    /// What [`super::ensure`] gave.
    pub image: PathBuf,
    /// The disk that it is on, one of [`Profile::NAMES`]; `None` for the disk of this machine where the image lies.
    pub profile: Option<String>,
    /// May programs write to it? Then they do to a copy, which is gone with the image.
    pub writable: bool,
}

/// A tree of programs and documents, mounted. Dropping it takes it down as [`TestImage::teardown`] does, without saying what
/// failed. Its owner serves the disk, so it must never be in a box that uses it.
#[derive(Debug)]
pub struct TestImage {
    // In the order in which they must go: the disk unmounts what is on it.
    disk: Option<SlowDisk>,
    mounted: Scratch,
    copy: Option<Scratch>,
    root: Root,
    spec: TestImageSpec,
}

impl TestImage {
    /// Brings the image to memory (for a slow disk), attaches and mounts it. Takes down first what dead owners left.
    ///
    /// # Errors
    /// A profile that nobody knows, a disk that cannot be had, the kernel's refusal; nothing is left then.
    pub fn prepare(root: &Root, spec: TestImageSpec) -> Result<Self> {
        let profile = spec.profile.as_deref().map(profile).transpose()?;
        let _ = sweep(root);
        let copy = spec.writable.then(|| Scratch::copy_of(root, &spec.image)).transpose()?;
        let mounted = Scratch::in_run(root)?;
        let target = mount_point(mounted.path());
        make_dir(root, &target, 0o755).map_err(on("make", &target))?;
        let mut image = Self { disk: None, mounted, copy, root: root.clone(), spec };
        if let Some(profile) = profile {
            image.disk = Some(attach(root, image.image(), profile)?);
        }
        image.mount()?;
        Ok(image)
    }

    /// Where the tree is: the directory to chroot(2) into.
    pub fn root_dir(&self) -> PathBuf {
        mount_point(self.mounted.path())
    }

    /// What the slow disk did since it was attached; `None` on this machine's own disk.
    pub fn stats(&self) -> Option<Stats> {
        self.disk.as_ref().map(SlowDisk::stats)
    }

    /// Nothing of the tree is in the page cache any more: what touches a page next reads it from the disk, and its group
    /// pays for it. Waits up to 2 s for processes that end.
    ///
    /// # Errors
    /// `Busy` where a process still runs there or has a file open; then it stays mounted.
    pub fn cold(&self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }

    /// Takes it down; nothing stays behind but the image.
    ///
    /// # Errors
    /// `Busy` where a process still runs there or has a file open. It is taken out of sight all the same, and then gone
    /// with its last user.
    pub fn teardown(mut self) -> Result<()> {
        let unmounted = self.unmount();
        let detached = self.disk.take().map_or(Ok(()), SlowDisk::detach);
        unmounted.and(detached.map_err(Error::from))
    }

    fn image(&self) -> &Path {
        self.copy.as_ref().map_or(&self.spec.image, Scratch::path)
    }

    fn mount(&self) -> Result<()> {
        let target = self.root_dir();
        let Some(disk) = &self.disk else { return self.mount_loop(&target) };
        let read = if self.spec.writable { MountFlags::empty() } else { MountFlags::RDONLY };
        mount(disk.device(), &target, "ext4", MountFlags::NOATIME | read, None)
            .map_err(on("mount", disk.device()))?;
        Ok(())
    }

    /// A loop device that goes with the mount (mount(8)), so that nothing else must be kept in mind.
    fn mount_loop(&self, target: &Path) -> Result<()> {
        let options = if self.spec.writable { "loop,noatime" } else { "loop,noatime,ro" };
        let image = self.image();
        run(Command::new("mount").args(["-t", "ext4", "-o", options]).arg(image).arg(target))?;
        // Its cache would keep what ours forgets. Where the image's file system cannot do without, it keeps it.
        if let Some(device) = self.device()? {
            let _ = run(Command::new("losetup").arg("--direct-io=on").arg(device));
        }
        Ok(())
    }

    fn unmount(&self) -> Result<()> {
        let target = self.root_dir();
        let device = self.device()?;
        for _ in 0..PATIENCE {
            match unmount(&target, UnmountFlags::empty()) {
                Ok(()) | Err(Errno::INVAL) => return self.forgotten(device.as_deref()),
                Err(Errno::BUSY) => self.root.sleep(PAUSE),
                Err(e) => return Err(on("unmount", &target)(e).into()),
            }
        }
        Err(Error::Busy { path: target })
    }

    /// Waits until the kernel has no file system of the device any more: it lives on where a process has a mount
    /// namespace with it, and its pages with it. `/sys/fs/ext4/DEVICE` (Documentation/ABI/testing/sysfs-fs-ext4) shows it.
    fn forgotten(&self, device: Option<&Path>) -> Result<()> {
        let Some(name) = device.and_then(Path::file_name) else { return Ok(()) };
        let shown = Path::new("sys/fs/ext4").join(name);
        for _ in 0..PATIENCE {
            if !self.root.exists(&shown) {
                return Ok(());
            }
            self.root.sleep(PAUSE);
        }
        Err(Error::Busy { path: self.root_dir() })
    }

    /// The block device below the mount.
    fn device(&self) -> Result<Option<PathBuf>> {
        if let Some(disk) = &self.disk {
            return Ok(Some(disk.device().to_owned()));
        }
        let mounts = self.root.read("proc/mounts")?;
        Ok(source(&mounts, &self.root_dir()))
    }
}

/// What is mounted at `target`, by the text of `/proc/mounts`; our own paths have no characters that are escaped there.
pub fn source(mounts: &str, target: &Path) -> Option<PathBuf> {
    let fields = mounts.lines().rev().map(|line| line.split(' '));
    fields
        .filter_map(|mut f| Some((f.next()?, f.next()?)))
        .find(|(_, at)| target == Path::new(at))
        .map(|(s, _)| s.into())
}

/// The profile of the slow disk with this name.
///
/// # Errors
/// There is no such profile.
pub fn profile(name: &str) -> Result<Profile> {
    Profile::named(name).ok_or_else(|| Error::Profile { name: name.to_owned() })
}

/// Attaches an image to a slow disk.
///
/// # Errors
/// The disk cannot be made.
pub fn attach(root: &Root, image: &Path, profile: Profile) -> Result<SlowDisk> {
    let size = warm(image).map_err(on("read", image))?;
    Ok(SlowDisk::attach(root, SlowDiskSpec::new(Image::File(image.to_owned()), size, profile))?)
}

/// Reads the image once, so that the slow disk never waits for the real one. Gives its size.
fn warm(image: &Path) -> std::io::Result<Bytes> {
    let mut file = std::fs::File::open(image)?;
    let mut buffer = vec![0; CHUNK];
    let mut size = 0;
    loop {
        match std::io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(Bytes(size)),
            read => size += read as u64,
        }
    }
}
