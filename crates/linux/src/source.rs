//! The calls that read the machine, as a trait, so that everything above can be tested without a machine.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_model::units::PageSize;

/// Answers reads. Paths are absolute.
pub trait Source: Send + Sync {
    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes).map(|_| bytes)
    }
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }
    /// Attributes of a file or directory.
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(path)
    }
    /// The same, of a symbolic link itself.
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::symlink_metadata(path)
    }
    /// The target of a symbolic link.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }
    /// The kernel's name of the block device at this path (`zram1`, whatever the path); `None` if there is none.
    fn block_device(&self, _path: &Path) -> Option<String> {
        None
    }
    /// The page size.
    fn page_size(&self) -> PageSize {
        PageSize::new(rustix::param::page_size() as u64).unwrap_or(PageSize::SMALLEST)
    }
    /// Sleeps.
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// The running machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

/// A directory that is not the running machine's root: it has only files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Source for Host {
    fn block_device(&self, path: &Path) -> Option<String> {
        let meta = fs::metadata(path).ok().filter(|meta| meta.file_type().is_block_device())?;
        let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
        let device = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        Some(device.file_name()?.to_str()?.to_owned())
    }
}

impl Source for Files {}
