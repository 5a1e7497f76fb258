//! The probe on directories that stand for machines.

#![expect(clippy::unwrap_used, reason = "what a test stands on must be there")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use eke_linux::Root;
use eke_model::config::Settings;
use eke_model::units::Bytes;
use eke_swap::Swap;
use eke_swap::facts::{DiskKind, Facts, Hardware};
use eke_swap::probe::probe;

struct Fake(tempfile::TempDir);

impl Fake {
    /// A machine with 2 GiB and nothing else.
    fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        fake.file("proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n");
        fake.file("proc/swaps", "Filename Type Size Used Priority\n");
        fake.file("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
        fake
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(Path::new(target), path).unwrap();
        self
    }

    /// A whole disk with a partition of number 2.
    fn disk(&self, name: &str, partition: &str, rotational: &str, removable: &str) -> &Self {
        self.file(&format!("sys/block/{name}/queue/rotational"), rotational);
        self.file(&format!("sys/block/{name}/removable"), removable);
        self.file(&format!("sys/block/{name}/{partition}/partition"), "2\n");
        self.file(&format!("sys/class/block/{partition}/partition"), "2\n");
        self.file(&format!("sys/class/block/{name}/size"), "9\n");
        self.file(&format!("dev/{partition}"), "")
    }

    fn swaps(&self, lines: &str) -> &Self {
        self.file("proc/swaps", &format!("Filename Type Size Used Priority\n{lines}"))
    }

    fn facts(&self) -> Facts {
        probe(&Root::at(self.0.path())).unwrap()
    }
}

fn why<'a>(facts: &'a Facts, what: &str) -> &'a str {
    facts.missing.iter().find(|m| m.what == what).map_or("", |m| &m.why)
}

#[test]
fn an_empty_machine_lists_what_it_lacks() {
    let facts = Fake::new().facts();
    assert_eq!((facts.ram, facts.available, facts.is_root), (Bytes(2 << 30), Bytes(1 << 30), true));
    assert!(why(&facts, "zram").contains("/lib/modules has no module zram"), "{:?}", facts.missing);
    assert!(why(&facts, "zswap").contains("CONFIG_ZSWAP"));
    assert!(facts.zswap.is_none() && facts.on_battery.is_none() && facts.hibernation.is_none());
}

#[test]
fn the_kernels_configuration_explains_missing_zram() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n").file("boot/config-6.12.1", "CONFIG_ZRAM=m\n");
    assert!(why(&fake.facts(), "zram").ends_with("/lib/modules has no module zram for this kernel"));
    fake.file("boot/config-6.12.1", "# CONFIG_ZRAM is not set\n");
    assert!(why(&fake.facts(), "zram").ends_with("built without CONFIG_ZRAM"));
}

#[test]
fn a_module_that_can_be_loaded_is_not_missing_and_the_configuration_shows_what_it_offers() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n")
        .file("lib/modules/6.12.1/modules.dep", "kernel/drivers/block/zram/zram.ko.xz:\n");
    let facts = fake.facts();
    assert!(facts.zram.loadable && why(&facts, "zram").is_empty(), "{:?}", facts.missing);
    assert_eq!(facts.zram.configured, ["lzo-rle", "lzo", "lz4", "zstd"], "no configuration");
    assert_eq!(facts.zram.multi_comp, None);
    fake.file(
        "boot/config-6.12.1",
        "CONFIG_ZRAM=m\nCONFIG_ZRAM_BACKEND_LZ4=y\nCONFIG_ZRAM_BACKEND_ZSTD=y\nCONFIG_CRYPTO_842=m\n# CONFIG_ZRAM_MULTI_COMP is not set\n",
    );
    let facts = fake.facts();
    assert_eq!(facts.zram.configured, ["lz4", "zstd"]);
    assert_eq!(facts.zram.multi_comp, Some(false));
    fake.file("boot/config-6.12.1", "CONFIG_CRYPTO_LZO=y\nCONFIG_CRYPTO_ZSTD=m\nCONFIG_ZRAM_MULTI_COMP=y\n");
    let facts = fake.facts();
    assert_eq!(facts.zram.configured, ["lzo-rle", "lzo", "zstd"]);
    assert_eq!(facts.zram.multi_comp, Some(true));
}

