//! The loop device. losetup (util-linux) does what would otherwise need unsafe ioctls.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_apply::write::{read_value, write_value};
use eke_linux::{Root, read};

use super::error::{Error, Result, on};
use super::host::Host;
use super::{mounts, users};

/// Polls for a device to release its file after its last user closed it (loop(4), LO_FLAGS_AUTOCLEAR).
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// Requests in flight of a loop device (its parameter `hw_queue_depth`).
const MOST_REQUESTS: &str = "128";

/// A loop device over a file of a slow disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device(pub(super) PathBuf);

/// Runs a program of the host and returns its standard output.
pub(super) fn command(program: &str, args: &[&str]) -> Result<String> {
    let line = || format!("{program} {}", args.join(" "));
    // A service's PATH may lack their directories.
    let mut command = Command::new(program);
    command.args(args).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin");
    let output = command
        .output()
        .map_err(|e| Error::Command { command: line(), answer: format!("cannot be run: {e}") })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let output_text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command { command: line(), answer: format!("failed ({}): {output_text}", output.status) })
}

impl Device {
    /// Attaches the next free loop device to `file`, which must exist. Direct I/O makes it asynchronous and avoids the
    /// page cache of the file.
    pub(super) fn attach(root: &Root, file: &Path) -> Result<Self> {
        let path = file.to_string_lossy();
        let output_text = command("losetup", &["--find", "--show", "--direct-io=on", &path])?;
        let device = Self(PathBuf::from(output_text.trim()));
        match device.attribute(root, "loop/dio").as_deref() {
            Some("1") => Ok(device),
            dio => {
                let answer = format!("gave no direct I/O (dio is {dio:?}): the disk's depth would be 1");
                // `detach` would read a root that may not be this machine's.
                command("losetup", &["--detach", &device.0.to_string_lossy()])?;
                Err(Error::Command { command: format!("losetup --direct-io=on {path}"), answer })
            }
        }
    }

    /// The devices whose file is in `dir`.
    pub(super) fn all_below(root: &Root, dir: &Path) -> Result<Vec<Self>> {
        let names = root.list("sys/block")?.into_iter().filter(|name| name.starts_with("loop"));
        let devices = names.map(|name| Self(Path::new("/dev").join(name)));
        Ok(devices.filter(|d| d.file(root).is_some_and(|file| file.starts_with(dir))).collect())
    }

    /// Marks the device as rotational, so that the kernel swaps and reads ahead as on a disk that seeks.
    /// [`Device::detach`] resets it.
    pub(super) fn set_rotational(&self, root: &Root, rotational: bool) -> Result<()> {
        Ok(write_value(root, "loop.rotational", &self.name(), if rotational { "1" } else { "0" })?)
    }

    /// `loopN`.
    fn name(&self) -> Cow<'_, str> {
        self.0.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Sets scheduler, requests in flight and read-ahead. [`Device::detach`] resets the first two, the next attach the read-ahead.
    pub(super) fn set_host(&self, root: &Root, host: &Host) -> Result<()> {
        let name = self.name();
        if let Some(queue) = host.queue {
            // Without a scheduler, this is what the disk has at once; a scheduler then adds requests of its own.
            write_value(root, "queue.nr_requests", &name, &queue.to_string())?;
        }
        // Written again, the present scheduler also resets the number of requests.
        let present = read_value(root, "queue.scheduler", &name)?;
        if let Some(scheduler) = host.scheduler.filter(|scheduler| *scheduler != present) {
            write_value(root, "queue.scheduler", &name, scheduler)?;
        }
        if let Some(kib) = host.read_ahead_kib {
            let number = self.attribute(root, "dev").unwrap_or_default();
            write_value(root, "bdi.read_ahead_kb", &number, &kib.to_string())?;
        }
        Ok(())
    }

    fn reset_host(&self, root: &Root) {
        let name = self.name();
        let is_set = read_value(root, "queue.scheduler", &name).is_ok_and(|scheduler| scheduler != "none");
        if is_set {
            let _ = write_value(root, "queue.scheduler", &name, "none");
        }
        // After a scheduler the kernel shows the full number, whatever is in force; it ignores a write of what it shows.
        for requests in ["64", MOST_REQUESTS] {
            let _ = write_value(root, "queue.nr_requests", &name, requests);
        }
        // A governor that was killed has left a smaller one, which the next disk of this number would have.
        if let Ok(largest) = root.read(format!("sys/block/{name}/queue/max_hw_sectors_kb")) {
            let _ = write_value(root, "queue.max_sectors_kb", &name, largest.trim());
        }
    }

    /// Detaches the device from its file, and waits until it is released.
    pub(super) fn detach(&self, root: &Root) -> Result<()> {
        if self.file(root).is_none() {
            return Ok(());
        }
        let _ = self.set_rotational(root, false);
        self.reset_host(root);
        command("losetup", &["--detach", &self.0.to_string_lossy()])?;
        for _ in 0..PATIENCE {
            if self.file(root).is_none() {
                return Ok(());
            }
            root.sleep(PAUSE);
        }
        let who = users::first(root, &self.0)
            .unwrap_or_else(|| "close the programs that have it open (see `lsof`)".to_owned());
        Err(self.in_use(&format!("{who}; then it is removed automatically")))
    }

    /// Unmounts all mounts of the device, lazily if files are open there.
    pub(super) fn unmount_all(&self, root: &Root) -> Result<()> {
        // Others may be mounted over it.
        for _ in 0..LAYERS {
            for target in mounts::targets(&root.read("proc/mounts")?, &self.0) {
                unmount(&target)?;
            }
        }
        if read::swap_at(root, &self.0.to_string_lossy())?.is_some() {
            return Err(self.in_use("it is swap; swap it off first"));
        }
        Ok(())
    }

    fn in_use(&self, by: &str) -> Error {
        Error::InUse { device: self.0.clone(), by: by.to_owned() }
    }

    fn file(&self, root: &Root) -> Option<PathBuf> {
        self.attribute(root, "loop/backing_file").map(PathBuf::from)
    }

    fn attribute(&self, root: &Root, name: &str) -> Option<String> {
        let text = root.read_if_exists(self.sys(root, name)).ok()??;
        Some(text.trim_end().to_owned())
    }

    fn sys(&self, root: &Root, attribute: &str) -> PathBuf {
        root.path("sys/block").join(&*self.name()).join(attribute)
    }
}

/// Mounts at one place, one over the other, that are removed.
const LAYERS: u32 = 4;

/// Unmounts normally if possible, so that all data are written, otherwise lazily.
pub(super) fn unmount(target: &Path) -> Result<()> {
    use rustix::mount::{UnmountFlags, unmount};
    unmount(target, UnmountFlags::empty())
        .or_else(|_| unmount(target, UnmountFlags::DETACH))
        .map_err(on("unmount", target))
}
