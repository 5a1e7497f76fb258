//! Whether another dictionary replaces the one in use: it must be within the budgets, and gain more than the sample's precision. These are the rules by which
//! the algorithm was chosen.

use eke_model::config::SwapSettings;
use eke_model::step::Reason;

use super::algorithm::{AS_GOOD, is_usable};
use super::budgets::Budgets;
use super::{Given, Overrides};
use crate::facts::Facts;
use crate::measure::measurements::{AlgorithmMeasurement, DiskLatency, Measured};

/// Both dictionaries on the same pages, with the algorithm and the level in use.
#[derive(Debug, Clone, Copy)]
pub struct Two<'a> {
    /// The one in use.
    pub old: &'a AlgorithmMeasurement,
    /// The other one.
    pub new: &'a AlgorithmMeasurement,
}

/// The reason to replace it.
///
/// # Errors
/// The reason to keep it, as a sentence without its full stop.
pub fn replace(
    two: Two<'_>,
    facts: &Facts,
    file_read: Option<DiskLatency>,
    settings: &SwapSettings,
) -> Result<Reason, String> {
    let Two { old, new } = two;
    if let Some(row) = [old, new].into_iter().find(|row| !is_usable(row)) {
        return Err(format!(
            "{} could not be measured: {}",
            row.label(),
            row.unusable.as_deref().unwrap_or("no ratio")
        ));
    }
    let measured = Measured { file_read, ..Measured::default() };
    let overrides = Overrides { settings: settings.clone(), ..Overrides::default() };
    let budgets = Budgets::of(Given { facts, measured: &measured, overrides: &overrides });
    let cpu = budgets.cpu_percent(new);
    let ratios = format!(
        "pages of now compress {:.2} to 1 with it, and {:.2} to 1 with the old one",
        new.ratio, old.ratio
    );
    if new.load_p99 > budgets.load_p99 || cpu > f64::from(budgets.cpu_percent) {
        return Err(format!(
            "the new one is over the budgets ({budgets}): 99 of 100 loads take up to {}, and it takes {cpu:.0} % of the CPUs",
            new.load_p99
        ));
    }
    if new.ratio * AS_GOOD <= old.ratio {
        return Err(format!("the new one gains too little: {ratios}"));
    }
    Ok(Reason::new(format!("the dictionary is trained anew: {ratios}"))
        .with("ratio", new.ratio)
        .with("old_ratio", old.ratio)
        .with("load_p99_ns", new.load_p99.0 as f64))
}

#[cfg(test)]
mod tests {
    use eke_model::units::{Bytes, Nanos};

    use super::*;

    fn row(ratio: f64, load_us: u64) -> AlgorithmMeasurement {
        AlgorithmMeasurement {
            name: "zstd".into(),
            dictionary: true,
            ratio,
            store_p50: Nanos::micros(10),
            load_p50: Nanos::micros(5),
            load_p99: Nanos::micros(load_us),
            ..AlgorithmMeasurement::default()
        }
    }

    fn replaced(old: &AlgorithmMeasurement, new: &AlgorithmMeasurement) -> Result<Reason, String> {
        let facts = Facts { cpus: 2, ram: Bytes::mib(4096), ..Facts::default() };
        let settings = eke_model::config::Settings::from_sources(&[]).unwrap().swap;
        replace(Two { old, new }, &facts, None, &settings)
    }

    #[test]
    fn it_must_gain_more_than_chance_within_the_budgets() {
        let old = row(3.0, 10);
        for (ratio, load_us, keeps) in [
            (3.2, 10, None),
            (3.08, 10, Some("gains too little: pages of now compress 3.08 to 1 with it, and 3.00")),
            (2.0, 10, Some("gains too little")),
            (4.0, 251, Some("over the budgets")),
        ] {
            let verdict = replaced(&old, &row(ratio, load_us));
            match keeps {
                None => assert!(verdict.is_ok(), "{verdict:?}"),
                Some(words) => assert!(verdict.as_ref().is_err_and(|why| why.contains(words)), "{verdict:?}"),
            }
        }
        let dear = AlgorithmMeasurement { store_p50: Nanos::micros(100), ..row(4.0, 10) };
        assert!(replaced(&old, &dear).is_err(), "too much CPU");
    }

    #[test]
    fn what_could_not_be_measured_replaces_nothing() {
        let broken = AlgorithmMeasurement { unusable: Some("EINVAL".into()), ..row(4.0, 10) };
        let kept = "zstd (dictionary) could not be measured: EINVAL";
        assert_eq!(replaced(&row(3.0, 10), &broken).unwrap_err(), kept);
        assert_eq!(replaced(&broken, &row(4.0, 10)).unwrap_err(), kept);
    }
}
