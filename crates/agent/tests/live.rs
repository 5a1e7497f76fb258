//! Live decisions on a simulated machine: which bytes are written where, in what order, and how the kernel's refusals
//! are handled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod replaced;
mod writes_back;

use std::sync::Arc;

use eke_apply::journal::{self, Journal};
use eke_apply::session::Session;
use eke_apply::swapoff::Interrupt;
use eke_apply::{revert, state};
use eke_linux::sampler::Sampler;
use eke_linux::{Root, read};
use eke_model::config::{Settings, Source};
use eke_model::model::Model;
use eke_model::sample::Sample;
use eke_model::step::{Plan, Reason, Step, ZramSpec};
use eke_model::units::{Bytes, PageSize};
use eke_swap::live::act::{self, ActionOutcome};
use eke_swap::live::action::{Action, PageKind};
use eke_swap::live::ledger::Ledger;
use eke_swap::live::{Live, Tick};
use eke_swap::measure::Dictionary;
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use eke_testkit::wait::wait_for;
use writes_back::WritesBack;

const MIB: u64 = 1 << 20;
const DAY: u64 = 86_400;

/// A machine with eke's zram1 of 64 MiB, which can recompress and write back.
fn machine(fill_mib: u64, pool_mib: u64) -> Arc<FakeKernel> {
    let machine = FakeKernel::new();
    let spec = ZramSpec {
        recompress_with: Some("zstd".into()),
        backing_dev: Some("/dev/loop9".into()),
        swap_priority: Some(100),
        ..ZramSpec::new("lz4", Bytes::mib(64))
    };
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(Step::AddZram(spec), Reason::new("a test"));
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
    machine.add_area("/dev/zram1", 64 * 1024, fill_mib * 1024, 100);
    machine.put("sys/block/zram1/recomp_algorithm", "#1: lzo-rle lz4 [zstd]\n");
    machine.put(
        "sys/block/zram1/mm_stat",
        &format!("{} 0 {} 0 0 0 0 100 100\n", fill_mib * MIB, pool_mib * MIB),
    );
    machine.set_faults(Faults::default());
    machine
}

/// One tick every 10 s.
struct Ticks {
    root: Root,
    settings: Settings,
    live: Live,
    before: Sample,
    s: u64,
    events: Vec<String>,
}

impl Ticks {
    fn on(root: Root, toml: &str) -> Self {
        let settings = Settings::from_sources(&[Source { name: "test", text: toml }]).unwrap();
        let before = Sampler::new(&root).full(0).unwrap();
        Self { root, settings, live: Live::default(), before, s: 0, events: Vec::new() }
    }

    /// What the first tick of another agent reports.
    fn reported(root: Root) -> Vec<String> {
        let mut ticks = Self::on(root, "");
        ticks.tick(1);
        ticks.events
    }

    fn tick(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.s += 10;
            let now = Sampler::new(&self.root).full(self.s * 1_000).unwrap();
            let model = Model::new(&now, Some(&self.before));
            let moment = Tick {
                root: &self.root,
                settings: &self.settings.swap,
                now: &now,
                before: &self.before,
                model: &model,
                unix_s: 5 * DAY + self.s,
            };
            self.events.extend(self.live.tick(&moment).into_iter().map(|message| message.text));
            self.before = now;
        }
    }
}

/// Writes to zram1 since the machine was set up, and other effects, without journal and ledger.
fn effects(machine: &FakeKernel) -> Vec<String> {
    let log = machine.log().split_off(set_up(machine));
    log.into_iter()
        .filter(|l| !l.contains("run/eke") && !l.contains("var/lib"))
        .map(|l| l.replace("sys/block/", ""))
        .collect()
}

fn set_up(machine: &FakeKernel) -> usize {
    machine.log().iter().position(|l| l.starts_with("swap on")).map_or(0, |at| at + 1)
}

