//! The promise of the journal, on a fake machine: wherever a change is interrupted, `down` restores everything.

#![expect(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::os::unix::fs::PermissionsExt;

use eke_apply::journal::{self, Journal};
use eke_apply::revert::{self, Outcome};
use eke_apply::script;
use eke_apply::session::{AppliedStep, Session};
use eke_linux::discard::Discard;
use eke_linux::{Error, read};
use eke_model::step::{Plan, Reason, Step, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use proptest::prelude::*;

fn zram(mib: u64, priority: Option<i16>) -> Step {
    Step::AddZram(ZramSpec {
        algorithm: "zstd".into(),
        params: None,
        dictionary: None,
        recompress_with: None,
        backing_dev: None,
        disksize: Bytes::mib(mib),
        swap_priority: priority,
    })
}

fn plan(steps: impl IntoIterator<Item = Step>) -> Plan {
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    for step in steps {
        plan.push(step, Reason::new("for the test"));
    }
    plan
}

fn usual() -> Plan {
    plan([
        Step::set("zswap.enabled", "Y"),
        zram(100, Some(100)),
        Step::set("vm.swappiness", 180),
        Step::set("vm.page-cluster", 0),
    ])
}

fn down(machine: &std::sync::Arc<FakeKernel>) -> Vec<Outcome> {
    let root = machine.root();
    let journal = Journal::open(&root).unwrap();
    revert::all(&root, &journal).unwrap().into_iter().map(|(_, outcome)| outcome).collect()
}

#[test]
fn the_order_of_writes_is_the_kernels() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    let log: Vec<String> = machine.log().into_iter().filter(|l| !l.contains("run/eke")).collect();
    assert_eq!(
        log,
        [
            "write Y to sys/module/zswap/parameters/enabled",
            "read sys/class/zram-control/hot_add",
            "write zstd to sys/block/zram1/comp_algorithm",
            "write 104857600 to sys/block/zram1/disksize",
            "write (a page) to dev/zram1",
            "swap on dev/zram1",
            "write 180 to proc/sys/vm/swappiness",
            "write 0 to proc/sys/vm/page-cluster",
        ]
    );
}

#[test]
fn down_restores_and_a_second_down_has_nothing_to_do() {
    let machine = FakeKernel::new();
    let before = machine.tree();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    assert_ne!(machine.tree(), before);
    assert_eq!(down(&machine).len(), 4);
    assert_eq!(machine.tree(), before);
    assert_eq!(down(&machine), []);
}

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

#[test]
fn a_second_up_changes_nothing() {
    let machine = FakeKernel::new();
    let knobs = plan([Step::set("vm.swappiness", 180)]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&knobs).unwrap();
    let again = Session::open(&machine.root(), "swap").unwrap().apply_plan(&knobs).unwrap();
    assert_eq!(again, [AppliedStep::AlreadySo]);
    assert_eq!(journal::entries(&machine.root()).unwrap().len(), 1);
}

#[test]
fn a_value_changed_by_others_is_left_alone_and_reported() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    machine.put("proc/sys/vm/swappiness", "77\n");
    let outcomes = down(&machine);
    assert!(
        matches!(&outcomes[1], Outcome::Kept(why) if why.contains("is 77, but eke had set 180")),
        "{outcomes:?}"
    );
    assert_eq!(machine.tree()["proc/sys/vm/swappiness"].as_deref(), Some(b"77\n".as_slice()));
    assert_eq!(machine.tree()["proc/sys/vm/page-cluster"].as_deref(), Some(b"3\n".as_slice()));
}

#[test]
fn a_busy_device_is_retried_and_then_named() {
    for path in ["disksize", "dev/zram1"] {
        let machine = FakeKernel::new();
        machine.set_faults(Faults { errors: vec![(path.into(), 16, 3)], ..Faults::default() });
        Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram(10, None)])).unwrap();
        assert!(machine.tree().contains_key("sys/block/zram1/disksize"), "{path}");
    }
    let machine = FakeKernel::new();
    let before = machine.tree();
    machine.set_faults(Faults { errors: vec![("disksize".into(), 16, 99)], ..Faults::default() });
    let error = Session::open(&machine.root(), "swap")
        .unwrap()
        .apply_plan(&plan([zram(10, None)]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("zram1/disksize") && error.contains("something else still uses it"), "{error}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn a_step_that_fails_undoes_the_ones_before() {
    for (path, errno) in
        [("hot_add", 1), ("hot_add", 12), ("disksize", 12), ("page-cluster", 22), ("dev/zram1", 28)]
    {
        let machine = FakeKernel::new();
        let before = machine.tree();
        machine.set_faults(Faults { errors: vec![(path.into(), errno, 1)], ..Faults::default() });
        let result = Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual());
        assert!(
            matches!(&result, Err(Error::Refused(why)) if why.contains("everything before it was undone")),
            "{path}: {result:?}"
        );
        assert_eq!(machine.tree(), before, "{path}");
        assert_eq!(journal::entries(&machine.root()).unwrap(), [], "{path}");
    }
}

