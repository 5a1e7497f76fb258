//! The user's own device for incompressible pages.

use eke_model::step::UnnamedFile;
use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::facts::{DiskKind, Hibernation, WritebackDevice, WritebackDirectory};

use crate::machine::{Machine, device, notes};

fn with_device(path: &str) -> Machine {
    Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, -2).with(|m| {
        m.facts.disk_areas[0].device = Some("mmcblk0".into());
        m.measured.zram_features.as_mut().unwrap().writeback = true;
        m.overrides.settings.writeback_device = path.into();
        m.facts.writeback = Some(WritebackDevice {
            path: path.into(),
            name: path.rsplit('/').next().unwrap().into(),
            may_encrypt: true,
            ..WritebackDevice::default()
        });
    })
}

#[test]
fn a_free_device_is_used_encrypted_if_the_kernel_has_writeback() {
    let decision = with_device("/dev/sdb1").decide();
    let spec = device(&decision).unwrap();
    assert_eq!((spec.backing_dev.as_deref(), spec.backing_encrypted), (Some("/dev/sdb1"), true));
    assert!(!notes(&decision).contains("writeback"), "{}", notes(&decision));
    let reasons = reasons(&decision);
    assert!(reasons.contains("are written back to /dev/sdb1, encrypted"), "{reasons}");
}

fn reasons(decision: &Decision) -> String {
    decision.plan.steps.iter().map(|planned| planned.reason.text.as_str()).collect()
}

#[test]
fn a_kernel_without_writeback_gets_a_note() {
    let decision = with_device("/dev/sdb1")
        .with(|m| m.measured.zram_features.as_mut().unwrap().writeback = false)
        .decide();
    assert_eq!(device(&decision).unwrap().backing_dev, None);
    let notes = notes(&decision);
    assert!(
        notes.contains("writeback_device = \"/dev/sdb1\" is not used: this kernel's zram has no writeback"),
        "{notes}"
    );
}

#[test]
fn with_a_budget_of_0_no_device_is_used() {
    let decision = with_device("/dev/sdb1").with(|m| m.overrides.settings.writeback_mib_per_day = 0).decide();
    assert_eq!(device(&decision).unwrap().backing_dev, None);
}

#[test]
fn zswap_does_not_use_it() {
    let decision = with_device("/dev/sdb1").disk("/dev/sda2", DiskKind::Solid, 10).decide();
    assert!(
        notes(&decision).contains("it is for zram, and zswap writes to /dev/sda2"),
        "{}",
        notes(&decision)
    );
}

#[test]
fn a_device_in_use_is_refused() {
    let cases = [
        ("/dev/mmcblk0p3", "it is in use as swap"),
        ("/dev/mmcblk0", "the swap area /dev/mmcblk0p3 is on it"),
        ("/dev/sdc1", "the machine hibernates to it (sys/power/resume)"),
        ("/dev/vda", "the files of /usr are on it"),
        ("/dev/zram3", "it is compressed memory itself"),
        ("/var/writeback", "it is not a block device in /dev"),
    ];
    for (path, why) in cases {
        let machine = with_device(path).with(|m| {
            m.measured.file_read.as_mut().unwrap().device = Some("vda".into());
            m.facts.hibernation = Some(Hibernation {
                source: "sys/power/resume".into(),
                resume: "8:33".into(),
                device: Some("sdc1".into()),
            });
        });
        let text = machine.refusal();
        assert!(text.contains("because zram overwrites it") && text.contains(why), "{path}: {text}");
    }
}

/// The kernel would overwrite it: it is not mounted. At a boot that must not cost the swap.
#[test]
fn a_device_that_holds_something_is_not_used() {
    let decision = with_device("/dev/sdb1")
        .with(|m| m.facts.writeback.as_mut().unwrap().holds = Some("an xfs file system".into()))
        .decide();
    assert_eq!(device(&decision).unwrap().backing_dev, None);
    let notes = notes(&decision);
    let why = "is not used: it holds an xfs file system, which zram would overwrite; if nobody needs that, run `wipefs -a /dev/sdb1` first";
    assert!(notes.contains(why), "{notes}");
}

#[test]
fn a_device_that_somebody_else_has_mapped_costs_the_writeback_alone() {
    let decision = with_device("/dev/sdb1")
        .with(|m| m.facts.writeback.as_mut().unwrap().unusable = Some("it is a part of vault".into()))
        .decide();
    assert_eq!(device(&decision).unwrap().backing_dev, None);
    let notes = notes(&decision);
    assert!(notes.contains("is not used: it is a part of vault"), "{notes}");
}

#[test]
fn the_kernels_name_of_a_device_gets_a_warning_and_a_better_name() {
    let reasons_of = |path: &str| {
        let decision = with_device(path)
            .with(|m| {
                let device = m.facts.writeback.as_mut().unwrap();
                (device.name, device.lasting) = ("sdb1".into(), Some("/dev/disk/by-partuuid/7-01".into()));
            })
            .decide();
        reasons(&decision)
    };
    let warning = "/dev/sdb1, encrypted (/dev/sdb1 may be another disk after a boot; /dev/disk/by-partuuid/7-01 stays this one)";
    assert!(reasons_of("/dev/sdb1").contains(warning), "{}", reasons_of("/dev/sdb1"));
    assert!(!reasons_of("/dev/disk/by-uuid/abc").contains("another disk"));
}

