//! A dictionary whose data has changed: when the agent asks for a training, and how the older device goes.

use eke_model::applied::Applied;
use eke_model::step::{PlannedStep, Prediction};
use eke_swap::retrain::{Newest, RECORD, Record};

use super::*;

/// Adds a device with a dictionary, as a process that ends here.
fn add(root: &Root, content: &[u8], priority: i16) -> Result<Option<String>, eke_linux::Error> {
    let dictionary = Dictionary::of(content).unwrap();
    let spec = with_dictionary(&dictionary, priority);
    act::grow(root, &PlannedStep { step: Step::AddZram(spec), reason: Reason::new("a test") })
}

/// zram1 with a dictionary that was chosen for 3 to 1, and 60 MiB of pages that compress 2 to 1.
fn up() -> (Arc<FakeKernel>, Root) {
    let machine = FakeKernel::new();
    let root = WritesBack::on(Arc::clone(&machine), 0);
    machine.put("proc/self/mountinfo", "26 25 0:24 / /run rw,nosuid - tmpfs tmpfs rw\n");
    apply_with_dictionary(&root, b"words of then");
    let prediction = Prediction { ratio: 3.0, ..Prediction::default() };
    let plan = Plan { prediction: Some(prediction), ..Plan::default() };
    state::save(&root, state::APPLIED, &Applied { plans: vec![plan], ..Applied::default() }).unwrap();
    machine.put("sys/block/zram1/mm_stat", &format!("{} {} {} 0 0 0 0 0 0\n", 60 * MIB, 30 * MIB, 31 * MIB));
    (machine, root)
}

/// Ticks until a training is due; `None` after a day.
fn ticks_to_training(ticks: &mut Ticks) -> Option<u64> {
    let begin_s = ticks.s;
    (0..8_700).find_map(|_| {
        ticks.tick(1);
        ticks.live.takes_training().then_some(ticks.s - begin_s)
    })
}

#[test]
fn an_hour_of_a_low_ratio_begins_a_training() {
    let (machine, root) = up();
    let mut ticks = Ticks::on(root.clone(), "");
    assert_eq!(ticks_to_training(&mut ticks), Some(3_610));
    let begun = "60 MiB of pages have compressed 2.00 to 1 for an hour, and the dictionary was chosen for 3.09: a new one is trained.";
    assert_eq!(ticks.events, [begun]);
    ticks.tick(100);
    assert!(!ticks.live.takes_training(), "one runs");
    let record = Record::load(&root).unwrap();
    assert_eq!(record.outcome, "");
    state::save(&root, RECORD, &Record { outcome: "It stays.".into(), ..record }).unwrap();
    ticks.live.training_ended();
    ticks.tick(1);
    assert_eq!(ticks.events, [begun, "It stays."]);
    assert_eq!(ticks_to_training(&mut ticks), None, "it gained nothing, and nothing became worse");
    machine.put("sys/block/zram1/mm_stat", &format!("{} {} {} 0 0 0 0 0 0\n", 60 * MIB, 40 * MIB, 41 * MIB));
    assert_eq!(ticks_to_training(&mut ticks), Some(3_610), "an hour of an even lower ratio");
}

#[test]
fn another_agent_does_not_try_again_on_the_same_day() {
    let (machine, root) = up();
    assert_eq!(ticks_to_training(&mut Ticks::on(root.clone(), "")), Some(3_610));
    machine.put("sys/block/zram1/mm_stat", &format!("{} {} {} 0 0 0 0 0 0\n", 60 * MIB, 40 * MIB, 41 * MIB));
    let mut ticks = Ticks::on(root, "");
    ticks.s = 3_620;
    assert_eq!(ticks_to_training(&mut ticks), Some(DAY - 10), "a day after the first");
    assert!(ticks.events[0].ends_with("was interrupted."), "{:?}", ticks.events);
}

#[test]
fn without_the_setting_or_with_a_disk_behind_it_nothing_is_trained() {
    let (_machine, root) = up();
    assert_eq!(ticks_to_training(&mut Ticks::on(root, "[swap]\nretrain = false\n")), None);
    let machine = machine(60, 10);
    machine.put("sys/block/zram1/mm_stat", &format!("{} {} {} 0 0 0 0 0 0\n", 60 * MIB, 59 * MIB, 59 * MIB));
    assert_eq!(ticks_to_training(&mut Ticks::on(machine.root(), "")), None, "no dictionary");
}

