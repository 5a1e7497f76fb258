//! Swap areas, devices and groups that are not as they were.

use eke_apply::swapped_off;

use super::*;

#[test]
fn swap_is_identified_although_its_mounts_are_gone() {
    let machine = FakeKernel::new();
    machine.add_area("/dev/vda2", 500_000, 0, 7);
    machine.detach_mounts();
    let before = machine.tree();
    let off = Step::SwapOff { path: "/dev/vda2".into() };
    let steps = plan([zram(100, Some(100)), off]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    assert!(machine.root().read("proc/swaps").unwrap().contains("\n/zram1\t"));
    let areas = read::swaps(&machine.root()).unwrap();
    assert_eq!(
        areas.iter().map(|a| (a.zram_name(), a.path.as_str())).collect::<Vec<_>>(),
        [(Some("zram1"), "/dev/zram1")]
    );
    let outcomes = down(&machine);
    assert!(matches!(&outcomes[..], [Outcome::Restored(_), Outcome::Restored(_)]), "{outcomes:?}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn replaced_swap_gets_its_discard_option_back() {
    for (options, discard, shell) in [
        ("discard=pages,pri=7", Some(Discard::Pages), "swapon -p 7 --discard=pages '/dev/vda2'\n"),
        ("discard", Some(Discard::Both), "swapon -p 7 --discard '/dev/vda2'\n"),
        ("defaults", None, "swapon -p 7 '/dev/vda2'\n"),
    ] {
        let machine = FakeKernel::new();
        machine.add_area("/dev/vda2", 500_000, 0, 7);
        machine.put("etc/fstab", &format!("/dev/vda2 none swap {options} 0 0\n"));
        let off = plan([Step::SwapOff { path: "/dev/vda2".into() }]);
        Session::open(&machine.root(), "swap").unwrap().apply_plan(&off).unwrap();
        let script = script::undo(&journal::entries(&machine.root()).unwrap());
        assert!(script.contains(shell), "{script}");
        down(&machine);
        assert_eq!(machine.discard("/dev/vda2"), discard);
    }
}

#[test]
fn replaced_swap_that_is_gone_holds_nothing_up() {
    const ENOENT: i32 = 2;
    const EINVAL: i32 = 22;
    const EBUSY: i32 = 16;
    for (errno, kept) in [(ENOENT, Some("/dev/zram0 is gone")), (EINVAL, Some("no swap area")), (EBUSY, None)]
    {
        let machine = FakeKernel::new();
        machine.add_area("/dev/zram0", 500_000, 0, 7);
        let off = plan([Step::SwapOff { path: "/dev/zram0".into() }]);
        Session::open(&machine.root(), "swap").unwrap().apply_plan(&off).unwrap();
        machine.set_faults(Faults { errors: vec![("dev/zram0".into(), errno, 1)], ..Faults::default() });
        match (&down(&machine)[..], kept) {
            ([Outcome::Kept(why)], Some(words)) => assert!(why.contains(words), "{why}"),
            ([Outcome::Blocked(_)], None) => {}
            (other, _) => panic!("{errno}: {other:?}"),
        }
        let left = journal::entries(&machine.root()).unwrap().len();
        assert_eq!(left, usize::from(kept.is_none()), "{errno}");
    }
}

/// `swapoff -a` takes eke's swap, too.
#[test]
fn swap_that_somebody_else_swapped_off_is_swapped_on_again() {
    let machine = FakeKernel::new();
    let before = machine.tree();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    session.apply_plan(&plan([zram(100, Some(100)), zram(50, Some(99)), zram(10, None)])).unwrap();
    let on = machine.tree()["proc/swaps"].clone();
    assert_eq!(machine.discard("/dev/zram1"), Some(Discard::Pages), "a new device has nothing to discard");
    assert!(session.swap_on_again().unwrap().is_empty());
    machine.remove_area("/dev/zram1");
    machine.remove_area("/dev/zram2");
    let again = session.swap_on_again().unwrap();
    assert!(
        matches!(&again[..], [(one, Ok(())), (two, Ok(()))] if one == "zram1" && two == "zram2"),
        "{again:?}"
    );
    assert_eq!(machine.tree()["proc/swaps"], on, "with their priorities");
    machine.remove_area("/dev/zram1");
    machine.put("sys/block/zram1/disksize", "0\n");
    assert!(session.swap_on_again().unwrap().is_empty(), "it was reset, so it has no header");
    drop(session);
    down(&machine);
    assert_eq!(machine.tree(), before);
}

/// `swapoff; rmmod zram` and `echo 1 > reset`; then another program may make a device with its number.
#[test]
fn a_device_that_somebody_else_removed_is_told_apart_from_one_that_is_off() {
    let machine = FakeKernel::new();
    let root = machine.root();
    Session::open(&root, "swap").unwrap().apply_plan(&plan([zram(100, Some(100))])).unwrap();
    let off = || {
        let off = swapped_off::devices(&root, "swap").unwrap();
        off.into_iter().map(|off| (off.name, off.is_removed)).collect::<Vec<_>>()
    };
    let removed = [("zram1".to_owned(), true)];
    assert_eq!(off(), []);
    machine.remove_area("/dev/zram1");
    assert_eq!(off(), [("zram1".to_owned(), false)]);
    machine.put("sys/block/zram1/disksize", "0\n");
    assert_eq!(off(), removed, "it was reset");
    machine.put("sys/block/zram1/disksize", "52428800\n");
    machine.add_area("/dev/zram1", 51_200, 0, 100);
    assert_eq!(off(), removed, "another program's is swap");
    machine.remove_area("/dev/zram1");
    std::fs::remove_dir_all(machine.dir().join("sys/block/zram1")).unwrap();
    assert_eq!(off(), removed, "it is gone");
    down(&machine);
    assert_eq!(off(), []);
}

#[test]
fn an_algorithm_that_the_kernel_lacks_names_those_that_it_has() {
    let machine = FakeKernel::new();
    let spec = ZramSpec { algorithm: "brotli".into(), ..spec(1, None) };
    let error = Session::open(&machine.root(), "swap")
        .unwrap()
        .scratch_zram(&spec, Reason::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("brotli") && error.contains("this kernel offers: lzo-rle, lz4, zstd"), "{error}");
}

#[test]
fn swapoff_without_room_is_blocked_and_stays_in_the_journal() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(900, Some(5))])).unwrap();
    machine.add_area("/dev/zram1", 921_600, 900_000, 5);
    assert!(
        matches!(&down(&machine)[..], [Outcome::Blocked(why)] if why.contains("close some programs first"))
    );
    machine.add_area("/dev/zram1", 921_600, 10_000, 5);
    assert!(matches!(&down(&machine)[..], [Outcome::Restored(_)]));
}

