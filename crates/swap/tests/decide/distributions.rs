//! Usual machines as their installers leave them: what eke does on each by default, and why. One table, to be reviewed as a whole.

use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::decide::backend::Backend;
use eke_swap::facts::{DiskKind, Hibernation};
use eke_swap::measure::measurements::DiskLatency;

use crate::machine::{Machine, device, notes, reads, value};

/// A machine with this much RAM (less than its label says) and files on `disk`, half of whose reads take `files_us`.
fn machine(ram_mib: u64, disk: &str, files_us: u64) -> Machine {
    Machine::new(Bytes::mib(ram_mib)).with(|m| {
        m.facts.swappiness = Some(60);
        m.measured.file_read = Some(DiskLatency { device: Some(disk.into()), ..reads("/usr", files_us) });
    })
}

/// Swap of this size on a disk with files.
fn swap(machine: Machine, path: &str, mib: u64, disk: &str, kind: DiskKind) -> Machine {
    machine.disk(path, kind, -2).with(|m| {
        m.facts.areas[0].size = Bytes::mib(mib);
        m.facts.disk_areas[0].device = Some(disk.into());
    })
}

/// fallocate(1) made the file, so that its own blocks cannot be timed.
fn unwritten(machine: Machine) -> Machine {
    machine.with(|m| m.measured.swap_disk = None)
}

fn hibernates(machine: Machine, name: &str) -> Machine {
    machine.with(|m| {
        m.facts.hibernation = Some(Hibernation {
            source: "etc/initramfs-tools/conf.d/resume".into(),
            resume: "UUID=ab-cd".into(),
            device: Some(name.into()),
        });
        m.facts.disk_areas[0].hibernation = true;
    })
}

/// The form of compressed swap: a device's size, or a pool's, and the swappiness.
fn form(decision: &Decision) -> String {
    let swappiness = value(decision, "vm.swappiness").unwrap_or("as it is");
    let what = match &decision.backend {
        Backend::Zram => format!("zram of {}", device(decision).unwrap().disksize),
        Backend::Zswap { area } => {
            let pool = value(decision, "zswap.max_pool_percent").unwrap_or("20");
            format!("zswap of {pool} % before {area}")
        }
        Backend::Adopted { device } => format!("{device} stays"),
        Backend::Nothing => return "nothing".into(),
    };
    format!("{what}, swappiness {swappiness}")
}