#[test]
fn a_record_that_cannot_be_written_begins_nothing() {
    let (machine, root) = up();
    machine.set_faults(Faults { errors: vec![("dictionary.json".into(), 28, 9)], ..Faults::default() });
    let mut ticks = Ticks::on(root, "");
    assert_eq!(ticks_to_training(&mut ticks), None);
    assert!(ticks.events[0].starts_with("No new dictionary is trained: cannot write"), "{:?}", ticks.events);
}

#[test]
fn the_older_device_goes_in_calm_and_its_dictionary_with_it() {
    let (machine, root) = up();
    assert_eq!(add(&root, b"words of now", 101).unwrap().as_deref(), Some("/dev/zram2"));
    machine.add_area("/dev/zram1", 64 * 1024, 20 * 1024, 100);
    let newest = Newest { device: "zram2".into(), ratio: 4.0, unix_s: 1 };
    state::save(
        &root,
        RECORD,
        &Record { outcome: "It is new.".into(), newest: Some(newest), ..Record::default() },
    )
    .unwrap();
    let mut ticks = Ticks::on(root.clone(), "");
    ticks.tick(2);
    assert_eq!(read::swaps(&root).unwrap().len(), 2, "the gate was not open for long enough");
    wait_for("the end of zram1", || {
        ticks.tick(1);
        ticks.events.len() > 1
    });
    assert_eq!(ticks.events[0], "It is new. zram2 has the newest dictionary, since 1970-01-01 00:00:01 UTC.");
    assert!(ticks.events[1].starts_with("zram1 is removed"), "{:?}", ticks.events);
    let left: Vec<String> = read::swaps(&root).unwrap().into_iter().map(|area| area.path).collect();
    assert_eq!((left, kept(&root, "zram1")), (vec!["/dev/zram2".to_owned()], None));
    assert_eq!(kept(&root, "zram2").as_deref(), Some("words of now"));
}

/// A training takes memory, and another generation more of it.
#[test]
fn nothing_is_trained_while_little_is_available_or_an_older_device_is_there() {
    let (machine, root) = up();
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 150000 kB\nMemAvailable: 150000 kB\n");
    assert_eq!(ticks_to_training(&mut Ticks::on(root.clone(), "[swap]\ngrow = false\n")), None);
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 160000 kB\nMemAvailable: 160000 kB\n");
    add(&root, b"words of now", 101).unwrap();
    machine.add_area("/dev/zram1", 64 * 1024, 60 * 1024, 100);
    machine.put("sys/block/zram2/mm_stat", &format!("{} {} {} 0 0 0 0 0 0\n", 60 * MIB, 50 * MIB, 51 * MIB));
    assert_eq!(ticks_to_training(&mut Ticks::on(root.clone(), "[swap]\ngrow = false\n")), None);
    machine.remove_area("/dev/zram1");
    assert_eq!(ticks_to_training(&mut Ticks::on(root, "[swap]\ngrow = false\n")), Some(3_610));
}

/// The older one's copy is not kept in RAM any more, and nobody reads it.
#[test]
fn the_copy_of_an_older_dictionary_goes_at_once() {
    let (machine, root) = up();
    add(&root, b"words of now", 101).unwrap();
    machine.add_area("/dev/zram1", 64 * 1024, 60 * 1024, 100);
    Ticks::on(root.clone(), "").tick(1);
    assert_eq!(read::swaps(&root).unwrap().len(), 2);
    assert_eq!(kept(&root, "zram1"), None);
    assert_eq!(kept(&root, "zram2").as_deref(), Some("words of now"));
}

#[test]
fn the_older_device_stays_while_its_pages_do_not_fit() {
    let (machine, root) = up();
    add(&root, b"words of now", 101).unwrap();
    machine.add_area("/dev/zram1", 64 * 1024, 60 * 1024, 100);
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 200000 kB\nMemAvailable: 200000 kB\n");
    let mut ticks = Ticks::on(root.clone(), "[swap]\ngrow = false\n");
    ticks.tick(100);
    assert_eq!(read::swaps(&root).unwrap().len(), 2);
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 300000 kB\nMemAvailable: 300000 kB\n");
    wait_for("the end of zram1", || {
        ticks.tick(1);
        read::swaps(&root).unwrap().len() == 1
    });
}