#[test]
fn a_device_shows_zrams_features() {
    let fake = Fake::new();
    fake.file("sys/class/zram-control/hot_add", "")
        .file("sys/block/zram0/comp_algorithm", "lzo-rle [zstd]\n");
    fake.file("sys/block/zram0/recomp_algorithm", "").file("sys/block/zram0/backing_dev", "none\n");
    let facts = fake.facts();
    let features = facts.zram.features.unwrap();
    assert_eq!(features.algorithms, ["lzo-rle", "zstd"]);
    assert!(features.recompression && features.writeback && !features.algorithm_params);
}

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
fn the_hibernation_area_is_named() {
    let fake = Fake::new();
    fake.disk("sda", "sda2", "0\n", "0\n").link("dev/disk/by-uuid/ab-cd", "../../sda2");
    fake.file("proc/cmdline", "quiet resume=UUID=ab-cd\n").swaps("/dev/sda2 partition 1024 0 -2\n");
    let facts = fake.facts();
    assert!(facts.disk_areas[0].hibernation);
    assert_eq!(facts.hibernation.unwrap().device.as_deref(), Some("sda2"));
}

#[test]
fn the_kernels_own_resume_device_counts_before_the_command_line() {
    let fake = Fake::new();
    fake.file("sys/power/resume", "8:2\n").link("sys/dev/block/8:2", "../../devices/x/block/sda/sda2");
    assert_eq!(fake.facts().hibernation.unwrap().device.as_deref(), Some("sda2"));
    fake.file("sys/power/resume", "0:0\n");
    assert_eq!(fake.facts().hibernation, None);
}

#[test]
fn what_debians_initramfs_resumes_from() {
    let resumes = |line: &str, swaps: &str| {
        let fake = Fake::new();
        for partition in ["sda2", "sda3", "zram0"] {
            fake.file(&format!("dev/{partition}"), "")
                .file(&format!("sys/class/block/{partition}/size"), "99999\n");
        }
        fake.link("dev/disk/by-uuid/ab-cd", "../../sda2");
        fake.file("etc/initramfs-tools/conf.d/resume", line).swaps(swaps);
        let facts = fake.facts();
        let named: Vec<bool> = facts.disk_areas.iter().map(|area| area.hibernation).collect();
        (facts.hibernation.map(|h| (h.resume, h.device.unwrap())), named)
    };
    let target = |resume: &str, device: &str| Some((resume.to_owned(), device.to_owned()));
    let swaps = "/dev/zram0 partition 9000 0 100\n/dev/sda2 partition 1024 0 -2\n/dev/sda3 partition 4096 0 -3\n/swap file 8192 0 -4\n";
    assert_eq!(
        resumes("RESUME=UUID=ab-cd\n", swaps),
        (target("UUID=ab-cd", "sda2"), vec![true, false, false])
    );
    assert_eq!(resumes("RESUME=auto\n", swaps), (target("/dev/sda3", "sda3"), vec![false, true, false]));
    assert_eq!(resumes("RESUME=none\n", swaps), (None, vec![false; 3]));
    let none_on_a_device = "/dev/zram0 partition 9000 0 100\n/swap file 8192 0 -2\n";
    assert_eq!(resumes("RESUME=auto\n", none_on_a_device), (None, vec![false]));
}

#[test]
fn other_managers_are_named_with_their_devices() {
    let fake = Fake::new();
    fake.file("usr/lib/systemd/system-generators/zram-generator", "");
    fake.file("etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram\n[zram1]\n");
    fake.file("etc/default/zramswap", "ALGO=lz4\n");
    let managers = fake.facts().managers;
    let shown: Vec<(&str, bool, usize)> =
        managers.iter().map(|m| (m.name.as_str(), m.active, m.devices.len())).collect();
    assert_eq!(shown, [("zram-generator", true, 2), ("zram-tools", false, 1)]);
}

