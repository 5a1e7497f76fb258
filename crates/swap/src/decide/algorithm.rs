//! The algorithm: the most memory freed within a budget for the way back and a budget of CPU.

use eke_model::config::SwapSettings;
use eke_model::step::Reason;
use eke_model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::BadOverride;
use super::backend::Backend;
use crate::measure::figures::{AlgorithmFigures, Measured};

/// Within this factor two ratios count as equal, and the faster one wins: the sample is not more exact than that.
const AS_GOOD: f64 = 0.97;

/// Figures that stand on fewer pages than this say little about a machine. On one with little memory left 512 are sampled,
/// of which a quarter only warms the allocator up.
const ENOUGH_PAGES: u64 = 256;

/// The choice, and a verdict on every row of the measured table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The row of `Measured::algorithms`; `None` if nothing can be chosen.
    pub chosen: Option<usize>,
    /// For each row in order.
    pub verdicts: Vec<Verdict>,
    /// Why the chosen one, or why none.
    pub reason: Reason,
    /// Were there enough pages to believe the ratio?
    pub trusted: bool,
}

/// What is to be said of one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The one.
    Chosen,
    /// Within the budgets, but frees less, or no more and is slower.
    FreesLess,
    /// 99 of 100 pages do not come back in time.
    TooSlowToLoad,
    /// At the stated traffic it takes this share of all CPUs.
    TooMuchCpu {
        /// In percent.
        cpu_percent: f64,
    },
    /// Not offered by the chosen back end.
    NotThere,
    /// It has no figures.
    Unmeasured,
    /// The configuration names another one.
    NotWanted,
}

/// Chooses among the rows that `backend` offers.
///
/// # Errors
/// The configuration names an algorithm that is not there.
pub fn choose(
    measured: &Measured,
    backend: &Backend,
    cpus: usize,
    settings: &SwapSettings,
) -> Result<Choice, BadOverride> {
    let rows = &measured.algorithms;
    let mut verdicts: Vec<Verdict> = rows.iter().map(|r| verdict(r, backend, cpus, settings)).collect();
    let offered: Vec<&AlgorithmFigures> = rows.iter().filter(|r| offered(r, backend)).collect();
    if !offered.is_empty() && !offered.iter().any(|r| wanted(r, settings)) {
        return Err(not_offered(measured, &offered, &settings.algorithm));
    }
    let won = best(rows, &verdicts).or_else(|| fastest(rows, &verdicts));
    let chosen = won.and_then(|i| rows.get(i));
    let reason = match chosen {
        Some(row) => reason(row, &Budgets { cpus, settings }, most(rows, &verdicts)),
        None => none_measured(measured, &offered),
    };
    let trusted = chosen.is_some_and(|r| r.pages >= ENOUGH_PAGES);
    if let Some(verdict) = won.and_then(|i| verdicts.get_mut(i)) {
        *verdict = Verdict::Chosen;
    }
    Ok(Choice { chosen: won, verdicts, reason, trusted })
}

fn offered(row: &AlgorithmFigures, backend: &Backend) -> bool {
    match backend {
        Backend::Zswap { .. } => row.in_zswap && row.params.is_none(),
        _ => row.in_zram,
    }
}

fn wanted(row: &AlgorithmFigures, settings: &SwapSettings) -> bool {
    settings.algorithm == "auto" || row.name == settings.algorithm
}

fn not_offered(measured: &Measured, offered: &[&AlgorithmFigures], name: &str) -> BadOverride {
    if let Some(missing) = measured.unmeasured.iter().find(|m| m.what == name) {
        return BadOverride(format!("algorithm = \"{name}\" could not be measured: {}", missing.why));
    }
    let mut names: Vec<&str> = offered.iter().map(|r| r.name.as_str()).collect();
    names.dedup();
    BadOverride(format!(
        "algorithm = \"{name}\" is not offered by this kernel; it offers: {}",
        names.join(", ")
    ))
}

fn verdict(row: &AlgorithmFigures, backend: &Backend, cpus: usize, settings: &SwapSettings) -> Verdict {
    let cpu = cpu_percent(row, cpus, settings.pages_per_second);
    match row {
        r if !offered(r, backend) => Verdict::NotThere,
        r if !is_usable(r) => Verdict::Unmeasured,
        r if !wanted(r, settings) => Verdict::NotWanted,
        r if r.load_p99 > Nanos::micros(u64::from(settings.load_p99_us)) => Verdict::TooSlowToLoad,
        _ if cpu > f64::from(settings.cpu_percent) => Verdict::TooMuchCpu { cpu_percent: cpu },
        _ => Verdict::FreesLess,
    }
}

