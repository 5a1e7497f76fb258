//! A tree as a file system in a file, kept in a cache.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use eke_linux::Root;
use eke_model::units::{Bytes, MIB};

use super::copy;
use super::error::{Error, Result};
use super::scratch::{Scratch, sweep_dir};
use super::tree::Tree;
use crate::command;
use crate::fault::on;

/// Goes up when the same tree makes another image.
const VERSION: u32 = 1;
/// What the file system itself needs, and room on a copy that can be written to.
const SPARE: u64 = 16 * MIB;
/// So many images stay in the cache: each change of a program makes another.
const KEPT: usize = 4;
const UNUSED_FOR: Duration = Duration::from_secs(14 * 24 * 3600);

/// The cache when the caller names none: `$XDG_CACHE_HOME/eke-bench`, else `~/.cache/eke-bench`, else that of a service:
/// never a directory that others can write to.
pub fn default_cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(|| PathBuf::from("/var/cache")).join("eke-bench")
}

/// The file with an ext4 file system of this tree: from the cache, or made now (mke2fs; root is not needed) and put there
/// when it is whole. It has no journal, so that mounting it to read writes nothing. Removes what was not used for two
/// weeks or was left half-made. As a disk of the small machine it can be mounted there too.
///
/// # Errors
/// mke2fs is not there or fails, a file that cannot be copied, no room; nothing is left then.
pub fn ensure(root: &Root, tree: &Tree, cache: &Path, now: SystemTime) -> Result<PathBuf> {
    cached(root, cache, &format!("stage-{VERSION}-{:016x}.ext4", tree.key()), now, |work| {
        let (contents, made) = (work.join("root"), work.join("image"));
        std::fs::create_dir(&contents).map_err(on("make", &contents))?;
        copy::to(tree, &contents)?;
        make(tree, &contents, &made).map(|()| made)
    })
}

/// The file of this name (`stage-...ext4`, so that [`sweep`] knows it) from the cache; or `make` makes it in a directory that
/// goes away, gives its path there, and it is put into the cache.
///
/// # Errors
/// The cache cannot be used, or `make` fails.
pub fn cached<E: From<Error>>(
    root: &Root,
    cache: &Path,
    name: &str,
    now: SystemTime,
    make: impl FnOnce(&Path) -> Result<PathBuf, E>,
) -> Result<PathBuf, E> {
    crate::cache::make(cache).map_err(|e| Error::from(on("use the cache", cache)(e)))?;
    sweep(root, cache, now)?;
    let image = cache.join(name);
    if let Ok(file) = File::open(&image) {
        // Marks the image as used. A user who may not do that can still use it.
        let _ = file.set_modified(now);
        return Ok(image);
    }
    let work = Scratch::directory(root, cache)?;
    let made = make(work.path())?;
    std::fs::rename(&made, &image).map_err(|e| Error::from(on("make", &image)(e)))?;
    Ok(image)
}

/// An inode in the image, in bytes.
const INODE: u64 = 256;

fn inodes(tree: &Tree) -> u64 {
    let entries = tree.entries.len() as u64;
    entries + entries / 4 + 1024
}

/// The size of its image: its files, their inodes, 1/16 for other tables, and [`SPARE`].
fn size(tree: &Tree) -> Bytes {
    let size = tree.on_disk() + tree.on_disk() / 16 + inodes(tree) * INODE + SPARE;
    Bytes(size.div_ceil(MIB) * MIB)
}

fn make(tree: &Tree, contents: &Path, image: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(image).map_err(on("make", image))?;
    file.set_len(size(tree).0).map_err(on("size", image))?;
    let inodes = inodes(tree).to_string();
    let mut command = Command::new("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-O", "^has_journal", "-N", &inodes]);
    // Nothing is written later behind the session's back.
    command.args(["-E", "lazy_itable_init=0,root_owner=0:0", "-d"]).arg(contents).arg(image);
    run(&mut command)
}

/// Runs a program of the host to its end.
pub fn run(command: &mut Command) -> Result<()> {
    command::output(command)?;
    Ok(())
}

/// What dead processes left half-made, images that nobody used for [`UNUSED_FOR`], and the oldest beyond [`KEPT`]. Whoever
/// has one open keeps it.
fn sweep(root: &Root, cache: &Path, now: SystemTime) -> Result<()> {
    sweep_dir(root, cache)?;
    let mut images = Vec::new();
    for entry in std::fs::read_dir(cache).map_err(on("list", cache))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("stage-") && name.ends_with(".ext4") {
            let used = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(now);
            images.push((used, entry.path()));
        }
    }
    images.sort();
    let oldest = images.len().saturating_sub(KEPT);
    for (at, (used, path)) in images.iter().enumerate() {
        if at < oldest || now.duration_since(*used).is_ok_and(|unused| unused > UNUSED_FOR) {
            std::fs::remove_file(path).map_err(on("remove", path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_image::Parts;

    /// What is left of images that were used so many days ago.
    fn left_of(ages_days: &[(&str, u64)]) -> Vec<String> {
        let cache = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, age_days) in ages_days {
            let file = OpenOptions::new().write(true).create_new(true).open(cache.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age_days * 86_400)).unwrap();
        }
        sweep(&Root::host(), cache.path(), now).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(cache.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        left
    }

    #[test]
    fn only_old_images_go() {
        let images = [("stage-1-0.ext4", 15), ("stage-1-1.ext4", 13), ("other", 100)];
        assert_eq!(left_of(&images), ["other", "stage-1-1.ext4"]);
        let many = [
            ("stage-a.ext4", 2),
            ("stage-b.ext4", 9),
            ("stage-c.ext4", 1),
            ("stage-d.ext4", 0),
            ("stage-e.ext4", 3),
        ];
        assert_eq!(left_of(&many), ["stage-a.ext4", "stage-c.ext4", "stage-d.ext4", "stage-e.ext4"]);
    }

    #[test]
    fn a_tree_that_cannot_be_copied_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, file) = (dir.path().join("cache"), dir.path().join("file"));
        drop(OpenOptions::new().write(true).create_new(true).open(&file).unwrap());
        let tree = Tree::of(&Parts { files: vec![file.clone()], ..Parts::default() }).unwrap();
        std::fs::remove_file(&file).unwrap();
        let error = ensure(&Root::host(), &tree, &cache, SystemTime::now()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot copy {}", file.display())), "{error}");
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0);
    }
}
