//! This host's mounts, read again when they change.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::device::Device;
use eke_linux::parse::file_system::{is_on_disk, may_hang};
use eke_linux::parse::mountinfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, fstat, statx};

use super::lookup;
use super::mount_index::{HostPath, MountIndex};
use crate::file::file_system;
use crate::file::open::stamp;
use eke_prefetch_disk::backing::is_encrypted;
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::learn::TracedFile;
use eke_prefetch_model::program::Program;
use eke_prefetch_model::system::is_system;
use eke_prefetch_model::version::{self, Versioned};

const MOUNTINFO: &str = "proc/self/mountinfo";
/// File systems with a key for a directory (fscrypt).
const WITH_KEYS: [&str; 3] = ["ext4", "f2fs", "ubifs"];
/// File systems that encrypt what they write to another one.
const ENCRYPTING: [&str; 5] = ["ecryptfs", "fuse.cryfs", "fuse.encfs", "fuse.gocryptfs", "fuse.securefs"];
/// The begin of the name of an AppImage's mount point.
const APP_IMAGE: &[u8] = b".mount_";
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The mounts and block devices of this host.
#[derive(Debug)]
pub struct Mounts {
    root: Root,
    /// Signals changes by poll(2) (proc_pid_mounts(5), since Linux 2.6.15).
    changes: Option<File>,
    index: MountIndex,
    devices: HashMap<Device, Option<(PathBuf, Stamp)>>,
}

impl Mounts {
    /// Reads the current mounts.
    pub fn read(root: &Root) -> Self {
        let changes = File::open(root.path(MOUNTINFO)).ok();
        let mut mounts =
            Self { root: root.clone(), changes, index: MountIndex::default(), devices: HashMap::new() };
        mounts.read_again();
        mounts
    }

    fn read_again(&mut self) {
        // Without a free descriptor the mounts stay as they were, and are read at the next change.
        let Ok(text) = self.root.read_bytes(MOUNTINFO) else { return };
        self.index = MountIndex::new(mountinfo::parse(&text));
        self.devices.clear();
    }

    /// Reads them again if they changed; returns whether they may have.
    pub fn refresh(&mut self) -> bool {
        let Some(file) = &self.changes else {
            self.read_again();
            return true;
        };
        let mut fds = [PollFd::new(file, PollFlags::PRI)];
        let has_changed = poll(&mut fds, Some(&NO_WAIT))
            .is_ok_and(|_| fds[0].revents().intersects(PollFlags::PRI | PollFlags::ERR));
        if has_changed {
            self.read_again();
        }
        has_changed
    }

    /// The host's path of an executable. `None` in the mount of an AppImage, which is another one at each start.
    pub fn executable(&self, device: Device, inside: &Path) -> Option<PathBuf> {
        let HostPath { path, kind } = self.find(device, inside)?;
        let is_image = kind.starts_with("fuse.")
            && path.iter().any(|name| name.as_encoded_bytes().starts_with(APP_IMAGE));
        (!is_image).then_some(path)
    }

    /// Where file systems of this machine's disks are mounted, one place for each.
    pub fn places(&self) -> Vec<PathBuf> {
        self.index.places()
    }

