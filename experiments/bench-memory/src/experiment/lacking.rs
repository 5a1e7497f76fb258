//! Notes on missing measurements: a variant that did not get so far must not look as if it was not run. Pure.

use std::collections::BTreeMap;

use eke_results::report::Row;
use eke_results::report::words::parameter;
use eke_results::rows::Params;

/// Names variants with fewer samples than runs, for each metric and condition with one sample per run.
pub(super) fn notes(rows: &[Row], variants: &[&str], runs: usize) -> Vec<String> {
    let mut counts: BTreeMap<(&str, String), BTreeMap<&str, usize>> = BTreeMap::new();
    for row in rows {
        let of = counts.entry((row.metric.as_str(), conditions(&row.params))).or_default();
        *of.entry(row.variant.as_str()).or_default() += row.samples.len();
    }
    let mut notes = Vec::new();
    for ((metric, conditions), of) in counts {
        if of.values().max() != Some(&runs) {
            continue;
        }
        let count = |variant: &&str| of.get(*variant).copied().unwrap_or(0);
        let few = variants.iter().filter(|v| count(v) < runs);
        let few: Vec<String> = few.map(|v| format!("{v} has it in {} of {runs} runs", count(v))).collect();
        if !few.is_empty() {
            notes.push(format!("Some runs lack \"{metric}\"{conditions}: {}.", few.join(", ")));
        }
    }
    notes
}

/// The conditions that all variants share, without the size of a variant's own swap.
fn conditions(params: &Params) -> String {
    let common = params.iter().filter(|(key, _)| *key != crate::capacity::SWAP);
    common.map(|(key, value)| format!(", {}", parameter(key, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_results::rows::params;

    #[test]
    fn variants_that_did_not_get_so_far_are_named() {
        let b = params([("document", "B".into())]);
        let swap = |mib: u64| params([(crate::capacity::SWAP, mib.into())]);
        let rows = [
            Row::new("eke", &b, "total", "s", vec![1.0, 2.0, 3.0]),
            Row::new("Fedora", &b, "total", "s", vec![1.0]),
            Row::new("eke", &Params::new(), "one page", "s", vec![1.0; 98]),
            Row::new("eke", &swap(372), "held", "documents", vec![9.0; 3]),
            Row::new("Fedora", &swap(124), "held", "documents", vec![8.0; 3]),
            Row::new("nothing", &swap(0), "held", "documents", vec![2.0; 3]),
        ];
        assert_eq!(
            notes(&rows, &["nothing", "Fedora", "eke"], 3),
            [
                "Some runs lack \"total\", document B: nothing has it in 0 of 3 runs, Fedora has it in 1 of 3 runs."
            ]
        );
        assert_eq!(notes(&rows[3..], &["nothing", "Fedora", "eke"], 3), Vec::<String>::new());
    }
}
