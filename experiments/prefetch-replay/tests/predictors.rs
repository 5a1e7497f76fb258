//! Properties of every predictor, for any events.

use std::collections::BTreeSet;
use std::sync::Arc;

use eke_prefetch_model::{Event, ProgramId, Span, UserEvent};
use eke_prefetch_replay::predict::{
    Chance, Eke, Map, Maps, MapsBuilder, Naive, Predictor, Preload, Recency, Thesis, Variant, eke,
};
use proptest::prelude::*;

/// Programs 0 to 9: one library used by all, and one file each, above preload's minimum size.
fn maps() -> Arc<Maps> {
    let mut maps = MapsBuilder::default();
    for program in 0..10 {
        maps.add(ProgramId(program), "library", Span { first: 0, end: 200 });
        maps.add(ProgramId(program), &format!("own {program}"), Span { first: 0, end: 400 + program });
    }
    Arc::new(maps.build())
}

fn all() -> Vec<Box<dyn Predictor>> {
    vec![
        Box::new(Naive::default()),
        Box::new(Recency::default()),
        Box::new(Preload::new(Variant::Shipped, maps())),
        Box::new(Preload::new(Variant::Repaired, maps())),
        Box::new(Thesis::default()),
        Box::new(Eke::default()),
    ]
}

/// Mostly small steps, sometimes any time.
fn events() -> impl Strategy<Value = Vec<UserEvent>> {
    let step = prop_oneof![
        20 => 0.0..400.0_f64,
        1 => prop_oneof![Just(-1e9), Just(1e9), Just(f64::NAN), Just(f64::INFINITY), Just(-1e300), Just(-30.0)],
    ];
    let event = prop_oneof![
        1 => Just(Event::Session),
        6 => (0..10_u64).prop_map(|program| Event::Start(ProgramId(program))),
        5 => (0..10_u64).prop_map(|program| Event::Stop(ProgramId(program))),
    ];
    proptest::collection::vec((step, 1..4_u32, event), 0..80).prop_map(|rows| {
        let mut now_s = 1.7e9;
        let at = |(step_s, user, event): (f64, u32, Event)| {
            let at_s = now_s + step_s;
            now_s = if step_s.abs() <= 1e9 { at_s } else { now_s };
            UserEvent { at_s, user, event }
        };
        rows.into_iter().map(at).collect()
    })
}

fn are_sound(chances: &[Chance]) -> bool {
    let programs: BTreeSet<ProgramId> = chances.iter().map(|chance| chance.program).collect();
    let shares = chances.iter().all(|chance| (0.0..=1.0).contains(&chance.probability));
    shares
        && programs.len() == chances.len()
        && chances.windows(2).all(|pair| pair[0].probability >= pair[1].probability)
}