    /// The host's path of a file.
    pub fn find(&self, device: Device, inside: &Path) -> Option<HostPath<'_>> {
        self.index.find(device, inside)
    }

    /// The type of a mounted file system.
    pub fn kind(&self, device: Device) -> Option<&str> {
        self.index.kind(device)
    }

    /// Whether a path leads to this file system, by the mounts alone, and a lookup cannot hang.
    pub fn shows(&self, device: Device, path: &Path) -> bool {
        self.index.device_at(path) == Some(device) && self.index.answers(path)
    }

    /// The program, without a script that is no regular file of this host: that is an argument that was taken for one, or a path of a container. An
    /// argument may be private.
    pub fn checked(&self, program: Program) -> Program {
        let is_script =
            |script: &PathBuf| !script.is_absolute() || self.leads_to(script, FileType::RegularFile);
        Program { script: program.script.filter(is_script), ..program }
    }

    /// Whether a program was removed: its executable or its script is no file any more.
    pub fn lacks(&self, program: &Program) -> bool {
        self.is_gone(&program.exe) || program.script.as_deref().is_some_and(|script| self.is_gone(script))
    }

    /// Whether a learned file was removed, with its directory or without it. `stamp.dev` is 0 if it was not seen since the boot.
    pub fn misses(&self, path: &Path, stamp: &Stamp) -> bool {
        let is_mounted = || self.index.device_at(path).is_some_and(|device| device.st_dev() == stamp.dev);
        self.is_gone(path) || is_mounted() && self.index.answers(path) && self.kind_at(path).is_none()
    }

    /// Whether a file is gone, and not only the mount that it is on: its directory is here without it, and is no empty mount point. A package's directories
    /// go with it, and so does that of a version.
    fn is_gone(&self, path: &Path) -> bool {
        let is_here = |dir: &Path| self.leads_to(dir, FileType::Directory);
        if let Some(Versioned { dir, .. }) = version::of(path) {
            return self.index.answers(&dir) && !is_here(&dir) && dir.parent().is_some_and(is_here);
        }
        let is_filled =
            |dir: &Path| lookup::is_filled(&self.root.path(""), dir, &|at| self.index.answers(at));
        let dirs = path.ancestors().skip(1).take_while(|dir| dir.parent().is_some());
        let mut dirs = dirs.take(if is_system(path) { usize::MAX } else { 1 });
        self.index.answers(path) && !self.leads_to(path, FileType::RegularFile) && dirs.any(is_filled)
    }

    /// The stamp and the owner of a regular file.
    pub fn stat(&self, path: &Path) -> Option<(Stamp, u32)> {
        let stat = fstat(&self.look_up(path)?).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| (stamp(&stat), stat.st_uid))
    }

    /// Without waiting, whatever somebody puts into the way meanwhile.
    fn look_up(&self, path: &Path) -> Option<OwnedFd> {
        let place = &self.index.mount_at(path)?.place;
        lookup::in_mount(&self.root.path(""), place, path, &|path| self.index.answers(path))
    }

    /// Whether names in a directory are encrypted on their disk: by dm-crypt, by the file system, or by a key of the directory (fscrypt). `None` if the
    /// directory may have a key, and cannot be asked without waiting, as below an automatic mount.
    pub fn encrypts(&self, dir: &Path) -> Option<bool> {
        let Some(mount) = self.index.mount_at(dir) else { return Some(false) };
        if ENCRYPTING.contains(&mount.kind.as_str()) || is_encrypted(&self.root, mount, self.index.mounts()) {
            return Some(true);
        }
        if WITH_KEYS.contains(&mount.kind.as_str()) { self.has_key(dir, &mount.place) } else { Some(false) }
    }

    /// A directory inherits the key of the one that it is in, and shows it also if it is gone now.
    fn has_key(&self, dir: &Path, place: &Path) -> Option<bool> {
        let mut dirs = dir.ancestors().take_while(|dir| dir.starts_with(place));
        let nearest = dirs.find_map(|dir| self.look_up(dir))?;
        let found = statx(&nearest, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE).ok()?;
        Some(found.stx_attributes.contains(StatxAttributes::ENCRYPTED))
    }

    fn leads_to(&self, path: &Path, kind: FileType) -> bool {
        self.kind_at(path) == Some(kind)
    }

    fn kind_at(&self, path: &Path) -> Option<FileType> {
        lookup::kind(&self.root.path(""), path, &|path| self.index.answers(path))
    }

    /// The file at a path inside a file system; `None` if it cannot be prefetched. btrfs gives each subvolume its own `st_dev`, which only stat(2)
    /// reports.
    pub fn file(
        &self,
        device: Device,
        inside: &Path,
        kind: Kind,
        stamp: Stamp,
        owner: u32,
    ) -> Option<TracedFile> {
        let can_be_read = |kind: &str| is_on_disk(kind) && !may_hang(kind);
        let found = self.find(device, inside).filter(|found| can_be_read(found.kind))?;
        let dev = match found.kind {
            "btrfs" | "bcachefs" => self.st_dev(&found.path).unwrap_or(stamp.dev),
            _ => stamp.dev,
        };
        Some(TracedFile { path: found.path, kind, stamp: Stamp { dev, ..stamp }, owner })
    }

    #[allow(clippy::unnecessary_cast, reason = "the field's type differs between architectures")]
    fn st_dev(&self, path: &Path) -> Option<u64> {
        Some(fstat(&self.look_up(path)?).ok()?.st_dev as u64)
    }

    /// A block device, such as `/dev/sda1`, by the UUID of its file system where that is known: root's, because nobody owns a part of its metadata.
    pub fn device(&mut self, device: Device) -> Option<TracedFile> {
        let root = &self.root;
        let (path, stamp) =
            self.devices.entry(device).or_insert_with(|| device_file(root, device)).clone()?;
        Some(TracedFile { path, kind: Kind::Device, stamp, owner: 0 })
    }
}

