//! Predictors on generated scenarios. All results are reproducible.

use std::collections::BTreeMap;

use eke_prefetch_model::UserEvent;
use eke_prefetch_replay::measure::run;
use eke_prefetch_replay::predict::{Eke, Naive, Predictor};
use eke_prefetch_replay::{Names, Row, Settings, Trace, generate, replay, trace};

/// The results by variant, order, metric and budget.
fn results(rows: &[Row]) -> BTreeMap<[String; 4], f64> {
    let param = |row: &Row, name: &str| row.params.get(name).cloned().unwrap_or_default();
    rows.iter()
        .map(|row| {
            let key = [row.variant.clone(), param(row, "order"), row.metric.clone(), param(row, "budget")];
            (key, row.value)
        })
        .collect()
}

#[test]
fn with_two_users_eke_hits_more_than_preload_and_naive_where_the_budget_binds() {
    let trace = generate::two_users(1, 7);
    let settings = Settings::of(&trace);
    let results = results(&replay(&trace, &settings));
    for budget in &settings.budgets_bytes {
        let result = |variant: &str, order: &str, metric: &str| {
            let key = [variant, order, metric, &budget.to_string()].map(str::to_owned);
            *results.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
        };
        for metric in ["hit maps", "hit bytes"] {
            for order in ["probability", "per byte"] {
                let eke = result("eke", order, metric);
                assert!(result("eke", order, "bound") > 90.0, "the budget of {budget} bytes does not bind");
                for other in ["thesis", "naive", "recency"] {
                    let hits = result(other, order, metric);
                    assert!(eke > hits, "{budget} {order} {metric}: {eke}, {other} {hits}");
                }
                for preload in ["preload 0.6.4", "preload repaired"] {
                    let hits = result(preload, "own", metric);
                    assert!(eke > hits, "{budget} {order} {metric}: {eke}, {preload} {hits}");
                    // preload's model with eke's choice comes close, and equals eke in bytes for some seeds.
                    let [of_model, of_eke] =
                        [preload, "eke"].map(|variant| result(variant, order, "hit maps"));
                    assert!(of_eke > of_model, "{budget} {order}: {of_eke}, {preload} {of_model}");
                }
            }
            assert!(result("oracle", "own", "hit maps") > result("eke", "probability", "hit maps"));
        }
    }
}

#[test]
fn a_budget_for_everything_is_reported_not_to_bind() {
    let trace = generate::one_user(5, 2);
    let settings = Settings { budgets_bytes: vec![trace.maps.bytes()], ..Settings::of(&trace) };
    for row in replay(&trace, &settings).iter().filter(|row| row.metric == "bound") {
        assert_eq!(row.value, 0.0, "{row:?}");
    }
}

#[test]
fn the_same_trace_gives_the_same_results() {
    let trace = generate::two_users(2, 2);
    let settings = Settings::of(&trace);
    assert_eq!(replay(&trace, &settings), replay(&trace, &settings));
}

#[test]
fn a_trace_survives_its_text_and_keeps_its_results_without_its_names() {
    let trace = generate::two_users(3, 2);
    let plain = trace::parse(&trace::write(&trace, Names::Plain)).unwrap();
    assert_eq!((&plain.names, &plain.maps), (&trace.names, &trace.maps));
    assert_eq!(plain.happened.len(), trace.happened.len());
    let text = trace::write(&trace, Names::Hashed(*b"sixteen secrets."));
    assert!(!text.contains("usr") && !text.contains("firefox"));
    let hashed = trace::parse(&text).unwrap();
    assert_eq!((hashed.starts(), hashed.maps.bytes()), (trace.starts(), trace.maps.bytes()));
}

#[test]
fn a_clock_jump_loses_no_knowledge() {
    let straight = generate::two_users(4, 6);
    let hits = |trace: &Trace, predictor: &mut dyn Predictor| {
        let rows = run(predictor, trace, &Settings { budgets_bytes: Vec::new(), ..Settings::of(trace) });
        rows.iter().find(|row| row.metric == "hit at").map(|row| row.value).unwrap()
    };
    let both = |trace: &Trace| [hits(trace, &mut Naive::default()), hits(trace, &mut Eke::default())];
    let before = both(&straight);
    // Whole weeks keep the days of the week: ten years back, a hundred ahead.
    for weeks in [-520.0, 5200.0] {
        let jump = |(at, happened): (usize, &UserEvent)| {
            let by_s = if at < straight.happened.len() / 2 { 0.0 } else { weeks * 7.0 * 86_400.0 };
            UserEvent { at_s: happened.at_s + by_s, ..*happened }
        };
        let happened = straight.happened.iter().enumerate().map(jump).collect();
        let jumped = Trace { happened, ..straight.clone() };
        let after = both(&jumped);
        assert_eq!(after[0], before[0]);
        assert!((after[1] - before[1]).abs() < 3.0, "{weeks} weeks: {before:?}, {after:?}");
    }
}

#[test]
fn a_trace_of_nonsense_has_results_too() {
    let mut text = eke_prefetch_model::trace_text::header();
    for row in 0..40 {
        text.push_str(&format!("start,{row},1,p{row}\nstart,{row},1,p{row}\nstop,-5,2,q\nsession,1e14,7\n"));
        text.push_str(&format!("map,p{row},f{row},0,4294967296\nmap,p{row},f0,{row},1\n"));
    }
    let trace = trace::parse(&text).unwrap();
    for row in replay(&trace, &Settings { budgets_bytes: vec![0, u64::MAX], ..Settings::of(&trace) }) {
        assert!(row.value.is_finite() && row.value >= 0.0, "{row:?}");
    }
}
