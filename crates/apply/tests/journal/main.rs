//! The promise of the journal, on a fake machine: wherever a change is interrupted, `down` restores everything.

#![expect(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

mod areas;
mod drain;
mod records;

use std::os::unix::fs::PermissionsExt;

use eke_apply::journal::{self, Journal};
use eke_apply::revert::{self, Outcome};
use eke_apply::script;
use eke_apply::session::{AppliedStep, Session};
use eke_linux::discard::Discard;
use eke_linux::{Error, read};
use eke_model::step::{Plan, Reason, Step, UnnamedFile, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use proptest::prelude::*;

fn spec(mib: u64, priority: Option<i16>) -> ZramSpec {
    ZramSpec { swap_priority: priority, ..ZramSpec::new("zstd", Bytes::mib(mib)) }
}

fn zram(mib: u64, priority: Option<i16>) -> Step {
    Step::AddZram(spec(mib, priority))
}

/// One with an encrypted file behind it.
fn backed_zram() -> Step {
    let file = UnnamedFile { directory: "/var/lib/eke".into(), size: Bytes::mib(16), encrypted: true };
    Step::AddZram(ZramSpec { backing_file: Some(file), ..spec(50, Some(90)) })
}

/// One with the partition `dev/vdb1` behind it, encrypted.
fn zram_on_a_partition() -> Step {
    let backing_dev = Some("/dev/vdb1".into());
    Step::AddZram(ZramSpec { backing_dev, backing_encrypted: true, ..spec(50, Some(90)) })
}

/// The machine with a partition of this size.
fn with_partition(mib: usize) -> std::sync::Arc<FakeKernel> {
    let machine = FakeKernel::new();
    machine.put("dev/vdb1", &"x".repeat(mib << 20));
    machine
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
fn a_file_behind_a_device_is_made_before_its_size_is_set() {
    let machine = FakeKernel::new();
    let before = machine.tree();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([backed_zram()])).unwrap();
    let log: Vec<String> = machine.log().into_iter().filter(|l| !l.contains("run/eke")).collect();
    let of_file: Vec<&str> = log[2..].iter().map(|line| line.split(" to ").next().unwrap_or(line)).collect();
    assert_eq!(
        of_file,
        [
            "make a file in var/lib/eke",
            "attach dev/loop7",
            "map dev/loop7",
            "resume dev/mapper/eke-writeback-zram1",
            &format!("write {}", machine.dir().join("dev/dm-3").display()),
            "write 52428800",
            "write (a page)",
            "swap on dev/zram1",
        ]
    );
    down(&machine);
    assert_eq!(machine.tree(), before);
}

/// zram gets the mapping; nothing is written to the partition itself.
#[test]
fn a_partition_is_encrypted_before_zram_has_it() {
    let machine = with_partition(3);
    let before = machine.tree();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram_on_a_partition()])).unwrap();
    let log: Vec<String> = machine.log().into_iter().filter(|l| !l.contains("run/eke")).collect();
    assert_eq!(
        log[2..5],
        [
            "map dev/vdb1 to dev/mapper/eke-writeback-zram1".to_owned(),
            "resume dev/mapper/eke-writeback-zram1".to_owned(),
            format!("write {} to sys/block/zram1/backing_dev", machine.dir().join("dev/dm-3").display()),
        ]
    );
    down(&machine);
    assert_eq!(machine.tree(), before);
}

/// A process that dies after any effect, of the plan and of the undo.
#[test]
fn no_crash_leaves_a_mapping() {
    for step in [backed_zram(), zram_on_a_partition()] {
        let machine = with_partition(3);
        let before = machine.tree();
        let effects = {
            Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([step.clone()])).unwrap();
            down(&machine);
            machine.log().len()
        };
        for crash in 0..effects {
            machine.set_faults(Faults { crash_after: Some(crash), ..Faults::default() });
            if let Ok(mut session) = Session::open(&machine.root(), "swap") {
                let _ = session.apply_plan(&plan([step.clone()]));
                let _ = revert::all(&machine.root(), session.journal());
            }
            machine.set_faults(Faults::default());
            down(&machine);
            assert_eq!(machine.tree(), before, "{step} after {crash} effects");
        }
    }
}

#[test]
fn a_partition_without_room_between_its_edges_is_refused() {
    let machine = with_partition(2);
    let before = machine.tree();
    let error = Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([zram_on_a_partition()]));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("/dev/vdb1 is too small for writeback"), "{error}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn a_file_that_cannot_be_made_or_encrypted_leaves_nothing() {
    for (step, path, errno, shown) in [
        (backed_zram(), "var/lib/eke", 28, "make a file without a name in"),
        (backed_zram(), "dev/loop7", 25, "make a loop device"),
        (backed_zram(), "dev/mapper/eke-writeback-zram1", 22, "encrypt, by dm-crypt"),
        (zram_on_a_partition(), "dev/mapper/eke-writeback-zram1", 16, "dev/vdb1"),
        (zram_on_a_partition(), "disksize", 12, "disksize"),
    ] {
        let machine = with_partition(3);
        let before = machine.tree();
        machine.set_faults(Faults { errors: vec![(path.into(), errno, 1)], ..Faults::default() });
        let error = Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan([step]));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(shown), "{path}: {error}");
        assert_eq!(machine.tree(), before, "{path}");
    }
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
        Just(backed_zram()),
        Just(zram_on_a_partition()),
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
        let machine = with_partition(3);
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