#[test]
fn a_cycle_on_a_kernel_that_marks_by_age() {
    let machine = machine(60, 30);
    let mut ticks = Ticks::on(machine.root(), "[swap]\ngrow = false\n");
    ticks.tick(20);
    assert_eq!(
        effects(&machine),
        [
            "write 11003 to zram1/idle",
            "write type=huge_idle priority=1 max_pages=512 to zram1/recompress",
            "write type=idle priority=1 max_pages=1024 to zram1/recompress",
            "write 2048 to zram1/writeback_limit",
            "write 1 to zram1/writeback_limit_enable",
            "write huge_idle to zram1/writeback",
            "write 4096 to zram1/writeback_limit",
            "write 1 to zram1/writeback_limit_enable",
            "write huge to zram1/writeback",
        ]
    );
    let ledger: Ledger = state::load(&machine.root(), act::LEDGER).unwrap();
    assert_eq!(
        (ledger.day, ledger.written),
        (5, Bytes(0)),
        "the kernel wrote nothing, so nothing is charged"
    );
}

#[test]
fn einval_of_an_age_marks_all_instead_and_lets_it_age() {
    let machine = machine(60, 30);
    machine.set_faults(Faults { errors: vec![("zram1/idle".into(), 22, 1)], ..Faults::default() });
    let mut ticks = Ticks::on(machine.root(), "[swap]\ngrow = false\nwriteback_mib_per_day = 0\n");
    ticks.tick(1_250);
    let log = effects(&machine);
    assert_eq!(
        log[..2],
        ["write all to zram1/idle", "write type=huge_idle priority=1 max_pages=512 to zram1/recompress"]
    );
}

#[test]
fn eagain_repeats_the_action_and_einval_continues_with_the_next() {
    let machine = machine(60, 30);
    let errors = vec![("zram1/recompress".into(), 11, 1), ("zram1/writeback".into(), 22, 9)];
    machine.set_faults(Faults { errors, ..Faults::default() });
    let mut ticks = Ticks::on(machine.root(), "[swap]\ngrow = false\n");
    ticks.tick(30);
    let log = effects(&machine);
    assert_eq!(log.iter().filter(|l| l.contains("type=huge_idle")).count(), 1, "{log:?}");
    assert_eq!(log.iter().filter(|l| l.contains("type=idle")).count(), 1, "{log:?}");
    assert!(!log.iter().any(|l| l.ends_with("zram1/writeback")), "{log:?}");
    assert_eq!(ticks.events, [""; 0], "a missing feature of the kernel is no event");
}

#[test]
fn while_the_gate_is_closed_nothing_is_written() {
    for (path, text) in [
        ("proc/pressure/memory", "some avg10=5.00 avg60=0.00 avg300=0.00 total=0\n"),
        ("sys/class/power_supply/BAT0/status", "Discharging\n"),
    ] {
        let machine = machine(60, 30);
        machine.put("sys/class/power_supply/BAT0/type", "Battery\n");
        machine.put(path, text);
        let mut ticks = Ticks::on(machine.root(), "[swap]\ngrow = false\n");
        ticks.tick(30);
        assert_eq!(effects(&machine), [""; 0], "{path}");
    }
}

const PROACTIVE: &str =
    "[swap]\ngrow = false\nrecompress = false\nwriteback_mib_per_day = 0\nproactive = true\n";

