//! Makes an image: mounts an empty file system in a file and writes the content into it, without a second copy.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_core::test_image::{Scratch, mount_point, run};
use eke_model::units::MIB;
use rustix::mount::{UnmountFlags, unmount};

use super::cut::Cutter;
use super::image::{Content, FileSystem, inodes};
use super::ratio::Meter;
use super::{Corpus, classes};
use crate::error::{Error, Result};

/// Makes the image of one file system and puts it into the cache. The ext4 image also sets the content's properties.
pub(super) fn image(
    environment: &Environment<'_>,
    cache: &Path,
    corpus: &Corpus,
    content: &mut Content,
    fs: FileSystem,
) -> Result<()> {
    let work = Scratch::directory(environment.root, cache)?;
    let made = work.path().join("image");
    match fs {
        FileSystem::Ext4 => {
            empty(content, fs, &made)?;
            let to = Mounted::at(environment, &made, "ext4", "loop,noatime")?;
            cut(environment, corpus, content, &to.dir())?;
            to.end()?;
        }
        FileSystem::Btrfs => {
            empty(content, fs, &made)?;
            let from = source(environment, content)?;
            let to = Mounted::at(environment, &made, "btrfs", "loop,noatime,compress=zstd")?;
            copy(environment, content, &from.dir(), &to.dir())?;
            to.end()?;
            from.end()?;
        }
        FileSystem::Erofs => {
            let from = source(environment, content)?;
            environment.progress.doing("mkfs.erofs compresses the content, which takes a while");
            make_erofs(&from.dir(), &made)?;
            from.end()?;
        }
    }
    let image = content.image(fs);
    Ok(std::fs::rename(&made, &image).map_err(on("make", &image))?)
}

/// Makes the ext4 image at its place; `write` writes each file.
pub(super) fn ext4(
    environment: &Environment<'_>,
    content: &Content,
    mut write: impl FnMut(&classes::FileSpec, &Path, &mut File) -> Result<()>,
) -> Result<()> {
    let image = content.image(FileSystem::Ext4);
    empty(content, FileSystem::Ext4, &image)?;
    let to = Mounted::at(environment, &image, "ext4", "loop,noatime")?;
    each(environment, content, "writing the content", |_, spec| {
        let (path, mut out) = new_file(&to.dir(), &spec.path)?;
        write(spec, &path, &mut out)
    })?;
    to.end()
}

/// Mounts the ext4 image, to copy from.
fn source(environment: &Environment<'_>, content: &Content) -> Result<Mounted> {
    Mounted::at(environment, &content.image(FileSystem::Ext4), "ext4", "loop,noatime,ro")
}

/// Makes a sparse file with an empty file system.
fn empty(content: &Content, fs: FileSystem, image: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(image).map_err(on("make", image))?;
    file.set_len(fs.most(&content.files).next_multiple_of(MIB)).map_err(on("size", image))?;
    drop(file);
    if fs == FileSystem::Btrfs {
        let mut command = Command::new("mkfs.btrfs");
        return made(command.args(["-q", "-f", "-m", "single", "-d", "single"]).arg(image));
    }
    let inodes = inodes(&content.files).to_string();
    let mut command = Command::new("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-O", "^has_journal", "-N", &inodes]);
    made(command.args(["-E", "lazy_itable_init=0,root_owner=0:0"]).arg(image))
}

fn make_erofs(from: &Path, image: &Path) -> Result<()> {
    made(Command::new("mkfs.erofs").args(["-zlz4hc", "-C65536", "--quiet"]).arg(image).arg(from)).or_else(
        |_| {
            // erofs-utils before 1.6 do not have --quiet.
            let _ = std::fs::remove_file(image);
            made(Command::new("mkfs.erofs").args(["-zlz4hc", "-C65536"]).arg(image).arg(from))
        },
    )
}

fn made(command: &mut Command) -> Result<()> {
    Ok(run(command)?)
}

/// Cuts every file from the corpus, in the order of the list.
fn cut(environment: &Environment<'_>, corpus: &Corpus, content: &mut Content, to: &Path) -> Result<()> {
    let (mut cutter, mut meter, mut hashes) = (Cutter::new(corpus), Meter::default(), Vec::new());
    each(environment, content, "writing the content", |number, spec| {
        let (path, mut out) = new_file(to, &spec.path)?;
        let hash =
            cutter.write(number as u64, spec.bytes, &mut out, &mut meter).map_err(on("write", &path))?;
        hashes.push(hash);
        Ok(())
    })?;
    content.properties.ratio = meter.ratio();
    content.properties.hashes = hashes;
    content.properties.corpus.clone_from(&corpus.about);
    Ok(())
}

fn copy(environment: &Environment<'_>, content: &Content, from: &Path, to: &Path) -> Result<()> {
    each(environment, content, "copying the content to btrfs", |_, spec| {
        let source = from.join(&spec.path);
        let mut file = File::open(&source).map_err(on("open", &source))?;
        let (path, mut out) = new_file(to, &spec.path)?;
        io::copy(&mut file, &mut out).map_err(on("copy to", &path))?;
        Ok(())
    })
}

/// Calls `act` for each file and shows the progress.
fn each(
    environment: &Environment<'_>,
    content: &Content,
    what: &str,
    mut act: impl FnMut(usize, &classes::FileSpec) -> Result<()>,
) -> Result<()> {
    let (total, mut done) = (content.total(), 0);
    for (number, spec) in content.files.iter().enumerate() {
        if environment.is_interrupted() {
            return Err(Error::Interrupted);
        }
        environment.progress.doing(&format!("{what}: {} of {} MB", done / 1_000_000, total / 1_000_000));
        act(number, spec)?;
        done += spec.bytes;
    }
    Ok(())
}

fn new_file(root: &Path, relative: &str) -> Result<(PathBuf, File)> {
    let path = root.join(relative);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(on("make", parent))?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(on("make", &path))?;
    Ok((path, file))
}

/// An image on a loop device that ends with its mount (mount(8)). The directory's name contains its owner, so the next experiment removes
/// the mount of a killed one.
struct Mounted(Scratch);

impl Mounted {
    fn at(environment: &Environment<'_>, image: &Path, kind: &str, options: &str) -> Result<Self> {
        let mounted = Self(Scratch::in_run(environment.root)?);
        let dir = mounted.dir();
        std::fs::create_dir(&dir).map_err(on("make", &dir))?;
        run(Command::new("mount").args(["-t", kind, "-o", options]).arg(image).arg(&dir))?;
        Ok(mounted)
    }

    fn dir(&self) -> PathBuf {
        mount_point(self.0.path())
    }

    /// Unmounts the image. All data is written then.
    fn end(self) -> Result<()> {
        Ok(unmount(self.dir(), UnmountFlags::empty()).map_err(on("unmount", &self.dir()))?)
    }
}
