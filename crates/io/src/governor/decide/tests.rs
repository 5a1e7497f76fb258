use super::*;

const MS: u64 = 1_000_000;

fn rules() -> Rules {
    Rules::new(Nanos(10 * MS))
}

fn knob(knob: &'static str, start: u64, floor: u64) -> TunedKnob {
    TunedKnob { name: knob, target: "sda".into(), start, now: start, floor, unit: 1, window_s: 1.0 }
}

fn governor() -> Governor {
    Governor::new(rules(), vec![knob("first", 10, 2), knob("second", 64, 4)])
}

/// A second without requests.
fn nothing() -> Observation {
    Observation { seconds: 1.0, ..Observation::default() }
}

/// A second with 100 reads of `read_ms` and `mib` MiB written.
fn second(read_ms: u64, mib: u64) -> Observation {
    let mut observed =
        Observation { seconds: 1.0, read_bytes: 409_600, written_bytes: mib << 20, ..Observation::default() };
    (0..100).for_each(|_| observed.reads.record(read_ms * MS));
    observed
}

/// The changes that a governor makes in `seconds` of a simulated disk, whose observations depend on its knobs.
fn simulate(
    governor: &mut Governor,
    seconds: u64,
    world: impl Fn(&[TunedKnob]) -> Observation,
) -> Vec<(u64, ChangeKind, usize, u64)> {
    let mut changes = Vec::new();
    for at in 0..seconds {
        let observed = world(governor.knobs());
        if let Some(change) = governor.observe(at as f64, &observed) {
            changes.push((at, change.kind, change.knob, change.value));
        }
    }
    changes
}

#[test]
fn writers_get_less_until_reads_meet_the_target_and_more_when_they_are_gone() {
    let mut governor = governor();
    // each write in flight costs a read 3 ms
    let changes = simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    assert_eq!(changes[0].1, ChangeKind::Lower);
    assert_eq!(
        (changes[0].0, changes[0].3),
        (2, 3),
        "after three bad windows, as far as reads are slow: {changes:?}"
    );
    assert_eq!((changes[1].1, changes[1].2, changes[1].3), (ChangeKind::Lower, 0, 2));
    assert!(changes[1].0 >= 2 + 6, "it is judged first: {changes:?}");
    let after = simulate(&mut governor, 400, |_| second(1, 0));
    assert!(after.iter().all(|c| c.1 == ChangeKind::Raise), "{after:?}");
    assert_eq!(
        after.iter().map(|c| c.3).collect::<Vec<_>>(),
        [3, 4, 5, 6, 7, 8, 9, 10],
        "slowly, and no further"
    );
}

#[test]
fn it_does_not_swing_for_ever() {
    let mut governor = governor();
    let world = |knobs: &[TunedKnob]| second(if knobs[0].now > 3 { 40 } else { 4 }, 50);
    let changes = simulate(&mut governor, 3_600, world);
    assert!(changes.len() < 40, "{} changes in an hour: {changes:?}", changes.len());
    assert!(governor.knobs()[0].now <= 4);
    let backs = changes.iter().filter(|c| c.1 == ChangeKind::TakeBack).count();
    assert!(backs > 0, "what went wrong is taken back at once: {changes:?}");
}

#[test]
fn the_writer_keeps_its_rate_or_the_change_is_taken_back() {
    let mut governor = governor();
    let changes = simulate(&mut governor, 60, |knobs| second(3 * knobs[0].now, 5 * knobs[0].now));
    assert_eq!(changes[0].1, ChangeKind::Lower);
    assert_eq!((changes[1].1, changes[1].2, changes[1].3), (ChangeKind::TakeBack, 0, 10));
    assert!(changes[2..].iter().all(|c| c.2 == 1), "that knob is not tried again: {changes:?}");
}

#[test]
fn a_knob_without_effect_is_restored_and_after_the_last_one_it_pauses() {
    let mut governor = governor();
    let changes = simulate(&mut governor, 1_000, |_| second(25, 50));
    let kinds: Vec<_> = changes.iter().map(|c| (c.1, c.2, c.3)).collect();
    assert_eq!(
        kinds[..6],
        [
            (ChangeKind::Lower, 0, 3),
            (ChangeKind::Lower, 0, 2),
            (ChangeKind::TakeBack, 0, 10),
            (ChangeKind::Lower, 1, 21),
            (ChangeKind::Lower, 1, 7),
            (ChangeKind::GiveUp, 1, 64)
        ]
    );
    assert!(changes[5].0 < 60, "one after another, without a pause between: {changes:?}");
    assert!(changes[6].0 >= changes[5].0 + 600, "then it pauses, and tries again: {changes:?}");
}

