//! The loop device. losetup (util-linux) does what would otherwise need unsafe ioctls.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_apply::write::write_value;
use eke_linux::{Root, read};

use super::error::{Error, Result, on};
use super::{mounts, users};

/// Polls for a device to release its file after its last user closed it (loop(4), LO_FLAGS_AUTOCLEAR).
const PATIENCE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

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
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        Ok(write_value(root, "loop.rotational", &name, if rotational { "1" } else { "0" })?)
    }

    /// Detaches the device from its file, and waits until it is released.
    pub(super) fn detach(&self, root: &Root) -> Result<()> {
        if self.file(root).is_none() {
            return Ok(());
        }
        let _ = self.set_rotational(root, false);
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
        for target in mounts::targets(&root.read("proc/mounts")?, &self.0) {
            unmount(&target)?;
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
        let name = self.0.file_name().unwrap_or_default();
        root.path("sys/block").join(name).join(attribute)
    }
}

/// Unmounts normally if possible, so that all data are written, otherwise lazily.
pub(super) fn unmount(target: &Path) -> Result<()> {
    use rustix::mount::{UnmountFlags, unmount};
    unmount(target, UnmountFlags::empty())
        .or_else(|_| unmount(target, UnmountFlags::DETACH))
        .map_err(on("unmount", target))
}