#[test]
fn a_change_that_waits_for_a_blocked_device_stays_in_the_journal() {
    let machine = FakeKernel::new();
    machine.put("sys/module/zswap/parameters/enabled", "Y\n");
    let before = machine.tree();
    let module = Step::LoadModule { name: "zram".into(), params: String::new() };
    let steps =
        plan([module, Step::set("zswap.enabled", "N"), zram(900, Some(5)), Step::set("vm.page-cluster", 0)]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    machine.add_area("/dev/zram1", 921_600, 900_000, 5);
    let outcomes = down(&machine);
    assert!(
        matches!(
            &outcomes[..],
            [Outcome::Restored(_), Outcome::Blocked(_), Outcome::Blocked(_), Outcome::Blocked(_)]
        ),
        "{outcomes:?}"
    );
    machine.add_area("/dev/zram1", 921_600, 10_000, 5);
    assert_eq!(down(&machine).len(), 3);
    assert_eq!(machine.tree(), before);
}

#[test]
fn a_device_of_another_size_is_somebody_elses() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(100, Some(5))])).unwrap();
    machine.put("sys/block/zram1/disksize", "52428800\n");
    assert!(matches!(&down(&machine)[..], [Outcome::Kept(why)] if why.contains("somebody else's")));
    assert!(machine.dir().join("sys/block/zram1").exists());
}

/// The kernel unloads the module although a device has data, if nobody has that open: a file system that is not mounted just then.
#[test]
fn the_module_stays_while_another_programs_device_has_data() {
    for (size, kept) in [("0\n", false), ("52428800\n", true)] {
        let machine = FakeKernel::new();
        machine.make_zram_loadable("6.12.1", "kernel/drivers/block/zram/zram.ko.xz:\n");
        let module = Step::LoadModule { name: "zram".into(), params: "num_devices=0".into() };
        Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([module])).unwrap();
        machine.put("sys/block/zram2/disksize", size);
        match &down(&machine)[..] {
            [Outcome::Kept(why)] => assert!(kept && why.contains("zram2 is somebody else's"), "{why}"),
            other => assert!(!kept && matches!(other, [Outcome::Restored(_)]), "{other:?}"),
        }
        assert_eq!(machine.root().exists("sys/module/zram"), kept);
    }
}

