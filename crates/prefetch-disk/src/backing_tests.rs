#![expect(clippy::disallowed_methods, reason = "test code")]

use std::fs;
use std::os::unix::fs::symlink;

use eke_linux::parse::mountinfo;
use rustix::fs::makedev;

use super::*;

/// A temporary sysfs.
struct Sysfs(tempfile::TempDir);

impl Sysfs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join("sys").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join("sys").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let up = "../".repeat(path.strip_prefix(self.0.path().join("sys")).unwrap().components().count() - 1);
        symlink(format!("{up}{target}"), path).unwrap();
    }

    /// A device at `path` below `devices`.
    fn device(&self, path: &str, number: &str) {
        let name = path.rsplit('/').next().unwrap();
        let dir = format!("devices/{path}");
        self.file(&format!("{dir}/dev"), &format!("{number}\n"));
        self.file(&format!("{dir}/uevent"), &format!("MAJOR=1\nDEVNAME={name}\nDEVTYPE=disk\n"));
        self.file(&format!("{dir}/size"), "2048\n");
        self.link(&format!("dev/block/{number}"), &dir);
        self.link(&format!("class/block/{name}"), &dir);
    }

    fn disk(&self, name: &str, number: &str, rotational: &str) {
        self.device(name, number);
        self.file(&format!("devices/{name}/queue/rotational"), rotational);
    }

    fn partition(&self, disk: &str, name: &str, number: &str) {
        self.device(&format!("{disk}/{name}"), number);
        self.file(&format!("devices/{disk}/{name}/partition"), "1\n");
    }

    fn slave(&self, of: &str, disk: &str) {
        let name = disk.rsplit('/').next().unwrap();
        self.link(&format!("devices/{of}/slaves/{name}"), &format!("devices/{disk}"));
    }

    fn backing(&self, mountinfo: &str, path: &str) -> Backing {
        let mounts = mountinfo::parse(mountinfo.as_bytes());
        backing(&Root::at(self.0.path()), mount_of(Path::new(path), &mounts).unwrap(), &mounts)
    }
}

