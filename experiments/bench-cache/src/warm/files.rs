//! The files: on an ext4 of their own, on a slow disk that this process serves.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::command::output;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::{self, Scratch, mount_point};
use eke_model::units::Bytes;
use eke_slow_disk::SlowDisk;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::{Error, Options};
use crate::store::corpus::Corpus;

/// The sizes of files, in turn.
const SIZES: [usize; 6] = [32 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 64 << 10];
/// The least bytes of a corpus.
const LEAST: usize = 1 << 20;
/// The lists of what was hot, of root's mounts.
const LISTS: &str = "var/lib/eke/caches";
/// Tries to unmount, while a worker of eke's exits.
const TRIES: u32 = 500;

/// The files. Drop unmounts and detaches the disk, and removes the image and the list of what was hot.
pub struct Files<'e> {
    pub(super) environment: &'e Environment<'e>,
    pub(super) names: Vec<(String, u64)>,
    /// In this order: the disk unmounts what is on it.
    disk: Option<SlowDisk>,
    scratch: Scratch,
    image: TempDir,
}

impl<'e> Files<'e> {
    /// Makes the image, attaches and mounts it.
    pub(super) fn make(environment: &'e Environment<'e>, options: &Options) -> Result<Self, Error> {
        let corpus = Corpus::of_machine(LEAST, options.content)?;
        let image = TempDir::with_prefix_in("eke-bench-", &options.dir)
            .map_err(on("make a directory in", &options.dir))?;
        let root = environment.root;
        let scratch = Scratch::in_run(root)?;
        let mut files = Self { environment, names: Vec::new(), disk: None, scratch, image };
        let (tree, file) = (files.image.path().join("tree"), files.image.path().join("image"));
        for dir in [tree.clone(), tree.join("files"), mount_point(files.scratch.path()), files.place()] {
            make_dir(root, &dir, 0o755).map_err(on("make", &dir))?;
        }
        files.write(&tree, &corpus, options)?;
        let mib = (options.content.0 + options.other().0) / (1 << 20) * 5 / 4 + 64;
        output(Command::new("truncate").arg("-s").arg(format!("{mib}M")).arg(&file))?;
        output(Command::new("mkfs.ext4").args(["-q", "-F", "-d"]).arg(&tree).arg(&file))?;
        std::fs::remove_dir_all(&tree).map_err(on("remove", &tree))?;
        files.disk = Some(test_image::attach(root, &file, test_image::profile(&options.disk)?)?);
        files.mount()?;
        Ok(files)
    }

    /// Writes files of `content` bytes from the corpus, and another one for the reader beside.
    fn write(&mut self, tree: &Path, corpus: &Corpus, options: &Options) -> Result<(), Error> {
        let (mut at, mut written) = (0, 0);
        while written < options.content.0 {
            let size = SIZES[self.names.len() % SIZES.len()].min(corpus.bytes.len());
            at = if at + size > corpus.bytes.len() { 0 } else { at };
            let name = format!("{:05}", self.names.len());
            put(&tree.join("files").join(&name), &corpus.bytes[at..at + size])?;
            self.names.push((name, size as u64));
            (at, written) = (at + size, written + size as u64);
        }
        let mut other = Vec::new();
        let length = usize::try_from(options.other().0).unwrap_or(usize::MAX);
        while other.len() < length {
            other.extend_from_slice(&corpus.bytes[..corpus.bytes.len().min(length - other.len())]);
        }
        put(&tree.join("other"), &other)
    }

    fn root_dir(&self) -> PathBuf {
        mount_point(self.scratch.path())
    }

    /// The directory that is cached.
    pub(super) fn dir(&self) -> PathBuf {
        self.root_dir().join("files")
    }

    /// The mount point of the cache.
    pub(super) fn place(&self) -> PathBuf {
        self.scratch.path().join("cache")
    }

    /// A file on the same disk that is not cached.
    pub(super) fn other(&self) -> PathBuf {
        self.root_dir().join("other")
    }

    fn mount(&self) -> Result<(), Error> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let flags = MountFlags::NOATIME;
        Ok(mount(disk.device(), self.root_dir(), "ext4", flags, None).map_err(on("mount", disk.device()))?)
    }

    /// Mounts the file system anew, so that nothing of it is in memory.
    pub(super) fn cold(&self) -> Result<(), Error> {
        let place = self.root_dir();
        for _ in 0..TRIES {
            match unmount(&place, UnmountFlags::empty()) {
                Ok(()) => return self.mount(),
                Err(rustix::io::Errno::BUSY) => {
                    self.environment.root.sleep(std::time::Duration::from_millis(20))
                }
                Err(e) => return Err(on("unmount", &place)(e).into()),
            }
        }
        Err(on("unmount", &place)(rustix::io::Errno::BUSY).into())
    }

    /// Removes what an earlier mount left about what was hot.
    pub(super) fn forget(&self) {
        let dir = self.environment.root.path(LISTS);
        let head = format!("of {} at ", self.dir().display());
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            if text.lines().nth(1).is_some_and(|line| line.starts_with(&head)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        self.forget();
        let _ = unmount(self.root_dir(), UnmountFlags::DETACH);
        let _ = self.disk.take().map(SlowDisk::detach);
    }
}

fn put(path: &Path, content: &[u8]) -> Result<(), Error> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    Ok(made.and_then(|mut file| file.write_all(content)).map_err(on("write", path))?)
}

/// For the report.
pub(super) fn about(options: &Options) -> String {
    format!(
        "{} of files on the slow disk \"{}\", a store of {}",
        options.content, options.disk, options.memory
    )
}

/// The size of the other file for this much content.
pub(super) fn other_of(content: Bytes) -> Bytes {
    Bytes((content.0 / 2).max(32 << 20))
}