#[test]
fn a_full_disk_with_the_journal_changes_nothing() {
    let machine = FakeKernel::new();
    let before = machine.tree();
    let changes = [Step::set("vm.page-cluster", 0), Step::set("zswap.enabled", "Y"), zram(100, Some(100))];
    for intents_that_fit in 0..=changes.len() {
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        for step in &changes[..intents_that_fit] {
            assert_eq!(session.apply_plan(&plan([step.clone()])).unwrap().len(), 1);
        }
        assert_eq!(journal::entries(&machine.root()).unwrap().len(), intents_that_fit);
        machine.set_faults(Faults { errors: vec![("journal.jsonl".into(), 28, 1)], ..Faults::default() });
        let error = session.apply_plan(&plan([Step::set("vm.swappiness", 180)])).unwrap_err().to_string();
        assert!(error.contains("journal.jsonl") && error.contains("no space is left"), "{error}");
        drop(session);
        down(&machine);
        assert_eq!(machine.tree(), before);
    }
}

/// The records of the usual plan: intent and outcome of each step, and the device's name.
const RECORDS: usize = 9;

#[test]
fn a_change_that_the_journal_cannot_record_is_undone() {
    for (taken, times) in (0..RECORDS).flat_map(|taken| [(taken, 1), (taken, usize::MAX)]) {
        let machine = FakeKernel::new();
        let before = machine.tree();
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        machine.set_faults(Faults { full: Some((taken, times)), ..Faults::default() });
        let error = session.apply_plan(&usual()).unwrap_err().to_string();
        assert!(
            error.contains("no space is left") && error.contains("everything before it was undone"),
            "{error}"
        );
        assert_eq!(machine.tree(), before, "full after {taken} records: {error}");
        drop(session);
        assert!(!down(&machine).iter().any(|o| matches!(o, Outcome::Restored(_) | Outcome::Blocked(_))));
        assert_eq!(journal::entries(&machine.root()).unwrap(), [], "also where it is full");
    }
}

#[test]
fn a_step_that_can_be_neither_recorded_nor_undone_is_reported() {
    let machine = FakeKernel::new();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    // `done` cannot be recorded, and without meminfo the room for a swapoff is unknown.
    let swap = plan([Step::SwapOn { path: "/dev/zram0".into(), priority: None }]);
    std::fs::remove_file(machine.dir().join("proc/meminfo")).unwrap();
    machine.set_faults(Faults { full: Some((1, 1)), ..Faults::default() });
    let error = session.apply_plan(&swap).unwrap_err().to_string();
    assert!(error.contains("still in force") && error.contains("`eke down`"), "{error}");
    drop(session);
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n");
    assert!(matches!(&down(&machine)[..], [Outcome::Restored(_)]));
}

#[test]
fn a_record_after_a_partial_one_is_not_lost() {
    for taken in 0..RECORDS {
        let machine = FakeKernel::new();
        let before = machine.tree();
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        machine.set_faults(Faults { full: Some((taken, 1)), ..Faults::default() });
        session.apply_plan(&usual()).unwrap_err();
        session.apply_plan(&usual()).unwrap();
        assert_eq!(journal::entries(&machine.root()).unwrap().len(), 4, "torn after {taken} records");
        drop(session);
        down(&machine);
        assert_eq!(machine.tree(), before, "torn after {taken} records");
    }
}

const JOURNAL: &str = "run/eke/journal.jsonl";

/// A machine with the usual plan and a journal of 300 KiB, from changes that are undone.
fn with_long_journal() -> (std::sync::Arc<FakeKernel>, u64) {
    let machine = FakeKernel::new();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    session.apply_plan(&usual()).unwrap();
    session.apply_plan(&plan([Step::set("vm.swappiness", 10)])).unwrap();
    let seq = journal::entries(&machine.root()).unwrap().last().unwrap().seq;
    session.undo(seq).unwrap();
    drop(session);
    let text = machine.root().read(JOURNAL).unwrap();
    let undone: String = text
        .lines()
        .filter(|l| l.contains(&format!("\"seq\":{seq},")))
        .map(|l| l.to_owned() + "\n")
        .collect();
    machine.put(JOURNAL, &(text + &undone.repeat((300 << 10) / undone.len())));
    (machine, seq)
}

fn length(machine: &FakeKernel) -> u64 {
    std::fs::metadata(machine.dir().join(JOURNAL)).unwrap().len()
}

