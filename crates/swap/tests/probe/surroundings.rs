//! Memory, groups and what the machine runs in.

use eke_model::units::Bytes;
use eke_testkit::real::skip;

use crate::machine::Fake;

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

#[test]
fn a_kernel_that_never_overcommits_is_found() {
    let fake = Fake::new();
    let mode = || fake.facts().overcommit_memory;
    assert_eq!(mode(), None);
    fake.file("proc/sys/vm/overcommit_memory", "2\n");
    assert_eq!(mode(), Some(2));
}

const V2: &str = "sys/fs/cgroup";

/// A group of a machine with 2 GiB.
fn group_v2(fake: &Fake, group: &str, max: &str, current: &str, swap_max: &str) {
    let dir = format!("{V2}/{group}");
    fake.file(&format!("{dir}/memory.max"), max).file(&format!("{dir}/memory.current"), current);
    fake.file(&format!("{dir}/memory.swap.max"), swap_max);
}

fn limited(fake: &Fake) -> Vec<(String, Bytes, bool)> {
    let groups = fake.facts().limited_groups.into_iter();
    groups.map(|g| (g.group, g.limit, g.zswap_is_charged)).collect()
}

#[test]
fn groups_with_limits_that_may_swap_are_found() {
    let fake = Fake::new();
    fake.file(&format!("{V2}/cgroup.controllers"), "memory\n");
    group_v2(&fake, "user.slice", "max\n", "900\n", "max\n");
    assert_eq!(limited(&fake), []);
    group_v2(&fake, "user.slice/app", "536870912\n", "4096\n", "max\n");
    group_v2(&fake, "user.slice/app/inner", "4096\n", "4096\n", "max\n");
    group_v2(&fake, "docker/large", "1073741824\n", "4096\n", "1073741824\n");
    assert_eq!(
        limited(&fake),
        [("user.slice/app".into(), Bytes::mib(512), false)],
        "docker counts no memory"
    );
    group_v2(&fake, "docker", "max\n", "4096\n", "max\n");
    fake.file(&format!("{V2}/docker/large/memory.zswap.current"), "0\n");
    let large = [("docker/large".to_owned(), Bytes::mib(1024), true)];
    let app = [("user.slice/app".to_owned(), Bytes::mib(512), false)];
    assert_eq!(limited(&fake), [large.clone(), app].concat());
    group_v2(&fake, "user.slice/app", "536870912\n", "4096\n", "0\n");
    assert_eq!(limited(&fake), large, "it may not swap");
    group_v2(&fake, "user.slice/app", "536870912\n", "0\n", "max\n");
    group_v2(&fake, "user.slice/app/inner", "max\n", "0\n", "max\n");
    assert_eq!(limited(&fake), large, "nothing is in it");
    group_v2(&fake, "user.slice", "2147483648\n", "900\n", "max\n");
    assert_eq!(limited(&fake), large, "a limit of all RAM is none");
    group_v2(&fake, "eke", "max\n", "900\n", "max\n");
    group_v2(&fake, "eke/box-812-7001", "130023424\n", "900\n", "max\n");
    assert_eq!(limited(&fake), large, "a box is charged");
}

/// systemd gives each user a part of the tree.
#[test]
fn groups_of_a_user_do_not_count() {
    let fake = Fake::new();
    fake.file(&format!("{V2}/cgroup.controllers"), "memory\n");
    group_v2(&fake, "user.slice", "max\n", "900\n", "max\n");
    group_v2(&fake, "user.slice/user", "max\n", "900\n", "max\n");
    group_v2(&fake, "user.slice/user/app", "536870912\n", "4096\n", "max\n");
    assert_eq!(limited(&fake).len(), 1);
    let of_user = fake.root().path(format!("{V2}/user.slice/user"));
    if let Err(why) = std::os::unix::fs::chown(of_user, Some(1000), None) {
        return skip("groups_of_a_user_do_not_count", &why.to_string());
    }
    assert_eq!(limited(&fake), []);
}

#[test]
fn groups_of_cgroup_v1_have_limits_and_no_charged_pool() {
    let fake = Fake::new();
    let group = |name: &str, limit: &str, both: &str| {
        let dir = format!("sys/fs/cgroup/memory/{name}");
        fake.file(&format!("{dir}/memory.limit_in_bytes"), limit);
        fake.file(&format!("{dir}/memory.usage_in_bytes"), "4096\n");
        fake.file(&format!("{dir}/memory.memsw.limit_in_bytes"), both);
    };
    let none = "9223372036854771712\n";
    group("", none, none);
    group("docker", none, none);
    group("docker/a", "268435456\n", "536870912\n");
    group("docker/b", "268435456\n", "268435456\n");
    assert_eq!(limited(&fake), [("docker/a".into(), Bytes::mib(256), false)]);
}
