//! The cache of images: makes missing images, and removes old ones.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_model::units::Bytes;
use twox_hash::XxHash64;

use super::classes::FileSpec;
use super::image::{Content, FileSystem, Properties};
use super::{Corpus, classes, make};
use crate::error::{Error, Result};

/// The version of the images. It changes when the same content makes other images.
const VERSION: u64 = 1;
/// How many contents stay in the cache.
const KEPT: usize = 4;
/// An unused content is removed after this time.
const UNUSED_FOR: Duration = Duration::from_secs(14 * 24 * 3600);

/// The content for `clients` clients, with an image for each of `systems`. Missing images are made and put into the cache.
///
/// # Errors
/// There is no space, a program that makes file systems is missing or fails, the kernel refuses, or a signal came. Incomplete images are
/// removed.
pub fn ensure(
    environment: &Environment<'_>,
    corpus: &Corpus,
    clients: u32,
    systems: &[FileSystem],
) -> Result<Content> {
    let cache = &environment.cache.join("web");
    eke_bench_core::cache::make(cache).map_err(on("use the cache", cache))?;
    eke_bench_core::test_image::sweep_dir(environment.root, cache)?;
    let stem = cache.join(format!("web-{:016x}", key(corpus, clients)));
    let mut content = Content { files: classes::files(clients), properties: Properties::default(), stem };
    remove_old(cache, &content.stem, SystemTime::now())?;
    let known = read(&content.list());
    let is_made = |fs: FileSystem| known.is_some() && content.image(fs).is_file();
    // The other images are copied from the ext4 image.
    let needed = [FileSystem::Ext4].iter().chain(systems.iter().filter(|fs| **fs != FileSystem::Ext4));
    let missing: Vec<FileSystem> = needed.copied().filter(|fs| !is_made(*fs)).collect();
    check_space(cache, &content.files, &missing)?;
    content.properties = known.unwrap_or_default();
    for fs in missing {
        make::image(environment, cache, corpus, &mut content, fs)?;
        if fs == FileSystem::Ext4 {
            write(&content.list(), &content.properties)?;
        }
    }
    mark_used(&content);
    Ok(content)
}

/// The key of a content: equal for the same corpus and number of clients.
fn key(corpus: &Corpus, clients: u32) -> u64 {
    let mut hash = XxHash64::with_seed(VERSION);
    hash.write_u32(clients);
    for (path, size) in &corpus.files {
        hash.write(path.as_os_str().as_encoded_bytes());
        hash.write_u64(*size);
    }
    hash.finish()
}

/// Whether the images of these files fit.
pub(super) fn check_space(cache: &Path, files: &[FileSpec], missing: &[FileSystem]) -> Result<()> {
    let need = Bytes(missing.iter().map(|fs| fs.most(files)).sum());
    let free = rustix::fs::statvfs(cache).map_err(on("read the free space of", cache))?;
    let free = Bytes(free.f_bavail * free.f_frsize);
    if free < need { Err(Error::Space { need, free, dir: cache.to_owned() }) } else { Ok(()) }
}

fn read(list: &Path) -> Option<Properties> {
    serde_json::from_reader(File::open(list).ok()?).ok()
}

fn write(list: &Path, properties: &Properties) -> Result<()> {
    let new = list.with_extension("new");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).open(&new).map_err(on("make", &new))?;
    serde_json::to_writer(file, properties).map_err(on("write", &new))?;
    Ok(std::fs::rename(&new, list).map_err(on("make", list))?)
}

/// Sets the time of the last use.
fn mark_used(content: &Content) {
    if let Ok(file) = File::open(content.list()) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes contents that were unused for [`UNUSED_FOR`], and the oldest beyond [`KEPT`], but never the one at `stem`.
fn remove_old(cache: &Path, stem: &Path, now: SystemTime) -> Result<()> {
    let mut last_used: BTreeMap<PathBuf, SystemTime> = BTreeMap::new();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(cache).map_err(on("list", cache))?.flatten() {
        let of = entry.path().with_extension("");
        if !entry.file_name().to_string_lossy().starts_with("web-") || of == stem {
            continue;
        }
        let used = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(now);
        let last = last_used.entry(of).or_insert(used);
        *last = used.max(*last);
        files.push(entry.path());
    }
    let mut by_age: Vec<(SystemTime, PathBuf)> = last_used.into_iter().map(|(of, used)| (used, of)).collect();
    by_age.sort();
    let too_many = by_age.len().saturating_sub(KEPT - 1);
    let old = |at: usize, used: SystemTime| {
        at < too_many || now.duration_since(used).is_ok_and(|unused| unused > UNUSED_FOR)
    };
    let gone: Vec<&PathBuf> =
        by_age.iter().enumerate().filter(|(at, (used, _))| old(*at, *used)).map(|(_, (_, of))| of).collect();
    for file in files.iter().filter(|file| gone.contains(&&file.with_extension(""))) {
        std::fs::remove_file(file).map_err(on("remove", file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_corpus_and_clients() {
        let corpus = |size| Corpus { files: vec![("/a".into(), size)], about: String::new() };
        assert_eq!(key(&corpus(1), 5), key(&corpus(1), 5));
        assert_ne!(key(&corpus(1), 5), key(&corpus(2), 5));
        assert_ne!(key(&corpus(1), 5), key(&corpus(1), 6));
    }

    #[test]
    fn an_error_about_space_names_the_need() {
        let dir = tempfile::tempdir().unwrap();
        let files = [FileSpec { path: "large".to_owned(), bytes: 1 << 60 }];
        let refused = check_space(dir.path(), &files, &[FileSystem::Ext4, FileSystem::Btrfs]);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("GiB") && error.contains("XDG_CACHE_HOME"), "{error}");
        assert!(check_space(dir.path(), &files, &[]).is_ok(), "nothing to make");
    }

    #[test]
    fn only_old_contents_are_removed_and_never_the_current_one() {
        let cache = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let days = [("a", 20), ("b", 9), ("c", 1), ("d", 2), ("e", 3), ("f", 4), ("current", 100)];
        for (name, age_days) in days {
            for ending in ["ext4", "json"] {
                let path = cache.path().join(format!("web-{name}.{ending}"));
                let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
                file.set_modified(now - Duration::from_secs(age_days * 86_400)).unwrap();
            }
        }
        remove_old(cache.path(), &cache.path().join("web-current"), now).unwrap();
        let entries = std::fs::read_dir(cache.path()).unwrap();
        let mut left: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        left.retain(|name| name.ends_with("json"));
        assert_eq!(left, ["web-c.json", "web-current.json", "web-d.json", "web-e.json"]);
    }
}
