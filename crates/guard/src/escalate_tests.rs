use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use super::*;
use crate::unit::UnitKey;

fn stressor(group: Option<&str>, shell_waits: bool) -> Target {
    Target {
        key: UnitKey::Job { session: 7, group: 5 },
        name: "stressor".into(),
        user: 1000,
        owner: 1000,
        processes: vec![ProcessId { pid: 5, start_ticks: 5 }],
        size: Bytes::mib(400),
        group: group.map(str::to_owned),
        shell_waits,
        grows: true,
        grown: Bytes::mib(300),
        mapped: Bytes(0),
    }
}

fn stalled(share: f64) -> Shortage {
    Shortage {
        stalled_1s: share,
        stalled_5s: share,
        room_share: 0.5,
        resident_share: 0.5,
        ..Shortage::default()
    }
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::Slow(_) => "slow",
        Action::Stop(_) => "stop",
        Action::Continue => "continue",
        Action::Release => "release",
        Action::Ask(_) => "ask",
        Action::End(_) => "end",
    }
}

/// The steps for a shortage as a function of time, four times a second; the target ends when it is told to.
fn steps(target: &Target, until_ms: u64, shortage: impl Fn(u64) -> Shortage) -> Vec<(u64, &'static str)> {
    let (mut state, mut steps) = (State::default(), Vec::new());
    let mut runs = true;
    for now_ms in (0..=until_ms).step_by(250) {
        let found = state.decide(&shortage(now_ms), runs.then_some(target), runs, now_ms);
        for action in &found {
            steps.push((now_ms, word(action)));
            runs &= !matches!(action, Action::End(_));
        }
    }
    steps
}

#[test]
fn a_stall_that_ends_by_itself_is_left_alone() {
    assert_eq!(steps(&stressor(Some("a"), false), 9_000, |ms| stalled(if ms < 500 { 0.9 } else { 0.0 })), []);
    assert_eq!(steps(&stressor(Some("a"), false), 60_000, |_| stalled(0.3)), [], "slow, but it goes on");
}

#[test]
fn a_group_is_slowed_then_stopped_and_goes_on_when_it_is_over() {
    let found = steps(&stressor(Some("a"), false), 12_000, |ms| stalled(if ms < 2_000 { 0.9 } else { 0.0 }));
    assert_eq!(found, [(500, "slow"), (1_500, "stop"), (2_500, "continue"), (7_000, "release")]);
}

#[test]
fn what_is_slowed_is_released_once_tasks_run_however_little_room_is_left() {
    let group = stressor(Some("a"), false);
    let short = |ms| Shortage { room_share: 0.09, ..stalled(if ms < 1_000 { 0.9 } else { 0.0 }) };
    assert_eq!(level(&short(2_000)), Level::Short);
    assert_eq!(steps(&group, 60_000, short), [(500, "slow"), (6_000, "release")]);
    let words: Vec<_> = steps(&group, 100_000, |_| stalled(0.9)).iter().map(|f| (f.0, f.1)).collect();
    assert_eq!(words, [(500, "slow"), (1_500, "stop"), (4_500, "continue"), (30_500, "release")]);
}

/// A group at its `memory.high` waits, and may be all that runs.
#[test]
fn what_is_slowed_is_released_before_it_is_asked_to_end() {
    let full =
        |until_ms| move |ms| Shortage { room_share: 0.1, ..stalled(if ms < until_ms { 0.9 } else { 0.0 }) };
    let all = |until_ms| steps(&stressor(Some("a"), false), 20_000, full(until_ms));
    let first = [(500, "slow"), (1_500, "stop"), (4_500, "continue"), (5_000, "release")];
    assert_eq!(all(6_000), first);
    assert_eq!(all(60_000), [first.as_slice(), &[(7_000, "ask"), (8_500, "end")]].concat());
}

#[test]
fn what_stops_do_not_cure_is_asked_and_then_ended() {
    for share in [0.9, 0.5] {
        let full = Shortage { room_share: 0.1, ..stalled(share) };
        let found = steps(&stressor(None, false), 20_000, |_| full);
        assert_eq!(found, [(1_500, "stop"), (4_500, "continue"), (5_000, "ask"), (6_500, "end")]);
    }
}

