//! What is chosen to be read, and what was read.

use std::mem::discriminant;

use eke_prefetch_model::choose::{ChoiceOutcome, Occasion};

use super::*;

#[test]
fn what_was_chosen_and_not_read_is_not_used() {
    let machine = Machine::new();
    let mut process = machine.process();
    let (id, now) = (program().id(), Still.now());
    let request = ReadRequest {
        path: program().exe,
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        user: USER,
        is_own: true,
    };
    // It has no mounts, so nothing is read.
    process.reads.ahead = process.schedule_ahead(vec![request], vec![(id, "gedit".to_owned(), 4096)], false);
    wait_for("the end of the fetch", || {
        process.reads.ahead.as_ref().is_some_and(|going| going.fetch.is_over())
    });
    process.take_reports(now);
    process.handle(exec(10), now);
    assert_eq!((process.state.predicted, process.state.used), (0, Bytes(0)));
    assert_eq!(process.reads.for_start.get(&id), None);
    process.handle(Observation::Exit { pid: 10, at: Duration::ZERO }, now);
    has_read_ahead(&mut process);
    process.handle(exec(11), now);
    assert_eq!((process.state.predicted, process.state.used), (1, Bytes(4096)));
}

#[test]
fn one_start_in_sixteen_measures_again_what_reading_at_exec_costs() {
    let machine = Machine::new();
    put_disk(&machine);
    let mut process = machine.process();
    process.disks = Disks::new(&machine.root, Some(DISK.as_bytes()));
    let (id, now) = (program().id(), Still.now());
    let dear = Duration::from_secs(100_000);
    for _ in 0..2 {
        process.cpu.at_exec.push(dear, 2000, 0);
        assert!(process.choose_launch(id, USER, ALL, now).is_some(), "too few measurements");
    }
    process.cpu.at_exec.push(dear, 2000, 0);
    let read: Vec<bool> = (0..16).map(|_| process.choose_launch(id, USER, ALL, now).is_some()).collect();
    assert_eq!(read.iter().position(|read| *read), Some(15), "{read:?}");
    process.schedule_launch(cold(), Vec::new());
    assert!(process.choose_launch(id, USER, ALL, now).is_none(), "it is being measured");
}

/// A clock with the seconds for which the machine has been suspended.
struct Suspended(std::cell::Cell<u64>);

impl Clock for Suspended {
    fn now(&self) -> Now {
        Still.now()
    }

    fn suspended(&self) -> Duration {
        Duration::from_secs(self.0.get())
    }

    fn east_of_utc_s(&self) -> i64 {
        0
    }
}

#[test]
fn after_hibernation_programs_are_read_as_at_a_log_in() {
    let (machine, clock) = (Machine::new(), Suspended(std::cell::Cell::new(1000)));
    let mut process = Process::new(&machine.root, &machine.options, &clock, "a test".to_owned(), true);
    let mut occasion_after = |suspended_s: u64| {
        clock.0.set(suspended_s);
        process.do_regular_tasks(clock.now());
        process.reads.due.take()
    };
    assert_eq!(occasion_after(1000), None, "before eke began");
    assert_eq!(occasion_after(1059), None);
    assert_eq!([occasion_after(1119), occasion_after(1119)], [Some(Occasion::Session), None]);
}

#[test]
fn what_was_read_before_a_suspend_or_a_step_of_the_clock_is_used_after_it() {
    let machine = Machine::new();
    let mut process = machine.process();
    has_read_ahead(&mut process);
    let hours = Now { real_ns: Still.now().real_ns + 8 * 3_600_000_000_000, ..Still.now() };
    process.flush(hours);
    process.handle(exec(10), hours);
    assert_eq!((process.state.predicted, process.state.used), (1, Bytes(4096)));
}

#[test]
fn nothing_is_chosen_ahead_from_a_rotating_disk_that_nobody_has_used_for_minutes() {
    let mut machine = Machine::new();
    machine.options.settings.memory_percent = 50;
    put_disk(&machine);
    for (file, text) in [
        ("proc/diskstats", "8 0 sda 1000 0 8000 90 0 0 0 0 0 0 0\n"),
        ("sys/dev/block/8:0/queue/rotational", "1\n"),
    ] {
        eke_testkit::tree::put(&machine.root.path(""), file, text);
    }
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let mut process = machine.process();
    process.handle(exec(10), Still.now());
    exit(&mut process, 10);
    process.do_regular_tasks(at(1000));
    let nothing = discriminant(&ChoiceOutcome::NothingToRead { files: 0 });
    let mut is_left_alone = |mono_s| {
        process.prefetch_ahead(at(mono_s));
        process.reads.outcomes.get(&program().id()).map(|outcome| *outcome == nothing)
    };
    assert_eq!([1299, 1300].map(&mut is_left_alone), [Some(false), Some(true)]);
}