/// Equal within the precision of the written numbers.
fn are_near(one: &[Chance], other: &[Chance]) -> bool {
    let near = |a: &Chance| {
        other.iter().any(|b| a.program == b.program && (a.probability - b.probability).abs() < 1e-9)
    };
    one.len() == other.len() && one.iter().all(near)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn chances_are_always_probabilities(events in events(), horizon_s in prop_oneof![0.0..1e6_f64, Just(f64::NAN), Just(-1.0)]) {
        for mut predictor in all() {
            for happened in &events {
                predictor.observe(happened);
                let chances = predictor.chances(happened.at_s, horizon_s);
                prop_assert!(are_sound(&chances), "{} {happened:?}: {chances:?}", predictor.name());
            }
            for bid in predictor.bids(1.8e9).into_iter().flatten() {
                prop_assert!(bid.lnprob < 0.0 && bid.lnprob.is_finite(), "{} {bid:?}", predictor.name());
            }
        }
    }

    #[test]
    fn a_state_predicts_the_same_and_a_damaged_one_is_repaired_or_refused(events in events(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut eke = Eke::default();
        events.iter().for_each(|happened| eke.observe(happened));
        let stop = |user, program| UserEvent { at_s: 1.8e9, user, event: Event::Stop(ProgramId(program)) };
        (1..4).flat_map(|user| (0..10).map(move |program| stop(user, program))).for_each(|stop| eke.observe(&stop));
        let state = eke.to_state().unwrap();
        let mut again = Eke::from_state(&state).unwrap();
        prop_assert!(are_near(&eke.chances(1.8e9, 600.0), &again.chances(1.8e9, 600.0)));
        let mut broken = state;
        let at = at.index(broken.len());
        broken[at] = byte;
        if let Ok(mut repaired) = Eke::from_state(&broken) {
            repaired.observe(&UserEvent { at_s: 1.8e9 + 1.0, user: 2, event: Event::Start(ProgramId(3)) });
            prop_assert!(are_sound(&repaired.chances(1.8e9, 600.0)));
        }
    }

    #[test]
    fn any_bytes_are_a_state_or_an_error(bytes: Vec<u8>) {
        prop_assert!(Eke::from_state(&bytes).is_err());
    }
}

#[test]
fn hostile_numbers_in_a_state_are_repaired() {
    let mut eke = Eke::default();
    for at in 0..200_u32 {
        let program = ProgramId(u64::from(at % 7));
        eke.observe(&UserEvent { at_s: f64::from(at) * 50.0, user: 1, event: Event::Start(program) });
        eke.observe(&UserEvent { at_s: f64::from(at) * 50.0 + 20.0, user: 1, event: Event::Stop(program) });
    }
    let state: serde_json::Value = serde_json::from_slice(&eke.to_state().unwrap()).unwrap();
    for number in [-1.0, 0.0, 1e308] {
        let mut hostile = state.clone();
        set_all(&mut hostile["eke"], number);
        // A whole number in place of a fraction is refused; accepted values must be sound.
        if let Ok(mut repaired) = Eke::from_state(hostile.to_string().as_bytes()) {
            repaired.observe(&UserEvent { at_s: 1e4, user: 1, event: Event::Start(ProgramId(1)) });
            assert!(are_sound(&repaired.chances(1e4, 600.0)), "{number}");
        }
    }
    assert!(Eke::from_state(br#"{"version":3,"eke":{}}"#).unwrap_err().to_string().contains("form 3"));
}

/// Sets all numbers with a fraction, such as counts, weights and times.
fn set_all(value: &mut serde_json::Value, number: f64) {
    match value {
        serde_json::Value::Number(old) if old.is_f64() => *value = number.into(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| set_all(value, number)),
        serde_json::Value::Object(values) => values.values_mut().for_each(|value| set_all(value, number)),
        _ => {}
    }
}

#[test]
fn memory_is_bounded_and_the_longest_unused_are_forgotten() {
    let mut eke = Eke::default();
    for at in 0..2500_u64 {
        let (user, program) = ((at / 200) as u32, ProgramId(at));
        let at_s = at as f64 * 40.0;
        for event in [Event::Start(program), Event::Stop(program)] {
            eke.observe(&UserEvent { at_s, user, event });
        }
    }
    let known = eke.chances(1e5, 600.0);
    assert!(known.len() <= eke::PROGRAMS && known.len() > eke::PROGRAMS / 2);
    assert!(known.iter().all(|chance| chance.program.0 > 400), "the first are forgotten");
    let bytes = eke.to_state().unwrap().len();
    assert!(bytes < 4 << 20, "{bytes} bytes");
    eke.forget(ProgramId(2499));
    assert!(eke.chances(1e5, 600.0).iter().all(|chance| chance.program != ProgramId(2499)));
}

#[test]
fn eke_distinguishes_users_and_knows_who_is_logged_in() {
    let mut eke = Eke::default();
    let (a, b) = (ProgramId(1), ProgramId(2));
    for day in 0..20 {
        for (user, program, hour) in [(1, a, 9.0), (2, b, 10.0)] {
            let at_s = f64::from(day) * 86_400.0 + hour * 3600.0;
            for (after_s, event) in
                [(0.0, Event::Session), (30.0, Event::Start(program)), (900.0, Event::Stop(program))]
            {
                eke.observe(&UserEvent { at_s: at_s + after_s, user, event });
            }
        }
    }
    for (user, program) in [(1, a), (2, b)] {
        let at_s = 20.0 * 86_400.0 + 43_000.0;
        eke.observe(&UserEvent { at_s, user, event: Event::Session });
        let chances = eke.chances(at_s, 60.0);
        assert!(chances[0].program == program && chances[0].probability > 0.6, "{user}: {chances:?}");
        assert!(chances[1].probability < 0.1, "{user}: {chances:?}");
    }
}

#[test]
fn running_programs_do_not_start() {
    for mut predictor in all() {
        for at in 0..40_u32 {
            let program = ProgramId(u64::from(at % 3));
            let at_s = f64::from(at) * 100.0;
            predictor.observe(&UserEvent { at_s, user: 1, event: Event::Start(program) });
            predictor.observe(&UserEvent { at_s: at_s + 60.0, user: 1, event: Event::Stop(program) });
        }
        predictor.observe(&UserEvent { at_s: 4005.0, user: 1, event: Event::Start(ProgramId(2)) });
        let chances = predictor.chances(4100.0, 60.0);
        assert!(chances.iter().all(|chance| chance.program != ProgramId(2)), "{}", predictor.name());
        assert!(chances.iter().any(|chance| chance.program == ProgramId(0)), "{}", predictor.name());
    }
}

#[test]
fn preload_learns_ten_seconds_after_its_scan_and_bids_for_unused_maps() {
    let mut preload = Preload::new(Variant::Repaired, maps());
    let (a, b) = (ProgramId(0), ProgramId(1));
    // a runs from 5 to 305, b from 105 to 205, three times, so that each starts while the other is known.
    for round in 0..3 {
        let from = f64::from(round) * 400.0;
        for (after_s, event) in [
            (5.0, Event::Start(a)),
            (105.0, Event::Start(b)),
            (205.0, Event::Stop(b)),
            (305.0, Event::Stop(a)),
        ] {
            preload.observe(&UserEvent { at_s: from + after_s, user: 1, event });
        }
    }
    preload.observe(&UserEvent { at_s: 1205.0, user: 1, event: Event::Start(a) });
    let probability = |preload: &mut Preload, now_s: f64| {
        preload.chances(now_s, 0.0).first().map(|chance| (chance.program, chance.probability))
    };
    // The scan at 1220 sees a; the model has learned it at 1230, before the prediction at 1240.
    assert_eq!(probability(&mut preload, 1220.0).map(|(program, _)| program), Some(b));
    let (before, after) =
        (probability(&mut preload, 1229.0).unwrap().1, probability(&mut preload, 1240.0).unwrap().1);
    assert_ne!(before, after);
    // The shared map gets +1 for the running a. Only b's own map is left.
    let bids = preload.bids(1240.0).unwrap();
    let own = maps().of(b).iter().copied().find(|map| maps().users(*map) == [b]).unwrap();
    assert_eq!(bids.iter().map(|bid| bid.map).collect::<Vec<_>>(), [own]);
    assert!((bids[0].lnprob - (1.0 - after).ln()).abs() < 1e-9);
    let Map { span, .. } = maps().all()[own];
    assert_eq!(span.pages(), 401);
}