#[test]
fn the_second_knob_helps_where_the_first_does_not() {
    let mut governor = governor();
    let changes = simulate(&mut governor, 100, |knobs| second(knobs[1].now, 50));
    assert_eq!((governor.knobs()[0].now, governor.knobs()[1].now), (10, 5), "{changes:?}");
}

#[test]
fn where_reads_take_very_long_it_acts_at_once_and_goes_far() {
    let mut governor = Governor::new(rules(), vec![knob("queue.max_sectors_kb", 1280, 64)]);
    let changes = simulate(&mut governor, 40, |knobs| second(knobs[0].now / 2, 50));
    // 640 ms, so a window must be longer than two seconds
    assert_eq!(changes[0], (3, ChangeKind::Lower, 0, 160), "{changes:?}");
    assert_eq!(governor.knobs()[0].now, 64);
}

/// Reads that are answered sooner are followed by more: the disk moves as much as before, of which less is written.
#[test]
fn what_readers_get_is_not_lost() {
    let mut governor = governor();
    let changes = simulate(&mut governor, 30, |knobs| {
        let (read, written) = if knobs[0].now > 4 { (1, 50) } else { (11, 40) };
        Observation { read_bytes: read << 20, ..second(2 * knobs[0].now, written) }
    });
    assert_eq!(changes.iter().map(|c| c.1).collect::<Vec<_>>(), [ChangeKind::Lower], "{changes:?}");
}

/// Smaller requests help once; still smaller ones help no more.
#[test]
fn what_helped_stays_when_it_gives_up() {
    let mut governor = Governor::new(
        rules(),
        vec![TunedKnob {
            start: 1280,
            now: 1280,
            floor: 4,
            unit: 4,
            ..knob("queue.max_sectors_kb", 1280, 4)
        }],
    );
    let changes = simulate(&mut governor, 300, |knobs| second(knobs[0].now.max(320) / 16, 50));
    let kinds: Vec<_> = changes.iter().map(|c| (c.1, c.3)).collect();
    assert_eq!(
        kinds,
        [
            (ChangeKind::Lower, 160),
            (ChangeKind::Lower, 52),
            (ChangeKind::Lower, 16),
            (ChangeKind::GiveUp, 160)
        ]
    );
}

/// Two seconds of writing, then five without: a change is not taken back because it begins in the gap.
#[test]
fn a_gap_between_bursts_is_not_the_changes_fault() {
    let mut governor = Governor::new(rules(), vec![knob("queue.max_sectors_kb", 1280, 640)]);
    let second_number = std::cell::Cell::new(0);
    let changes = simulate(&mut governor, 60, |knobs| {
        second_number.set(second_number.get() + 1);
        let is_burst = second_number.get() % 7 < 2;
        second(if knobs[0].now > 640 { 40 } else { 15 }, if is_burst { 80 } else { 0 })
    });
    assert_eq!(
        changes.iter().map(|c| (c.1, c.3)).collect::<Vec<_>>(),
        [(ChangeKind::Lower, 640)],
        "{changes:?}"
    );
}

/// On a disk with an arm, 30 reads a second that are answered take half of its time from the writer.
#[test]
fn the_arms_way_to_reads_is_not_lost() {
    let world = |knobs: &[TunedKnob]| {
        let (reads, ms, mib) = if knobs[0].now > 4 { (2, 1_000, 50) } else { (30, 30, 27) };
        let mut observed = Observation { seconds: 1.0, written_bytes: mib << 20, ..Observation::default() };
        (0..reads).for_each(|_| observed.reads.record(ms * MS));
        observed
    };
    let kinds = |seek| {
        let rules = Rules { seek, ..Rules::new(Nanos(50 * MS)) };
        let mut governor = Governor::new(rules, vec![knob("queue.max_sectors_kb", 10, 2)]);
        let changes = simulate(&mut governor, 30, world);
        changes.iter().map(|c| c.1).collect::<Vec<_>>()
    };
    assert_eq!(kinds(Nanos(16 * MS)), [ChangeKind::Lower]);
    assert_eq!(kinds(Nanos(0)), [ChangeKind::Lower, ChangeKind::TakeBack]);
}

