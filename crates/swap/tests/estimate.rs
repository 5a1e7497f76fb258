//! Measuring without root, on a fake machine: estimates, and a plan made of them.

mod fake_process;

use eke_linux::Root;
use eke_model::config::Settings;
use eke_model::step::Step;
use eke_model::units::Bytes;
use eke_swap::decide::{Overrides, decide};
use eke_swap::facts::{Facts, ZramFacts};
use eke_swap::measure::{Limits, NoScratch, Scope, measure};

/// A user's machine whose zram module is not loaded.
fn facts() -> Facts {
    Facts {
        ram: Bytes::mib(512),
        available: Bytes::mib(300),
        cpus: 1,
        is_root: false,
        zram: ZramFacts {
            loadable: true,
            configured: ["lzo-rle", "lz4", "zstd"].map(str::to_owned).into(),
            ..ZramFacts::default()
        },
        ..Facts::default()
    }
}

#[test]
fn a_user_gets_a_plan_of_estimates_before_zram_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    fake_process::put(dir.path(), 10, 400);
    let m = measure(&Root::at(dir.path()), &facts(), &Limits::default(), &Scope::default(), &mut NoScratch)
        .unwrap();
    let names: Vec<&str> = m.algorithms.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["lz4", "zstd"]);
    assert!(m.estimated && m.algorithms.iter().all(|a| a.estimated && a.in_zram), "{:#?}", m.algorithms);
    assert!(m.algorithms.iter().all(|a| a.ratio > 2.0 && a.pages == m.algorithms[0].pages));
    assert!(m.algorithms[0].pages <= 400, "repeated pages do not count");
    let missing = |what: &str| m.unmeasured.iter().any(|u| u.what == what && u.why.contains("root"));
    assert!(missing("zram") && missing("lzo-rle"), "{:?}", m.unmeasured);
    let overrides = Overrides { settings: Settings::from_sources(&[]).unwrap().swap, ..Overrides::default() };
    let decision = decide(&facts(), &m, &overrides).unwrap();
    let added = decision.plan.steps.iter().find_map(|s| match &s.step {
        Step::AddZram(spec) => Some((spec.algorithm.clone(), s.reason.text.clone())),
        _ => None,
    });
    let (algorithm, reason) = added.unwrap();
    assert!(["lz4", "zstd"].contains(&algorithm.as_str()));
    assert!(reason.contains("estimated in user space"), "{reason}");
}