/// The kernel would overwrite both: nothing has them open.
#[test]
fn another_name_of_a_device_in_use_is_refused() {
    let refusal = |path: &str, name: &str, is_partitioned: bool| {
        let machine = with_device(path).with(|m| {
            m.facts.hibernation = Some(Hibernation {
                source: "proc/cmdline".into(),
                resume: "UUID=abc".into(),
                device: Some("sdb1".into()),
            });
            m.facts.writeback = Some(WritebackDevice {
                path: path.into(),
                name: name.into(),
                is_partitioned,
                ..WritebackDevice::default()
            });
        });
        machine.refusal()
    };
    let by_uuid = refusal("/dev/disk/by-uuid/abc", "sdb1", false);
    assert!(by_uuid.ends_with("the machine hibernates to it (proc/cmdline)"), "{by_uuid}");
    let disk = refusal("/dev/sdb", "sdb", true);
    assert!(disk.ends_with("sdb has partitions: give one of them"), "{disk}");
}

/// A directory on a disk of 10 GiB, 4 of them free.
fn with_directory(path: &str) -> Machine {
    Machine::usual().with(|m| {
        m.measured.zram_features.as_mut().unwrap().writeback = true;
        m.overrides.settings.writeback_directory = path.into();
        m.facts.writeback_directory = Some(WritebackDirectory {
            path: path.into(),
            file_system: "ext4".into(),
            size: Bytes::mib(10 << 10),
            free: Bytes::mib(4 << 10),
            may_encrypt: true,
        });
    })
}

#[test]
fn a_directory_gets_an_encrypted_file() {
    let decision = with_directory("/var/lib/eke").decide();
    let spec = device(&decision).unwrap();
    let file = UnnamedFile { directory: "/var/lib/eke".into(), size: Bytes::mib(1024), encrypted: true };
    assert_eq!((&spec.backing_dev, spec.backing_file.as_ref()), (&None, Some(&file)));
    let reasons = reasons(&decision);
    let place = "pages that do not compress are written back to an encrypted file of 1.0 GiB in /var/lib/eke";
    assert!(reasons.contains(place), "{reasons}");
}

#[test]
fn without_dm_crypt_there_is_neither_file_nor_device_unless_the_user_allows_it() {
    let file = || with_directory("/var/lib/eke").with(|m| directory(m).may_encrypt = false);
    let partition =
        || with_device("/dev/sdb1").with(|m| m.facts.writeback.as_mut().unwrap().may_encrypt = false);
    for without in [file(), partition()] {
        assert!(is_unused(&without.decide()).contains("writeback_unencrypted = true allows that"));
    }
    let allowed =
        |without: Machine| without.with(|m| m.overrides.settings.writeback_unencrypted = true).decide();
    assert!(!device(&allowed(file())).unwrap().backing_file.as_ref().unwrap().encrypted);
    let decision = allowed(partition());
    let spec = device(&decision).unwrap();
    assert_eq!((spec.backing_dev.as_deref(), spec.backing_encrypted), (Some("/dev/sdb1"), false));
    assert!(reasons(&decision).contains("written back to /dev/sdb1, as they are"));
}

/// Swap without writeback; why there is none.
fn is_unused(decision: &Decision) -> String {
    let spec = device(decision).unwrap();
    assert_eq!((&spec.backing_dev, &spec.backing_file), (&None, &None));
    let notes = notes(decision);
    assert!(notes.contains(" is not used: "), "{notes}");
    notes
}

#[test]
fn a_device_that_is_not_there_costs_the_writeback_and_not_the_swap() {
    let decision = with_device("/dev/sdb1").with(|m| m.facts.writeback = None).decide();
    assert!(is_unused(&decision).contains("this machine has no block device of that name"));
}

fn directory(machine: &mut Machine) -> &mut WritebackDirectory {
    machine.facts.writeback_directory.as_mut().unwrap()
}

#[test]
fn a_directory_that_does_not_fit_is_refused() {
    let refusal = |change: fn(&mut Machine)| with_directory("/srv").with(change).refusal();
    for (change, why) in [
        ((|m| directory(m).file_system = "tmpfs".into()) as fn(&mut Machine), "(tmpfs) is in memory itself"),
        (|m| directory(m).file_system = "nfs4".into(), "(nfs4) is of another machine or a program"),
        (|m| directory(m).file_system = "overlay".into(), "does not say which disk it is on"),
        (|m| m.overrides.settings.writeback_device = "/dev/sdb1".into(), "are both set"),
    ] {
        let text = refusal(change);
        assert!(text.contains("writeback_directory") && text.contains(why), "{why}: {text}");
    }
}

#[test]
fn a_directory_that_is_not_there_costs_the_file_and_not_the_swap() {
    let decision = with_directory("/srv").with(|m| m.facts.writeback_directory = None).decide();
    assert_eq!(device(&decision).unwrap().backing_file, None);
    let notes = notes(&decision);
    assert!(
        notes.contains("writeback_directory = \"/srv\" is not used: there is no such directory"),
        "{notes}"
    );
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_swap() {
    let decision = with_directory("/srv").with(|m| directory(m).free = Bytes::mib(2047)).decide();
    assert_eq!(device(&decision).unwrap().backing_file, None);
    let notes = notes(&decision);
    assert!(notes.contains("less than a tenth of its file system free: 2"), "{notes}");
}