#[test]
fn readers_alone_are_not_the_writers_fault() {
    let mut governor = governor();
    assert!(simulate(&mut governor, 100, |_| second(40, 0)).is_empty());
}

#[test]
fn unknown_is_not_good() {
    let mut governor = governor();
    simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    assert_eq!(governor.knobs()[0].now, 2);
    let nothing = |_: &[TunedKnob]| Observation {
        seconds: 1.0,
        may_wait: true,
        written_bytes: 50 << 20,
        ..Observation::default()
    };
    assert!(simulate(&mut governor, 1_000, nothing).is_empty(), "no read is answered, but some may wait");
    let few = |_: &[TunedKnob]| few_reads(1, 11);
    assert!(simulate(&mut governor, 1_000, few).is_empty(), "one slow read a second is too few");
}

fn few_reads(count: u64, ms: u64) -> Observation {
    let mut observed = Observation { answered: count, ..nothing() };
    (0..count).for_each(|_| observed.reads.record(ms * MS));
    observed
}

#[test]
fn few_good_reads_break_no_row() {
    let mut governor = governor();
    simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    let changes = simulate(&mut governor, 1_000, |_| few_reads(1, 1));
    assert!(changes.len() > 1 && changes.iter().all(|c| c.1 == ChangeKind::Raise), "{changes:?}");
    let mut governor = self::governor();
    governor.knobs[0].now = 2;
    let at = std::cell::Cell::new(0);
    let changes = simulate(&mut governor, 200, |_| {
        at.set(at.get() + 1);
        few_reads(u64::from(at.get() % 20 == 0), 1)
    });
    assert!(!changes.is_empty(), "every second window is idle: {changes:?}");
}

#[test]
fn a_disk_that_spins_up_is_not_the_writers_fault() {
    let spins_up = |reads: u64| {
        let mut governor = governor();
        let slow = Observation { written_bytes: 500 << 20, seconds: 10.0, ..few_reads(reads, 8_000) };
        let seconds = [slow, second(1, 50), second(1, 50)];
        seconds.iter().filter_map(|observed| governor.observe(0.0, observed)).count()
    };
    assert_eq!([1, 2, 3].map(spins_up), [0, 0, 1]);
}

#[test]
fn readers_alone_after_a_raise_are_not_its_fault() {
    let kinds = |mib| {
        let mut governor = governor();
        simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
        let raised = simulate(&mut governor, 40, |_| second(1, 0));
        assert_eq!(raised.iter().map(|c| c.1).collect::<Vec<_>>(), [ChangeKind::Raise]);
        simulate(&mut governor, 1, |_| second(40, mib)).iter().map(|c| c.1).collect::<Vec<_>>()
    };
    assert_eq!((kinds(0), kinds(50)), (vec![], vec![ChangeKind::TakeBack]));
}

#[test]
fn a_disk_that_answers_nothing_is_left_alone() {
    let mut governor = governor();
    let stuck =
        |_: &[TunedKnob]| Observation { waits: true, writes_wait: true, is_stuck: true, ..second(40, 50) };
    assert!(simulate(&mut governor, 100, stuck).is_empty());
    assert!(!simulate(&mut governor, 3, |_| second(40, 50)).is_empty());
}

/// Reads of the idle class complete, so the disk does not stand still.
#[test]
fn while_others_are_answered_no_disk_stands_still() {
    let observed = |answered| Observation { answered, waits: true, written_bytes: 50 << 20, ..nothing() };
    let changes = |answered| simulate(&mut governor(), 100, |_| observed(answered)).len();
    assert!(changes(0) > 0);
    assert_eq!(changes(5), 0);
}

#[test]
fn all_knobs_are_raised_again_also_after_a_turn_around() {
    let mut governor = governor();
    (governor.knobs[0].now, governor.knobs[1].now, governor.at) = (5, 32, 0);
    simulate(&mut governor, 3_000, |_| second(1, 0));
    assert_eq!((governor.knobs()[0].now, governor.knobs()[1].now), (10, 64));
}

/// After a raise of the first knob, what is known of the second stays its own.
#[test]
fn a_raise_of_one_knob_is_never_taken_back_on_another() {
    let mut governor = Governor::new(rules(), vec![knob("first", 10, 2), knob("second", 4_000, 400)]);
    (governor.knobs[0].now, governor.knobs[1].now, governor.at) = (2, 4_000, 1);
    let raised = simulate(&mut governor, 30, |_| second(1, 50));
    assert_eq!(raised.iter().map(|c| (c.1, c.2, c.3)).collect::<Vec<_>>(), [(ChangeKind::Raise, 0, 3)]);
    governor.at = 1;
    let back = simulate(&mut governor, 1, |_| second(40, 50));
    assert_eq!(back, [(0, ChangeKind::TakeBack, 0, 2)]);
}

