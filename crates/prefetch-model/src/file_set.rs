//! What a launch touches.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::pages::Pages;
use crate::system::is_system;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory that was searched or listed. Reading its entries is what brings it into memory.
    Directory,
    /// The block device of a file system. Its pages are the file system's metadata: ext4 keeps inode tables, directories and extents in the device's
    /// page cache.
    Device,
}

/// Identifies one version of a file. If it is another one ([`is_same_file`]), its learned pages are void. `dev` is compared only within a boot,
/// because device numbers change across boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// `st_dev`; the device's own number for a block device.
    pub dev: u64,
    /// `st_ino`; for a block device a hash of its file system's UUID, 0 if that is unknown.
    pub ino: u64,
    /// `st_size` in bytes; 0 for directories and devices.
    pub size: u64,
    /// `st_mtime` in nanoseconds since 1970; 0 for directories and devices.
    pub mtime_ns: i64,
}

/// Whether the file at `path` is still the one that was learned. Upgrades replace a package's files. Others are often changed by their own program, as a
/// profile's database is, or written anew and renamed, as its settings are, and launches go on using the same pages: so their path counts. Reading a page
/// that is not used any more does no more harm than that.
pub fn is_same_file(path: &Path, learned: &Stamp, now: &Stamp) -> bool {
    let version = |stamp: &Stamp| (stamp.ino, stamp.size, stamp.mtime_ns);
    !is_system(path) || version(learned) == version(now)
}

/// Whether the file system on a block device is still the one that was learned, as far as both are known: names of devices may change with each boot.
pub fn is_same_file_system(learned: &Stamp, now: &Stamp) -> bool {
    learned.ino == now.ino || learned.ino == 0 || now.ino == 0
}

/// Whether eke reads a file of `owner` for a program that `user` starts: root's and the user's own. Every user could fill memory with the files of
/// others otherwise. System users are none of these: a service may run what anybody sends to it.
pub fn may_read_for(user: u32, owner: u32) -> bool {
    owner == 0 || owner == user
}

/// Whose launches use a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum UsedBy {
    /// An earlier eke learned it, or it was imported.
    #[default]
    Unknown,
    /// Those of one account.
    One(u32),
    /// Those of several accounts.
    Several,
}

impl UsedBy {
    /// The same after a launch of this account used it.
    pub fn and(self, account: u32) -> Self {
        match self {
            Self::Unknown => Self::One(account),
            Self::One(other) if other == account => self,
            Self::One(_) | Self::Several => Self::Several,
        }
    }

    /// Whether launches of this account use it, as far as that is known.
    fn may_be_of(self, account: u32) -> bool {
        !matches!(self, Self::One(other) if other != account)
    }
}

/// One file of a set, with its pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    /// Its path from the host's root.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Identifies its version.
    pub stamp: Stamp,
    /// The pages that launches used; none for a directory.
    pub pages: Pages,
    /// The subset of `pages` that no launch has used since the file's last review.
    pub stale: Pages,
    /// The share of recent launches that used the file, 0 to 1.
    pub weight: f32,
    /// Whose launches used it.
    pub used_by: UsedBy,
}

impl Touched {
    /// Whether it concerns launches of this account. The system's files, and file systems, concern all. Another one that one account's launches alone use,
    /// such as its profile, concerns no other account.
    pub fn concerns(&self, account: u32) -> bool {
        self.used_by.may_be_of(account) || self.kind == Kind::Device || is_system(&self.path)
    }
}

/// The files that a launch touches, in the order of first use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileSet {
    /// Each file once.
    pub files: Vec<Touched>,
}

impl FileSet {
    /// The part that is the system's. The device of a file system has pages of the machine's own layout.
    pub fn of_system(&self) -> Self {
        let is_part = |file: &&Touched| file.kind != Kind::Device && is_system(&file.path);
        Self { files: self.files.iter().filter(is_part).cloned().collect() }
    }

    /// Leaves out what concerns other accounts only.
    pub fn keep_for(&mut self, account: u32) {
        self.files.retain(|file| file.concerns(account));
    }

    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|touched| touched.pages.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_account_uses_concerns_others_once_they_use_it() {
        let (anna, bob) = (1000, 1001);
        let alone = UsedBy::Unknown.and(anna).and(anna);
        assert_eq!(alone, UsedBy::One(anna));
        assert!(alone.may_be_of(anna) && !alone.may_be_of(bob) && !alone.may_be_of(0));
        assert!(alone.and(bob).may_be_of(bob) && alone.and(bob).may_be_of(0));
        assert!(UsedBy::Unknown.may_be_of(bob));
    }

    #[test]
    fn files_of_packages_and_metadata_concern_all_accounts() {
        let (anna, bob) = (1000, 1001);
        let file = |path: &str, kind| Touched {
            path: path.into(),
            kind,
            stamp: Stamp::default(),
            pages: Pages::default(),
            stale: Pages::default(),
            weight: 1.0,
            used_by: UsedBy::One(anna),
        };
        let files = [
            file("/usr/lib/libxul.so", Kind::File),
            file("/usr/lib/firefox", Kind::Directory),
            file("/dev/sda1", Kind::Device),
            file("/home/anna/places.sqlite", Kind::File),
        ];
        let of = |account| {
            let mut set = FileSet { files: files.to_vec() };
            set.keep_for(account);
            set.files.len()
        };
        assert_eq!((of(anna), of(bob)), (4, 3));
    }

    #[test]
    fn an_unknown_file_system_is_the_same() {
        let of = |ino| Stamp { ino, ..Stamp::default() };
        let is_same = |learned, now| is_same_file_system(&of(learned), &of(now));
        assert!(is_same(7, 7) && is_same(0, 7) && is_same(7, 0) && !is_same(7, 8));
    }

    #[test]
    fn a_file_that_its_program_changes_is_the_same_file() {
        let learned = Stamp { dev: 1, ino: 12, size: 4096, mtime_ns: 17 };
        let is_same = |path: &str, now| is_same_file(Path::new(path), &learned, &now);
        let (other, longer) = (Stamp { ino: 13, ..learned }, Stamp { size: 5000, mtime_ns: 18, ..learned });
        assert!(is_same("/home/u/places.sqlite", longer) && is_same("/home/u/prefs.js", other));
        assert!(!is_same("/usr/lib/x.so", longer) && !is_same("/usr/lib/x.so", other));
        assert!(is_same("/usr/lib/x.so", Stamp { dev: 2, ..learned }), "its device is of one boot");
    }
}