#[test]
fn programs_that_set_the_same_are_seen() {
    let fake = Fake::new();
    assert_eq!(fake.facts().others, []);
    fake.file("usr/sbin/tuned", "").file("etc/tuned/active_profile", "latency-performance mine\n");
    fake.file(
        "usr/lib/tuned/latency-performance/tuned.conf",
        "[main]\n[sysctl]\nvm.dirty_ratio=10\nvm.swappiness = 10\n",
    );
    fake.file(
        "etc/tuned/mine/tuned.conf",
        "[main]\ninclude=mine, latency-performance\n[disk]\nelevator=none\n",
    );
    fake.file("usr/sbin/preload", "").file("proc/7/comm", "earlyoom\n");
    fake.file("proc/7/status", "Uid:\t0\t0\t0\t0\n");
    let shown = |facts: &Facts| {
        let line = |o: &eke_swap::facts::Other| format!("{} {} {}", o.name, o.active, o.sets.join(","));
        facts.others.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(shown(&fake.facts()), ["tuned false ", "preload false ", "earlyoom true "]);
    fake.link(
        "etc/systemd/system/multi-user.target.wants/tuned.service",
        "/lib/systemd/system/tuned.service",
    );
    fake.link("etc/rc2.d/S01preload", "../init.d/preload");
    assert_eq!(
        shown(&fake.facts()),
        ["tuned true queue.scheduler,vm.dirty_ratio,vm.swappiness", "preload true ", "earlyoom true "]
    );
}

#[test]
fn zswap_and_its_loadable_algorithms() {
    let fake = Fake::new();
    let p = "sys/module/zswap/parameters";
    fake.file(&format!("{p}/enabled"), "N\n").file(&format!("{p}/compressor"), "lzo\n");
    fake.file(&format!("{p}/zpool"), "zbud\n").file(&format!("{p}/max_pool_percent"), "20\n");
    fake.file("proc/crypto", "name : lzo\ntype : scomp\n");
    fake.file("proc/sys/kernel/osrelease", "6.1.0\n");
    fake.file("lib/modules/6.1.0/modules.dep", "kernel/crypto/zstd.ko.xz:\nkernel/crypto/lzo.ko:\n");
    let z = fake.facts().zswap.unwrap();
    assert_eq!(
        (z.enabled, z.max_pool_percent, z.zpool.as_deref(), z.shrinker),
        (false, Some(20), Some("zbud"), None)
    );
    assert_eq!(z.compressors, ["lzo", "zstd"]);
    assert_eq!(z.hardware, []);
}

/// Algorithms of both lists whose driver with the highest priority is no program of the CPU.
#[test]
fn compressors_in_hardware_are_found_by_their_drivers() {
    let fake = Fake::new();
    let entry = |name: &str, driver: &str, module: &str, priority: u32, kind: &str| {
        format!(
            "name         : {name}\ndriver       : {driver}\nmodule       : {module}\npriority     : {priority}\nselftest     : passed\ntype         : {kind}\n\n"
        )
    };
    let crypto = entry("deflate", "deflate-generic", "deflate", 0, "compression")
        + &entry("deflate", "deflate-scomp", "deflate", 0, "scomp")
        + &entry("deflate", "deflate-iaa", "iaa_crypto", 300, "acomp")
        + &entry("842", "842-generic", "842", 100, "compression")
        + &entry("842", "842-nx", "nx_compress_powernv", 300, "compression");
    fake.file("proc/crypto", &crypto).file("sys/module/zswap/parameters/enabled", "N\n");
    fake.file("sys/class/zram-control/hot_add", "").file("sys/block/zram0/disksize", "0\n");
    fake.file("sys/block/zram0/comp_algorithm", "lzo [lzo-rle] 842 deflate\n");
    let hardware = |release: &str| {
        let facts = fake.file("proc/sys/kernel/osrelease", release).facts();
        let names = |all: &[Hardware]| {
            all.iter().map(|h| format!("{} by {}", h.algorithm, h.name())).collect::<Vec<_>>().join(", ")
        };
        (names(&facts.zram.hardware), names(&facts.zswap.unwrap().hardware))
    };
    let (nx, iaa) = ("842 by nx_compress_powernv".to_owned(), "deflate by iaa_crypto".to_owned());
    assert_eq!(hardware("6.9.0\n"), (nx.clone(), iaa.clone()));
    assert_eq!(hardware("6.12.0\n"), (String::new(), iaa), "zram has its own since Linux 6.12");
    assert_eq!(hardware("5.4.0\n"), (nx.clone(), nx), "zswap took synchronous ones until Linux 5.10");
}

#[test]
fn groups_battery_daemons_and_containers() {
    let fake = Fake::new();
    fake.file("sys/fs/cgroup/memory/memory.swappiness", "60\n")
        .file("sys/fs/cgroup/memory/a/b/memory.swappiness", "10\n");
    fake.file("sys/fs/cgroup/memory/a/memory.swappiness", "60\n");
    fake.file("sys/class/power_supply/BAT0/type", "Battery\n")
        .file("sys/class/power_supply/BAT0/status", "Discharging\n");
    fake.file("sys/class/power_supply/AC/type", "Mains\n").file("sys/class/power_supply/AC/online", "0\n");
    fake.file("proc/77/comm", "earlyoom\n").file(".dockerenv", "");
    fake.file("proc/77/status", "Uid:\t0\t0\t0\t0\n");
    let facts = fake.facts();
    let groups: Vec<&str> = facts.memory_groups_v1.iter().map(|g| g.group.as_str()).collect();
    assert_eq!(groups, ["", "a", "a/b"]);
    assert_eq!(
        (facts.on_battery, facts.oom_daemons, facts.container.is_some()),
        (Some(true), vec!["earlyoom".to_owned()], true)
    );
    fake.file("proc/2/comm", "kthreadd\n");
    assert_eq!(fake.facts().container, None);
}

/// A privileged container of containerd or CRI-O has no file or variable that tells.
#[test]
fn a_namespace_of_process_numbers_is_a_container() {
    let container = |link: &str| Fake::new().link("proc/self/ns/pid", link).facts().container;
    assert_eq!(container("pid:[4026531836]"), None, "the kernel's first one, also where /proc/2 is hidden");
    assert_eq!(container("pid:[4026532201]").as_deref(), Some("/proc/self/ns/pid pid:[4026532201]"));
    let image = Fake::new();
    image.file(".dockerenv", "").link("proc/self/ns/pid", "pid:[4026531836]");
    assert_eq!(image.facts().container, None, "a host with a container's file, and hidepid");
}

/// Its release names it; its process numbers look like a container's.
#[test]
fn wsl_is_no_container_of_a_linux_host() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
    fake.link("proc/self/ns/pid", "pid:[4026532201]");
    assert!(fake.facts().elsewhere().unwrap().contains(".wslconfig"));
    fake.file("proc/sys/kernel/osrelease", "6.12.1-azure\n");
    assert!(fake.facts().elsewhere().unwrap().starts_with("a container (/proc/self/ns/pid"));
}

