use proptest::prelude::*;

use super::super::ledger::UNIT;
use super::*;

const GIB: u64 = 1 << 30;

fn device(name: &str) -> Device {
    Device {
        name: name.into(),
        size: Bytes(GIB),
        used: Bytes(GIB / 10 * 9),
        own: true,
        huge_pages: 1_000,
        recompress_priorities: vec![1],
        writeback: true,
        idle: true,
        ..Device::default()
    }
}

fn facts() -> Facts {
    Facts {
        devices: vec![device("zram1")],
        recompress: true,
        writeback_a_day: Bytes::mib(1024),
        ..Facts::default()
    }
}

fn calm() -> MachineLoad {
    MachineLoad {
        waiting_avg10_percent: Some(0.0),
        anonymous_reclaim_per_s: 0.0,
        idle_cpu_share: 0.9,
        available_share: 0.0,
    }
}

fn done(mib: u64) -> ActionOutcome {
    ActionOutcome::Done { freed: Bytes::mib(mib), written: Bytes(0), took_ms: 700 }
}

/// Ticks every 10 s; `answer` gives the outcome of each action.
struct Run {
    facts: Facts,
    state: State,
    ms: u64,
    messages: Vec<String>,
}

impl Run {
    fn new(facts: Facts) -> Self {
        Self { facts, state: State::default(), ms: 0, messages: Vec::new() }
    }

    fn ticks(&mut self, ticks: u64, mut answer: impl FnMut(&Action) -> ActionOutcome) -> Vec<(u64, Action)> {
        let mut done = Vec::new();
        for _ in 0..ticks {
            let now = Now { ms: self.ms, day: 1 };
            let decision = decide(&self.facts, &calm(), &Ledger::default(), &self.state, now);
            self.state = decision.state;
            self.messages.extend(decision.message);
            for action in decision.actions {
                self.messages.extend(self.state.note(&action, &answer(&action), self.ms));
                done.push((self.ms / 1_000, action));
            }
            self.ms += 10_000;
        }
        done
    }
}

fn words(done: &[(u64, Action)]) -> Vec<String> {
    done.iter().map(|(s, action)| format!("{s}: {action}")).collect()
}

#[test]
fn a_cycle_recompresses_and_then_writes_back() {
    let mut run = Run::new(facts());
    let done = run.ticks(30, |_| done(0));
    assert_eq!(
        words(&done),
        [
            "30: mark pages idle that are unused for 701 s",
            "40: recompress huge_idle pages with algorithm 1",
            "70: recompress idle pages with algorithm 1",
            "100: write huge_idle pages back",
            "130: write huge pages back",
        ]
    );
    assert_eq!(run.messages, [""; 0], "a useless cycle has no message");
}

#[test]
fn a_useful_kind_is_repeated_in_growing_rounds() {
    let mut run = Run::new(facts());
    let mut left = 3;
    let done = run.ticks(30, |action| match action {
        Action::Recompress { kind: PageKind::HugeIdle, .. } if left > 0 => {
            left -= 1;
            ActionOutcome::Done { freed: Bytes::mib(1), written: Bytes(0), took_ms: 10 }
        }
        _ => done(0),
    });
    let sizes: Vec<u64> = done
        .iter()
        .filter_map(
            |(_, a)| if let Action::Recompress { max_pages, .. } = a { Some(*max_pages) } else { None },
        )
        .collect();
    assert_eq!(sizes, [512, 1_024, 2_048, 4_096, 4_096]);
    assert_eq!(
        run.messages,
        ["Maintenance of the compressed swap freed 3.0 MiB of memory; 0 B went to the writeback device."]
    );
}

#[test]
fn a_nearly_full_device_does_not_wait_for_marks_to_age() {
    let mut run = Run::new(facts());
    let done = run.ticks(30, |action| match action {
        Action::MarkIdle { age: Age::Seconds(_), .. } => ActionOutcome::Unsupported,
        _ => done(0),
    });
    let words = words(&done);
    assert_eq!(words[1..3], ["40: write huge pages back", "70: mark all pages idle"], "{words:?}");
}