#[test]
fn idle_memory_is_swapped_out_by_the_root_group_or_else_by_all_nodes() {
    let machine = machine(10, 3);
    for node in ["node0", "node1"] {
        machine.put(&format!("sys/devices/system/node/{node}/reclaim"), "");
    }
    machine.put("sys/devices/system/node/online", "0-1\n");
    Ticks::on(machine.root(), PROACTIVE).tick(8);
    assert_eq!(
        effects(&machine),
        [
            "write 524288 swappiness=max to sys/devices/system/node/node0/reclaim",
            "write 524288 swappiness=max to sys/devices/system/node/node1/reclaim",
            "write 1048576 swappiness=max to sys/devices/system/node/node0/reclaim",
            "write 1048576 swappiness=max to sys/devices/system/node/node1/reclaim",
        ]
    );
    machine.put("sys/fs/cgroup/memory.reclaim", "");
    machine.set_faults(Faults { errors: vec![("memory.reclaim".into(), 22, 1)], ..Faults::default() });
    let before = effects(&machine).len();
    let mut ticks = Ticks::on(machine.root(), PROACTIVE);
    ticks.tick(20);
    let log = effects(&machine).split_off(before);
    assert_eq!(
        log[..2],
        [
            "write 1048576 swappiness=200 to sys/fs/cgroup/memory.reclaim",
            "write 2097152 swappiness=200 to sys/fs/cgroup/memory.reclaim"
        ]
    );
    assert_eq!(ticks.events, [""; 0]);
}

#[test]
fn a_kernel_that_cannot_reclaim_on_request_is_reported_once() {
    let machine = machine(10, 3);
    let mut ticks = Ticks::on(machine.root(), PROACTIVE);
    ticks.tick(40);
    assert_eq!(effects(&machine), [""; 0]);
    assert_eq!(ticks.events.len(), 1, "{:?}", ticks.events);
    assert!(ticks.events[0].contains("(proactive = true): the kernel has neither memory.reclaim"));
}

#[test]
fn others_devices_are_left_alone() {
    let machine = FakeKernel::new();
    machine.add_area("/dev/zram0", 64 * 1024, 60 * 1024, 100);
    machine.put("sys/block/zram0/disksize", "67108864\n");
    machine.put("sys/block/zram0/recomp_algorithm", "#1: lzo-rle lz4 [zstd]\n");
    machine.put("sys/block/zram0/mm_stat", "62914560 0 10485760 0 0 0 0 100 100\n");
    let mut ticks = Ticks::on(machine.root(), "");
    ticks.tick(30);
    assert_eq!(machine.log(), [""; 0]);
}

#[test]
fn a_full_device_gets_a_second_one_and_down_removes_both() {
    grows(&machine(62, 10));
}

#[test]
fn a_device_with_a_removed_mount_grows_too() {
    let machine = machine(62, 10);
    machine.detach_mounts();
    grows(&machine);
}

fn grows(machine: &Arc<FakeKernel>) {
    let mut ticks = Ticks::on(machine.root(), "[swap]\nrecompress = false\nwriteback_mib_per_day = 0\n");
    ticks.tick(1);
    let swaps = read::swaps(&machine.root()).unwrap();
    let second = swaps.iter().find(|a| a.path == "/dev/zram2").unwrap();
    assert_eq!(second.priority, 99);
    assert!(ticks.events[0].starts_with("Swap on /dev/zram2 was added. The zram devices are 97 % full, but hold 62 MiB in 10 MiB (ratio 6.2)"), "{:?}", ticks.events);
    ticks.tick(100);
    assert_eq!(read::swaps(&machine.root()).unwrap().len(), 2, "and not a third");
    machine.add_area("/dev/zram1", 64 * 1024, 0, 100);
    let journal = Journal::open(&machine.root()).unwrap();
    revert::all(&machine.root(), &journal).unwrap();
    assert_eq!(read::swaps(&machine.root()).unwrap(), []);
}

/// A full zram1 with a level and a dictionary, whose process is gone, and the tick after that.
fn grown_with_dictionary(before: impl Fn(&FakeKernel, &Root)) -> (Root, Vec<String>) {
    let machine = FakeKernel::new();
    let root = WritesBack::on(Arc::clone(&machine), 0);
    machine.put("proc/self/mountinfo", "26 25 0:24 / /run rw,nosuid - tmpfs tmpfs rw\n");
    apply_with_dictionary(&root, b"words of all programs");
    assert_eq!(kept(&root, "zram1").as_deref(), Some("words of all programs"));
    machine.add_area("/dev/zram1", 64 * 1024, 62 * 1024, 100);
    machine.put("sys/block/zram1/mm_stat", &format!("{} 0 {} 0 0 0 0 0 0\n", 62 * MIB, 10 * MIB));
    before(&machine, &root);
    let mut ticks = Ticks::on(root.clone(), "[swap]\nrecompress = false\nwriteback_mib_per_day = 0\n");
    ticks.tick(1);
    machine.add_area("/dev/zram1", 64 * 1024, 0, 100);
    (root, ticks.events)
}

