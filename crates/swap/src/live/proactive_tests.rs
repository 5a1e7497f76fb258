use super::super::facts::Device;
use super::*;

const MINUTE: u64 = 60_000;

fn facts(used_mib: u64) -> Facts {
    let device = Device {
        own: true,
        size: Bytes::mib(1_000),
        used: Bytes::mib(used_mib),
        priority: 100,
        ..Device::default()
    };
    Facts { devices: vec![device], disk_priority: Some(-2), ..Facts::default() }
}

fn calm() -> MachineLoad {
    MachineLoad {
        waiting_avg10_percent: Some(0.0),
        anonymous_reclaim_per_s: 0.0,
        idle_cpu_share: 0.9,
        available_share: 0.5,
    }
}

/// 100 pages are swapped out in each second.
fn now(ms: u64, returned: u64) -> Now {
    let (out_pages, in_use) = (ms / 10, Bytes::mib(1_000));
    Now { ms, out_pages, returned_pages: returned, page_bytes: 4096, in_use, interval_s: 10.0 }
}

/// Ticks every ten seconds from `from_ms` to `to_ms`; all is reclaimed. Returns the requested sizes in KiB.
fn run(state: &mut State, from_ms: u64, to_ms: u64, returned: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    for ms in (from_ms..to_ms).step_by(10_000) {
        let decision = decide(&facts(100), &calm(), state, now(ms, returned));
        *state = decision.state;
        if let Some(request) = decision.request {
            assert_eq!(state.note(request, &Outcome::Reclaimed, ms), None);
            asked.push(request.bytes.0 >> 10);
        }
    }
    asked
}

#[test]
fn steps_grow_up_to_half_of_what_stops_maintenance_and_begin_after_a_minute() {
    let mut state = State::default();
    assert_eq!(run(&mut state, 0, MINUTE, 0), [0; 0]);
    assert_eq!(run(&mut state, MINUTE, 2 * MINUTE, 0), [1_024, 2_048, 4_096, 5_120, 5_120, 5_120]);
}

/// 0.2 % of 1000 MiB are 512 pages.
#[test]
fn what_comes_back_starts_a_pause_and_the_next_one_is_longer() {
    let mut state = State::default();
    run(&mut state, 0, 2 * MINUTE, 0);
    let kept = decide(&facts(100), &calm(), &state, now(2 * MINUTE, 512));
    assert!(kept.request.is_some() && kept.message.is_none());
    let broken = decide(&facts(100), &calm(), &state, now(2 * MINUTE, 513));
    assert_eq!(broken.request, None);
    assert_eq!(
        broken.message.unwrap().text,
        "23 MiB of idle memory were swapped out; 0.2 % of the memory in use came back within a minute, so no more follows for 5 minutes."
    );
    let mut state = broken.state;
    assert_eq!(run(&mut state, 2 * MINUTE + 10_000, 7 * MINUTE, 513), [0; 0]);
    assert_eq!(run(&mut state, 7 * MINUTE, 7 * MINUTE + 20_000, 513), [1_024, 2_048], "it begins anew");
    let again = decide(&facts(100), &calm(), &state, now(7 * MINUTE + 20_000, 5_000));
    assert!(again.message.unwrap().text.ends_with("10 minutes."));
}

#[test]
fn a_user_who_comes_back_is_no_reason_to_wait_for_ever() {
    let mut state = State::default();
    for hour in 0..50 {
        state = decide(&facts(100), &calm(), &state, now(hour * 60 * MINUTE, hour * 100_000)).state;
        assert_eq!(run(&mut state, hour * 60 * MINUTE + 1, hour * 60 * MINUTE + 10_000, 0).len(), 0);
    }
    let mut state = State { pause_ms: LONGEST_PAUSE_MS, ..State::default() };
    run(&mut state, 0, 70 * MINUTE, 0);
    assert_eq!(state.pause_ms, PAUSE_MS, "an hour was calm");
}