fn names(storage: &Storage) -> Vec<&str> {
    match storage {
        Storage::Disks(disks) => disks.iter().map(|disk| disk.name.as_str()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_partition_is_on_its_disk() {
    let sysfs = Sysfs::new();
    sysfs.disk("sda", "8:0", "1\n");
    sysfs.partition("sda", "sda2", "8:2");
    let backing = sysfs.backing("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n", "/usr/bin/x");
    let disk =
        Block { name: "sda".into(), dev: makedev(8, 0), size_bytes: 1 << 20, reports_rotational: true };
    assert_eq!(backing.storage, Storage::Disks(vec![disk]));
    assert_eq!(backing.through, ["sda2", "sda"]);
    let own = backing.own.unwrap();
    assert_eq!((own.name.as_str(), own.dev, own.reports_rotational), ("sda2", makedev(8, 2), true));
    assert!(!backing.cached_between);
}

#[test]
fn an_encrypted_volume_on_a_raid_is_on_all_its_disks() {
    let sysfs = Sysfs::new();
    for (disk, number, partition, its) in [("sda", "8:0", "sda1", "8:1"), ("sdb", "8:16", "sdb1", "8:17")] {
        sysfs.disk(disk, number, "0\n");
        sysfs.partition(disk, partition, its);
    }
    sysfs.disk("md0", "9:0", "0\n");
    sysfs.slave("md0", "sdb/sdb1");
    sysfs.slave("md0", "sda/sda1");
    sysfs.disk("dm-0", "253:0", "0\n");
    sysfs.slave("dm-0", "md0");
    let backing = sysfs.backing("22 1 253:0 / / rw - xfs /dev/mapper/root rw\n", "/x");
    assert_eq!(names(&backing.storage), ["sda", "sdb"]);
    assert_eq!(backing.through, ["dm-0", "md0", "sda1", "sda", "sdb1", "sdb"]);
}

#[test]
fn a_loop_device_is_on_the_disk_of_its_file_if_that_has_one() {
    let sysfs = Sysfs::new();
    sysfs.disk("vda", "254:0", "1\n");
    sysfs.disk("loop0", "7:0", "0\n");
    sysfs.file("devices/loop0/loop/backing_file", "/images/snap.img\n");
    sysfs.file("devices/loop0/loop/dio", "0\n");
    let host = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 7:0 / /snap rw - squashfs /dev/loop0 ro\n";
    let backing = sysfs.backing(host, "/snap/bin/x");
    assert_eq!((names(&backing.storage), backing.cached_between), (vec!["vda"], true));
    sysfs.file("devices/loop0/loop/dio", "1\n");
    assert!(!sysfs.backing(host, "/snap/bin/x").cached_between);

    let by_fuse = format!("{host}31 22 0:44 / /images rw - fuse.image server rw\n");
    let backing = sysfs.backing(&by_fuse, "/snap/bin/x");
    assert_eq!(names(&backing.storage), ["loop0"], "a server has no counters, the loop device has");
    assert_eq!(backing.through, ["loop0"]);
}

#[test]
fn a_loop_on_itself_ends() {
    let sysfs = Sysfs::new();
    sysfs.disk("loop0", "7:0", "0\n");
    sysfs.file("devices/loop0/loop/backing_file", "/mnt/own\n");
    let backing = sysfs.backing("30 22 7:0 / /mnt rw - ext4 /dev/loop0 rw\n", "/mnt/x");
    assert_eq!(names(&backing.storage), ["loop0"]);
}

#[test]
fn btrfs_is_found_by_its_source_and_has_all_its_devices() {
    let sysfs = Sysfs::new();
    for (disk, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        sysfs.disk(disk, number, "0\n");
    }
    sysfs.link("fs/btrfs/uuid-a/devices/sdc", "devices/sdc");
    sysfs.link("fs/btrfs/uuid-b/devices/sda", "devices/sda");
    sysfs.link("fs/btrfs/uuid-b/devices/sdb", "devices/sdb");
    let text =
        "22 1 0:21 /@ / rw - btrfs /dev/sda rw,subvol=/@\n23 22 0:21 /@home /home rw - btrfs /dev/sda rw\n";
    assert_eq!(names(&sysfs.backing(text, "/home/x").storage), ["sda", "sdb"]);
}

#[test]
fn an_overlay_is_on_the_disks_of_its_directories() {
    let sysfs = Sysfs::new();
    sysfs.disk("sda", "8:0", "0\n");
    sysfs.disk("sdb", "8:16", "0\n");
    let text = "22 1 8:0 / / rw - ext4 /dev/sda rw\n23 22 8:16 / /var/lib rw - ext4 /dev/sdb rw\n\
        40 22 0:50 / /run/c rw - overlay overlay rw,lowerdir=/var/lib/a\\:b:/var/lib/c,upperdir=/up,workdir=/w\n";
    assert_eq!(names(&sysfs.backing(text, "/run/c/bin").storage), ["sda", "sdb"]);
    let own = "40 22 0:50 / / rw - overlay overlay rw,lowerdir=/a\n";
    assert!(matches!(sysfs.backing(own, "/x").storage, Storage::Unknown(_)), "an overlay on itself ends");
}

#[test]
fn storage_without_a_disk_is_reported() {
    let sysfs = Sysfs::new();
    let table = [
        ("nfs4 server:/x", Storage::Network),
        ("fuse.sshfs me@server:", Storage::Network),
        ("tmpfs tmpfs", Storage::Memory),
    ];
    for (words, expected) in table {
        assert_eq!(
            sysfs.backing(&format!("22 1 0:30 / /m rw - {words} rw\n"), "/m/x").storage,
            expected,
            "{words}"
        );
    }
    for words in ["zfs tank/root", "ext4 /dev/gone"] {
        let backing = sysfs.backing(&format!("22 1 0:30 / /m rw - {words} rw\n"), "/m/x");
        assert!(matches!(backing.storage, Storage::Unknown(_)), "{backing:?}");
    }
}

#[test]
fn what_is_on_an_encrypted_device_is_encrypted() {
    let sysfs = Sysfs::new();
    sysfs.disk("sda", "8:0", "0\n");
    sysfs.disk("dm-0", "253:0", "0\n");
    sysfs.file("devices/dm-0/dm/uuid", "CRYPT-LUKS2-6f1c-home\n");
    sysfs.slave("dm-0", "sda");
    sysfs.disk("dm-1", "253:1", "0\n");
    sysfs.file("devices/dm-1/dm/uuid", "LVM-abc\n");
    sysfs.slave("dm-1", "dm-0");
    let text = "22 1 8:0 / / rw - ext4 /dev/sda rw\n30 22 253:1 / /home rw - xfs /dev/mapper/vg-home rw\n";
    let mounts = mountinfo::parse(text.as_bytes());
    let is = |path: &str| {
        is_encrypted(&Root::at(sysfs.0.path()), mount_of(Path::new(path), &mounts).unwrap(), &mounts)
    };
    assert!(is("/home/u/x") && !is("/usr/x"));
}
