//! A test image as a mounted disk.

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
use crate::settings;

/// How many pauses processes of an ended session may take to exit.
const PATIENCE: u32 = 1500;
/// The same for mount namespaces of other programs, such as tests: until they end, they keep the file system.
const PATIENCE_WITH_OTHERS: u32 = 10 * PATIENCE;
const PAUSE: Duration = Duration::from_millis(20);
/// The size of a read while the image is loaded into memory.
const CHUNK: usize = 1 << 20;

/// What to mount, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestImageSpec {
    /// The image, made by [`super::ensure`].
    pub image: PathBuf,
    /// A slow disk, one of [`Profile::NAMES`]; `None` for this machine's own disk.
    pub profile: Option<String>,
    /// May programs write to it? Then they do to a copy, which is gone with the image.
    pub writable: bool,
}

/// A mounted tree of programs and documents. Drop tears it down as [`TestImage::teardown`] does, without errors. This process serves
/// the disk, so it must never be in a box that uses it.
#[derive(Debug)]
pub struct TestImage {
    // Dropped in this order: the disk unmounts what is on it.
    disk: Option<SlowDisk>,
    mounted: Scratch,
    copy: Option<Scratch>,
    root: Root,
    spec: TestImageSpec,
}

impl TestImage {
    /// Loads the image into memory (for a slow disk), attaches and mounts it. First removes what killed owners left.
    ///
    /// # Errors
    /// An unknown profile, or the disk cannot be attached or mounted. Nothing is left then.
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
        settings::note_mount(root, "ext4", &image.root_dir());
        Ok(image)
    }

    /// The directory to chroot(2) into.
    pub fn root_dir(&self) -> PathBuf {
        mount_point(self.mounted.path())
    }

    /// The slow disk's counters since it was attached; `None` on this machine's own disk.
    pub fn stats(&self) -> Option<Stats> {
        self.disk.as_ref().map(SlowDisk::stats)
    }

    /// Mounts the tree anew, so that nothing of it is in the page cache. The next process that touches a page reads it from the disk,
    /// and its group is charged. Waits up to 30 s for processes that end, and 5 min for mount namespaces of others.
    ///
    /// # Errors
    /// `Busy` if a process still runs there or has a file open. The tree stays mounted then. `Copied` if another mount namespace still has
    /// it; the next call tries again.
    pub fn cold(&self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }

    /// Unmounts the tree and detaches the disk. Only the image stays.
    ///
    /// # Errors
    /// `Busy` if a process still runs there or has a file open. The tree is detached then, and goes with its last user.
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

    /// Mounts over a loop device that goes with the mount (mount(8)).
    fn mount_loop(&self, target: &Path) -> Result<()> {
        let options = if self.spec.writable { "loop,noatime" } else { "loop,noatime,ro" };
        let image = self.image();
        run(Command::new("mount").args(["-t", "ext4", "-o", options]).arg(image).arg(target))?;
        // Otherwise the page cache of the image keeps what the mount's forgets. Some file systems lack direct I/O.
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

    /// Waits until the kernel has dropped the file system: it lives on with its pages in any mount namespace that has copied the mount.
    /// `/sys/fs/ext4/DEVICE` (Documentation/ABI/testing/sysfs-fs-ext4) exists until then.
    fn forgotten(&self, device: Option<&Path>) -> Result<()> {
        let Some(name) = device.and_then(Path::file_name) else { return Ok(()) };
        let shown = Path::new("sys/fs/ext4").join(name);
        for _ in 0..PATIENCE_WITH_OTHERS {
            if !self.root.exists(&shown) {
                return Ok(());
            }
            self.root.sleep(PAUSE);
        }
        Err(Error::Copied { path: self.root_dir() })
    }

    /// The mounted block device.
    fn device(&self) -> Result<Option<PathBuf>> {
        if let Some(disk) = &self.disk {
            return Ok(Some(disk.device().to_owned()));
        }
        let mounts = self.root.read("proc/mounts")?;
        Ok(source(&mounts, &self.root_dir()))
    }
}

/// The source of the mount at `target`, from the text of `/proc/mounts`. Our own paths have no characters that are escaped there.
pub fn source(mounts: &str, target: &Path) -> Option<PathBuf> {
    let fields = mounts.lines().rev().map(|line| line.split(' '));
    fields
        .filter_map(|mut f| Some((f.next()?, f.next()?)))
        .find(|(_, at)| target == Path::new(at))
        .map(|(s, _)| s.into())
}

/// The slow disk's profile of this name.
///
/// # Errors
/// There is no such profile.
pub fn profile(name: &str) -> Result<Profile> {
    Profile::named(name).ok_or_else(|| Error::Profile { name: name.to_owned() })
}

/// Loads an image into memory and attaches it as a slow disk.
///
/// # Errors
/// The disk cannot be made.
pub fn attach(root: &Root, image: &Path, profile: Profile) -> Result<SlowDisk> {
    let size = warm(image).map_err(on("read", image))?;
    let spec = SlowDiskSpec::new(Image::File(image.to_owned()), size, profile.clone());
    let disk = SlowDisk::attach(root, spec)?;
    settings::note_disk(root, &profile, disk.device(), image);
    Ok(disk)
}

/// Reads the image once, so that the slow disk never waits for the real one. Returns its size.
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