#[test]
fn huge_pages_and_locked_memory_are_no_ram_to_compress() {
    let fake = Fake::new();
    let swapped = |never: &str| {
        fake.file("proc/meminfo", &format!("MemTotal: 67108864 kB\nMemAvailable: 1887437 kB\n{never}"));
        let facts = fake.facts();
        assert_eq!(facts.ram + facts.never_swapped, Bytes::mib(64 << 10));
        facts.ram
    };
    assert_eq!(swapped("Unevictable: 0 kB\n"), Bytes::mib(64 << 10));
    assert_eq!(swapped("Hugetlb: 62914560 kB\n"), Bytes::mib(4 << 10));
    assert_eq!(swapped("Unevictable: 33554432 kB\nMlocked: 33554432 kB\n"), Bytes::mib(32 << 10));
    assert_eq!(swapped("Unevictable: 2097152 kB\nHugetlb: 62914560 kB\n"), Bytes::mib(2 << 10));
}

const KUBELET: &str = "etc/systemd/system/multi-user.target.wants/kubelet.service";

/// A node of kubeadm, whose kubelet is enabled and does not run yet, as at boot.
#[test]
fn an_enabled_kubelet_refuses_swap_unless_its_configuration_allows_it() {
    assert_eq!(Fake::new().facts().kubelet, None);
    let enabled = || {
        let fake = Fake::new();
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service");
        fake
    };
    let found = Some(format!("/{KUBELET}"));
    assert_eq!(enabled().facts().kubelet, found, "installed, and in no cluster yet");
    let config = |text| enabled().file("var/lib/kubelet/config.yaml", text).facts().kubelet;
    assert_eq!(config("failSwapOn: true\n"), found);
    assert_eq!(config("failSwapOn: false\n"), None);
    let allows = "KUBELET_EXTRA_ARGS=--fail-swap-on=false\n";
    for file in ["var/lib/kubelet/kubeadm-flags.env", "etc/default/kubelet", "etc/sysconfig/kubelet"] {
        assert_eq!(enabled().file(file, allows).facts().kubelet, None, "{file}");
    }
    let drop_in = enabled();
    drop_in.file(
        "etc/systemd/system/kubelet.service.d/20-swap.conf",
        "[Service]\nEnvironment=\"KUBELET_EXTRA_ARGS=--fail-swap-on=false\"\n",
    );
    assert_eq!(drop_in.facts().kubelet, None);
    let elsewhere = enabled();
    elsewhere
        .file("usr/lib/systemd/system/kubelet.service", "ExecStart=/usr/bin/kubelet --config=/etc/k/config\n")
        .file("etc/k/config", "{\"failSwapOn\": false}");
    assert_eq!(elsewhere.facts().kubelet, None);
}

