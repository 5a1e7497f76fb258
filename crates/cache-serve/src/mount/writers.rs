//! Finds programs that have files of a directory open for writing, before a mount covers it. They would go on using the backing files:
//! programs that open the same files through the mount would not meet their locks and would see their changes late.
//!
//! The source is `/proc`: writable descriptors, locks, pipes with names, and shared writable mappings. Only root sees those of other users'
//! processes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use eke_cache_mounts::Mount as CacheMount;
use eke_cache_mounts::at;
use eke_cache_mounts::process::{OpenFile, Process};
use eke_linux::parse::maps::Mapping;
use eke_linux::parse::mountinfo::{self, Mount};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::backing_dir::BackingDir;
use super::{Checked, Error};

/// The most programs that a message names.
const NAMED: usize = 5;
const PROC: &str = "/proc";

/// A program that uses the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Its number.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// How: `has FILE open for writing` and the like.
    pub what: String,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct FoundWriters {
    /// Programs that write there, one entry each.
    pub writers: Vec<Writer>,
    /// Programs that have a directory of it open, or work there: files that they open by relative names are backing files.
    pub workers: Vec<Writer>,
    /// Were there processes that this user may not inspect?
    pub unseen: bool,
}

/// Scans `/proc`, as often as needed.
#[derive(Debug)]
pub struct WriterScan {
    dir: BackingDir,
    /// The mounts of each mount namespace; those of this one before the cache's mount.
    lists: HashMap<OsString, Vec<Mount>>,
    here: OsString,
    /// Processes that do not count.
    ours: Vec<u32>,
}

impl WriterScan {
    /// Prepares scans of the checked directory. Call it before the directory is covered.
    pub fn new(checked: &Checked) -> Self {
        let mounts = mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default());
        let id = at::stat(&checked.dir).ok().and_then(|s| at::mount_of(checked.dir.as_fd(), &s));
        let dir = BackingDir::new(checked.place.clone(), id.unwrap_or(0), &mounts);
        let here = Process::this(Path::new(PROC)).namespace().unwrap_or_default();
        Self { dir, lists: HashMap::from([(here.clone(), mounts)]), here, ours: vec![std::process::id()] }
    }

    /// Without these processes.
    pub fn without(mut self, ours: &[u32]) -> Self {
        self.ours.extend_from_slice(ours);
        self
    }

    /// Scans. Files that were opened through `cover`, the cache's own mount, do not count.
    pub fn scan(&mut self, cover: Option<&CacheMount>) -> FoundWriters {
        let mut found = FoundWriters::default();
        for process in Process::all(Path::new(PROC)) {
            if !self.ours.contains(&process.pid) {
                self.process(&process, cover, &mut found);
            }
        }
        found
    }

    fn process(&mut self, process: &Process, cover: Option<&CacheMount>, found: &mut FoundWriters) {
        let files: Vec<OpenFile> = match process.files() {
            Ok(files) => files.into_iter().filter(OpenFile::is_file_or_watch).collect(),
            Err(e) => {
                found.unseen |= e.kind() == ErrorKind::PermissionDenied;
                return;
            }
        };
        let space = process.namespace().unwrap_or_default();
        let here = space == self.here;
        let mounts = self.lists.entry(space).or_insert_with(|| mountinfo::parse(&process.mountinfo()));
        let use_of = Use { dir: &self.dir, mounts, here, cover };
        let what = files.iter().find_map(|file| use_of.open(file)).or_else(|| use_of.mapped(process));
        let (pid, name) = (process.pid, process.name());
        if let Some(what) = what {
            found.writers.push(Writer { pid, name, what });
        } else if let Some(what) = use_of.works(process, &files).filter(|_| !is_parent(pid)) {
            found.workers.push(Writer { pid, name, what });
        }
    }
}

/// Is it `eke cache mount` itself?
fn is_parent(pid: u32) -> bool {
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_pid().unsigned_abs() == pid)
}

/// How processes of a mount namespace use the directory.
struct Use<'a> {
    dir: &'a BackingDir,
    mounts: &'a [Mount],
    here: bool,
    cover: Option<&'a CacheMount>,
}