/// The disk moves nothing for long, then a burst begins: what it moved before is no measure.
#[test]
fn what_was_moved_before_a_burst_is_no_measure() {
    let mut governor = Governor::new(rules(), vec![knob("first", 10, 5)]);
    simulate(&mut governor, 17, |_| second(1, 0));
    let changes = simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 5 * knobs[0].now));
    let kinds = changes.iter().map(|c| c.1).collect::<Vec<_>>();
    assert_eq!(kinds[..2], [ChangeKind::Lower, ChangeKind::TakeBack], "half is lost: {changes:?}");
}

/// The changes after the third bad second, if the world then is as `after` says.
fn judged_by(after: impl Fn(u64) -> Observation) -> Vec<ChangeKind> {
    let mut governor = Governor::new(rules(), vec![knob("first", 10, 5)]);
    simulate(&mut governor, 3, |_| second(40, 50));
    let at = std::cell::Cell::new(0);
    let changes = simulate(&mut governor, 24, |_| {
        at.set(at.get() + 1);
        after(at.get())
    });
    changes.iter().map(|c| c.1).collect()
}

#[test]
fn a_writer_that_ends_has_lost_nothing() {
    assert_eq!(judged_by(|at| second(1, if at < 3 { 50 } else { 0 })), []);
    assert_eq!(
        judged_by(|at| second(1, if at == 2 { 30 } else { 0 })),
        [],
        "its last second is no whole one"
    );
    let waits = |at| Observation { writes_wait: true, ..second(1, if at < 3 { 50 } else { 0 }) };
    assert_eq!(judged_by(waits), [ChangeKind::TakeBack], "it waits");
}

#[test]
fn where_nobody_reads_the_effect_is_unknown() {
    let alone = |_| Observation { written_bytes: 500 << 20, seconds: 10.0, ..nothing() };
    let changes = judged_by(alone);
    assert!(changes.iter().all(|kind| *kind == ChangeKind::Raise), "{changes:?}");
}

#[test]
fn a_floor_ends_with_the_pause() {
    let mut governor = Governor::new(rules(), vec![knob("first", 10, 2)]);
    let changes = simulate(&mut governor, 1_400, |knobs| second(40, 5 * knobs[0].now));
    let lowered: Vec<_> = changes.iter().filter(|c| c.1 == ChangeKind::Lower).map(|c| c.0).collect();
    assert_eq!(lowered.len(), 3, "{changes:?}");
    assert!(lowered[1] > lowered[0] + 600, "it rests first: {changes:?}");
}

#[test]
fn what_somebody_set_first_is_the_new_start() {
    let mut governor = governor();
    governor.start_knob_at(0, 6);
    let changes = simulate(&mut governor, 10, |_| second(12, 50));
    assert_eq!(changes[0].3, 3, "half of six: {changes:?}");
    governor.start_knob_at(0, 1);
    assert_eq!((governor.knobs()[0].floor, governor.knobs()[0].now), (1, 1));
}

/// Reads of 1 ms come from the disk's cache: they take nothing of the arm's time.
#[test]
fn quick_reads_excuse_no_loss() {
    let seek = Nanos(16 * MS);
    let moved = |ms| second(ms, 50).moved_per_s(seek) / second(ms, 50).moved_per_s(Nanos(0));
    assert_eq!((moved(1), moved(16)), (1.0, 5.0));
}

#[test]
fn writers_that_are_alone_get_their_rate_back() {
    let mut governor = governor();
    simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    assert_eq!(governor.knobs()[0].now, 2);
    let alone =
        |_: &[TunedKnob]| Observation { seconds: 1.0, written_bytes: 50 << 20, ..Observation::default() };
    let changes = simulate(&mut governor, 1_000, alone);
    assert!((59..=70).contains(&changes[0].0), "after a minute: {changes:?}");
    assert!(changes.iter().all(|change| change.1 == ChangeKind::Raise), "{changes:?}");
    assert_eq!(governor.knobs()[0].now, 10);
    let back = simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    assert_eq!(back[0], (2, ChangeKind::Lower, 0, 3), "a reader is back");
}