#[test]
fn a_kernel_that_marks_only_all_lets_the_marks_age() {
    let mut facts = facts();
    facts.devices.iter_mut().for_each(|d| d.used = Bytes(d.size.0 / 2));
    let mut run = Run::new(facts);
    let done = run.ticks(100, |action| match action {
        Action::MarkIdle { age: Age::Seconds(_), .. } => ActionOutcome::Unsupported,
        _ => done(0),
    });
    let words = words(&done);
    assert_eq!(words[..2], ["30: mark pages idle that are unused for 701 s", "40: mark all pages idle"]);
    assert_eq!(words[2], "750: recompress huge_idle pages with algorithm 1");
}

#[test]
fn einval_skips_a_kind_for_ever() {
    let mut run = Run::new(facts());
    let mut answer = |action: &Action| match action {
        Action::Recompress { .. } => ActionOutcome::Unsupported,
        _ => done(0),
    };
    assert_eq!(words(&run.ticks(30, &mut answer)).len(), 5);
    let second = words(&run.ticks(70, &mut answer));
    assert!(second.iter().all(|w| !w.contains("recompress")) && second.len() == 3, "{second:?}");
}

#[test]
fn eagain_repeats_a_round_later() {
    let mut run = Run::new(facts());
    let mut busy = 2;
    let done = run.ticks(14, |action| match action {
        Action::Recompress { .. } if busy > 0 => {
            busy -= 1;
            ActionOutcome::Later
        }
        _ => done(0),
    });
    let rounds: Vec<String> = words(&done)[1..4].to_vec();
    assert_eq!(rounds, [40, 70, 100].map(|s| format!("{s}: recompress huge_idle pages with algorithm 1")));
}

#[test]
fn a_failure_ends_the_cycle_of_that_device_only() {
    let mut run = Run::new(Facts { devices: vec![device("zram1"), device("zram2")], ..facts() });
    let done = run.ticks(40, |action| match action.device() {
        "zram1" if !matches!(action, Action::MarkIdle { .. }) => {
            ActionOutcome::Failed("a broken disk".into())
        }
        _ => done(0),
    });
    let of = |name: &str| done.iter().filter(|(_, a)| a.device() == name).count();
    assert_eq!((of("zram1"), of("zram2")), (2, 5));
}

#[test]
fn unsupported_and_disallowed_rounds_are_not_tried() {
    let none = |facts: Facts| words(&Run::new(facts).ticks(30, |_| done(0)));
    assert_eq!(none(Facts { recompress: false, writeback_a_day: Bytes(0), ..facts() }), [""; 0]);
    assert_eq!(none(Facts { devices: vec![Device { own: false, ..device("zram0") }], ..facts() }), [""; 0]);
    let nothing_huge = none(Facts { devices: vec![Device { huge_pages: 0, ..device("zram1") }], ..facts() });
    assert_eq!(nothing_huge[1..], ["40: recompress idle pages with algorithm 1"]);
    let roomy = none(Facts { devices: vec![Device { used: Bytes(GIB / 2), ..device("zram1") }], ..facts() });
    assert!(!roomy.iter().any(|w| w.contains("huge pages back")), "{roomy:?}");
    let no_idle = none(Facts { devices: vec![Device { idle: false, ..device("zram1") }], ..facts() });
    assert_eq!(no_idle, ["40: write huge pages back"]);
}

#[test]
fn little_memory_makes_pages_idle_sooner() {
    let age = |available_share| idle_age_s(&MachineLoad { available_share, ..calm() });
    assert_eq!((age(1.0), age(0.0)), (86_400, 701));
    assert!(age(0.2) < age(0.3));
}

#[derive(Debug, Clone)]
struct LoadAndAnswer {
    waiting: f64,
    idle_cpu: f64,
    on_battery: bool,
    answer: u8,
    moved: f64,
    pause_s: u64,
    fill: f64,
    budget_mib: u64,
}

fn load_and_answer() -> impl Strategy<Value = LoadAndAnswer> {
    let calm = prop_oneof![8 => Just(0.0), 1 => 5.0f64..90.0];
    let cpu = prop_oneof![8 => Just(0.9), 1 => 0.0f64..0.5];
    let pause = prop_oneof![9 => 1u64..30, 1 => 30u64..100_000];
    (calm, cpu, prop::bool::weighted(0.05), 0u8..8, 0.0f64..=1.0, pause, 0.5f64..=1.0, 0u64..12).prop_map(
        |(waiting, idle_cpu, on_battery, answer, moved, pause_s, fill, budget_mib)| LoadAndAnswer {
            waiting,
            idle_cpu,
            on_battery,
            answer,
            moved,
            pause_s,
            fill,
            budget_mib,
        },
    )
}