impl Use<'_> {
    fn open(&self, file: &OpenFile) -> Option<String> {
        let info = file.info()?;
        let path = self.there(&file.link, info.mount)?;
        let how = match kind(&file.link)? {
            FileType::Fifo => "open",
            FileType::RegularFile if info.writes => "open for writing",
            FileType::RegularFile if info.locked => "locked",
            _ => return None,
        };
        Some(format!("has {path:?} {how}"))
    }

    /// The path of what is open or worked in, if that is in the backing directory.
    fn there(&self, link: &Path, mount: u64) -> Option<PathBuf> {
        let path = std::fs::read_link(link).ok().filter(|path| path.is_absolute())?;
        let is_covered = self.cover.is_some_and(|cover| cover.id == mount);
        let mount = self.mounts.iter().find(|m| m.id == mount);
        (!is_covered && self.dir.has(&path, mount, self.here)).then_some(path)
    }

    fn mapped(&self, process: &Process) -> Option<String> {
        let covered = |m: &Mapping| self.cover.is_some_and(|cover| cover.device == m.device);
        let has = |m: &Mapping| self.dir.has(&m.path, mountinfo::mount_of(&m.path, self.mounts), self.here);
        let changes = |m: &Mapping| m.is_writable && m.is_shared && !m.is_deleted;
        let mapping = process.mappings().into_iter().find(|m| changes(m) && !covered(m) && has(m));
        mapping.map(|mapping| format!("has {:?} mapped for writing", mapping.path))
    }

    fn works(&self, process: &Process, files: &[OpenFile]) -> Option<String> {
        let is_there = |link: &PathBuf| mount_at(link).is_some_and(|mount| self.there(link, mount).is_some());
        if [process.working_directory(), process.root_directory()].iter().any(is_there) {
            return Some("works there".into());
        }
        files.iter().find_map(|file| {
            let path = self.there(&file.link, file.info()?.mount)?;
            (kind(&file.link)? == FileType::Directory).then(|| format!("has {path:?} open"))
        })
    }
}

/// The kind of an open file that has a name by which others can open it. Its file system is asked for no fresh attributes.
fn kind(link: &Path) -> Option<FileType> {
    let fields = StatxFlags::TYPE | StatxFlags::NLINK;
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, fields).ok()?;
    (found.stx_nlink > 0).then(|| FileType::from_raw_mode(found.stx_mode.into()))
}

/// The number of the mount that a link leads to.
fn mount_at(link: &Path) -> Option<u64> {
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID).ok()?;
    Some(found.stx_mnt_id)
}

impl FoundWriters {
    /// Checks that no program writes there.
    ///
    /// # Errors
    /// Names those that do.
    pub fn check_none(&self, checked: &Checked) -> Result<(), Error> {
        if self.writers.is_empty() {
            return Ok(());
        }
        Err(Error::Written { place: checked.place.clone(), by: list(&self.writers) })
    }

    /// Checks that no program writes there, nor has its working directory there, by which it may begin to.
    ///
    /// # Errors
    /// Names those that do.
    pub fn check_unused(&self, checked: &Checked) -> Result<(), Error> {
        let used: Vec<_> = self.writers.iter().chain(&self.workers).cloned().collect();
        if used.is_empty() {
            Ok(())
        } else {
            Err(Error::Used { place: checked.place.clone(), by: list(&used) })
        }
    }

    /// Warnings for the user if the mount is made all the same: a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let unseen = self.unseen.then(|| {
            "only root can see which backing files programs of other users have open; do not open here what they write there"
                .to_owned()
        });
        let writers = (!self.writers.is_empty()).then(|| {
            format!(
                "these programs go on using the backing files, and their locks do not work against programs that use the mount: {}",
                list(&self.writers)
            )
        });
        let workers = (!self.workers.is_empty()).then(|| {
            format!(
                "these programs use the backing directory until they enter the directory again: {}",
                list(&self.workers)
            )
        });
        unseen.into_iter().chain(writers).chain(workers).collect()
    }
}

/// A list of programs. Their names are escaped: other users choose them.
fn list(writers: &[Writer]) -> String {
    let named = writers.iter().take(NAMED);
    let mut names: Vec<_> =
        named.map(|w| format!("{} ({}) {}", w.name.escape_debug(), w.pid, w.what)).collect();
    if writers.len() > NAMED {
        names.push(format!("and {} more", writers.len() - NAMED));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_bounded() {
        let writer =
            |pid| Writer { pid, name: "a\u{1b}[2J".into(), what: "has \"/f\" open for writing".into() };
        let found = FoundWriters { writers: (1..9).map(writer).collect(), ..FoundWriters::default() };
        let note = found.notes().remove(0);
        assert!(note.contains("a\\u{1b}[2J (1) has \"/f\" open for writing, "), "{note}");
        assert!(note.ends_with(", and 3 more") && !note.contains('\u{1b}'), "{note}");
    }
}