fn device_file(root: &Root, device: Device) -> Option<(PathBuf, Stamp)> {
    let (node, dev) = (device_node(root, device)?, device.st_dev());
    let udev = root.read(file_system::udev_file(dev)).unwrap_or_default();
    let stamp = Stamp { dev, ino: file_system::of_udev(&udev), ..Stamp::default() };
    Some((file_system::path(&udev).unwrap_or(node), stamp))
}

fn device_node(root: &Root, device: Device) -> Option<PathBuf> {
    let uevent = root.read(format!("sys/dev/block/{}:{}/uevent", device.major, device.minor)).ok()?;
    let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_stamp_of_its_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| eke_testkit::tree::put(dir.path(), path, text);
        put("sys/dev/block/8:1/uevent", "MAJOR=8\nMINOR=1\nDEVNAME=sda1\n");
        let device = Device { major: 8, minor: 1 };
        let found = || Mounts::read(&Root::at(dir.path())).device(device).unwrap();
        assert_eq!((found().path, found().stamp.ino), (PathBuf::from("/dev/sda1"), 0), "without udev");
        let udev = "E:ID_FS_UUID=a-1\n";
        put("run/udev/data/b8:1", udev);
        assert_eq!((found().stamp.dev, found().stamp.ino), (device.st_dev(), file_system::of_udev(udev)));
        let named = |name: &str| {
            put("sys/dev/block/8:1/uevent", &format!("MAJOR=8\nMINOR=1\nDEVNAME={name}\n"));
            found().path
        };
        assert_eq!(
            [named("sda1"), named("sdb1")],
            ["/dev/disk/by-uuid/a-1"; 2].map(PathBuf::from),
            "whatever its name"
        );
    }

    #[test]
    fn what_was_removed_is_told_from_what_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        for file in [
            "usr/bin/vim",
            "home/u/x.sh",
            "snap/code/5/code",
            "nix/store/a-vim-9/bin/vim",
            "snap/mounted-later/5/.keep",
            "srv/auto/.keep",
            "home/b/file",
        ] {
            eke_testkit::tree::put(dir.path(), file, "");
        }
        for mounted_later in ["home/anna", "opt"] {
            std::fs::create_dir(dir.path().join(mounted_later)).unwrap();
        }
        eke_testkit::tree::put(dir.path(), MOUNTINFO, "21 1 0:40 / /srv/auto rw - autofs systemd-1 rw\n");
        let mounts = Mounts::read(&Root::at(dir.path()));
        for (exe, script, expected) in [
            ("/usr/bin/vim", None, false),
            ("/usr/bin/gvim", None, true),
            ("/usr/lib/firefox/firefox", None, true),
            ("/opt/zoom/zoom", None, false),
            ("/usr/bin/vim", Some("/home/u/x.sh"), false),
            ("/usr/bin/vim", Some("/home/u/y.sh"), true),
            ("/home/u/app/app", None, false),
            ("/home/b/Foo.AppImage", None, true),
            ("/home/anna/Foo.AppImage", None, false),
            ("/usr/bin/vim", Some("/home/anna/run.sh"), false),
            ("/srv/auto/x", None, false),
            ("/snap/code/5/code", None, false),
            ("/snap/code/4/code", None, true),
            ("/snap/gone/4/code", None, false),
            ("/snap/mounted-later/5/code", None, false),
            ("/nix/store/a-vim-9/bin/vim", None, false),
            ("/nix/store/b-vim-8/bin/vim", None, true),
        ] {
            let program = Program { script: script.map(Into::into), ..Program::of_exe(exe) };
            assert_eq!(mounts.lacks(&program), expected, "{program}");
        }
    }

    #[test]
    fn a_file_whose_directory_was_removed_is_missed_where_it_was_seen_since_the_boot() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 8:2 / /home rw - ext4 /dev/sda2 rw\n";
        eke_testkit::tree::put(dir.path(), MOUNTINFO, mounts);
        eke_testkit::tree::put(dir.path(), "home/u/here", "");
        let mounts = Mounts::read(&Root::at(dir.path()));
        for (path, minor, expected) in [
            ("/home/u/mail/1", 2, true),
            ("/home/u/mail/1", 1, false),
            ("/home/u/here", 2, false),
            ("/home/u/gone", 1, true),
        ] {
            let stamp = Stamp { dev: Device { major: 8, minor }.st_dev(), ..Stamp::default() };
            assert_eq!(mounts.misses(Path::new(path), &stamp), expected, "{path} on 8:{minor}");
        }
        assert!(!mounts.misses(Path::new("/home/u/mail/1"), &Stamp::default()), "it may not be mounted");
    }

    #[test]
    fn what_cannot_be_asked_for_its_key_may_have_one() {
        let dir = tempfile::tempdir().unwrap();
        eke_testkit::tree::put(dir.path(), "home/u/file", "");
        let encrypts = |automatic: &str, kind: &str| {
            let mounts = format!(
                "20 1 8:1 / / rw - xfs /dev/sda1 rw\n{automatic}22 20 8:2 / /home rw - {kind} /dev/sda2 rw\n"
            );
            eke_testkit::tree::put(dir.path(), MOUNTINFO, &mounts);
            Mounts::read(&Root::at(dir.path())).encrypts(Path::new("/home/u"))
        };
        let automatic = "21 20 0:50 / /home rw - autofs systemd-1 rw\n";
        assert_eq!(encrypts("", "ext4"), Some(false));
        assert_eq!((encrypts(automatic, "ext4"), encrypts(automatic, "f2fs")), (None, None));
        assert_eq!(encrypts(automatic, "xfs"), Some(false), "it has no keys");
    }

    #[test]
    fn what_may_never_answer_is_not_learned() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      21 20 0:40 / /home/u/server rw - fuse.sshfs u@server: rw\n\
                      22 20 0:41 / /tmp/.mount_editor3fX rw - fuse.editor.AppImage editor rw\n";
        eke_testkit::tree::put(dir.path(), MOUNTINFO, mounts);
        let mounts = Mounts::read(&Root::at(dir.path()));
        let device = |major, minor| Device { major, minor };
        let is_learned =
            |device| mounts.file(device, Path::new("/x"), Kind::File, Stamp::default(), 0).is_some();
        let [disk, server, image] = [device(8, 1), device(0, 40), device(0, 41)];
        assert_eq!([disk, server, image].map(is_learned), [true, false, false]);
        let is_program = |device| mounts.executable(device, Path::new("/bin/x")).is_some();
        assert_eq!([disk, server, image].map(is_program), [true, true, false]);
    }
}