#[test]
fn a_running_kubelet_refuses_swap_unless_its_options_allow_it() {
    let runs = |command: &str, status: &str| {
        let fake = Fake::new();
        fake.file("proc/812/comm", "kubelet\n").file("proc/812/cmdline", &command.replace(' ', "\0"));
        fake.file("proc/812/status", status).link("proc/812/exe", "/usr/bin/kubelet");
        fake.file("etc/k.yaml", "failSwapOn: false\n").file("etc/k.d/10-swap.conf", "failSwapOn: false\n");
        // what is enabled counts for nothing while one runs
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service").facts().kubelet
    };
    let root = "Uid:\t0\t0\t0\t0\nNSpid:\t812\n";
    let found = Some("process 812".to_owned());
    assert_eq!(runs("/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf", root), found);
    assert_eq!(runs("/usr/bin/kubelet --config=/etc/k.yaml --fail-swap-on=true", root), found);
    for allowed in
        ["--fail-swap-on=false", "--config=/etc/k.yaml", "--config-dir=/etc/k.d", "--config /etc/k.yaml"]
    {
        assert_eq!(runs(&format!("/usr/bin/kubelet {allowed}"), root), None, "{allowed}");
    }
}

/// kubeadm's files are root's. Here directories stand for them, which nobody can read as files.
#[test]
fn a_file_of_kubelet_that_cannot_be_read_is_named_unless_another_allows_swap() {
    let facts_of = |unreadable: &str, config: &str| {
        let fake = Fake::new();
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service").file(&format!("{unreadable}/x"), "");
        if !config.is_empty() {
            fake.file("var/lib/kubelet/config.yaml", config);
        }
        let facts = fake.facts();
        let why = facts.missing.into_iter().find(|m| m.what == "kubelet").map(|m| m.why);
        (facts.kubelet, why.unwrap_or_default())
    };
    let (config, flags) = ("var/lib/kubelet/config.yaml", "var/lib/kubelet/kubeadm-flags.env");
    for (unreadable, text) in [(config, ""), (flags, ""), (flags, "failSwapOn: true\n")] {
        let (found, why) = facts_of(unreadable, text);
        assert_eq!(found, None, "{unreadable}");
        assert!(why.starts_with(&format!("cannot read /{unreadable}, which may say")), "{why}");
    }
    assert_eq!(facts_of(flags, "failSwapOn: false\n"), (None, String::new()));
    assert_eq!(
        facts_of("elsewhere", ""),
        (Some(format!("/{KUBELET}")), String::new()),
        "absent, as by default"
    );
}