#[test]
fn pauses_between_good_windows_break_no_row() {
    let mut governor = governor();
    simulate(&mut governor, 30, |knobs| second(3 * knobs[0].now, 50));
    let at = std::cell::Cell::new(0);
    let bursts = simulate(&mut governor, 600, |_| {
        at.set(at.get() + 1);
        let pause = Observation { seconds: 1.0, written_bytes: 50 << 20, ..Observation::default() };
        if at.get() % 25 == 0 { second(1, 50) } else { pause }
    });
    assert!(bursts.iter().any(|change| change.1 == ChangeKind::Raise), "{bursts:?}");
}

#[test]
fn a_period_in_which_nothing_completes_is_bad() {
    // Linux commit f91ffe89b201: io.cost took it for "targets met"
    let mut governor = governor();
    let stuck = |_: &[TunedKnob]| Observation {
        seconds: 1.0,
        waits: true,
        written_bytes: 50 << 20,
        ..Observation::default()
    };
    let changes = simulate(&mut governor, 4, stuck);
    assert_eq!(changes, [(2, ChangeKind::Lower, 0, 5)]);
}

#[test]
fn a_period_shorter_than_the_answers_take_is_not_judged_by_itself() {
    // Linux commit 7afcccafa59f: periods far below the average completion latency made vrate swing
    let mut governor = Governor::new(Rules { window_s: 0.1, ..rules() }, vec![knob("first", 10, 2)]);
    let slow = |_: &[TunedKnob]| {
        let mut observed =
            Observation { seconds: 0.1, waits: true, written_bytes: 5 << 20, ..Observation::default() };
        (0..30).for_each(|_| observed.reads.record(1_000 * MS));
        observed
    };
    let changes = simulate(&mut governor, 95, slow);
    assert!(
        changes.len() <= 1 && changes.iter().all(|c| c.0 >= 29),
        "three times a second first: {changes:?}"
    );
}

#[test]
fn somebody_elses_knob_is_left_alone() {
    let mut governor = governor();
    governor.give_up_knob(0);
    let changes = simulate(&mut governor, 300, |knobs| second(knobs[1].now, 50));
    assert!(!changes.is_empty() && changes.iter().all(|c| c.2 == 1), "{changes:?}");
    assert!(simulate(&mut Governor::new(rules(), vec![]), 50, |_| second(40, 50)).is_empty());
}

#[test]
fn its_sentences_have_numbers() {
    let mut governor = governor();
    let change = (0..3).filter_map(|at| governor.observe(f64::from(at), &second(40, 50))).next().unwrap();
    assert_eq!(
        change.text,
        "first from 10 to 2: 100 % of reads took longer than 10.0 ms (99 of 100 within 66.8 ms), while 50 MiB/s are written"
    );
}

proptest::proptest! {
    #[test]
    /// Of knobs with very different ranges, in random stretches of idle, good and bad seconds.
    #[test]
    fn values_stay_between_floor_and_start(
        stretches in proptest::collection::vec((0usize..4, 1u64..120, 1u64..100, 0u64..200), 1..60),
        step_s in proptest::sample::select(vec![1.0, 30.0]),
    ) {
        let knobs = vec![knob("first", 10, 2), knob("second", 4_000, 400), knob("third", 75_000, 18_750)];
        let floors = [2, 400, 18_750];
        let (mut governor, mut now_s) = (Governor::new(rules(), knobs), 0.0);
        for (kind, length, read_ms, mib) in stretches {
            for _ in 0..length {
                let written = Observation { written_bytes: mib << 20, writes_wait: mib > 150, ..nothing() };
                let kinds = [written, second(1, mib), second(10 + read_ms, mib), Observation { waits: true, ..few_reads(2, read_ms) }];
                now_s += step_s;
                let before: Vec<u64> = governor.knobs().iter().map(|knob| knob.now).collect();
                let change = governor.observe(now_s, &kinds[kind]);
                for (at, (knob, floor)) in governor.knobs().iter().zip(floors).enumerate() {
                    proptest::prop_assert!((floor..=knob.start).contains(&knob.now), "{knob:?}");
                    let made = change.as_ref().filter(|change| change.knob == at);
                    proptest::prop_assert_eq!(knob.now, made.map_or(before[at], |change| change.value));
                    proptest::prop_assert!(made.is_none_or(|change| change.value != before[at]));
                    let was_raised = made.is_some_and(|change| change.kind == ChangeKind::Raise);
                    proptest::prop_assert!(!was_raised || knob.now > before[at]);
                }
            }
        }
    }
}