/// A name, the machine, the form, and a part of the reason or of the notes.
type Row = (&'static str, Machine, &'static str, &'static str);

fn check(rows: Vec<Row>) {
    for (name, machine, expected, why) in rows {
        let decision = machine.decide();
        assert_eq!(form(&decision), expected, "{name}: {}", decision.backend_reason.text);
        let text = format!("{}\n{}", decision.backend_reason.text, notes(&decision));
        assert!(text.contains(why), "{name}: {text}");
    }
}

#[test]
fn ubuntu_24_04() {
    use DiskKind::{Rotating, Solid, Unknown};
    let with = |ram, mib, disk, kind, us| {
        unwritten(swap(machine(ram, disk, us), "/swap.img", mib, disk, kind))
            .with(|m| m.measured.kernel = "6.8.0-60-generic".into())
    };
    check(vec![
        (
            "16 GB, NVMe, swap.img of 4 GB",
            with(15_600, 4096, "nvme0n1", Solid, 90),
            "zram of 30 GiB, swappiness 188",
            "swap on disks has only 4.0 GiB, 26 % of RAM",
        ),
        (
            "8 GB, NVMe, swap.img of 4 GB",
            with(7_700, 4096, "nvme0n1", Solid, 90),
            "zswap of 20 % before /swap.img, swappiness 173",
            "a solid-state disk",
        ),
        (
            "8 GB, hard disk, swap.img of 4 GB",
            with(7_700, 4096, "sda", Rotating, 9_000),
            "zswap of 80 % before /swap.img, swappiness 182",
            "a rotating disk",
        ),
        (
            "a server of 4 GB, virtual disk",
            with(3_900, 3900, "vda", Unknown, 300),
            "zswap of 32 % before /swap.img, swappiness 179",
            "not known to wear out",
        ),
        (
            "a cloud's image: zram's module is in a package of its own",
            machine(980, "vda", 300).no_zram(),
            "nothing",
            "zswap needs swap on a disk behind it",
        ),
    ]);
}

#[test]
fn debian_13() {
    let partition = |ram, mib| {
        let disk = swap(machine(ram, "nvme0n1", 90), "/dev/nvme0n1p3", mib, "nvme0n1", DiskKind::Solid);
        hibernates(disk, "nvme0n1p3")
    };
    check(vec![
        (
            "16 GB, partition of 1 GB, which the installer names for hibernation",
            partition(15_600, 976),
            "zram of 30 GiB, swappiness 188",
            "UUID=ab-cd (etc/initramfs-tools/conf.d/resume) is too small to hibernate to: it has 976 MiB, and an image of this machine takes 6.1 GiB or so",
        ),
        (
            "2 GB, partition of 1 GB for hibernation",
            partition(1_900, 976),
            "zswap of 20 % before /dev/nvme0n1p3, swappiness 171",
            "the image must fit beside them",
        ),
        (
            "2 GB without zswap, partition of 1 GB for hibernation",
            partition(1_900, 976).no_zswap(),
            "zram of 3.7 GiB, swappiness 188",
            "that area stays unchanged, and zram's pool is part of the image that must fit there",
        ),
        (
            "16 GB, partition of 16 GB for hibernation",
            partition(15_600, 16_384),
            "zswap of 20 % before /dev/nvme0n1p3, swappiness 171",
            "the image must fit beside them",
        ),
    ]);
}

#[test]
fn fedora_40() {
    let generator = |ram, mib| {
        machine(ram, "nvme0n1", 90).zram("zram0", Bytes::mib(mib), 100).with(|m| {
            m.facts.oom_daemons = vec!["systemd-oomd".into()];
            m.facts.min_ttl_ms = Some(0);
        })
    };
    let named =
        |machine: Machine| machine.manager("zram-generator", "/usr/lib/systemd/zram-generator.conf", "zram0");
    check(vec![
        (
            "16 GB, zram of 8 GB",
            named(generator(15_600, 8192)),
            "zram0 stays, swappiness 195",
            "set up by zram-generator: it is kept",
        ),
        (
            "4 GB, zram of 4 GB",
            named(generator(3_800, 3_800)),
            "zram0 stays, swappiness 195",
            "systemd-oomd runs, so eke's guard is the last resort",
        ),
    ]);
}

/// 256 MiB whatever the RAM, before the installer's or the user's swap.
#[test]
fn debian_13_with_zram_tools() {
    use DiskKind::{Rotating, Solid};
    let tools = |ram, mib, disk: &str, kind, us| {
        let path = format!("/dev/{disk}3");
        swap(machine(ram, disk, us), &path, mib, disk, kind).zram("zram0", Bytes::mib(256), 100).manager(
            "zram-tools",
            "/etc/default/zramswap",
            "zram0",
        )
    };
    check(vec![
        (
            "16 GB, NVMe, partition of 16 GB",
            tools(15_600, 16_384, "nvme0n1p", Solid, 90),
            "zram0 stays, swappiness 96",
            "set up by zram-tools: it is kept",
        ),
        (
            "8 GB, hard disk, partition of 8 GB",
            tools(7_700, 8_192, "sda", Rotating, 9_000),
            "zram0 stays, swappiness 98",
            "set up by zram-tools: it is kept",
        ),
        (
            "1 GB, where 256 MiB are a quarter",
            tools(980, 976, "sda", Rotating, 9_000),
            "zram0 stays, swappiness 199",
            "set up by zram-tools: it is kept",
        ),
        (
            "16 GB, an area that is no larger",
            tools(15_600, 256, "nvme0n1p", Solid, 90),
            "zram0 stays, swappiness 195",
            "set up by zram-tools: it is kept",
        ),
    ]);
}

#[test]
fn raspberry_pi_os() {
    let card = |ram| machine(ram, "mmcblk0", 700);
    check(vec![
        (
            "trixie: rpi-swap, whose file is zram's own backing device and no area",
            card(1_850).zram("zram0", Bytes::mib(1_850), 100).manager(
                "rpi-swap",
                "/usr/lib/systemd/system-generators/rpi-swap-generator",
                "zram0",
            ),
            "zram0 stays, swappiness 199",
            "set up by rpi-swap: it is kept",
        ),
        (
            "bookworm: a swap file of 512 MB on the card",
            swap(card(3_800), "/var/swap", 512, "mmcblk0", DiskKind::WearsOut),
            "zram of 7.4 GiB, swappiness 198",
            "swap is on a card or stick, which wears out (/var/swap)",
        ),
    ]);
}

#[test]
fn small_and_special_machines() {
    check(vec![
        (
            "a virtual machine of 512 MB without swap",
            machine(460, "vda", 300),
            "zram of 1.1 GiB, swappiness 196",
            "there is no swap on a disk",
        ),
        (
            "a node of Kubernetes",
            machine(15_600, "nvme0n1", 90).with(|m| m.facts.kubelet = Some("process 812".into())),
            "nothing",
            "kubelet (process 812) does not start again",
        ),
        (
            "a host with half of its RAM locked by virtual machines",
            machine(7_800, "nvme0n1", 90).with(|m| m.facts.never_swapped = Bytes::mib(7_800)),
            "zram of 15 GiB, swappiness 188",
            "there is no swap on a disk",
        ),
    ]);
}
