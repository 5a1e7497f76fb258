//! Settings of disks and writeback on a fake root: each is restored together with the settings that change with it.

use eke_apply::journal;
use eke_apply::journal::Journal;
use eke_apply::revert;
use eke_apply::session::{AppliedStep, Session};
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step};
use eke_testkit::fake_kernel::{FakeKernel, Faults};

#[expect(clippy::unwrap_used, reason = "test code")]
fn set(root: &Root, knob: &str, target: &str, value: &str) -> AppliedStep {
    let step = PlannedStep { step: Step::set_at(knob, target, value), reason: Reason::new("a test") };
    Session::open(root, "io").unwrap().apply(&step).unwrap()
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn down(root: &Root) -> Vec<revert::Outcome> {
    let journal = Journal::open(root).unwrap();
    revert::all(root, &journal).unwrap().into_iter().map(|(_, outcome)| outcome).collect()
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn now(root: &Root, path: &str) -> String {
    root.read(path).unwrap().trim().to_owned()
}

#[test]
fn bytes_and_ratio_are_restored_as_a_pair() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("proc/sys/vm/dirty_bytes", "0\n");
    machine.put("proc/sys/vm/dirty_ratio", "20\n");
    set(&root, "vm.dirty_bytes", "", "16777216");
    // as the kernel does
    machine.put("proc/sys/vm/dirty_ratio", "0\n");
    let text = eke_apply::script::undo(&journal::entries(&root).unwrap());
    assert!(text.contains("echo '20' > /proc/sys/vm/dirty_ratio") && !text.contains("'0'"), "{text}");
    assert!(matches!(&down(&root)[..], [revert::Outcome::Restored(_)]));
    assert_eq!(now(&root, "proc/sys/vm/dirty_ratio"), "20");
    // writing the ratio has set it to 0; eke never writes a zero, because the kernel refuses it
    assert_eq!(now(&root, "proc/sys/vm/dirty_bytes"), "16777216");
}

#[test]
fn a_scheduler_is_restored_with_its_own_settings() {
    let machine = FakeKernel::new();
    let root = machine.root();
    for (file, text) in
        [("scheduler", "none [mq-deadline] bfq\n"), ("nr_requests", "64\n"), ("iosched/read_expire", "300\n")]
    {
        machine.put(&format!("sys/block/sda/queue/{file}"), text);
    }
    set(&root, "queue.scheduler", "sda", "none");
    machine.put("sys/block/sda/queue/nr_requests", "256\n");
    machine.put("sys/block/sda/queue/iosched/read_expire", "500\n");
    down(&root);
    assert_eq!(now(&root, "sys/block/sda/queue/scheduler"), "mq-deadline");
    assert_eq!(now(&root, "sys/block/sda/queue/nr_requests"), "64");
    assert_eq!(now(&root, "sys/block/sda/queue/iosched/read_expire"), "300");
}

#[test]
fn a_groups_latency_is_restored_for_its_disk() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("sys/fs/cgroup/user/io.latency", "8:16 target=500\n");
    machine.put("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=user rpct=95.00\n");
    set(&root, "io.latency", "user", "8:16 target=100");
    set(&root, "io.cost.qos", "", "8:0 enable=0");
    let entries = journal::entries(&root).unwrap();
    assert_eq!(entries.len(), 2);
    assert!(down(&root).iter().all(|o| matches!(o, revert::Outcome::Restored(_))));
    assert_eq!(now(&root, "sys/fs/cgroup/user/io.latency"), "8:16 target=500");
    assert_eq!(now(&root, "sys/fs/cgroup/io.cost.qos"), "8:0 enable=1 ctrl=user rpct=95.00");
}

#[test]
fn a_value_changed_by_others_is_left_alone() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("sys/block/sda/queue/wbt_lat_usec", "2000\n");
    set(&root, "queue.wbt_lat_usec", "sda", "500");
    machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
    assert!(matches!(&down(&root)[..], [revert::Outcome::Kept(_)]));
    assert_eq!(now(&root, "sys/block/sda/queue/wbt_lat_usec"), "75000");
}

#[test]
fn a_throttle_that_bfq_would_have_switched_off_is_restored_as_off() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
    machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n");
    set(&root, "queue.wbt_lat_usec", "sda", "18750");
    machine.put("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]\n");
    assert!(matches!(&down(&root)[..], [revert::Outcome::Restored(_)]));
    assert_eq!(now(&root, "sys/block/sda/queue/wbt_lat_usec"), "0");
    assert!(journal::entries(&root).unwrap().is_empty());
}

#[test]
fn a_disk_that_refuses_its_old_value_holds_no_other_up() {
    let machine = FakeKernel::new();
    let root = machine.root();
    for disk in ["sda", "sdb", "sdc"] {
        machine.put(&format!("sys/block/{disk}/queue/nr_requests"), "64\n");
        set(&root, "queue.nr_requests", disk, "8");
    }
    let errors = vec![("sdb/queue/nr_requests".to_owned(), 22, usize::MAX)];
    machine.set_faults(Faults { errors, ..Faults::default() });
    let mut session = Session::open(&root, "io").unwrap();
    let refused = session.undo_own().unwrap_err().to_string();
    assert!(refused.contains("sdb/queue/nr_requests"), "{refused}");
    let all = ["sda", "sdb", "sdc"].map(|disk| now(&root, &format!("sys/block/{disk}/queue/nr_requests")));
    assert_eq!(all, ["64", "8", "64"]);
    machine.set_faults(Faults::default());
    session.undo_own().unwrap();
    assert_eq!(now(&root, "sys/block/sdb/queue/nr_requests"), "64");
}

/// zswap must not return while zram still holds pages.
#[test]
fn what_waits_for_a_change_that_cannot_be_undone_waits() {
    let machine = FakeKernel::new();
    let root = machine.root();
    set(&root, "zswap.max_pool_percent", "", "30");
    set(&root, "vm.swappiness", "", "100");
    let errors = vec![("vm/swappiness".to_owned(), 22, usize::MAX)];
    machine.set_faults(Faults { errors, ..Faults::default() });
    Session::open(&root, "io").unwrap().undo_own().unwrap_err();
    assert_eq!(now(&root, "sys/module/zswap/parameters/max_pool_percent"), "30");
}

#[test]
fn a_disk_that_is_gone_has_nothing_to_restore() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("sys/block/sda/queue/nr_requests", "256\n");
    set(&root, "queue.nr_requests", "sda", "32");
    std::fs::remove_dir_all(machine.dir().join("sys/block/sda")).unwrap();
    assert_eq!(down(&root), [revert::Outcome::AsBefore]);
    assert!(journal::entries(&root).unwrap().is_empty());
}

#[test]
fn a_value_that_the_kernel_raises_is_taken_back() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("sys/block/sda/queue/nr_requests", "256\n");
    let step =
        PlannedStep { step: Step::set_at("queue.nr_requests", "sda", "0"), reason: Reason::new("a test") };
    let refused = Session::open(&root, "io").unwrap().apply(&step).unwrap_err().to_string();
    assert!(refused.contains("it reads \"4\"") && !refused.contains("still in force"), "{refused}");
    assert_eq!(now(&root, "sys/block/sda/queue/nr_requests"), "256");
    assert!(journal::entries(&root).unwrap().is_empty());
}
