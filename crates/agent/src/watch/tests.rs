use std::cell::Cell;

use eke_apply::session::Session;
use eke_model::applied::Applied;
use eke_model::snapshot::IoLatency;
use eke_model::step::{Plan, Prediction, Reason};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::wait::wait_for;

use super::*;
use crate::child_service::ChildService;
use crate::training::Training;

#[derive(Default)]
struct ManualClock(Cell<u64>);

impl Clock for ManualClock {
    fn monotonic_ms(&self) -> u64 {
        self.0.get()
    }
    fn unix_s(&self) -> u64 {
        1_000_000 + self.0.get() / 1_000
    }
}

fn snapshot(watch: &mut Watch<'_>) -> Snapshot {
    match serde_json::from_slice(watch.status(1000)).unwrap() {
        Response::Status(snapshot) => *snapshot,
        other => panic!("{other:?}"),
    }
}

fn settings() -> Settings {
    Settings::from_sources(&[]).unwrap()
}

#[test]
fn rates_of_a_status_are_about_the_time_since_the_last_tick() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    watch.tick();
    machine.put("proc/vmstat", "pswpin 400\npswpout 0\n");
    clock.0.set(400);
    assert_eq!(snapshot(&mut watch).model.pages_in_per_s, 0.0, "too early for a rate");
    clock.0.set(4_000);
    let model = snapshot(&mut watch).model;
    assert_eq!((model.pages_in_per_s, model.interval_s), (100.0, 4.0));
    clock.0.set(8_000);
    assert_eq!(snapshot(&mut watch).model.pages_in_per_s, 50.0, "a status is no tick");
}

#[test]
fn a_status_shows_what_is_applied_and_a_wrong_prediction() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let prediction = Prediction { ratio: 3.0, ..Prediction::default() };
    let plan = Plan { remedy: "swap".into(), prediction: Some(prediction), ..Plan::default() };
    state::save(&root, state::APPLIED, &Applied { unix_s: 1, plans: vec![plan], ..Applied::default() })
        .unwrap();
    machine.add_area("/dev/zram0", 65_536, 20_480, 100);
    machine.put("sys/block/zram0/disksize", "67108864\n");
    machine.put("sys/block/zram0/mm_stat", "20971520 9000000 10485760 0 10485760 0 0 0 0\n");
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    watch.tick();
    let shown = snapshot(&mut watch);
    assert!(shown.applied);
    assert_eq!(shown.backend, "zram (lzo-rle)");
    let events: Vec<&str> = shown.events.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(events[0], "Adopted the applied plan; changes in force: 0.");
    assert!(events[1].contains("is 2.0 for 20 MiB, predicted was 3.0"), "{events:?}");
}

/// Prefetch alone, or the governor, is no reason to end a program.
#[test]
fn the_guard_runs_only_with_a_plan_or_if_it_is_asked_for() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let runs = |plans: &[Plan], enabled: Enabled| {
        let applied = Applied { plans: plans.to_vec(), ..Applied::default() };
        state::save(&root, state::APPLIED, &applied).unwrap();
        let mut settings = settings();
        settings.guard.enabled = enabled;
        let mut watch = Watch::new(&root, &clock, settings, ChildService::none());
        watch.tick();
        watch.wake_guard();
        (watch.next_guard_ms().is_some(), snapshot(&mut watch).guard.is_some())
    };
    let plan = [Plan::default()];
    assert_eq!(runs(&[], Enabled::Auto), (false, false));
    assert_eq!(runs(&[], Enabled::On), (true, true));
    assert_eq!(runs(&plan, Enabled::Auto), (true, true));
    state::forget(&root, state::APPLIED).unwrap();
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    assert_eq!((watch.guards(), snapshot(&mut watch).guard), (false, None));
}

/// A tick would be up to ten seconds later.
#[test]
fn the_guards_poll_relieves_memory_that_is_short() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let spec = serde_json::json!({
        "do": "add_zram", "algorithm": "lz4", "backing_dev": "/dev/loop9", "disksize": 1 << 26, "swap_priority": 100
    });
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(serde_json::from_value(spec).unwrap(), Reason::new("a test"));
    Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
    let applied = Applied { plans: vec![plan], ..Applied::default() };
    state::save(&root, state::APPLIED, &applied).unwrap();
    machine.put("sys/block/zram1/mm_stat", "60000000 0 30000000 0 0 0 0 100 100\n");
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    watch.tick();
    clock.0.set(10_000);
    watch.tick();
    let waits = "avg10=20.00 avg60=0.00 avg300=0.00 total=9";
    machine.put("proc/pressure/memory", &format!("some {waits}\nfull {waits}\n"));
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 90000 kB\nMemAvailable: 90000 kB\n");
    clock.0.set(10_250);
    watch.children.training = Training::of("/bin/sleep".into(), vec!["1000".into()]);
    watch.children.training.start().unwrap();
    watch.guard();
    wait_for("the training's end", || watch.children.training.has_ended());
    wait_for("a mark", || machine.log().iter().any(|line| line.ends_with("zram1/idle")));
}