#[test]
fn what_fits_is_given_three_minutes() {
    let found = steps(&stressor(None, false), 200_000, |_| stalled(0.9));
    let words: Vec<&str> = found.iter().map(|step| step.1).collect();
    assert_eq!(words, ["stop", "continue", "ask", "end"], "a stop in vain is not repeated");
    assert_eq!(found[2].0, 180_000);
    let waits = steps(&stressor(None, true), 200_000, |_| stalled(0.9));
    assert_eq!(waits, [(180_000, "ask"), (181_500, "end")]);
    let thrashes = |room_share| Shortage { read_back_share: 0.1, room_share, ..stalled(0.9) };
    let steps_with = |room| steps(&stressor(None, true), 200_000, move |_| thrashes(room));
    assert_eq!(steps_with(0.3), [(5_000, "ask"), (6_500, "end")]);
    assert_eq!(steps_with(1.2), [(180_000, "ask"), (181_500, "end")], "it thrashes, but it fits");
    let words: Vec<&str> =
        steps(&stressor(None, false), 80_000, |_| stalled(0.5)).iter().map(|f| f.1).collect();
    assert_eq!(words, ["stop", "continue"], "slow, but it goes on");
    let at_work = |ms: u64| stalled(if ms % 150_000 < 1_000 { 0.5 } else { 0.9 });
    assert_eq!(steps(&stressor(None, true), 600_000, at_work), [], "one document after the other");
}

#[test]
fn a_group_at_its_own_limit_is_no_shortage_of_the_machine() {
    let plenty = |_| Shortage { available_share: 0.6, ..stalled(0.95) };
    assert_eq!(steps(&stressor(Some("a"), false), 60_000, plenty), []);
}

#[test]
fn a_rush_is_stopped_at_once() {
    let rush = Shortage { room_share: 0.2, left_s: Some(1.5), ..stalled(0.1) };
    let found = steps(&stressor(None, false), 2_000, |_| rush);
    assert_eq!(found, [(0, "stop"), (1_000, "continue"), (1_250, "stop")]);
    let words = |room_share| {
        let rush = Shortage { room_share, ..rush };
        steps(&stressor(None, false), 30_000, |_| rush).iter().map(|f| f.1).collect::<Vec<_>>()
    };
    let stops = ["stop", "continue", "stop", "continue", "stop", "continue"];
    assert_eq!(words(0.07), [stops.as_slice(), &["ask", "end"]].concat());
    assert_eq!(words(0.2), stops, "a build in bursts while there is room");
    let late = Shortage { left_s: Some(2.2), gap_s: 0.9, ..rush };
    assert!(is_rush(&late) && !is_rush(&Shortage { gap_s: 0.25, ..late }));
}

#[test]
fn a_program_is_not_asked_to_end_because_another_was_stopped_in_vain() {
    let rush = Shortage { room_share: 0.07, left_s: Some(1.5), ..stalled(0.1) };
    let first = stressor(None, false);
    let second = Target { key: UnitKey::Job { session: 7, group: 6 }, ..first.clone() };
    let mut state = State::default();
    let refused = state.decide(&rush, Some(&first), false, 0);
    assert_eq!(refused, [Action::Stop(first.clone())]);
    state.stop_failed(0);
    assert_eq!(state.clone().decide(&rush, Some(&first), false, 250), [Action::Ask(first.clone())]);
    assert_eq!(state.decide(&rush, Some(&second), false, 250), [Action::Stop(second.clone())]);
    let (mut state, stall) = (State::default(), stalled(0.9));
    let mut found = Vec::new();
    for now_ms in (0..=4_500).step_by(250) {
        found.extend(state.decide(&stall, Some(&first), false, now_ms));
    }
    assert_eq!(found, [Action::Stop(first.clone()), Action::Continue]);
    let rush = Shortage { room_share: 0.2, stalled_1s: 0.9, ..rush };
    assert_eq!(state.clone().decide(&rush, Some(&first), false, 4_750), [Action::Ask(first)]);
    assert_eq!(state.decide(&rush, Some(&second), false, 4_750), [Action::Stop(second)]);
}

#[test]
fn a_job_that_a_shell_waits_for_is_not_stopped() {
    let full = Shortage { room_share: 0.1, ..stalled(0.9) };
    assert_eq!(steps(&stressor(None, true), 20_000, |_| full), [(5_000, "ask"), (6_500, "end")]);
}

#[test]
fn what_does_not_grow_is_left_alone_for_half_a_minute() {
    let still = Target { grows: false, ..stressor(None, true) };
    let full = Shortage { room_share: 0.1, ..stalled(0.9) };
    assert_eq!(steps(&still, 40_000, |_| full), [(30_000, "ask"), (31_500, "end")]);
}

#[test]
fn exhausted_memory_ends_the_cause_at_once() {
    let none = Shortage { room_share: 0.01, ..Shortage::default() };
    assert_eq!(steps(&stressor(None, false), 9_000, |_| none), [(250, "end")]);
    let soon = Shortage { room_share: 0.07, resident_share: 0.3, left_s: Some(0.5), ..Shortage::default() };
    assert_eq!(level(&soon), Level::Exhausted);
    let pool = Shortage { resident_share: 0.04, ..stalled(0.4) };
    assert_eq!(level(&pool), Level::Exhausted);
    assert_eq!(level(&Shortage { left_s: Some(5.0), ..soon }), Level::Short);
}

