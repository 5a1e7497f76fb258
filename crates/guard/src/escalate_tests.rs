use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use super::*;
use crate::unit::UnitKey;

fn stressor(group: Option<&str>, shell_waits: bool) -> Target {
    Target {
        key: UnitKey::Job { session: 7, group: 5 },
        name: "stressor".into(),
        user: 1000,
        processes: vec![ProcessId { pid: 5, start_ticks: 5 }],
        size: Bytes::mib(400),
        group: group.map(str::to_owned),
        shell_waits,
        grows: true,
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
    let words: Vec<&str> = steps(&stressor(None, false), 9_000, |_| rush).iter().map(|f| f.1).collect();
    assert_eq!(words, ["stop", "continue", "stop", "continue", "stop", "continue", "ask", "end"]);
    let late = Shortage { left_s: Some(2.2), gap_s: 0.9, ..rush };
    assert!(is_rush(&late) && !is_rush(&Shortage { gap_s: 0.25, ..late }));
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
    /// Whatever the machine does: a stop ends within seconds, and nothing stays slowed once it is calm.
    #[test]
    fn every_stop_is_short(shares in proptest::collection::vec(0.0f64..1.0, 1..200), group: bool, waits: bool) {
        let target = stressor(group.then_some("a"), waits);
        let mut state = State::default();
        let mut stopped_ms = None;
        let calm = std::iter::repeat_n(0.0, 60);
        for (i, share) in shares.into_iter().chain(calm).enumerate() {
            let now_ms = i as u64 * 250;
            for action in state.decide(&stalled(share), Some(&target), true, now_ms) {
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