/// The guard sees a shortage by less than maintenance needs, and it may be off.
#[test]
fn a_drain_is_polled_often_and_ends_when_the_guard_sees_a_shortage() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    for priority in [100, 101] {
        let spec = serde_json::json!({
            "do": "add_zram", "algorithm": "lz4", "disksize": 1 << 26, "swap_priority": priority
        });
        plan.push(serde_json::from_value(spec).unwrap(), Reason::new("a test"));
    }
    Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
    let applied = Applied { plans: vec![plan], ..Applied::default() };
    state::save(&root, state::APPLIED, &applied).unwrap();
    machine.hold_swapoffs(true);
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    wait_for("a drain", || {
        clock.0.set(clock.0.get() + 10_000);
        watch.tick();
        watch.live.draining().is_some()
    });
    clock.0.set(clock.0.get() + 60_000);
    assert_eq!(watch.next_guard_ms(), Some(clock.0.get() + POLL_MS));
    watch.guard();
    assert_eq!(watch.live.draining(), Some("zram1"));
    // With the room of both devices this is none: 60 MiB, and half of each device.
    let memory = "MemTotal: 1024000 kB\nMemFree: 61440 kB\nMemAvailable: 61440 kB\n";
    machine.put("proc/meminfo", memory);
    watch.guard();
    assert!(watch.guard.level() >= Level::Short);
    wait_for("its end", || {
        clock.0.set(clock.0.get() + 10_000);
        watch.tick();
        watch.live.draining().is_none()
    });
    assert_eq!(eke_linux::read::swaps(&root).unwrap().len(), 2);
}

/// At the agent's start, and when a training has ended.
#[test]
fn the_scratch_device_of_a_killed_training_is_removed() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    let leave = || {
        let spec = serde_json::json!({ "algorithm": "lz4", "disksize": 1 << 20 });
        let spec = serde_json::from_value(spec).unwrap();
        let mut killed = Session::open(&root, eke_swap::remedy::MEASURE).unwrap();
        let device = killed.scratch_zram(&spec, Reason::new("a test")).unwrap();
        format!("sys/block/{device}")
    };
    let device = leave();
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    assert!(!root.exists(device));
    let device = leave();
    watch.train();
    assert!(root.exists(&device), "no training has ended");
    watch.children.training = Training::of("/bin/true".into(), Vec::new());
    watch.children.training.start().unwrap();
    wait_for("its removal", || {
        watch.train();
        !root.exists(&device)
    });
}

#[test]
fn a_group_is_named_only_if_it_is_at_its_limit() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 700000 kB\nMemAvailable: 800000 kB\n");
    let waits = "some avg10=60.00 avg60=9.00 avg300=2.00 total=900\nfull avg10=30.00 avg60=4.00 avg300=1.00 total=500\n";
    machine.put("proc/pressure/memory", waits);
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    assert_eq!(snapshot(&mut watch).group_at_limit, None, "a shortage that is over");
    machine.put("sys/fs/cgroup/user.slice/memory.max", "1000000\n");
    machine.put("sys/fs/cgroup/user.slice/memory.current", "999000\n");
    machine.put("sys/fs/cgroup/user.slice/memory.pressure", waits);
    clock.0.set(4_000);
    assert_eq!(snapshot(&mut watch).group_at_limit.as_deref(), Some("user.slice"));
}

#[test]
fn a_machine_that_cannot_be_sampled_is_reported_once() {
    let (machine, clock) = (FakeKernel::new(), ManualClock::default());
    let root = machine.root();
    std::fs::remove_file(machine.dir().join("proc/vmstat")).unwrap();
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    watch.tick();
    watch.tick();
    let events = snapshot(&mut watch).events;
    assert_eq!(events.len(), 2);
    assert!(events[1].text.contains("proc/vmstat"), "{events:?}");
}

#[test]
fn a_snapshot_has_the_machines_own_counters() {
    let machine = FakeKernel::new();
    machine.put("proc/pressure/io", "some avg10=2.50 avg60=0.00 avg300=0.00 total=7\n");
    let (root, clock) = (machine.root(), ManualClock::default());
    let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
    let seen = snapshot(&mut watch);
    assert_eq!(seen.unix_s, 1_000_000);
    assert_eq!(seen.machine.memory.anonymous, Bytes(200_000 << 10));
    assert_eq!(seen.machine.io_pressure.map(|p| p.some_avg10), Some(2.5));
    assert_eq!(seen.machine.cpu_pressure, None);
}

/// The state that `eke-io` published reaches every client while its process is the agent's child.
#[test]
fn the_state_of_a_child_is_passed_on() {
    let machine = FakeKernel::new();
    let (root, clock) = (machine.root(), ManualClock::default());
    state::save(&root, state::APPLIED, &Applied::default()).unwrap();
    let io = ChildService::of("/bin/sleep".into(), vec!["1000".into()]);
    let mut governs = settings();
    governs.io.govern = Enabled::On;
    let children = ChildServices { io, ..ChildService::none().into() };
    let mut watch = Watch::new(&root, &clock, governs, children);
    watch.tick();
    let pid = watch.children.io.pid().unwrap();
    let mut reads = eke_model::histogram::Histogram::default();
    reads.record(90_000);
    let kind = IoLatency { operation: "read".into(), all: reads, late: reads };
    let published = IoState { pid, latencies: vec![kind], late_ms: 10_000, ..IoState::default() };
    state::save(&root, state::IO, &published).unwrap();
    watch.rendered.clear();
    assert_eq!(snapshot(&mut watch).io, Some(published.clone()));
    state::save(&root, state::IO, &IoState { pid: pid + 1, ..published }).unwrap();
    watch.rendered.clear();
    assert_eq!(snapshot(&mut watch).io, None, "an earlier one's");
    watch.children.io.supervise(false, 0);
    wait_for("its end", || {
        watch.children.io.supervise(false, 0);
        watch.children.io.pid().is_none()
    });
}

#[test]
fn the_resident_set_is_in_pages() {
    assert_eq!(resident("2000 512 300 1 0 99 0\n", 4096), Bytes::mib(2));
}
