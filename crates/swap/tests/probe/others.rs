//! Other programs that set up swap, set what eke sets, or end programs.

use eke_swap::facts::Facts;

use crate::machine::Fake;

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

/// sysctl.d(5): a file in /etc hides one of its name in /usr/lib, and the last one by name wins.
#[test]
fn the_file_that_sets_a_knob_at_boot_is_seen() {
    let fake = Fake::new();
    let shown = |fake: &Fake| {
        let line = |o: eke_swap::facts::Other| format!("{} {} {}", o.name, o.does, o.sets.join(","));
        fake.facts().others.into_iter().map(line).collect::<Vec<_>>()
    };
    fake.file("usr/lib/sysctl.d/50-vendor.conf", "vm.swappiness = 100\n");
    fake.file("usr/lib/sysctl.d/70-vendor.conf", "-vm/page-cluster=0\nkernel.sysrq = 1\n");
    fake.file("etc/sysctl.d/50-vendor.conf", "").file("etc/sysctl.d/README", "vm.swappiness = 9\n");
    let page_cluster = "/usr/lib/sysctl.d/70-vendor.conf vm.page-cluster = 0 vm.page-cluster";
    assert_eq!(shown(&fake), [page_cluster]);
    fake.file("etc/sysctl.d/60-mine.conf", "# vm.swappiness = 3\nvm.swappiness=5\nvm.swappiness = 1\n");
    assert_eq!(shown(&fake), [page_cluster, "/etc/sysctl.d/60-mine.conf vm.swappiness = 1 vm.swappiness"]);
    fake.file("etc/sysctl.conf", ";vm.page-cluster=1\nvm.swappiness = 7\n");
    assert_eq!(shown(&fake), [page_cluster, "/etc/sysctl.conf vm.swappiness = 7 vm.swappiness"]);
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
