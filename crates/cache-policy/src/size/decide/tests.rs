use proptest::prelude::*;

use super::*;
use crate::size::Group;

fn machine(total_mib: u64, available_mib: u64) -> Signals {
    let machine = Machine {
        total: Bytes::mib(total_mib),
        available: Bytes::mib(available_mib),
        free: Bytes::mib(available_mib),
        ..Machine::default()
    };
    Signals { machine, groups: Vec::new() }
}

fn with_group(mut signals: Signals, limit_mib: u64, used_mib: u64) -> Signals {
    signals.groups.push(Group {
        path: "/g".into(),
        limit: Bytes::mib(limit_mib),
        used: Bytes::mib(used_mib),
        usage: Bytes::mib(used_mib),
    });
    signals
}

fn state(limit_mib: u64, at: Duration, room: i64) -> GovernorState {
    GovernorState { limit: Bytes::mib(limit_mib), last: Some((at, 0, room)), ..GovernorState::default() }
}

fn holding(held: Bytes) -> OwnUse {
    OwnUse { held, ..OwnUse::default() }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_share_is_of_ram_or_of_the_tightest_group_and_bounded() {
    let signals = machine(1000, 900);
    assert_eq!(resolve(Memory::Percent(50), &signals), Bytes::mib(500));
    assert_eq!(resolve(Memory::Percent(100), &signals), Bytes::mib(850));
    assert_eq!(resolve(Memory::Bytes(Bytes::mib(2000)), &signals), Bytes::mib(850));
    let signals = with_group(with_group(signals, 400, 0), 200, 0);
    assert_eq!(resolve(Memory::Percent(50), &signals), Bytes::mib(100));
    assert_eq!(resolve(Memory::Bytes(Bytes::mib(20)), &signals), Bytes::mib(20));
}

#[test]
fn reserves_are_smaller_on_small_machines() {
    let mib = |n| Bytes::mib(n);
    assert_eq!([128, 256, 512, 4096].map(|n| machine_reserve(mib(n))), [16, 32, 32, 256].map(mib));
    assert_eq!([96, 128, 256, 4096].map(|n| group_reserve(mib(n))), [12, 16, 16, 256].map(mib));
}

#[test]
fn a_group_that_is_nearly_full_shrinks_the_store_though_the_machine_has_room() {
    let signals = with_group(machine(4096, 3000), 96, 90);
    let decision = decide(
        Memory::Bytes(Bytes::mib(48)),
        &state(48, SECOND, 0),
        2 * SECOND,
        &signals,
        &holding(Bytes::mib(48)),
    );
    // 6 MiB are missing to the reserve of 12. The margin is as much again: what others took since the last reading.
    assert_eq!((decision.limit, decision.why), (Bytes::mib(48 - 6 - 6), LimitReason::Group));
    assert!(decision.moving);
}

#[test]
fn swapping_shrinks_only_while_little_is_free() {
    let mut signals = machine(4096, 3000);
    signals.machine.swapped_out = 10_000;
    let asked = Memory::Bytes(Bytes::mib(800));
    let before = state(800, SECOND, i64::MAX / 8);
    let calm = decide(
        asked,
        &GovernorState { last: Some((SECOND, 0, 0)), ..before },
        2 * SECOND,
        &signals,
        &holding(Bytes::mib(800)),
    );
    assert_eq!(calm.limit, Bytes::mib(800));
    signals.machine.free = Bytes::mib(20);
    let tight = decide(
        asked,
        &GovernorState { last: Some((SECOND, 0, 0)), ..before },
        2 * SECOND,
        &signals,
        &holding(Bytes::mib(800)),
    );
    assert_eq!((tight.limit, tight.why), (Bytes::mib(700), LimitReason::Swapping));
}

#[test]
fn it_starts_at_once_with_the_available_memory() {
    let first = decide(
        Memory::Percent(50),
        &GovernorState::default(),
        SECOND,
        &machine(1024, 300),
        &holding(Bytes(0)),
    );
    assert_eq!(first.limit, Bytes::mib(300 - 64 - 16));
}

#[test]
fn each_of_two_reserves_has_its_margin() {
    // The machine has less room; with a margin, the group has less, because its reserve is larger.
    let first = |available| {
        let signals = with_group(machine(3016, available), 8192, 8192 - 1112);
        decide(
            Memory::Bytes(Bytes::mib(2048)),
            &GovernorState::default(),
            SECOND,
            &signals,
            &holding(Bytes(0)),
        )
        .limit
    };
    assert_eq!([first(754), first(854)], [Bytes::mib(1112 - 512 - 128); 2]);
}

fn signals() -> impl Strategy<Value = Signals> {
    (64u64..65_536, 0u64..=100, proptest::option::of((32u64..8192, 0u64..=100)), 0u64..2000, 0u64..=100)
        .prop_map(|(total, share, group, pages, free)| {
            let mut signals = machine(total, total * share / 100);
            signals.machine.swapped_out = pages;
            signals.machine.free = Bytes(signals.machine.available.0 * free / 100);
            match group {
                Some((limit, used)) => with_group(signals, limit, limit * used / 100),
                None => signals,
            }
        })
}

fn states() -> impl Strategy<Value = GovernorState> {
    (0u64..8192, proptest::option::of(0u64..20), proptest::option::of((0u64..20, 0u64..2000, -8192i64..8192)))
        .prop_map(|(limit, needed, last)| GovernorState {
            limit: Bytes::mib(limit),
            needed: needed.map(Duration::from_secs),
            last: last.map(|(at, pages, room)| (Duration::from_secs(at), pages, room << 20)),
            ..GovernorState::default()
        })
}

fn asked() -> impl Strategy<Value = Memory> {
    prop_oneof![
        (0u64..16_384).prop_map(|n| Memory::Bytes(Bytes::mib(n))),
        (1u8..=200).prop_map(Memory::Percent)
    ]
}

proptest! {
    #[test]
    fn never_above_what_was_asked(asked in asked(), state in states(), signals in signals(), held in 0u64..8192) {
        let decision = decide(asked, &state, 20 * SECOND, &signals, &holding(Bytes::mib(held)));
        prop_assert!(decision.limit <= resolve(asked, &signals));
        if let Memory::Bytes(bytes) = asked {
            prop_assert!(decision.limit <= bytes);
        }
    }

    #[test]
    fn one_decision_makes_every_reserve_whole_or_empties_the_store(
        asked in asked(), state in states(), signals in signals(), held in 0u64..8192,
    ) {
        let held = Bytes::mib(held);
        let limit = decide(asked, &state, 20 * SECOND, &signals, &holding(held)).limit;
        let given_back = held.saturating_sub(limit);
        let grows_by = limit.saturating_sub(held);
        let whole = |available: Bytes, reserve: Bytes| {
            (available + given_back).saturating_sub(grows_by) >= reserve && available + given_back >= grows_by
        };
        let machine = whole(signals.machine.available, machine_reserve(signals.machine.total));
        let groups = signals.groups.iter().all(|g| whole(g.headroom(), group_reserve(g.limit)));
        prop_assert!(limit.0 == 0 || (machine && groups), "{limit} {signals:?}");
    }

    #[test]
    fn more_available_memory_is_never_a_smaller_limit(
        asked in asked(), state in states(), signals in signals(), held in 0u64..8192, more in 0u64..4096,
    ) {
        let mut richer = signals.clone();
        richer.machine.available = richer.machine.available + Bytes::mib(more);
        let decided = |signals| decide(asked, &state, 20 * SECOND, signals, &holding(Bytes::mib(held))).limit;
        prop_assert!(decided(&signals) <= decided(&richer));
    }

    #[test]
    fn a_stressor_that_comes_and_goes_moves_the_limit_down_and_up_once(
        stressor_mib in 128u64..1024, ask in 600u64..3000, seconds in 5u64..20,
    ) {
        let asked = Memory::Bytes(Bytes::mib(ask));
        let run = simulate(asked, |at| {
            let ramp = |t: f64| (t.clamp(0.0, 1.0) * stressor_mib as f64) as u64;
            ramp(at - 10.0) - ramp(at - 11.0 - seconds as f64)
        }, 120.0);
        prop_assert!(run.least_available_mib > 0, "{run:?}");
        prop_assert!(run.reversals <= 2, "{run:?}");
        prop_assert!(run.last >= run.first.saturating_sub(Bytes::mib(160)), "{run:?}");
    }
}

#[derive(Debug)]
struct Simulated {
    first: Bytes,
    last: Bytes,
    least_available_mib: i64,
    /// The number of changes of direction of the limit.
    reversals: u32,
}

/// Simulates a machine of 4 GiB of which 1 GiB is in use. The store fills at 400 MB/s; `stressor` returns the stressor's MiB
/// at a second.
fn simulate(asked: Memory, stressor: impl Fn(f64) -> u64, seconds: f64) -> Simulated {
    let (total, used) = (4096, 1024);
    let (mut state, mut held, mut at) = (GovernorState::default(), 0u64, 0.0);
    let mut run = Simulated { first: Bytes(0), last: Bytes(0), least_available_mib: i64::MAX, reversals: 0 };
    let mut direction = 0;
    while at < seconds {
        let available = total as i64 - used as i64 - stressor(at) as i64 - held as i64;
        run.least_available_mib = run.least_available_mib.min(available);
        let signals = machine(total, available.max(0) as u64);
        let before = state.limit;
        let decision =
            decide(asked, &state, Duration::from_secs_f64(at), &signals, &holding(Bytes::mib(held)));
        state = decision.state;
        if at == 0.0 {
            run.first = decision.limit;
        } else if decision.limit != before {
            let new_direction = if decision.limit > before { 1 } else { -1 };
            run.reversals += u32::from(direction != new_direction);
            direction = new_direction;
        }
        held = held.min(decision.limit.0 >> 20);
        let pause = if decision.moving { 0.2 } else { 1.0 };
        held = (held + (400.0 * pause) as u64).min(decision.limit.0 >> 20);
        at += pause;
    }
    run.last = state.limit;
    run
}

#[test]
fn tables_of_files_count_within_the_memory_asked_for() {
    let asked = Memory::Bytes(Bytes::mib(64));
    let decided = |beside| {
        let own = OwnUse { beside: Bytes::mib(beside), ..holding(Bytes::mib(64)) };
        decide(asked, &state(64, SECOND, 0), 20 * SECOND, &machine(4096, 3000), &own)
    };
    assert_eq!((decided(0).limit, decided(10).limit), (Bytes::mib(64), Bytes::mib(54)));
    assert_eq!((decided(10).asked, decided(10).why), (Bytes::mib(64), LimitReason::Asked));
    assert_eq!(decided(1000).limit, Bytes::mib(8), "something is left to the store");
}

#[test]
fn what_others_read_again_bounds_it_unless_a_group_does() {
    let reread = |mut signals: Signals| {
        let (mut state, mut held) = (GovernorState::default(), Bytes::mib(300));
        signals.machine.free = Bytes(0);
        for second in 0..60 {
            signals.machine.read = Bytes::mib(second * 40);
            signals.machine.refaulted = Bytes::mib(second * 20);
            let at = Duration::from_secs(second);
            state = decide(Memory::Percent(85), &state, at, &signals, &holding(held)).state;
            held = held.min(state.limit);
        }
        decide(Memory::Percent(85), &state, 60 * SECOND, &signals, &holding(held))
    };
    let decision = reread(machine(1000, 900));
    assert_eq!((decision.limit, decision.why), (Bytes::mib(250), LimitReason::Others));
    let decision = reread(with_group(machine(4096, 3000), 400, 100));
    assert_eq!((decision.limit, decision.why), (Bytes::mib(340), LimitReason::Asked));
}
