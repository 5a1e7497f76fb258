//! The charts of results (made up, in `fixtures/`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "functions of tests, which fail by it")]

use eke_plot::chart::{Category, Chart, Curve, Shape};
use eke_results::page::charts::charts;
use eke_results::page::page;
use eke_results::report::groups::groups;
use eke_results::report::{Report, saved};

fn report(text: &str) -> Report {
    saved::parse(text).unwrap()
}

fn drawn(report: &Report) -> Vec<Chart> {
    groups(report).iter().flat_map(charts).collect()
}

fn paging() -> Report {
    report(include_str!("fixtures/paging.json"))
}

fn names(categories: &[Category]) -> Vec<&str> {
    categories.iter().map(|c| c.name.as_str()).collect()
}

#[test]
fn totals_are_bars_and_many_times_are_strips() {
    let report = paging();
    let charts = drawn(&report);
    let titles: Vec<&str> = charts.iter().map(|f| f.title.as_str()).collect();
    assert_eq!(titles, ["total, document A", "total, document B", "page, document A", "page, document B"]);
    let order: Vec<&str> = report.variants.iter().map(|v| v.name.as_str()).collect();
    match (&charts[0].shape, &charts[2].shape) {
        (Shape::Bars(bars), Shape::Strips(strips)) => {
            assert_eq!((names(bars), names(strips)), (order.clone(), order));
            assert_eq!(bars[6].class, "ours");
            assert_eq!(bars[6].samples.len(), 3);
            assert!(strips.iter().all(|s| s.samples.len() == 300));
        }
        other => panic!("{other:?}"),
    }
    assert!(charts.iter().take(2).all(|f| f.logarithmic), "none is far slower");
}

#[test]
fn near_values_are_on_a_scale_from_zero() {
    let mut report = paging();
    report.rows.retain(|r| r.variant != "none");
    assert!(!drawn(&report)[0].logarithmic);
    // zero has no logarithm
    report.rows[0].samples[0] = 0.0;
    report.rows[1].samples[0] = 1e6;
    assert!(!drawn(&report)[0].logarithmic);
}

fn curve(charts: &[Chart]) -> &Curve {
    match &charts[0].shape {
        Shape::Curve(curve) => curve,
        other => panic!("{other:?}"),
    }
}

#[test]
fn capacity_is_a_curve_with_peers_at_their_own_size() {
    let report = report(include_str!("fixtures/capacity.json"));
    let charts = drawn(&report);
    let curve = curve(&charts);
    assert_eq!(curve.over, "swap, MiB");
    let places: Vec<(&str, Vec<f64>)> =
        curve.lines.iter().map(|l| (l.name.as_str(), l.points.iter().map(|p| p.at).collect())).collect();
    assert_eq!(places[4], ("ChromeOS", vec![248.0]));
    assert_eq!(places[5], ("eke", vec![32.0, 64.0, 96.0, 128.0, 160.0, 192.0]));
    assert_eq!(curve.lines[5].points[2].samples, [7.0, 8.0, 7.0]);
    assert!(matches!(charts[1].shape, Shape::Bars(_)), "bytes held do not depend on a size");
}

#[test]
fn variations_are_differences_from_ours() {
    let report = report(include_str!("fixtures/variations.json"));
    let charts = drawn(&report);
    let (main, variations) = (&charts[0], &charts[1]);
    assert!(matches!(&main.shape, Shape::Bars(all) if names(all) == ["none", "Fedora", "eke"]));
    let Shape::Differences(all) = &variations.shape else { panic!("{variations:?}") };
    assert_eq!(
        names(all),
        ["eke", "eke, page-cluster 3", "eke, no proactive reclaim", "eke, same-page merging"]
    );
    assert_eq!(all[0].median, Some(0.0));
    let row = |name: &str| report.rows.iter().find(|r| r.variant == name).unwrap();
    let difference = row("eke, page-cluster 3").median - row("eke").median;
    assert!((all[1].median.unwrap() - difference).abs() < 1e-9);
    assert!(all[1].text.starts_with('+') && all[3].text.starts_with('−'), "{all:?}");
}

#[test]
fn a_page_has_all_of_the_report() {
    for text in [
        include_str!("fixtures/paging.json"),
        include_str!("fixtures/switch.json"),
        include_str!("fixtures/capacity.json"),
        include_str!("fixtures/variations.json"),
    ] {
        let report = report(text);
        let page = page(&report);
        for word in report.notes.iter().chain(report.variants.iter().map(|v| &v.set_up)) {
            assert!(page.contains(&eke_plot::svg::escape(word)), "{word}");
        }
        let samples: usize = report.rows.iter().map(|r| r.samples.len()).sum();
        assert!(page.len() < 60_000 + samples * 120, "{} bytes for {samples} samples", page.len());
        assert!(!page.contains("NaN") && !page.contains("inf"), "{}", report.experiment);
    }
}

#[test]
fn empty_few_and_huge_samples_are_drawn() {
    let mut report = report(include_str!("fixtures/switch.json"));
    report.rows[0].samples = vec![0.0];
    report.rows[1].samples = Vec::new();
    report.rows[2].samples = vec![-5.0, 1e300, 1e-300];
    report.rows[3].samples = vec![f64::NAN, 1.0];
    let page = page(&report);
    for number in page.split(" cx=\"").skip(1).filter_map(|t| t.split('"').next()) {
        let x: f64 = number.parse().unwrap();
        assert!((0.0..=760.0).contains(&x), "{x}");
    }
}