#[test]
fn the_next_agent_finishes_what_a_kill_left() {
    let (machine, root) = up();
    add(&root, b"words of now", 101).unwrap();
    // The note in the journal, and the swapoff.
    machine.set_faults(Faults { crash_after: Some(2), ..Faults::default() });
    assert!(act::drain(&root, "zram1", &Interrupt::default()).is_err());
    machine.set_faults(Faults::default());
    assert_eq!(act::half_gone(&root), ["zram1"]);
    let mut ticks = Ticks::on(root.clone(), "");
    wait_for("the end of zram1", || {
        ticks.tick(1);
        !root.exists("sys/block/zram1") && !ticks.events.is_empty()
    });
    assert!(ticks.events.iter().all(|text| !text.contains("somebody else")), "{:?}", ticks.events);
    assert_eq!((act::half_gone(&root), kept(&root, "zram1")), (Vec::<String>::new(), None));
}

/// Each refusal of the kernel, and a full file system: the old device stays, and nothing else.
#[test]
fn a_new_device_that_is_refused_leaves_nothing() {
    for (path, errno) in [
        ("zram-control/hot_add", 12),
        // EBUSY is tried again: udev may have the device open.
        ("zram2/comp_algorithm", 16),
        ("zram2/algorithm_params", 22),
        ("zram2/disksize", 22),
        ("dev/zram2", 28),
        ("journal.jsonl", 28),
    ] {
        let (machine, root) = up();
        let before = machine.tree();
        machine.set_faults(Faults {
            errors: vec![(path.into(), errno, if errno == 16 { 99 } else { 1 })],
            ..Faults::default()
        });
        assert!(add(&root, b"words of now", 101).is_err(), "{path}");
        machine.set_faults(Faults::default());
        let without_journal = |mut tree: std::collections::BTreeMap<String, Option<Vec<u8>>>| {
            tree.retain(|path, _| !path.ends_with("journal.jsonl"));
            tree
        };
        assert_eq!(without_journal(machine.tree()), without_journal(before), "{path}");
    }
}

#[test]
fn a_crash_at_any_effect_of_the_new_device_is_undone() {
    let before = {
        let (machine, root) = up();
        revert::all(&root, &Journal::open(&root).unwrap()).unwrap();
        machine.tree()
    };
    for effects in 0..16 {
        let (machine, root) = up();
        machine.set_faults(Faults {
            crash_after: Some(effects),
            torn: effects % 2 == 1,
            ..Faults::default()
        });
        let _ = add(&root, b"words of now", 101);
        machine.set_faults(Faults::default());
        revert::all(&root, &Journal::open(&root).unwrap()).unwrap();
        assert_eq!(machine.tree(), before, "after {effects} effects");
    }
}

/// While its pages are loaded the journal is nobody's, it is no room, and a shortage leaves all as it was.
#[test]
fn a_shortage_interrupts_the_removal_of_the_older_device() {
    let (machine, root) = up();
    add(&root, b"words of now", 101).unwrap();
    machine.add_area("/dev/zram1", 64 * 1024, 20 * 1024, 100);
    let before = journal::entries(&root).unwrap();
    machine.hold_swapoffs(true);
    let mut ticks = Ticks::on(root.clone(), "");
    wait_for("the drain", || {
        ticks.tick(1);
        ticks.live.draining().is_some()
    });
    assert_eq!(ticks.live.draining(), Some("zram1"));
    wait_for("a journal that is free while it drains", || {
        let entries = Journal::try_open(&root).ok()?.entries().unwrap();
        entries.iter().any(|entry| entry.draining).then_some(())
    });
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 90000 kB\nMemAvailable: 90000 kB\n");
    ticks.tick(2);
    assert!(ticks.live.draining().is_some(), "nobody waits");
    let waits = "avg10=20.00 avg60=0.00 avg300=0.00 total=9";
    machine.put("proc/pressure/memory", &format!("some {waits}\nfull {waits}\n"));
    wait_for("its end", || {
        ticks.tick(1);
        ticks.live.draining().is_none()
    });
    let said = "zram1, which has an older dictionary, stays for now: its swapoff was interrupted.";
    assert_eq!(ticks.events.last().map(String::as_str), Some(said));
    assert_eq!((read::swaps(&root).unwrap().len(), journal::entries(&root).unwrap()), (2, before));
}