fn outcome(action: &Action, load_and_answer: &LoadAndAnswer) -> ActionOutcome {
    match load_and_answer.answer {
        0 => ActionOutcome::Later,
        1 => ActionOutcome::Failed("made up".into()),
        2 if matches!(action, Action::MarkIdle { .. }) => ActionOutcome::Unsupported,
        _ => {
            let units = if let Action::WriteBack { limit_units, .. } = action {
                (*limit_units as f64 * load_and_answer.moved) as u64
            } else {
                0
            };
            ActionOutcome::Done {
                freed: Bytes((load_and_answer.moved * 1e7) as u64),
                written: Bytes(units * UNIT),
                took_ms: (load_and_answer.moved * 3e3) as u64,
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Under any load: no action while the gate is closed or for 30 s after it was, rounds at least 30 s apart and no larger than allowed,
    /// cycles at least ten minutes apart (no oscillation), and never more than the day's budget, whatever the kernel answers.
    #[test]
    fn the_rules_hold_under_any_load(days in prop::collection::vec(load_and_answer(), 1..200), recompress: bool) {
        let (mut state, mut ledger, mut s) = (State::default(), Ledger::default(), 0u64);
        let (mut closed_s, mut round_s, mut marked_s) = (None::<u64>, None::<u64>, None::<u64>);
        let (mut day, mut written, mut largest_budget) = (0, 0, 0);
        for w in days {
            s += w.pause_s;
            if s / 86_400 > day {
                (day, written, largest_budget) = (s / 86_400, 0, 0);
            }
            let budget = w.budget_mib << 20;
            largest_budget = largest_budget.max(budget);
            let device = Device { used: Bytes((GIB as f64 * w.fill) as u64), ..device("zram1") };
            let facts = Facts { devices: vec![device], recompress, waits_for_mains: w.on_battery, writeback_a_day: Bytes(budget), ..facts() };
            let load = MachineLoad { waiting_avg10_percent: Some(w.waiting), idle_cpu_share: w.idle_cpu, ..calm() };
            let closed = gate::closed_by(&facts, &load).is_some();
            let decision = decide(&facts, &load, &ledger, &state, Now { ms: s * 1_000, day });
            state = decision.state;
            if closed {
                closed_s = Some(s);
                prop_assert_eq!(&decision.actions, &[]);
            }
            for action in decision.actions {
                prop_assert!(closed_s.is_none_or(|at| s - at >= 30), "too soon after the gate was closed");
                let answer = outcome(&action, &w);
                match &action {
                    Action::MarkIdle { age, .. } => {
                        let again = *age == Age::All && marked_s.is_some();
                        prop_assert!(again || marked_s.is_none_or(|at| s - at >= 600), "marked too often");
                        marked_s = Some(s);
                    }
                    Action::Recompress { max_pages: units, .. } | Action::WriteBack { limit_units: units, .. } => {
                        prop_assert!(*units >= 1 && *units <= *ROUND_UNITS.end());
                        prop_assert!(round_s.is_none_or(|at| s - at >= 30), "rounds too close");
                        round_s = Some(s);
                    }
                }
                if let (Action::WriteBack { limit_units, .. }, ActionOutcome::Done { written: now_written, .. }) = (&action, &answer) {
                    ledger = ledger.charged(day, *limit_units).settled(*limit_units, now_written.0 / UNIT);
                    written += now_written.0;
                    prop_assert!(written <= largest_budget, "beyond the budget");
                }
                let _ = state.note(&action, &answer, s * 1_000);
            }
        }
    }
}

#[test]
fn a_round_has_the_same_size_with_large_pages() {
    let most = |page_units| {
        let facts = Facts { page_units, ..facts() };
        let work = Work::Recompress(PageKind::Idle, 1);
        match action(&facts, &facts.devices[0], work, 2_048, 0) {
            Some(Action::Recompress { max_pages, .. }) => max_pages,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([0, 1, 4].map(most), [2_048, 2_048, 512]);
}