fn kept(root: &Root, name: &str) -> Option<String> {
    root.read(format!("run/eke/dictionary-{name}")).ok()
}

fn params(root: &Root, name: &str) -> String {
    root.read(format!("sys/block/{name}/algorithm_params")).unwrap().trim().to_owned()
}

#[test]
fn a_second_device_gets_the_level_and_the_dictionary_of_the_first() {
    let (root, events) = grown_with_dictionary(|_, _| {});
    assert!(params(&root, "zram2").starts_with("level=8 dict=/proc/self/fd/"), "{}", params(&root, "zram2"));
    assert!(events[0].ends_with("It gets the dictionary of zram1, too."), "{events:?}");
    assert_eq!(kept(&root, "zram2").as_deref(), Some("words of all programs"));
    revert::all(&root, &Journal::open(&root).unwrap()).unwrap();
    assert_eq!((kept(&root, "zram1"), kept(&root, "zram2")), (None, None), "they go with their devices");
}

#[test]
fn without_the_copy_of_the_dictionary_a_second_device_gets_the_level_alone() {
    let (root, events) =
        grown_with_dictionary(|_, root| state::forget(root, "run/eke/dictionary-zram1").unwrap());
    assert_eq!(params(&root, "zram2"), "level=8");
    assert!(events[0].ends_with("the dictionary of zram1: its copy in /run/eke is gone."), "{events:?}");
}

/// Linux 6.12 answers EINVAL if memory is short, which it is then.
#[test]
fn a_dictionary_that_the_kernel_refuses_does_not_keep_the_second_device_away() {
    let (root, events) = grown_with_dictionary(|machine, _| {
        let once = Faults { errors: vec![("zram2/disksize".into(), 22, 1)], ..Faults::default() };
        machine.set_faults(once);
    });
    assert_eq!(params(&root, "zram2"), "level=8");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Swap on /dev/zram2 was added."), "{events:?}");
    assert!(events[0].contains("the dictionary of zram1: cannot write") && events[0].contains("disksize"));
}

/// A device of 64 MiB with a level and this dictionary.
fn with_dictionary(dictionary: &Dictionary, priority: i16) -> ZramSpec {
    ZramSpec {
        params: Some("level=8".into()),
        dictionary: Some(dictionary.path()),
        swap_priority: Some(priority),
        ..ZramSpec::new("zstd", Bytes::mib(64))
    }
}

/// eke's zram1 of 64 MiB with a level, and with a dictionary that ends here.
fn apply_with_dictionary(root: &Root, content: &[u8]) {
    let dictionary = Dictionary::of(content).unwrap();
    let spec = with_dictionary(&dictionary, 100);
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(Step::AddZram(spec), Reason::new("a test"));
    Session::open(root, "swap").unwrap().apply_plan(&plan).unwrap();
}

#[test]
fn a_device_that_cannot_be_added_is_reported_and_not_tried_at_every_tick() {
    let machine = machine(62, 10);
    machine
        .set_faults(Faults { errors: vec![("zram-control/hot_add".into(), 12, 100)], ..Faults::default() });
    let mut ticks = Ticks::on(machine.root(), "[swap]\nrecompress = false\nwriteback_mib_per_day = 0\n");
    ticks.tick(59);
    assert_eq!(ticks.events.len(), 1, "{:?}", ticks.events);
    assert!(
        ticks.events[0].starts_with("No further zram device could be added: cannot get a new zram device"),
        "{:?}",
        ticks.events
    );
    ticks.tick(60);
    assert_eq!(ticks.events.len(), 2, "{:?}", ticks.events);
}

