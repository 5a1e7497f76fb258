//! A machine in a directory with one foreign file: runs every reader of `/proc` and `/sys` that takes a root.

use std::path::Path;

use eke_apply::cgroup::GroupParent;
use eke_apply::headroom;
use eke_cache_mounts::{Device, Mount, holders::holders};
use eke_linux::sampler::Sampler;
use eke_linux::{Root, cgroup, read, zram};
use eke_model::model::Model;
use eke_prefetchd::trace::{mounts::Mounts, process};
use eke_testkit::fake_kernel::FakeKernel;

use crate::input::Input;

/// Readable files, in addition to those that every such machine has.
const FILES: [(&str, &str); 30] = [
    ("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 500000 kB\nMemAvailable: 600000 kB\nZswap: 5 kB\n"),
    ("proc/vmstat", "pswpin 1\npswpout 2\nzswpin 3\nzswpout 4\npgmajfault 5\n"),
    ("proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\n"),
    ("proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 1000 10 100\n"),
    (
        "proc/pressure/memory",
        "some avg10=1.00 avg60=2.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    ),
    ("proc/pressure/io", "some avg10=1.00 avg60=2.00 avg300=0.00 total=5\n"),
    ("proc/loadavg", "0.0 0.0 0.0 1/2 7\n"),
    ("proc/cmdline", "root=/dev/sda1 resume=UUID=7 zswap.enabled=1\n"),
    ("proc/crypto", "name : zstd\ntype : scomp\n\nname : lzo\ntype : compression\n"),
    ("proc/filesystems", "nodev\tsysfs\n\text4\n"),
    ("proc/partitions", "major minor  #blocks  name\n\n   8        0  100 sda\n"),
    ("proc/self/cgroup", "4:memory:/a\n0::/a/b\n"),
    (
        "proc/self/mountinfo",
        "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    ),
    ("proc/self/status", "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
    ("proc/7/stat", "7 (a b) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 98765 1 1\n"),
    ("proc/7/status", "Name:\tx\nPPid:\t1\nUid:\t5\t5\t5\t5\n"),
    ("proc/7/io", "rchar: 1\nread_bytes: 4096\n"),
    ("proc/7/comm", "kswapd0\n"),
    ("proc/7/cmdline", "a\0b\0"),
    ("proc/7/maps", "7f1c-7f1d r--p 00000000 00:39 42 /srv/a\n"),
    ("proc/7/fdinfo/3", "pos:\t0\nmnt_id:\t51\n"),
    ("proc/7/task/7/children", "8 9 "),
    ("sys/fs/cgroup/cgroup.controllers", "memory cpu io\n"),
    ("sys/fs/cgroup/a/b/memory.max", "1000000\n"),
    ("sys/fs/cgroup/a/b/memory.current", "5000\n"),
    ("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 1048\nactive_file 104\nfile_dirty 10\n"),
    ("sys/fs/cgroup/a/b/memory.swap.current", "500\n"),
    ("sys/block/zram0/mm_stat", "1000 500 600 0 600 1 0 0 0\n"),
    ("sys/block/zram0/bd_stat", "1 2 3\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
];

/// The first byte selects the file that contains the remaining bytes; the second is the number of missing files.
pub fn machine(data: &[u8]) {
    let machine = FakeKernel::new();
    let mut input = Input(data);
    let (which, missing) = (usize::from(input.u8()) % FILES.len(), input.u8());
    for (n, (path, text)) in FILES.iter().enumerate() {
        let is_missing = missing & 0x80 != 0 && n % 8 == usize::from(missing % 8);
        if n == which {
            let file = machine.dir().join(path);
            machine.put(path, "");
            std::fs::write(file, input.0).expect("a file");
        } else if !is_missing {
            machine.put(path, text);
        }
    }
    let root = machine.root();
    kernel(&root);
    let _ = eke_swap::probe::probe(&root);
    let _ = eke_cache_serve::size::SignalsReader::new(root.clone()).read().map(|signals| {
        signals.groups.iter().map(|group| group.headroom().0).min();
    });
    processes(&root, machine.dir());
}

fn kernel(root: &Root) {
    let mut sampler = Sampler::new(root);
    let samples = (sampler.full(1000), sampler.full(2000));
    if let (Ok(before), Ok(now)) = samples {
        let model = Model::new(&now, Some(&before));
        let _ = serde_json::to_string(&model).expect("numbers");
        for area in &now.swaps {
            let _ = headroom::check(root, area);
        }
    }
    let _ =
        (read::groups_v1(root), read::on_battery(root), headroom::limited_groups(root), zram::devices(root));
    let _ = GroupParent::find(root);
    let owner = cgroup::name::Owner { pid: 7, start_ticks: 98_765 };
    let _ = cgroup::name::is_alive(root, owner);
    let _ = eke_io::sensor::stat::all(root);
}

fn processes(root: &Root, dir: &Path) {
    let _ =
        (process::parent_and_user(root, 7), process::read_bytes(root, 7), process::has_our_mounts(root, 7));
    let _ = process::split_args(&process::args(root, 7), true);
    assert!(process::Descendants::default().of(root, 7).len() < 1 << 20);
    let mount = Mount {
        id: 51,
        device: Device { major: 0, minor: 0x39 },
        place: "/".into(),
        aside: None,
        dir: "/".into(),
        uid: 0,
    };
    let _ = (holders(&dir.join("proc"), &mount), Mounts::read(root));
}