/// Has it figures that something can be decided by?
pub(super) fn is_usable(row: &AlgorithmFigures) -> bool {
    row.unusable.is_none() && row.ratio > 0.0
}

/// The share of all CPUs, in percent, that storing and loading `pages_per_second` each takes.
pub fn cpu_percent(row: &AlgorithmFigures, cpus: usize, pages_per_second: u32) -> f64 {
    let busy_s = (row.store_p50.seconds() + row.load_p50.seconds()) * f64::from(pages_per_second);
    100.0 * busy_s / cpus.max(1) as f64
}

/// The best ratio within the budgets; 0 if nothing is.
fn most(rows: &[AlgorithmFigures], verdicts: &[Verdict]) -> f64 {
    let within = rows.iter().zip(verdicts).filter(|(_, v)| **v == Verdict::FreesLess);
    within.map(|(r, _)| r.ratio).fold(0.0, f64::max)
}

/// The fastest of those that free as much as the best one.
fn best(rows: &[AlgorithmFigures], verdicts: &[Verdict]) -> Option<usize> {
    let enough = most(rows, verdicts) * AS_GOOD;
    let within = rows.iter().zip(verdicts).enumerate().filter(|(_, (_, v))| **v == Verdict::FreesLess);
    let as_good = within.filter(|(_, (r, _))| r.ratio >= enough);
    as_good.min_by_key(|(_, (r, _))| cost_ns(r)).map(|(i, _)| i)
}

fn cost_ns(row: &AlgorithmFigures) -> u64 {
    row.load_p50.0.saturating_add(row.store_p50.0)
}

/// Where no row is within the budgets: the one that comes nearest.
fn fastest(rows: &[AlgorithmFigures], verdicts: &[Verdict]) -> Option<usize> {
    let slow = |v: &Verdict| matches!(v, Verdict::TooSlowToLoad | Verdict::TooMuchCpu { .. });
    let candidates = rows.iter().zip(verdicts).enumerate().filter(|(_, (_, v))| slow(v));
    candidates.min_by_key(|(_, (r, _))| cost_ns(r)).map(|(i, _)| i)
}

/// What an algorithm may cost.
struct Budgets<'a> {
    cpus: usize,
    settings: &'a SwapSettings,
}

impl std::fmt::Display for Budgets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = self.settings;
        write!(
            f,
            "a page-in within {} µs and {} % of the CPUs at {} pages/s each way",
            s.load_p99_us, s.cpu_percent, s.pages_per_second
        )
    }
}

/// `most` is the best ratio within the budgets; 0 if nothing is.
fn reason(row: &AlgorithmFigures, budgets: &Budgets<'_>, most: f64) -> Reason {
    let cpu = cpu_percent(row, budgets.cpus, budgets.settings.pages_per_second);
    let name = row.label();
    let why = match (budgets.settings.algorithm.as_str(), most > 0.0) {
        ("auto", true) if row.ratio < most => format!(
            "{name} frees nearly as much as anything within the budgets ({budgets}), where the best holds {most:.2}, and is the fastest that does"
        ),
        ("auto", true) => format!("{name} frees most within the budgets ({budgets})"),
        ("auto", false) => format!("nothing stays within the budgets ({budgets}); {name} comes nearest"),
        (_, true) => format!("{name}, as requested, within the budgets ({budgets})"),
        (_, false) => format!("{name}, as requested, over the budgets ({budgets})"),
    };
    let estimated = if row.estimated { ", all estimated in user space" } else { "" };
    let figures = format!(
        "{:.2} to 1, a page-in takes {} (p99 {}), {cpu:.0} % CPU{estimated}",
        row.ratio, row.load_p50, row.load_p99
    );
    Reason::new(format!("{why}: {figures}"))
        .with("ratio", row.ratio)
        .with("load_p50_ns", row.load_p50.0 as f64)
        .with("load_p99_ns", row.load_p99.0 as f64)
        .with("cpu_percent", cpu)
        .with("estimated", f64::from(u8::from(row.estimated)))
}

