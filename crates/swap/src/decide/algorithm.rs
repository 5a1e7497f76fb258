//! The algorithm: the most memory freed within a latency budget and a CPU budget.

use eke_model::config::SwapSettings;
use eke_model::step::Reason;
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::budgets::Budgets;
use super::{BadOverride, Given};
use crate::measure::measurements::{AlgorithmMeasurement, Measured};

/// Two ratios within this factor count as equal, and the faster algorithm wins: the sample is no more precise than that.
pub(super) const AS_GOOD: f64 = 0.97;

/// A ratio from fewer pages than this is not trusted. With little memory left 512 are sampled, of which a quarter only warms the allocator up.
const ENOUGH_PAGES: u64 = 256;

/// The choice, and a verdict on every row of the measured table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The index of the row in `Measured::algorithms`; `None` if nothing can be chosen.
    pub chosen: Option<usize>,
    /// For each row in order.
    pub verdicts: Vec<AlgorithmVerdict>,
    /// The reason for the choice, or for none.
    pub reason: Reason,
    /// Were there enough pages to trust the ratio?
    pub trusted: bool,
}

/// The verdict on one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum AlgorithmVerdict {
    /// The choice.
    Chosen,
    /// Within the budgets, but frees less, or frees the same and is slower.
    FreesLess,
    /// The 99th percentile of loads is over the budget.
    TooSlowToLoad,
    /// The CPU time at the budget's traffic is over the budget.
    TooMuchCpu {
        /// The share of all CPUs, in percent.
        cpu_percent: f64,
    },
    /// The chosen back end does not offer it.
    NotOffered,
    /// It could not be measured.
    Unmeasured,
    /// The configuration names another one.
    NotRequested,
}

/// Chooses among the rows that `backend` offers.
///
/// # Errors
/// The configuration names an algorithm that the kernel does not offer.
pub(super) fn choose(given: Given<'_>, backend: &Backend) -> Result<Choice, BadOverride> {
    let (measured, settings) = (given.measured, &given.overrides.settings);
    let budgets = Budgets::of(given);
    let rows = &measured.algorithms;
    let mut verdicts: Vec<AlgorithmVerdict> =
        rows.iter().map(|r| verdict(r, offered(given, r, backend), &budgets, settings)).collect();
    let offered: Vec<&AlgorithmMeasurement> = rows.iter().filter(|r| offered(given, r, backend)).collect();
    if !offered.is_empty() && !offered.iter().any(|r| requested(r, settings)) {
        return Err(not_offered(measured, &offered, &settings.algorithm));
    }
    let won = best(rows, &verdicts).or_else(|| fastest(rows, &verdicts));
    let chosen = won.and_then(|i| rows.get(i));
    let reason = match chosen {
        Some(row) => reason(row, &budgets, settings, most(rows, &verdicts)),
        None => none_measured(measured, &offered),
    };
    let trusted = chosen.is_some_and(|r| r.pages >= ENOUGH_PAGES);
    if let Some(verdict) = won.and_then(|i| verdicts.get_mut(i)) {
        *verdict = AlgorithmVerdict::Chosen;
    }
    Ok(Choice { chosen: won, verdicts, reason, trusted })
}

/// A measurement of an earlier process has no dictionary, unless this one trained its own.
fn offered(given: Given<'_>, row: &AlgorithmMeasurement, backend: &Backend) -> bool {
    match backend {
        Backend::Zswap { .. } => row.in_zswap && row.is_as_shipped(),
        _ => row.in_zram && (!row.dictionary || given.measured.dictionary.is_some()),
    }
}

fn requested(row: &AlgorithmMeasurement, settings: &SwapSettings) -> bool {
    settings.algorithm == "auto" || row.name == settings.algorithm
}