/// A build was stopped, and meanwhile another program takes the rest.
#[test]
fn what_took_the_rest_while_another_was_stopped_is_ended() {
    let build = stressor(None, false);
    let taker = Target {
        key: UnitKey::Job { session: 7, group: 6 },
        processes: vec![ProcessId { pid: 6, start_ticks: 6 }],
        ..stressor(None, false)
    };
    let rush = Shortage { room_share: 0.2, left_s: Some(1.5), ..stalled(0.1) };
    let none = Shortage { room_share: 0.01, ..Shortage::default() };
    let ended = |target: Option<&Target>| {
        let mut state = State::default();
        assert_eq!(state.decide(&rush, Some(&build), false, 0), [Action::Stop(build.clone())]);
        state.decide(&none, target, false, 250);
        let actions = state.decide(&none, target, false, 500);
        assert_eq!(state.stopped().is_some(), actions.is_empty());
        actions
    };
    assert_eq!(ended(Some(&taker)), [Action::End(taker.clone())]);
    let still = Target { grows: false, ..taker };
    assert_eq!(ended(Some(&still)), [Action::End(build.clone())], "it took nothing");
    assert_eq!(ended(None), [], "what took it is never ended");
}

#[test]
fn beside_a_daemon_only_lasting_exhaustion_ends_something() {
    let none = Shortage { room_share: 0.01, ..Shortage::default() };
    let target = stressor(Some("a"), false);
    let steps = |shortage: &dyn Fn(u64) -> Shortage| {
        let (mut state, mut steps) = (State::default(), Vec::new());
        for now_ms in (0..=60_000).step_by(250) {
            let runs = steps.is_empty();
            let found = state.decide_last(&shortage(now_ms), runs.then_some(&target), runs, now_ms);
            steps.extend(found.iter().map(|action| (now_ms, word(action))));
        }
        steps
    };
    assert_eq!(steps(&|_| none), [(2_000, "end")]);
    assert_eq!(steps(&|ms| if ms % 2_000 < 1_750 { none } else { stalled(0.9) }), [], "the daemon acts");
    assert_eq!(steps(&|_| Shortage { room_share: 0.1, ..stalled(0.9) }), [], "no milder step");
}

#[test]
fn what_cannot_be_ended_does_not_keep_others_from_it() {
    let none = Shortage { room_share: 0.01, ..Shortage::default() };
    let (first, mut second) = (stressor(None, false), stressor(None, false));
    second.processes = vec![ProcessId { pid: 6, start_ticks: 6 }];
    let mut state = State::default();
    let mut ended = Vec::new();
    for now_ms in (0..20_000).step_by(250) {
        let target = if state.in_vain().is_empty() { &first } else { &second };
        let actions = state.decide(&none, Some(target), true, now_ms);
        ended.extend(actions.into_iter().filter_map(|a| match a {
            Action::End(target) => Some((now_ms, target.processes[0].pid)),
            _ => None,
        }));
    }
    assert_eq!(ended[0], (250, 5));
    let of_second = ended.iter().find(|(_, pid)| *pid == 6).unwrap();
    assert!((12_000..15_000).contains(&of_second.0), "{ended:?}");
    state.keep_in_vain(|_| false);
    assert!(state.in_vain().is_empty());
}

#[test]
fn without_a_target_nothing_happens() {
    let mut state = State::default();
    let none = Shortage { room_share: 0.0, stalled_1s: 1.0, stalled_5s: 1.0, ..Shortage::default() };
    for now_ms in (0..60_000).step_by(250) {
        assert_eq!(state.decide(&none, None, false, now_ms), []);
    }
}

proptest::proptest! {
    /// Whatever the machine does: a stop ends within seconds, and nothing stays slowed once tasks run.
    #[test]
    fn every_stop_is_short(
        shares in proptest::collection::vec(0.0f64..1.0, 1..200),
        room_share in 0.03f64..0.6,
        group: bool,
        waits: bool,
    ) {
        let target = stressor(group.then_some("a"), waits);
        let mut state = State::default();
        let mut stopped_ms = None;
        let calm = std::iter::repeat_n(0.0, 60);
        for (i, share) in shares.into_iter().chain(calm).enumerate() {
            let now_ms = i as u64 * 250;
            for action in state.decide(&Shortage { room_share, ..stalled(share) }, Some(&target), true, now_ms) {
                match action {
                    Action::Stop(_) => stopped_ms = Some(now_ms),
                    Action::Continue => stopped_ms = None,
                    Action::Ask(_) | Action::End(_) => return Ok(()),
                    _ => {}
                }
            }
            proptest::prop_assert!(stopped_ms.is_none_or(|at| now_ms - at <= STOPPED_MS));
        }
        proptest::prop_assert!(!state.is_acting());
    }
}