/// The first thing that went wrong, of the rows that the back end offers or of the measurement.
fn none_measured(measured: &Measured, offered: &[&AlgorithmFigures]) -> Reason {
    let of_a_row = offered.iter().find_map(|r| Some(format!("{}: {}", r.label(), r.unusable.as_ref()?)));
    let of_all = || {
        let about = |what: &str| measured.unmeasured.iter().find(|m| m.what == what).map(|m| m.why.clone());
        about("compression").or_else(|| about("zram"))
    };
    let why = of_a_row.or_else(of_all).map_or(String::new(), |why| format!(" ({why})"));
    Reason::new(format!("no algorithm could be measured{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times as measured on a desktop; `slower` makes it an old machine.
    fn table(slower: u64) -> Measured {
        let row = |name: &str, ratio: f64, store_us: u64, load_us: u64, p99_us: u64| AlgorithmFigures {
            name: name.into(),
            in_zram: true,
            in_zswap: name != "lzo-rle",
            ratio,
            ratio_low: ratio * 0.9,
            pages: 4096,
            store_p50: Nanos::micros(store_us * slower),
            load_p50: Nanos::micros(load_us * slower),
            load_p99: Nanos::micros(p99_us * slower),
            ..AlgorithmFigures::default()
        };
        Measured {
            pages: crate::measure::figures::PageCounts { sampled: 4096, ..Default::default() },
            algorithms: vec![
                row("lzo-rle", 2.74, 3, 2, 6),
                row("lz4", 2.63, 2, 1, 4),
                row("zstd", 3.37, 12, 6, 13),
            ],
            ..Measured::default()
        }
    }

    fn settings() -> SwapSettings {
        eke_model::config::Settings::from_sources(&[]).unwrap().swap
    }

    fn chosen(measured: &Measured, cpus: usize, settings: &SwapSettings) -> String {
        let choice = choose(measured, &Backend::Zram, cpus, settings).unwrap();
        measured.algorithms[choice.chosen.unwrap()].name.clone()
    }

    #[test]
    fn a_fast_machine_takes_the_strong_one_and_a_slow_one_the_light_one() {
        assert_eq!(chosen(&table(1), 4, &settings()), "zstd");
        assert_eq!(chosen(&table(12), 1, &settings()), "lz4");
    }

    #[test]
    fn a_tight_load_budget_rules_out_the_strong_one() {
        let tight = SwapSettings { load_p99_us: 8, ..settings() };
        assert_eq!(chosen(&table(1), 4, &tight), "lzo-rle");
        let choice = choose(&table(1), &Backend::Zram, 4, &tight).unwrap();
        assert_eq!(choice.verdicts, [Verdict::Chosen, Verdict::FreesLess, Verdict::TooSlowToLoad]);
    }

    #[test]
    fn of_two_that_free_the_same_the_faster_one() {
        let mut measured = table(1);
        measured.algorithms[1].ratio = 3.33;
        assert_eq!(chosen(&measured, 4, &settings()), "lz4");
    }

    #[test]
    fn nothing_within_the_budgets_takes_the_nearest_and_says_so() {
        let choice = choose(&table(1000), &Backend::Zram, 1, &settings()).unwrap();
        assert_eq!(choice.chosen, Some(1));
        assert!(choice.reason.text.starts_with("nothing stays within the budgets"), "{}", choice.reason.text);
    }

    #[test]
    fn a_name_that_the_kernel_lacks_is_refused_with_those_it_has() {
        let brotli = SwapSettings { algorithm: "brotli".into(), ..settings() };
        let error = choose(&table(1), &Backend::Zram, 1, &brotli).unwrap_err().to_string();
        assert_eq!(
            error,
            "algorithm = \"brotli\" is not offered by this kernel; it offers: lzo-rle, lz4, zstd"
        );
    }

    #[test]
    fn zswap_takes_only_what_zswap_has() {
        let zswap = Backend::Zswap { area: "/dev/sda2".into() };
        let choice = choose(&table(1), &zswap, 4, &settings()).unwrap();
        assert_eq!(choice.verdicts[0], Verdict::NotThere);
    }

    proptest::proptest! {
        #[test]
        fn a_slower_machine_never_gets_a_dearer_algorithm(slower in 1u64..200) {
            let cost = |m: &Measured| {
                let choice = choose(m, &Backend::Zram, 2, &settings()).unwrap();
                let row = &table(1).algorithms[choice.chosen.unwrap()];
                row.store_p50.0 + row.load_p50.0
            };
            proptest::prop_assert!(cost(&table(slower + 1)) <= cost(&table(slower)));
        }
    }
}
