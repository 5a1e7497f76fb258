//! Finds programs that have files of a directory open for writing, before a mount covers it. They would go on using the backing files:
//! programs that open the same files through the mount would not meet their locks and would see their changes late.
//!
//! The source is `/proc`: writable descriptors, locks, and shared writable mappings. Only root sees those of other users' processes.

mod backing_dir;
pub(super) mod parse;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::read_dir;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use eke_cache_mounts::Mount as CacheMount;
use eke_cache_mounts::at;
use eke_linux::parse::mountinfo::Mount;
use eke_linux::parse::{maps, mountinfo};
use eke_linux::{Root, read};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::{Checked, Error};
use backing_dir::BackingDir;

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
    /// Programs whose working directory is in it: files that they open by relative names are backing files.
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
        let here = namespace(&Path::new(PROC).join("self")).unwrap_or_default();
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
        // A process within execve(2) is passed over: it can keep whoever looks at it waiting for ever.
        for pid in read::answering(&Root::host()) {
            if !self.ours.contains(&pid) {
                self.process(pid, cover, &mut found);
            }
        }
        found
    }

    fn process(&mut self, pid: u32, cover: Option<&CacheMount>, found: &mut FoundWriters) {
        let dir = Path::new(PROC).join(pid.to_string());
        let names = match read_dir(dir.join("fd")) {
            Ok(names) => names,
            Err(e) => {
                found.unseen |= e.kind() == ErrorKind::PermissionDenied;
                return;
            }
        };
        let numbers = names.flatten().filter_map(|e| e.file_name().into_string().ok());
        let space = namespace(&dir).unwrap_or_default();
        let here = space == self.here;
        let mounts = self
            .lists
            .entry(space)
            .or_insert_with(|| mountinfo::parse(&std::fs::read(dir.join("mountinfo")).unwrap_or_default()));
        let process = Process { proc: &dir, dir: &self.dir, mounts, here, cover };
        let what = numbers.into_iter().find_map(|number| process.open(&number)).or_else(|| process.mapped());
        let name = std::fs::read(dir.join("comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        if let Some(what) = what {
            found.writers.push(Writer { pid, name, what });
        } else if here && process.works_there() && !is_parent(pid) {
            found.workers.push(Writer { pid, name, what: "works there".into() });
        }
    }
}

/// Is it `eke cache mount` itself?
fn is_parent(pid: u32) -> bool {
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_pid().unsigned_abs() == pid)
}

/// The mount namespace of a process, given its directory in `/proc`.
fn namespace(process: &Path) -> Option<OsString> {
    std::fs::read_link(process.join("ns/mnt")).ok().map(Into::into)
}

struct Process<'a> {
    /// Its directory in `/proc`.
    proc: &'a Path,
    dir: &'a BackingDir,
    mounts: &'a [Mount],
    here: bool,
    cover: Option<&'a CacheMount>,
}

impl Process<'_> {
    fn open(&self, number: &str) -> Option<String> {
        let info = std::fs::read_to_string(self.proc.join("fdinfo").join(number)).ok()?;
        let info = parse::open(&info).filter(|i| i.writes || i.locked)?;
        let link = self.proc.join("fd").join(number);
        let path = std::fs::read_link(&link).ok().filter(|path| path.is_absolute())?;
        let mount = self.mounts.iter().find(|m| m.id == info.mount);
        let covered = self.cover.is_some_and(|cover| cover.id == info.mount);
        if covered || !self.dir.has(&path, mount, self.here) || !is_content(&link) {
            return None;
        }
        let how = if info.writes { "open for writing" } else { "locked" };
        Some(format!("has {path:?} {how}"))
    }

    fn mapped(&self) -> Option<String> {
        let text = std::fs::read(self.proc.join("maps")).ok()?;
        let covered = |device: &str| self.cover.is_some_and(|cover| cover.device.to_string() == device);
        let has = |path: &PathBuf| {
            let mount = mountinfo::mount_of(path, self.mounts);
            self.dir.has(path, mount, self.here)
        };
        let files = maps::parse(&text).into_iter().filter_map(parse::shared_writable);
        let mut files = files.filter(|(device, path)| !covered(device) && has(path));
        files.next().map(|(_, path)| format!("has {path:?} mapped for writing"))
    }

    fn works_there(&self) -> bool {
        let path = std::fs::read_link(self.proc.join("cwd"));
        path.is_ok_and(|path| path.starts_with(&self.dir.path))
    }
}

/// Is it a file or a pipe with a name, which others can open? Its file system is asked for no fresh attributes.
fn is_content(link: &Path) -> bool {
    let fields = StatxFlags::TYPE | StatxFlags::NLINK;
    statx(CWD, link, AtFlags::STATX_DONT_SYNC, fields).is_ok_and(|s| {
        let kind = FileType::from_raw_mode(s.stx_mode.into());
        s.stx_nlink > 0 && matches!(kind, FileType::RegularFile | FileType::Fifo)
    })
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