#[test]
fn a_read_only_sys_makes_no_device() {
    let machine = FakeKernel::new();
    let removal = machine.dir().join("sys/class/zram-control/hot_remove");
    std::fs::remove_file(&removal).unwrap();
    let error = eke_apply::zram::hot_add(&machine.root()).unwrap_err().to_string();
    assert!(error.contains("hot_remove"), "{error}");
    assert!(!machine.log().iter().any(|l| l.contains("hot_add")));
}

#[test]
fn swapoff_without_room_in_a_group_is_blocked() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(900, Some(5))])).unwrap();
    machine.add_area("/dev/zram1", 921_600, 100_000, 5);
    machine.put("sys/fs/cgroup/memory/memory.stat", "total_swap 0\n");
    machine.put("sys/fs/cgroup/memory/lab/memory.limit_in_bytes", "67108864\n");
    machine.put("sys/fs/cgroup/memory/lab/memory.usage_in_bytes", "60000000\n");
    machine.put("sys/fs/cgroup/memory/lab/memory.stat", "total_inactive_file 0\ntotal_swap 90000000\n");
    assert!(matches!(&down(&machine)[..], [Outcome::Blocked(why)] if why.contains("the group lab")));
}

/// A hybrid machine that was booted with `cgroup_no_v1=memory`.
#[test]
fn swapoff_without_room_in_a_group_of_a_hybrid_machine_is_blocked() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(900, Some(5))])).unwrap();
    machine.add_area("/dev/zram1", 921_600, 100_000, 5);
    machine.put("sys/fs/cgroup/unified/cgroup.controllers", "memory\n");
    machine.put("sys/fs/cgroup/unified/lab/memory.max", "67108864\n");
    machine.put("sys/fs/cgroup/unified/lab/memory.current", "60000000\n");
    machine.put("sys/fs/cgroup/unified/lab/memory.swap.current", "90000000\n");
    machine.put("sys/fs/cgroup/unified/lab/memory.stat", "inactive_file 0\n");
    assert!(matches!(&down(&machine)[..], [Outcome::Blocked(why)] if why.contains("the group lab")));
}

#[test]
fn swapoff_below_the_limit_of_promised_memory_is_blocked_with_the_reason() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(900, Some(5))])).unwrap();
    machine.add_area("/dev/zram1", 921_600, 0, 5);
    machine.put("proc/sys/vm/overcommit_memory", "2\n");
    let meminfo = machine.root().read("proc/meminfo").unwrap();
    let promised = |kib: u32| {
        machine.put("proc/meminfo", &format!("{meminfo}CommitLimit: 1433600 kB\nCommitted_AS: {kib} kB\n"));
    };
    promised(600_000);
    assert!(
        matches!(&down(&machine)[..], [Outcome::Blocked(why)] if why.contains("vm.overcommit_memory is 2"))
    );
    promised(400_000);
    assert!(matches!(&down(&machine)[..], [Outcome::Restored(_)]));
}

#[test]
fn a_group_that_ended_after_the_plan_is_skipped() {
    let machine = FakeKernel::new();
    machine.put("sys/fs/cgroup/memory/a/memory.swappiness", "60\n");
    let before = machine.tree();
    let steps =
        plan([Step::set_at("memory.swappiness", "ended", 180), Step::set_at("memory.swappiness", "a", 180)]);
    let applied = Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    assert!(matches!(applied[..], [AppliedStep::GroupEnded, AppliedStep::Made { .. }]), "{applied:?}");
    down(&machine);
    assert_eq!(machine.tree(), before);
    // A setting that an existing group lacks is still an error.
    machine.put("sys/fs/cgroup/memory/b/tasks", "");
    let lacking = plan([Step::set_at("memory.swappiness", "b", 180)]);
    assert!(Session::open(&machine.root(), "swap").unwrap().apply_plan(&lacking).is_err());
}

#[test]
fn a_group_created_meanwhile_has_its_inherited_value_restored() {
    let machine = FakeKernel::new();
    machine.put("sys/fs/cgroup/memory/a/memory.swappiness", "60\n");
    machine.put("sys/fs/cgroup/memory/own/memory.swappiness", "10\n");
    machine.put("sys/fs/cgroup/memory/had/memory.swappiness", "180\n");
    let steps = plan([Step::set("vm.swappiness", 180), Step::set_at("memory.swappiness", "a", 180)]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    machine.put("sys/fs/cgroup/memory/a/child/memory.swappiness", "180\n");
    down(&machine);
    let value =
        |group: &str| machine.root().read(format!("sys/fs/cgroup/memory/{group}/memory.swappiness")).unwrap();
    assert_eq!([value("a"), value("a/child"), value("own"), value("had")], ["60\n", "60\n", "10\n", "180\n"]);
}