/// kind runs one in a container, and anybody may call a program so.
#[test]
fn a_kubelet_of_a_container_or_of_a_user_is_not_this_nodes() {
    let runs = |status: &str| {
        let fake = Fake::new();
        fake.file("proc/812/comm", "kubelet\n").file("proc/812/cmdline", "kubelet");
        fake.file("proc/812/status", status).facts().kubelet
    };
    assert_eq!(runs("Uid:\t0\t0\t0\t0\nNSpid:\t812\t97\n"), None);
    assert_eq!(runs("Uid:\t1000\t1000\t1000\t1000\nNSpid:\t812\n"), None);
    assert_eq!(runs("Uid:\t0\t0\t0\t0\n").as_deref(), Some("process 812"), "before Linux 4.1");
}

#[test]
fn modules_are_found_in_each_systems_directory() {
    for dir in ["lib/modules", "usr/lib/modules", "run/booted-system/kernel-modules/lib/modules"] {
        let fake = Fake::new();
        fake.file("proc/sys/kernel/osrelease", "6.12.1\n")
            .file(&format!("{dir}/6.12.1/modules.dep"), "kernel/drivers/block/zram/zram.ko.xz:\n");
        assert!(fake.facts().zram.loadable, "{dir}");
    }
}

#[test]
fn only_daemons_that_may_end_others_programs_count() {
    let daemons = |users: &str, program: &str| {
        let fake = Fake::new();
        fake.file("proc/7/comm", "earlyoom\n").file("proc/7/status", &format!("Uid:\t{users}\n"));
        fake.link("proc/7/exe", program).facts().oom_daemons
    };
    assert_eq!(daemons("0\t0\t0\t0", "/usr/bin/python3"), ["earlyoom"]);
    assert_eq!(daemons("61200\t61200\t61200\t61200", "/usr/bin/earlyoom"), ["earlyoom"]);
    assert_eq!(daemons("61200\t61200\t61200\t61200", "/usr/bin/earlyoom (deleted)"), ["earlyoom"]);
    assert_eq!(daemons("1000\t1000\t1000\t1000", "/usr/bin/earlyoom"), [] as [&str; 0]);
    assert_eq!(daemons("1000\t0\t0\t0", "/usr/bin/su"), [] as [&str; 0]);
}

#[test]
fn a_writeback_device_is_found_by_any_of_its_names() {
    let fake = Fake::new();
    fake.disk("sdb", "sdb1", "0\n", "0\n").link("dev/disk/by-uuid/abc", "../../sdb1").file("dev/sdb", "");
    let found = |path: &str| {
        let mut settings = Settings::from_sources(&[]).unwrap().swap;
        settings.writeback_device = path.into();
        let facts = Swap.probe_for(&Root::at(fake.0.path()), &settings).unwrap();
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
        let facts = Swap.probe_for(&Root::at(fake.0.path()), &settings).unwrap();
        facts.writeback.map(|device| (device.holds, device.lasting)).unwrap()
    };
    let lasting = Some("/dev/disk/by-partuuid/7-01".to_owned());
    assert_eq!(facts("/dev/sdb1"), (None, lasting));
    fake.file("dev/sdb1", "XFSB and more");
    assert_eq!(facts("/dev/disk/by-partuuid/7-01"), (Some("an xfs file system".into()), None));
    fs::remove_file(fake.0.path().join("dev/sdb1")).unwrap();
    let unreadable = facts("/dev/sdb1").0.unwrap();
    assert!(unreadable.starts_with("what cannot be read (No such file"), "{unreadable}");
}

#[test]
fn a_kernel_that_never_overcommits_is_found() {
    let fake = Fake::new();
    let mode = || probe(&Root::at(fake.0.path())).unwrap().overcommit_memory;
    assert_eq!(mode(), None);
    fake.file("proc/sys/vm/overcommit_memory", "2\n");
    assert_eq!(mode(), Some(2));
}
