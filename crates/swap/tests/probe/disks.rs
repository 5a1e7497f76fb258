//! The disks of swap areas, of files, and for writeback.

use eke_model::config::Settings;
use eke_swap::Swap;
use eke_swap::facts::DiskKind;

use crate::machine::Fake;

#[test]
fn the_disk_of_each_area_is_found() {
    let fake = Fake::new();
    fake.disk("sda", "sda2", "1\n", "0\n").disk("nvme0n1", "nvme0n1p2", "0\n", "0\n");
    fake.disk("mmcblk0", "mmcblk0p2", "0\n", "0\n").disk("vda", "vda2", "1\n", "0\n");
    fake.file("sys/block/dm-0/slaves/nvme0n1p2/x", "").file("sys/class/block/dm-0/size", "9\n");
    fake.file(
        "proc/self/mountinfo",
        "27 1 8:2 / / rw - ext4 /dev/sda2 rw\n28 27 0:50 / /net rw - nfs4 box:/x rw\n",
    );
    fake.swaps(
        "/swapfile file 1024 0 -2\n/dev/dm-0 partition 1024 0 -3\n/dev/mmcblk0p2 partition 1024 0 -4\n/net/swap file 1024 0 -5\n/dev/vda2 partition 1024 0 -6\n/dev/zram0 partition 1024 0 100\n",
    );
    fake.link("dev/mapper/swap", "../dm-0").file("sys/block/zram0/size", "2056\n");
    let facts = fake.facts();
    let kinds: Vec<(Option<&str>, DiskKind)> =
        facts.disk_areas.iter().map(|a| (a.device.as_deref(), a.kind)).collect();
    let expected = [
        (Some("sda"), DiskKind::Rotating),
        (Some("nvme0n1"), DiskKind::Solid),
        (Some("mmcblk0"), DiskKind::WearsOut),
        (None, DiskKind::Network),
        (Some("vda"), DiskKind::Unknown),
    ];
    assert_eq!(kinds, expected);
}

/// "nvme" is before "sd" by name.
#[test]
fn of_a_stack_of_disks_the_worst_one_counts() {
    let on = |block: &str, slaves: &[&str]| {
        let fake = Fake::new();
        fake.disk("sda", "sda1", "1\n", "0\n").disk("nvme0n1", "nvme0n1p1", "0\n", "0\n");
        fake.disk("mmcblk0", "mmcblk0p1", "0\n", "0\n");
        fake.file(&format!("sys/block/{block}/queue/rotational"), "0\n");
        fake.file(&format!("sys/class/block/{block}/size"), "9\n").file(&format!("dev/{block}"), "");
        slaves.iter().for_each(|slave| _ = fake.file(&format!("sys/block/{block}/slaves/{slave}/x"), ""));
        fake.file("sys/block/dm-1/slaves/sda1/x", "").file("sys/block/dm-2/slaves/dm-2/x", "");
        fake.swaps(&format!("/dev/{block} partition 1024 0 -2\n"));
        let area = fake.facts().disk_areas.remove(0);
        (area.device, area.kind)
    };
    let disk = |name: &str, kind| (Some(name.to_owned()), kind);
    assert_eq!(on("md1", &["nvme0n1p1", "sda1"]), disk("sda", DiskKind::Rotating));
    assert_eq!(on("dm-5", &["dm-1", "nvme0n1p1"]), disk("sda", DiskKind::Rotating), "a thin pool");
    assert_eq!(on("dm-5", &["mmcblk0p1", "sda1"]), disk("mmcblk0", DiskKind::WearsOut));
    assert_eq!(on("md1", &["nvme0n1p1"]), disk("nvme0n1", DiskKind::Solid));
    assert_eq!(on("dm-5", &["dm-2"]), (None, DiskKind::Unknown), "what lies on itself ends");
    assert_eq!(on("zd0", &[]), disk("zd0", DiskKind::Network), "a volume of ZFS");
}

/// A small SSD for the system, a large disk for everybody's files.
#[test]
fn home_directories_on_a_rotating_disk_beside_an_ssd_are_seen() {
    let with = |home: &str| {
        let fake = Fake::new();
        fake.disk("sda", "sda2", "0\n", "0\n").disk("sdb", "sdb2", "1\n", "0\n");
        let root = "24 1 8:2 / / rw - ext4 /dev/sda2 rw\n";
        fake.file("proc/self/mountinfo", &format!("{root}{home}")).facts().homes_rotate
    };
    assert!(with("25 24 8:18 / /home rw - ext4 /dev/sdb2 rw\n"));
    assert!(!with("25 24 8:18 / /srv rw - ext4 /dev/sdb2 rw\n") && !with(""));
}

/// Proxmox, VMware, VirtualBox, Hyper-V and clouds say of disks on SSDs that they rotate.
#[test]
fn the_flag_of_a_hypervisors_disk_does_not_count() {
    let homes_rotate = |vendor: &str, model: &str| {
        let fake = Fake::new();
        fake.disk("sda", "sda2", "0\n", "0\n").disk("sdb", "sdb2", "1\n", "0\n");
        fake.file("sys/block/sdb/device/vendor", vendor).file("sys/block/sdb/device/model", model);
        let mounts = "24 1 8:2 / / rw - ext4 /dev/sda2 rw\n25 24 8:18 /home /home rw - ext4 /dev/sdb2 rw\n";
        fake.file("proc/self/mountinfo", mounts).facts().homes_rotate
    };
    for (vendor, model, expected) in [
        ("ATA     \n", "WDC WD10EZEX-08M\n", true),
        ("QEMU    \n", "QEMU HARDDISK   \n", false),
        ("ATA     \n", "QEMU HARDDISK   \n", false),
        ("VMware  \n", "Virtual disk    \n", false),
        ("Msft    \n", "Virtual Disk    \n", false),
        ("ATA     \n", "VBOX HARDDISK   \n", false),
        ("Google  \n", "PersistentDisk  \n", false),
    ] {
        assert_eq!(homes_rotate(vendor, model), expected, "{vendor} {model}");
    }
}

