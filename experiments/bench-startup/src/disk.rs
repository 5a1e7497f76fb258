//! The disk with the programs, mounted anew for each run, and its read counters.

use std::path::{Path, PathBuf};

use eke_bench_core::disk_reads::iostat;
use eke_bench_core::test_image::{self, TestImage, TestImageSpec};
use eke_linux::Root;

use super::error::Result;

pub use eke_bench_core::disk_reads::Reads;

/// See the module.
#[derive(Debug)]
pub struct ProgramDisk {
    image: TestImage,
    root: Root,
}

impl ProgramDisk {
    /// Attaches the image to the slow disk of this name, or to this machine's own disk.
    ///
    /// # Errors
    /// As [`TestImage::prepare`].
    pub fn attach(root: &Root, image: &Path, disk: Option<&str>) -> Result<Self> {
        let spec =
            TestImageSpec { image: image.to_owned(), profile: disk.map(str::to_owned), writable: false };
        Ok(Self { image: TestImage::prepare(root, spec)?, root: root.clone() })
    }

    /// Mounts the disk anew, so that its pages, dentries, inodes and metadata are not in memory.
    ///
    /// # Errors
    /// A process still runs there.
    pub fn cold(&self) -> Result<()> {
        Ok(self.image.cold()?)
    }

    /// The tree's directory. It is the same for every disk of an experiment, since prefetchers know programs by path.
    pub fn dir(&self) -> PathBuf {
        self.image.root_dir()
    }

    /// Reads since the disk was attached, as counted by the slow disk or by the loop device, which is new after each mount
    /// (Documentation/admin-guide/iostats.rst).
    pub fn reads(&self) -> Reads {
        if let Some(stats) = self.image.stats() {
            return Reads { requests: stats.reads.requests, bytes: stats.reads.bytes.0 };
        }
        self.attribute("stat").and_then(|text| iostat(&text)).unwrap_or_default()
    }

    /// Its block device.
    pub fn device(&self) -> Option<PathBuf> {
        test_image::source(&self.root.read("proc/mounts").ok()?, &self.dir())
    }

    /// The device's size, in bytes.
    pub fn size(&self) -> Option<u64> {
        self.attribute("size")?.trim().parse::<u64>().ok().map(|sectors| sectors * 512)
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let device = self.device()?;
        self.root.read(Path::new("sys/block").join(device.file_name()?).join(name)).ok()
    }

    /// Tears it down.
    ///
    /// # Errors
    /// A process still runs there.
    pub fn teardown(self) -> Result<()> {
        Ok(self.image.teardown()?)
    }
}