#[test]
fn the_kernels_eio_at_the_limit_is_a_round_well_done_and_stands_in_the_ledger() {
    let machine = machine(60, 30);
    let root = WritesBack::on(Arc::clone(&machine), 700);
    let round = Action::WriteBack { device: "zram1".into(), kind: PageKind::Huge, limit_units: 512 };
    let written = |outcome: &ActionOutcome| {
        if let ActionOutcome::Done { written, .. } = outcome { Some(written.0 / 4096) } else { None }
    };
    assert_eq!(written(&act::perform(&root, &round, 5)), Some(512), "EIO, and all of the limit");
    assert_eq!(written(&act::perform(&root, &round, 5)), Some(188), "no more than that there was");
    assert_eq!(act::ledger(&root, 5), Ledger { day: 5, written: Bytes(700 * 4096) });
}

#[test]
fn eio_before_the_limit_is_a_broken_disk() {
    let machine = machine(60, 30);
    machine.set_faults(Faults { errors: vec![("zram1/writeback".into(), 5, 1)], ..Faults::default() });
    let round = Action::WriteBack { device: "zram1".into(), kind: PageKind::Huge, limit_units: 512 };
    let outcome = act::perform(&machine.root(), &round, 5);
    assert!(matches!(&outcome, ActionOutcome::Failed(why) if why.contains("zram1/writeback")), "{outcome:?}");
}

#[test]
fn a_whole_day_stays_within_its_budget() {
    let machine = machine(60, 30);
    let root = WritesBack::on(Arc::clone(&machine), 1_000_000);
    let mut ticks = Ticks::on(root, "[swap]\ngrow = false\nrecompress = false\nwriteback_mib_per_day = 10\n");
    ticks.tick(2_000);
    let bd_stat = machine.root().read("sys/block/zram1/bd_stat").unwrap();
    assert_eq!(bd_stat.split_whitespace().nth(2), Some("2560"), "10 MiB");
    assert!(
        ticks.events.iter().any(|t| t.contains("10 MiB went to the writeback device")),
        "{:?}",
        ticks.events
    );
}

/// The kernel counts the limit in units of 4 KiB and subtracts a whole page.
#[test]
fn a_day_stays_within_its_budget_with_large_pages_too() {
    for page in [PageSize::new(16 << 10).unwrap(), PageSize::LARGEST] {
        let machine = machine(60, 30);
        let root = WritesBack::with_pages(Arc::clone(&machine), 1_000_000, page);
        state::save(&root, act::LEDGER, &Ledger { day: 5, written: Bytes(4096) }).unwrap();
        let settings = "[swap]\ngrow = false\nrecompress = false\nwriteback_mib_per_day = 10\n";
        Ticks::on(root, settings).tick(2_000);
        let bd_stat = machine.root().read("sys/block/zram1/bd_stat").unwrap();
        let page_units = page.bytes() / 4096;
        let most = 2559 / page_units * page_units;
        assert_eq!(bd_stat.split_whitespace().nth(2), Some(most.to_string().as_str()), "{page:?}");
    }
}

/// `swapoff -a` by a user.
/// The gate is closed then, and maintenance writes nothing.
#[test]
fn memory_that_is_short_is_relieved_at_once_within_the_budget() {
    let machine = machine(60, 30);
    let root = WritesBack::on(Arc::clone(&machine), 100_000);
    let mut ticks = Ticks::on(root.clone(), "[swap]\ngrow = false\nwriteback_mib_per_day = 3\n");
    let waits = "avg10=20.00 avg60=0.00 avg300=0.00 total=9";
    machine.put("proc/pressure/memory", &format!("some {waits}\nfull {waits}\n"));
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 90000 kB\nMemAvailable: 90000 kB\n");
    wait_for("the budget's end", || {
        ticks.tick(1);
        !ticks.events.is_empty()
    });
    assert!(ticks.events[0].ends_with("and 3.0 MiB went to the writeback device."), "{:?}", ticks.events);
    let writes = effects(&machine);
    assert_eq!(writes[0], "write 120 to zram1/idle", "{writes:?}");
    assert!(!writes.iter().any(|write| write.contains("recompress")), "{writes:?}");
    let ledger: Ledger = state::load(&root, act::LEDGER).unwrap();
    assert_eq!(ledger.written, Bytes::mib(3));
}

