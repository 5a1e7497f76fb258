//! Which programs have files of a directory open for writing, before a mount covers it: they would go on below, and who opens the
//! file through the mount would not meet their locks and see their changes late.
//!
//! From `/proc`: descriptors that write or hold a lock, and mappings that others see. Of other users' processes only root sees these.

mod below;
mod parse;

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
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::{Checked, Error};
use below::Below;

/// That are named.
const NAMED: usize = 5;
const PROC: &str = "/proc";

/// A program with a file of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Its number.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// What it has: `has FILE open for writing` and the like.
    pub what: String,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Programs that write there, one entry each.
    pub writers: Vec<Writer>,
    /// Programs that work in it: what they open by relative names is below, not on the mount.
    pub workers: Vec<Writer>,
    /// Are there processes that could not be looked at?
    pub unseen: bool,
}

/// Looks, as often as is needed.
#[derive(Debug)]
pub struct Look {
    below: Below,
    /// The mounts that this process sees, before the cache's, and those of other namespaces.
    lists: HashMap<OsString, Vec<Mount>>,
    here: OsString,
}

impl Look {
    /// At what was checked; to be made before it is covered.
    pub fn new(checked: &Checked) -> Self {
        let mounts = mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default());
        let id = at::stat(&checked.dir).ok().and_then(|s| at::mount_of(checked.dir.as_fd(), &s));
        let below = Below::new(checked.place.clone(), id.unwrap_or(0), &mounts);
        let here = namespace(&Path::new(PROC).join("self")).unwrap_or_default();
        Self { below, lists: HashMap::from([(here.clone(), mounts)]), here }
    }

    /// Who is there now; what was opened through `cover`, the cache's own mount, does not count.
    pub fn find(&mut self, cover: Option<&CacheMount>) -> Found {
        let mut found = Found::default();
        let entries = read_dir(PROC).into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids.filter(|pid| *pid != std::process::id()) {
            self.process(pid, cover, &mut found);
        }
        found
    }

    fn process(&mut self, pid: u32, cover: Option<&CacheMount>, found: &mut Found) {
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
        let at = Process { dir: &dir, below: &self.below, mounts, here, cover };
        let what = numbers.into_iter().find_map(|number| at.open(&number)).or_else(|| at.mapped());
        let name = std::fs::read(dir.join("comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        if let Some(what) = what {
            found.writers.push(Writer { pid, name, what });
        } else if here && at.works_there() && !is_parent(pid) {
            found.workers.push(Writer { pid, name, what: "works there".into() });
        }
    }
}

/// `eke cache mount` itself.
fn is_parent(pid: u32) -> bool {
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_pid().unsigned_abs() == pid)
}

/// Of a process with this directory in `/proc`.
fn namespace(process: &Path) -> Option<OsString> {
    std::fs::read_link(process.join("ns/mnt")).ok().map(Into::into)
}

struct Process<'a> {
    dir: &'a Path,
    below: &'a Below,
    mounts: &'a [Mount],
    here: bool,
    cover: Option<&'a CacheMount>,
}

impl Process<'_> {
    fn open(&self, number: &str) -> Option<String> {
        let info = std::fs::read_to_string(self.dir.join("fdinfo").join(number)).ok()?;
        let info = parse::open(&info).filter(|i| i.writes || i.locked)?;
        let link = self.dir.join("fd").join(number);
        let path = std::fs::read_link(&link).ok().filter(|path| path.is_absolute())?;
        let mount = self.mounts.iter().find(|m| m.id == info.mount);
        let covered = self.cover.is_some_and(|cover| cover.id == info.mount);
        if covered || !self.below.has(&path, mount, self.here) || !is_content(&link) {
            return None;
        }
        let how = if info.writes { "open for writing" } else { "locked" };
        Some(format!("has {path:?} {how}"))
    }

    fn mapped(&self) -> Option<String> {
        let text = std::fs::read(self.dir.join("maps")).ok()?;
        let covered = |device: &str| self.cover.is_some_and(|cover| cover.device.to_string() == device);
        let has = |path: &PathBuf| {
            let mount = mountinfo::mount_of(path, self.mounts);
            self.below.has(path, mount, self.here)
        };
        let files = maps::parse(&text).into_iter().filter_map(parse::shared_writable);
        let mut files = files.filter(|(device, path)| !covered(device) && has(path));
        files.next().map(|(_, path)| format!("has {path:?} mapped for writing"))
    }

    fn works_there(&self) -> bool {
        let path = std::fs::read_link(self.dir.join("cwd"));
        path.is_ok_and(|path| path.starts_with(&self.below.path))
    }
}

/// A file or a pipe that has a name, and so can be opened by others. Its file system is not asked for news.
fn is_content(link: &Path) -> bool {
    let asked = StatxFlags::TYPE | StatxFlags::NLINK;
    statx(CWD, link, AtFlags::STATX_DONT_SYNC, asked).is_ok_and(|s| {
        let kind = FileType::from_raw_mode(s.stx_mode.into());
        s.stx_nlink > 0 && matches!(kind, FileType::RegularFile | FileType::Fifo)
    })
}

impl Found {
    /// Is nobody in the way?
    ///
    /// # Errors
    /// Who is.
    pub fn none(&self, checked: &Checked) -> Result<(), Error> {
        if self.writers.is_empty() {
            return Ok(());
        }
        Err(Error::Written { place: checked.place.clone(), by: list(&self.writers) })
    }

    /// What whoever mounts should know all the same: a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let unseen = self.unseen.then(|| {
            "only root sees what programs of other users have open below: files that they write there are not to be opened here"
                .to_owned()
        });
        let writers = (!self.writers.is_empty()).then(|| {
            format!(
                "these go on below, and do not meet who opens the same files here: {}",
                list(&self.writers)
            )
        });
        let workers = (!self.workers.is_empty()).then(|| {
            format!("these go on below until they enter the directory anew: {}", list(&self.workers))
        });
        unseen.into_iter().chain(writers).chain(workers).collect()
    }
}

/// Names are other users' words.
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
    fn names_are_harmless_and_bounded() {
        let writer =
            |pid| Writer { pid, name: "a\u{1b}[2J".into(), what: "has \"/f\" open for writing".into() };
        let found = Found { writers: (1..9).map(writer).collect(), ..Found::default() };
        let note = found.notes().remove(0);
        assert!(note.contains("a\\u{1b}[2J (1) has \"/f\" open for writing, "), "{note}");
        assert!(note.ends_with(", and 3 more") && !note.contains('\u{1b}'), "{note}");
    }
}