#[test]
fn nothing_is_reclaimed_when_memory_is_short_or_swap_is_half_full_or_goes_to_a_disk() {
    let mut state = State::default();
    run(&mut state, 0, MINUTE, 0);
    let may =
        |facts: &Facts, load: &MachineLoad| decide(facts, load, &state, now(MINUTE, 0)).request.is_some();
    assert!(may(&facts(499), &calm()));
    assert!(!may(&facts(500), &calm()));
    assert!(!may(&facts(100), &MachineLoad { waiting_avg10_percent: Some(5.0), ..calm() }));
    assert!(!may(&Facts { waits_for_mains: true, ..facts(100) }, &calm()));
    assert!(!may(&Facts { disk_priority: Some(100), ..facts(100) }, &calm()));
    assert!(!may(&Facts::default(), &calm()));
    let half =
        decide(&facts(500), &calm(), &State { moved: Bytes::mib(300), ..state.clone() }, now(MINUTE, 0));
    assert!(half.message.unwrap().text.starts_with("300 MiB of idle memory were swapped out; half of"));
    assert_eq!(decide(&facts(500), &calm(), &half.state, now(MINUTE, 0)).message, None);
}

#[test]
fn an_older_kernel_gets_an_older_request_and_one_without_any_is_left_alone() {
    let mut state = State::default();
    run(&mut state, 0, MINUTE, 0);
    let request = |state: &State| decide(&facts(100), &calm(), state, now(MINUTE, 0)).request;
    for word in [" swappiness=max", " swappiness=200"] {
        let asked = request(&state).unwrap();
        assert_eq!(asked.form.word(), word);
        let told = state.note(asked, &Outcome::UnknownForm, MINUTE);
        assert_eq!(told.is_some(), word.ends_with("200"), "{told:?}");
    }
    assert_eq!(request(&state), None);
}

#[test]
fn a_kernel_that_finds_no_more_ten_times_is_left_alone_for_a_while() {
    let mut state = State::default();
    run(&mut state, 0, MINUTE, 0);
    let mut told = Vec::new();
    for ms in (MINUTE..5 * MINUTE).step_by(10_000) {
        let decision = decide(&facts(100), &calm(), &state, now(ms, 0));
        state = decision.state;
        if let Some(request) = decision.request {
            assert_eq!(request.bytes, LEAST);
            told.extend(state.note(request, &Outcome::Fewer, ms).map(|message| (ms, message.text)));
        }
    }
    let text = "39 MiB of idle memory were swapped out; the kernel finds no more for now.".to_owned();
    assert_eq!(told, [(MINUTE + 100_000, text)]);
    assert_eq!(run(&mut state, 5 * MINUTE, 9 * MINUTE, 0).len(), 8, "until then it rests");
}

#[test]
fn the_end_is_told_once() {
    let request = Request { bytes: LEAST, form: Form::Anonymous };
    let mut state = State::default();
    run(&mut state, 0, MINUTE, 0);
    let absent = state.note(request, &Outcome::Absent, 0).unwrap();
    assert!(
        absent.important && absent.text.contains("(proactive = true): the kernel has neither"),
        "{absent:?}"
    );
    assert_eq!(decide(&facts(100), &calm(), &state, now(90 * MINUTE, 0)).request, None);
    let failed = State::default().note(request, &Outcome::Failed("no".into()), 0).unwrap();
    assert!(failed.text.ends_with(": no."));
}

proptest::proptest! {
    #[test]
    fn any_counters_are_a_bounded_request(
        ticks in proptest::collection::vec((0u64.., 0u64.., 0u64..1_000_000), 1..40),
    ) {
        let (mut state, mut ms) = (State::default(), 0u64);
        for (returned, in_use, step) in ticks {
            ms += step;
            let now = Now { in_use: Bytes(in_use), interval_s: step as f64 / 1e3, ..now(ms, returned) };
            let decision = decide(&facts(0), &calm(), &state, now);
            state = decision.state;
            if let Some(request) = decision.request {
                proptest::prop_assert!(request.bytes >= LEAST && request.bytes <= most(now));
                let _ = state.note(request, &Outcome::Reclaimed, ms);
            }
            proptest::prop_assert!(state.returned.len() <= 40);
        }
    }
}