/// Raspberry Pi OS without an initramfs: the swap file is on the card, and `/dev/root` is no file.
#[test]
fn a_file_on_dev_root_is_on_the_disk_with_the_mounts_number() {
    let on = |mountinfo: &str| {
        let fake = Fake::new();
        fake.disk("mmcblk0", "mmcblk0p2", "0\n", "0\n")
            .link("sys/dev/block/179:2", "../../devices/platform/x/block/mmcblk0/mmcblk0p2")
            .file("proc/self/mountinfo", mountinfo)
            .swaps("/var/swap file 1024 0 -2\n");
        let area = fake.facts().disk_areas.remove(0);
        (area.device, area.kind)
    };
    let card = (Some("mmcblk0".to_owned()), DiskKind::WearsOut);
    assert_eq!(on("24 1 179:2 / / rw - ext4 /dev/root rw\n"), card);
    assert_eq!(on("24 1 179:2 / / rw - ext4 /dev/mmcblk0p2 rw\n"), card);
    assert_eq!(on("24 1 0:26 / / rw - btrfs /dev/mmcblk0p2 rw\n"), card, "its number is of no device");
    assert_eq!(on("24 1 0:26 / / rw - btrfs /dev/root rw\n"), (None, DiskKind::Unknown));
}

#[test]
fn a_writeback_device_is_found_by_any_of_its_names() {
    let fake = Fake::new();
    fake.disk("sdb", "sdb1", "0\n", "0\n").link("dev/disk/by-uuid/abc", "../../sdb1").file("dev/sdb", "");
    let found = |path: &str| {
        let mut settings = Settings::from_sources(&[]).unwrap().swap;
        settings.writeback_device = path.into();
        let facts = Swap.probe_for(&fake.root(), &settings).unwrap();
        facts.writeback.map(|device| (device.name, device.is_partitioned))
    };
    assert_eq!(found("/dev/disk/by-uuid/abc"), Some(("sdb1".into(), false)));
    assert_eq!(found("/dev/sdb"), Some(("sdb".into(), true)));
    assert_eq!([found("/dev/sdz9"), found("")], [None, None]);
}

#[test]
fn what_a_writeback_device_holds_is_read() {
    let fake = Fake::new();
    fake.disk("sdb", "sdb1", "0\n", "0\n").link("dev/disk/by-partuuid/7-01", "../../sdb1");
    let facts = |path: &str| {
        let mut settings = Settings::from_sources(&[]).unwrap().swap;
        settings.writeback_device = path.into();
        let facts = Swap.probe_for(&fake.root(), &settings).unwrap();
        facts.writeback.map(|device| (device.holds, device.lasting)).unwrap()
    };
    let lasting = Some("/dev/disk/by-partuuid/7-01".to_owned());
    assert_eq!(facts("/dev/sdb1"), (None, lasting));
    fake.file("dev/sdb1", "XFSB and more");
    assert_eq!(facts("/dev/disk/by-partuuid/7-01"), (Some("an xfs file system".into()), None));
    fake.remove("dev/sdb1");
    let unreadable = facts("/dev/sdb1").0.unwrap();
    assert!(unreadable.starts_with("what cannot be read (No such file"), "{unreadable}");
}

/// Each would be refused when the device is set up, with the swap.
#[test]
fn a_writeback_device_that_is_mapped_or_too_small_is_unusable() {
    let fake = Fake::new();
    fake.disk("sdb", "sdb1", "0\n", "0\n").file("dev/sdb1", "");
    let facts = || {
        let mut settings = Settings::from_sources(&[]).unwrap().swap;
        settings.writeback_device = "/dev/sdb1".into();
        Swap.probe_for(&fake.root(), &settings).unwrap().writeback.unwrap()
    };
    let of = |file: &str| format!("sys/class/block/sdb1/{file}");
    fake.file(&of("size"), "4097\n");
    assert_eq!(facts().unusable, None);
    fake.file(&of("size"), "4096\n");
    assert_eq!(facts().unusable.as_deref(), Some("it has only 2.0 MiB"));
    fake.file(&of("holders/dm-0/x"), "").file("sys/class/block/dm-0/dm/name", "eke-writeback-zram1\n");
    assert_eq!(facts().unusable.as_deref(), Some("it has only 2.0 MiB"), "eke's own mapping");
    fake.file(&of("holders/dm-1/x"), "").file("sys/class/block/dm-1/dm/name", "vault\n");
    assert_eq!(facts().unusable.as_deref(), Some("it is a part of vault"));
}

#[test]
fn a_module_that_may_not_be_loaded_any_more_encrypts_nothing() {
    let fake = Fake::new();
    fake.disk("sdb", "sdb1", "0\n", "0\n").file("dev/sdb1", "");
    let may_encrypt = || {
        let mut settings = Settings::from_sources(&[]).unwrap().swap;
        settings.writeback_device = "/dev/sdb1".into();
        Swap.probe_for(&fake.root(), &settings).unwrap().writeback.unwrap().may_encrypt
    };
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n");
    fake.file("lib/modules/6.12.1/modules.dep", "kernel/drivers/md/dm-crypt.ko.xz:\n");
    assert!(may_encrypt());
    fake.file("proc/sys/kernel/modules_disabled", "1\n");
    assert!(!may_encrypt());
    fake.file("sys/module/dm_crypt/refcnt", "0\n");
    assert!(may_encrypt(), "it is loaded");
}