fn not_offered(measured: &Measured, offered: &[&AlgorithmMeasurement], name: &str) -> BadOverride {
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

fn verdict(
    row: &AlgorithmMeasurement,
    is_offered: bool,
    budgets: &Budgets,
    settings: &SwapSettings,
) -> AlgorithmVerdict {
    let cpu = budgets.cpu_percent(row);
    match row {
        _ if !is_offered => AlgorithmVerdict::NotOffered,
        r if !is_usable(r) => AlgorithmVerdict::Unmeasured,
        r if !requested(r, settings) => AlgorithmVerdict::NotRequested,
        r if r.load_p99 > budgets.load_p99 => AlgorithmVerdict::TooSlowToLoad,
        _ if cpu > f64::from(budgets.cpu_percent) => AlgorithmVerdict::TooMuchCpu { cpu_percent: cpu },
        _ => AlgorithmVerdict::FreesLess,
    }
}

/// Has it a measurement?
pub(super) fn is_usable(row: &AlgorithmMeasurement) -> bool {
    row.unusable.is_none() && row.ratio > 0.0
}

/// The best ratio within the budgets; 0 if nothing is.
fn most(rows: &[AlgorithmMeasurement], verdicts: &[AlgorithmVerdict]) -> f64 {
    let within = rows.iter().zip(verdicts).filter(|(_, v)| **v == AlgorithmVerdict::FreesLess);
    within.map(|(r, _)| r.ratio).fold(0.0, f64::max)
}

/// The fastest of those within [`AS_GOOD`] of the best ratio.
fn best(rows: &[AlgorithmMeasurement], verdicts: &[AlgorithmVerdict]) -> Option<usize> {
    let enough = most(rows, verdicts) * AS_GOOD;
    let within =
        rows.iter().zip(verdicts).enumerate().filter(|(_, (_, v))| **v == AlgorithmVerdict::FreesLess);
    let as_good = within.filter(|(_, (r, _))| r.ratio >= enough);
    as_good.min_by_key(|(_, (r, _))| cost_ns(r)).map(|(i, _)| i)
}

fn cost_ns(row: &AlgorithmMeasurement) -> u64 {
    row.load_p50.0.saturating_add(row.store_p50.0)
}

/// The row nearest to the budgets, if none is within.
fn fastest(rows: &[AlgorithmMeasurement], verdicts: &[AlgorithmVerdict]) -> Option<usize> {
    let slow = |v: &AlgorithmVerdict| {
        matches!(v, AlgorithmVerdict::TooSlowToLoad | AlgorithmVerdict::TooMuchCpu { .. })
    };
    let candidates = rows.iter().zip(verdicts).enumerate().filter(|(_, (_, v))| slow(v));
    candidates.min_by_key(|(_, (r, _))| cost_ns(r)).map(|(i, _)| i)
}

/// `most` is the best ratio within the budgets; 0 if nothing is.
fn reason(row: &AlgorithmMeasurement, budgets: &Budgets, settings: &SwapSettings, most: f64) -> Reason {
    let cpu = budgets.cpu_percent(row);
    let name = row.label();
    let why = match (settings.algorithm.as_str(), most > 0.0) {
        ("auto", true) if row.ratio < most => format!(
            "{name} is the fastest of those that free nearly the most within the budgets ({budgets}), whose best ratio is {most:.2}"
        ),
        ("auto", true) => format!("{name} frees most within the budgets ({budgets})"),
        ("auto", false) => format!("no algorithm is within the budgets ({budgets}); {name} comes nearest"),
        (_, true) => format!("{name} was requested and is within the budgets ({budgets})"),
        (_, false) => format!("{name} was requested and is over the budgets ({budgets})"),
    };
    let estimated = match (row.estimated, &row.hardware) {
        (true, Some(_)) => ", all estimated in user space on the CPU, which the hardware relieves",
        (true, None) => ", all estimated in user space",
        _ => "",
    };
    let numbers = format!(
        "{:.2} to 1, a load takes {} (p99 {}), {cpu:.0} % CPU{estimated}",
        row.ratio, row.load_p50, row.load_p99
    );
    Reason::new(format!("{why}: {numbers}"))
        .with("ratio", row.ratio)
        .with("load_p50_ns", row.load_p50.0 as f64)
        .with("load_p99_ns", row.load_p99.0 as f64)
        .with("cpu_percent", cpu)
        .with("estimated", f64::from(u8::from(row.estimated)))
}

/// The first failure, of the rows that the back end offers or of the whole measurement.
fn none_measured(measured: &Measured, offered: &[&AlgorithmMeasurement]) -> Reason {
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
    use eke_model::units::{Bytes, Nanos};

    use super::super::Overrides;
    use super::*;
    use crate::facts::Facts;

    /// Times as measured on a desktop; `slower` makes it an old machine.
    fn table(slower: u64) -> Measured {
        let row = |name: &str, ratio: f64, store_us: u64, load_us: u64, p99_us: u64| AlgorithmMeasurement {
            name: name.into(),
            in_zram: true,
            in_zswap: name != "lzo-rle",
            ratio,
            ratio_low: ratio * 0.9,
            pages: 4096,
            store_p50: Nanos::micros(store_us * slower),
            load_p50: Nanos::micros(load_us * slower),
            load_p99: Nanos::micros(p99_us * slower),
            ..AlgorithmMeasurement::default()
        };
        Measured {
            pages: crate::measure::measurements::PageCounts { sampled: 4096, ..Default::default() },
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

    /// The choice on a machine with memory and a fast disk: the automatic budgets are their least and their most.
    fn choose(
        measured: &Measured,
        backend: &Backend,
        cpus: usize,
        settings: &SwapSettings,
    ) -> Result<Choice, BadOverride> {
        let facts = Facts { cpus, ram: Bytes::mib(8192), ..Facts::default() };
        on(&facts, measured, backend, settings)
    }

    fn on(
        facts: &Facts,
        measured: &Measured,
        backend: &Backend,
        settings: &SwapSettings,
    ) -> Result<Choice, BadOverride> {
        let overrides = Overrides { settings: settings.clone(), ..Overrides::default() };
        super::choose(Given { facts, measured, overrides: &overrides }, backend)
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

    /// A page of 16 KiB takes four times as long, and a quarter as many make the same traffic.
    #[test]
    fn the_size_of_a_page_does_not_matter() {
        let chosen = |kib: u64, slower| {
            let facts = Facts { cpus: 4, ram: Bytes::mib(8192), page_bytes: kib << 10, ..Facts::default() };
            let choice = on(&facts, &table(slower), &Backend::Zram, &settings()).unwrap();
            (choice.chosen, choice.verdicts)
        };
        assert_eq!(chosen(4, 4), chosen(16, 16));
        assert_eq!(chosen(4, 4).0, Some(2));
    }

    #[test]
    fn a_tight_load_budget_rules_out_the_strong_one() {
        let tight = SwapSettings { load_p99_us: Some(8), ..settings() };
        assert_eq!(chosen(&table(1), 4, &tight), "lzo-rle");
        let choice = choose(&table(1), &Backend::Zram, 4, &tight).unwrap();
        assert_eq!(
            choice.verdicts,
            [AlgorithmVerdict::Chosen, AlgorithmVerdict::FreesLess, AlgorithmVerdict::TooSlowToLoad]
        );
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
        assert!(
            choice.reason.text.starts_with("no algorithm is within the budgets"),
            "{}",
            choice.reason.text
        );
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
        assert_eq!(choice.verdicts[0], AlgorithmVerdict::NotOffered);
    }

    #[test]
    fn a_dictionary_is_for_the_process_that_trained_it_and_not_for_zswap() {
        let mut measured = table(1);
        let zstd = measured.algorithms[2].clone();
        measured.algorithms.push(AlgorithmMeasurement {
            dictionary: true,
            ratio: zstd.ratio * 1.08,
            in_zswap: false,
            ..zstd
        });
        let chosen = |measured: &Measured| choose(measured, &Backend::Zram, 4, &settings()).unwrap();
        let choice = chosen(&measured);
        assert_eq!((choice.chosen, choice.verdicts[3]), (Some(2), AlgorithmVerdict::NotOffered));
        measured.dictionary = Some(crate::measure::Dictionary::of(b"words").unwrap());
        assert_eq!(chosen(&measured).chosen, Some(3));
        let zswap = Backend::Zswap { area: "/dev/sda2".into() };
        assert_eq!(choose(&measured, &zswap, 4, &settings()).unwrap().chosen, Some(2));
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
