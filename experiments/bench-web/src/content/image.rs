//! Images of the content: which there are, where they are kept, and for how long.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_model::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::classes::{self, FileSpec};
use super::{Corpus, make};
use crate::error::{Error, Result};

/// Goes up when the same content makes other images.
const VERSION: u64 = 1;
/// So many contents stay in the cache.
const KEPT: usize = 4;
const UNUSED_FOR: Duration = Duration::from_secs(14 * 24 * 3600);

/// What the content lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileSystem {
    /// ext4, without journal: nothing is written when it is mounted to be read.
    Ext4,
    /// btrfs with `compress=zstd`, level 3.
    Btrfs,
    /// EROFS with LZ4HC in clusters of 64 KiB.
    Erofs,
}

impl FileSystem {
    /// As mount(2) calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
            Self::Erofs => "erofs",
        }
    }

    /// The most that its image takes on the disk, for so many bytes of files.
    pub fn most(self, bytes: u64) -> u64 {
        match self {
            Self::Ext4 => bytes + bytes / 16 + 64 * MIB,
            Self::Btrfs => bytes + bytes / 16 + 512 * MIB,
            Self::Erofs => bytes + bytes / 64 + MIB,
        }
    }
}

/// Files, and what is known of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Which.
    pub files: Vec<FileSpec>,
    /// What was seen when they were made.
    pub seen: Seen,
    stem: PathBuf,
}

/// What was seen when the bytes were made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Bytes for each byte packed by LZ4 in blocks of 64 KiB.
    pub ratio: f64,
    /// The hash of each file.
    pub hashes: Vec<u64>,
    /// What they were cut from.
    pub corpus: String,
}

impl Content {
    /// The file with this file system.
    pub fn image(&self, fs: FileSystem) -> PathBuf {
        self.stem.with_extension(fs.name())
    }

    /// What the file system's image takes on the disk.
    pub fn taken(&self, fs: FileSystem) -> Option<Bytes> {
        use std::os::unix::fs::MetadataExt;
        self.image(fs).metadata().ok().map(|meta| Bytes(meta.blocks() * 512))
    }

    /// All bytes of its files.
    pub fn total(&self) -> u64 {
        classes::total(&self.files)
    }

    fn list(&self) -> PathBuf {
        self.stem.with_extension("json")
    }
}

/// The content for so many clients, with an image for each of `systems`: from the cache, or made now and put there.
///
/// # Errors
/// No room, a program that makes file systems is missing or fails, the kernel's refusal, a signal. Nothing half-made is left.
pub fn ensure(
    environment: &Environment<'_>,
    corpus: &Corpus,
    clients: u32,
    systems: &[FileSystem],
) -> Result<Content> {
    let cache = &environment.cache.join("web");
    eke_bench_core::cache::make(cache).map_err(on("use the cache", cache))?;
    eke_bench_core::stage::sweep_dir(environment.root, cache)?;
    let stem = cache.join(format!("web-{:016x}", key(corpus, clients)));
    let mut content = Content { files: classes::files(clients), seen: Seen::default(), stem };
    forget_old(cache, &content.stem, SystemTime::now())?;
    let known = read(&content.list());
    let is_made = |fs: FileSystem| known.is_some() && content.image(fs).is_file();
    // The others are copied from the first.
    let wanted = [FileSystem::Ext4].iter().chain(systems.iter().filter(|fs| **fs != FileSystem::Ext4));
    let missing: Vec<FileSystem> = wanted.copied().filter(|fs| !is_made(*fs)).collect();
    check_room(cache, content.total(), &missing)?;
    content.seen = known.unwrap_or_default();
    for fs in missing {
        make::image(environment, cache, corpus, &mut content, fs)?;
        if fs == FileSystem::Ext4 {
            write(&content.list(), &content.seen)?;
        }
    }
    use_now(&content);
    Ok(content)
}

/// Whoever has the same corpus has the same content.
fn key(corpus: &Corpus, clients: u32) -> u64 {
    let mut hash = XxHash64::with_seed(VERSION);
    hash.write_u32(clients);
    for (path, size) in &corpus.files {
        hash.write(path.as_os_str().as_encoded_bytes());
        hash.write_u64(*size);
    }
    hash.finish()
}

fn check_room(cache: &Path, bytes: u64, missing: &[FileSystem]) -> Result<()> {
    let need = Bytes(missing.iter().map(|fs| fs.most(bytes)).sum());
    let free = rustix::fs::statvfs(cache).map_err(on("look for room in", cache))?;
    let free = Bytes(free.f_bavail * free.f_frsize);
    if free < need { Err(Error::Room { need, free, dir: cache.to_owned() }) } else { Ok(()) }
}

fn read(list: &Path) -> Option<Seen> {
    serde_json::from_reader(File::open(list).ok()?).ok()
}

fn write(list: &Path, seen: &Seen) -> Result<()> {
    let new = list.with_extension("new");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).open(&new).map_err(on("make", &new))?;
    serde_json::to_writer(file, seen).map_err(on("write", &new))?;
    Ok(std::fs::rename(&new, list).map_err(on("make", list))?)
}

fn use_now(content: &Content) {
    if let Ok(file) = File::open(content.list()) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes contents that nobody used for [`UNUSED_FOR`], and the oldest beyond [`KEPT`]; never the one at `stem`.
fn forget_old(cache: &Path, stem: &Path, now: SystemTime) -> Result<()> {
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
    fn another_corpus_or_another_number_of_clients_is_another_content() {
        let corpus = |size| Corpus { files: vec![("/a".into(), size)], about: String::new() };
        assert_eq!(key(&corpus(1), 5), key(&corpus(1), 5));
        assert_ne!(key(&corpus(1), 5), key(&corpus(2), 5));
        assert_ne!(key(&corpus(1), 5), key(&corpus(1), 6));
    }

    #[test]
    fn lack_of_room_says_how_much_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let said = check_room(dir.path(), 1 << 60, &[FileSystem::Ext4, FileSystem::Btrfs]);
        let said = said.unwrap_err().to_string();
        assert!(said.contains("GiB") && said.contains("XDG_CACHE_HOME"), "{said}");
        assert!(check_room(dir.path(), 1 << 60, &[]).is_ok(), "nothing to make");
    }

    #[test]
    fn only_old_contents_go_and_never_the_wanted_one() {
        let cache = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let days = [("a", 20), ("b", 9), ("c", 1), ("d", 2), ("e", 3), ("f", 4), ("wanted", 100)];
        for (name, age_days) in days {
            for ending in ["ext4", "json"] {
                let path = cache.path().join(format!("web-{name}.{ending}"));
                let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
                file.set_modified(now - Duration::from_secs(age_days * 86_400)).unwrap();
            }
        }
        forget_old(cache.path(), &cache.path().join("web-wanted"), now).unwrap();
        let entries = std::fs::read_dir(cache.path()).unwrap();
        let mut left: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        left.retain(|name| name.ends_with("json"));
        assert_eq!(left, ["web-c.json", "web-d.json", "web-e.json", "web-wanted.json"]);
    }
}