#[test]
fn a_long_journal_is_compacted_and_forgets_no_change_and_no_number() {
    let (machine, last) = with_long_journal();
    let before = journal::entries(&machine.root()).unwrap();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    assert!(length(&machine) < 10_000, "{}", length(&machine));
    assert_eq!(journal::entries(&machine.root()).unwrap(), before);
    let mode = std::fs::metadata(machine.dir().join(JOURNAL)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let next = session.apply_plan(&plan([Step::set("vm.swappiness", 20)])).unwrap();
    assert!(matches!(next[..], [AppliedStep::Made { seq, .. }] if seq == last + 1), "{next:?}");
    drop(session);
    down(&machine);
    assert_eq!(machine.tree(), FakeKernel::new().tree());
}

#[test]
fn no_crash_and_no_full_file_system_loses_a_long_journal() {
    let full = |times| Faults { errors: vec![("journal.jsonl".into(), 28, times)], ..Faults::default() };
    let crash = |after, torn| Faults { crash_after: Some(after), torn, ..Faults::default() };
    for faults in [full(1), full(2), crash(0, false), crash(1, false), crash(2, false), crash(2, true)] {
        let (machine, _) = with_long_journal();
        let before = journal::entries(&machine.root()).unwrap();
        machine.set_faults(faults.clone());
        if let Ok(mut session) = Session::open(&machine.root(), "swap") {
            let _ = session.apply_plan(&plan([Step::set("vm.swappiness", 20)]));
        }
        machine.set_faults(Faults::default());
        let entries = journal::entries(&machine.root()).unwrap();
        assert!(entries.starts_with(&before), "{faults:?}");
        down(&machine);
        assert_eq!(machine.tree(), FakeKernel::new().tree(), "{faults:?}");
    }
}

#[test]
fn an_algorithm_that_the_kernel_lacks_names_those_that_it_has() {
    let machine = FakeKernel::new();
    let spec = ZramSpec {
        algorithm: "brotli".into(),
        params: None,
        dictionary: None,
        recompress_with: None,
        backing_dev: None,
        disksize: Bytes::mib(1),
        swap_priority: None,
    };
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
fn a_journal_of_another_version_is_kept_and_named() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    let text = machine.root().read("run/eke/journal.jsonl").unwrap();
    machine.put("run/eke/journal.jsonl", &text.replace("\"remove_zram\"", "\"remove_zram_2\""));
    let error = Journal::open(&machine.root()).unwrap_err().to_string();
    assert!(error.contains("another version of eke"), "{error}");
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

#[test]
fn the_journal_of_another_boot_is_not_replayed() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap")
        .unwrap()
        .apply_plan(&plan([Step::set("vm.swappiness", 180)]))
        .unwrap();
    machine.put("proc/sys/kernel/random/boot_id", "another\n");
    assert_eq!(down(&machine), []);
    assert_eq!(machine.tree()["proc/sys/vm/swappiness"].as_deref(), Some(b"180\n".as_slice()));
}

#[test]
fn the_undo_prints_as_shell() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    let shell = script::undo(&journal::entries(&machine.root()).unwrap());
    assert!(shell.contains("echo '60' > /proc/sys/vm/swappiness\n"), "{shell}");
    assert!(shell.contains("swapoff /dev/zram1 && echo 1 > /sys/block/zram1/reset"), "{shell}");
    assert!(shell.contains("echo 1 > /sys/class/zram-control/hot_remove\n"), "{shell}");
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u8..=200).prop_map(|n| Step::set("vm.swappiness", n)),
        (0u8..6).prop_map(|n| Step::set("vm.page-cluster", n)),
        prop::sample::select(vec!["Y", "N"]).prop_map(|v| Step::set("zswap.enabled", v)),
        (10u8..90).prop_map(|n| Step::set("zswap.max_pool_percent", n)),
        (1u64..200, prop::option::of(0i16..200)).prop_map(|(mib, priority)| zram(mib, priority)),
        Just(Step::SwapOff { path: "/dev/vda2".into() }),
        Just(Step::SwapOn { path: "/dev/vda2".into(), priority: Some(7) }),
        Just(Step::LoadModule { name: "zram".into(), params: "num_devices=0".into() }),
        Just(Step::set("vm.no-such-knob", 1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any steps; the process dies after any effect (a write, an append, a read of `hot_add`), with or without a
    /// partial record in the journal, once or twice in a row. Then `down` restores the machine to the byte.
    #[test]
    fn down_restores_everything(
        steps in prop::collection::vec(any_step(), 0..8),
        crashes in prop::collection::vec((0usize..60, any::<bool>()), 1..3),
        down_crash in 0usize..60,
        mounts_are_gone in any::<bool>(),
    ) {
        let machine = FakeKernel::new();
        machine.add_area("/dev/vda2", 500_000, 0, 7);
        if mounts_are_gone {
            machine.detach_mounts();
        }
        let before = machine.tree();
        for (crash_after, torn) in crashes {
            machine.set_faults(Faults { crash_after: Some(crash_after), torn, ..Faults::default() });
            if let Ok(mut session) = Session::open(&machine.root(), "swap") {
                for step in &steps {
                    let _ = session.apply_plan(&plan([step.clone()]));
                }
            }
            machine.set_faults(Faults::default());
        }
        machine.set_faults(Faults { crash_after: Some(down_crash), torn: true, ..Faults::default() });
        if let Ok(journal) = Journal::open(&machine.root()) {
            let _ = revert::all(&machine.root(), &journal);
        }
        machine.set_faults(Faults::default());
        down(&machine);
        prop_assert_eq!(machine.tree(), before);
        prop_assert_eq!(journal::entries(&machine.root()).unwrap(), []);
    }
}