#[test]
fn swap_that_somebody_else_swapped_off_is_reported_once() {
    let machine = machine(1, 1);
    let mut ticks = Ticks::on(machine.root(), "");
    ticks.tick(2);
    assert_eq!(ticks.events, [""; 0]);
    machine.remove_area("/dev/zram1");
    ticks.tick(3);
    let off = "zram1 was swapped off by somebody else; `eke up` swaps it on again.";
    assert_eq!(ticks.events, [off]);
    assert_eq!(Ticks::reported(machine.root()), [off], "by an agent that starts later, too");
    machine.add_area("/dev/zram1", 64 * 1024, 0, 100);
    ticks.tick(1);
    machine.remove_area("/dev/zram1");
    ticks.tick(1);
    assert_eq!(ticks.events, [off, off]);
}

#[test]
fn swap_that_somebody_else_removed_is_reported_and_another_programs_is_not_touched() {
    let machine = machine(1, 1);
    let mut ticks = Ticks::on(machine.root(), "");
    ticks.tick(1);
    machine.remove_area("/dev/zram1");
    ticks.tick(1);
    machine.put("sys/block/zram1/disksize", "0\n");
    ticks.tick(2);
    let off = "zram1 was swapped off by somebody else; `eke up` swaps it on again.";
    let removed = "zram1 was removed by somebody else; `eke down` and then `eke up` set swap up again.";
    assert_eq!(ticks.events, [off, removed]);
    let writes = effects(&machine);
    machine.put("sys/block/zram1/disksize", &format!("{}\n", 32 * MIB));
    machine.put("sys/block/zram1/mm_stat", &format!("{} 0 {} 0 0 0 0 0 0\n", 31 * MIB, 10 * MIB));
    machine.add_area("/dev/zram1", 32 * 1024, 31 * 1024, 100);
    ticks.tick(30);
    assert_eq!(ticks.events, [off, removed], "said once");
    assert_eq!(effects(&machine), writes, "neither maintained nor grown beside");
}

/// As a restart of zram-tools does, between two ticks.
#[test]
fn a_device_that_was_replaced_at_once_is_reported_too() {
    let machine = machine(1, 1);
    let mut ticks = Ticks::on(machine.root(), "");
    ticks.tick(1);
    machine.put("sys/block/zram1/disksize", &format!("{}\n", 32 * MIB));
    machine.add_area("/dev/zram1", 32 * 1024, 0, 100);
    ticks.tick(1);
    assert!(ticks.events[0].starts_with("zram1 was removed by somebody else"), "{:?}", ticks.events);
}

#[test]
fn a_crash_in_the_middle_of_a_round_counts_too_much_rather_than_too_little() {
    let round = Action::WriteBack { device: "zram1".into(), kind: PageKind::Huge, limit_units: 512 };
    let mut begun = 0;
    for effects in 0..8 {
        let machine = machine(60, 30);
        machine.set_faults(Faults { crash_after: Some(effects), ..Faults::default() });
        let outcome = act::perform(&machine.root(), &round, 5);
        machine.set_faults(Faults::default());
        let has_begun = machine.log().iter().any(|l| l.starts_with("write huge to"));
        let is_settled = matches!(outcome, ActionOutcome::Done { .. });
        begun += u32::from(has_begun && !is_settled);
        let expected = if has_begun && !is_settled { 512 * 4096 } else { 0 };
        assert!(act::ledger(&machine.root(), 5).written.0 >= expected, "after {effects} effects");
    }
    assert_eq!(begun, 1, "one of the crashes came between the round and its settling");
}
