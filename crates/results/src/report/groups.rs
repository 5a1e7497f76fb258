//! Groups of comparable rows: those of one metric under the same conditions. And which row is compared with which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use eke_statistics::quantile;

use super::again::first_of;
use super::evidence::{Evidence, evidence};
use super::{Better, Metric, Report, Role, Row, Variant, words};

/// The rows of one metric under one set of conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<'a> {
    /// What was measured.
    pub metric: Metric,
    /// Its unit.
    pub unit: &'a str,
    /// The conditions of this group among the metric's groups: `document A`. Empty if there is only one group.
    pub conditions: String,
    /// The number that varies from row to row within the group.
    pub sweep: Option<Sweep>,
    /// The rows with their variants, in the order of the report's variants, then of the sweep.
    pub members: Vec<Member<'a>>,
    /// The variant that is what eke does without an option.
    pub default: Option<String>,
}

/// A number that varies from row to row: a swap size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The parameter.
    pub key: String,
    /// True if variants have different values, as peers choose their own sizes: then the best of all values is compared.
    pub own: bool,
}

/// A row with the role of its variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// The row.
    pub row: &'a Row,
    /// The role of its variant.
    pub role: Role,
    /// The variant's name, and its distinguishing parameters.
    pub label: String,
}

/// A row compared with its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// `1.4x more`, `the best peer`.
    pub words: String,
    /// True if it is worse.
    pub worse: bool,
    /// Is it more than chance? `None` beside itself.
    pub evidence: Option<Evidence>,
}

impl Group<'_> {
    /// A row's place in the sweep.
    pub fn place(&self, row: &Row) -> Option<f64> {
        row.params.get(&self.sweep.as_ref()?.key)?.as_f64()
    }

    /// The best peer for `row`: the one with the best median under the same conditions.
    pub fn best_peer(&self, row: &Row) -> Option<&Row> {
        let any_place = self.sweep.as_ref().is_none_or(|s| s.own);
        let here = |m: &Member<'_>| any_place || self.place(m.row) == self.place(row);
        self.best_of(|m| m.role == Role::Peer && here(m)).map(|m| m.row)
    }

    /// The members as a table has them: what eke does without an option comes first.
    pub fn in_table(&self) -> Vec<&Member<'_>> {
        let is_default = |m: &&Member<'_>| Some(&m.row.variant) == self.default.as_ref();
        let (mut first, others): (Vec<_>, Vec<_>) = self.members.iter().partition(is_default);
        first.extend(others);
        first
    }

    /// The row of ours that a variation is compared with: the one at the same place in the sweep, or the best.
    pub fn ours(&self, row: &Row) -> Option<&Row> {
        let here = |m: &Member<'_>| is_ours(m) && self.place(m.row) == self.place(row);
        self.best_of(here).or_else(|| self.best_of(is_ours)).map(|m| m.row)
    }

    /// The member with the best median among those that pass `filter` and have samples; the first of equal ones.
    pub fn best_of(&self, filter: impl Fn(&Member<'_>) -> bool) -> Option<&Member<'_>> {
        let members = self.members.iter().filter(|m| filter(m) && !m.row.samples.is_empty());
        members.reduce(|best, m| if self.is_better(m.row, best.row) { m } else { best })
    }

    fn is_better(&self, a: &Row, b: &Row) -> bool {
        match self.metric.better {
            Better::Less => a.median < b.median,
            Better::More => a.median > b.median,
        }
    }

    /// `member` compared with the best peer, a variation with ours. `None` without a reference.
    pub fn beside(&self, member: &Member<'_>) -> Option<Beside> {
        let row = member.row;
        if row.samples.is_empty() {
            return None;
        }
        let is_variation = member.role == Role::Variation;
        let reference = if is_variation { self.ours(row) } else { self.best_peer(row) }?;
        if std::ptr::eq(reference, row) {
            return Some(Beside { words: "the best peer".into(), worse: false, evidence: None });
        }
        let worse = self.is_better(reference, row);
        let mut words = words::ratio(row.median, reference.median);
        if is_variation && words != "the same" {
            words = format!("{words} than {}", reference.variant);
        }
        let evidence = evidence(row, reference, self.comparisons(), self.noise());
        Some(Beside { words, worse, evidence: Some(evidence) })
    }

    /// The comparisons of which the best is picked: each row of ours and each variation with each peer.
    fn comparisons(&self) -> usize {
        let count = |roles: &[Role]| self.members.iter().filter(|m| roles.contains(&m.role)).count();
        count(&[Role::Ours, Role::Variation]) * count(&[Role::Peer]).max(1)
    }

    /// The largest relative difference between an arm and the same arm measured again under the same conditions (A/A), 0 without one.
    pub fn noise(&self) -> f64 {
        let pairs = self.members.iter().filter_map(|again| {
            let name = first_of(&again.row.variant)?;
            let first =
                self.members.iter().find(|m| m.row.variant == name && m.row.params == again.row.params)?;
            let of = |row: &Row| (row.median > 0.0).then_some(row.median);
            Some((of(again.row)? / of(first.row)? - 1.0).abs())
        });
        pairs.fold(0.0, f64::max)
    }
}

/// Whether it is eke. Of an arm that is measured again only the first time counts: the better of two is not what users get.
pub fn is_ours(member: &Member<'_>) -> bool {
    member.role == Role::Ours && first_of(&member.row.variant).is_none()
}

impl Beside {
    /// The comparison as text; for ours with "wins" or "loses".
    pub fn sentence(&self, role: Role) -> String {
        let Some(evidence) = self.evidence.filter(|_| self.words != "the same") else {
            return self.words.clone();
        };
        let outcome = if self.worse { "loses" } else { "wins" };
        let note = match evidence {
            Evidence::Few { overlap: true, .. } => "within the spread".to_owned(),
            Evidence::Interval { low, high, clear: false } => {
                format!("{low:.2} to {high:.2} times, within the noise")
            }
            _ if role != Role::Ours => return self.words.clone(),
            Evidence::Pooled => format!("{outcome}, untested"),
            Evidence::Few { runs: 1, .. } => format!("{outcome}, by one run"),
            Evidence::Few { runs, .. } => format!("{outcome}, by {runs} runs"),
            Evidence::Interval { low, high, .. } => format!("{outcome}, {low:.2} to {high:.2} times"),
        };
        format!("{} ({note})", self.words)
    }
}

/// The variants, including those that only rows name.
pub fn variants(report: &Report) -> Vec<Variant> {
    let mut all = report.variants.clone();
    for row in &report.rows {
        if !all.iter().any(|v| v.name == row.variant) {
            all.push(Variant { name: row.variant.clone(), ..Variant::default() });
        }
    }
    all
}

/// All rows in groups, in the order of the metrics, then of the rows.
pub fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut metrics = report.metrics.clone();
    for row in &report.rows {
        if !metrics.iter().any(|m| m.name == row.metric) {
            metrics.push(Metric { name: row.metric.clone(), ..Metric::default() });
        }
    }
    let variants = variants(report);
    let default = default_variant(report, &variants);
    let groups = metrics.iter().flat_map(|metric| groups_of(report, metric, &variants));
    groups.map(|group| Group { default: default.clone(), ..group }).collect()
}

/// What eke does without an option: the named variant, or the first of ours.
fn default_variant(report: &Report, variants: &[Variant]) -> Option<String> {
    let named = Some(&report.default_variant).filter(|name| !name.is_empty());
    let ours = || variants.iter().find(|v| v.role == Role::Ours).map(|v| &v.name);
    named.or_else(ours).cloned()
}

fn groups_of<'a>(report: &'a Report, metric: &Metric, variants: &[Variant]) -> Vec<Group<'a>> {
    let rows: Vec<&Row> = report.rows.iter().filter(|r| r.metric == metric.name).collect();
    let varying = varying(&rows);
    let sweep = sweep(&rows, &varying);
    let rest = || varying.iter().filter(|key| sweep.as_ref().is_none_or(|s| s.key != **key));
    let (panels, properties): (Vec<&str>, Vec<&str>) = rest().partition(|key| is_condition(&rows, key));
    let mut groups: Vec<(Group<'a>, Vec<Value>)> = Vec::new();
    for row in rows {
        let values: Vec<Value> = panels.iter().map(|key| value(row, key)).collect();
        let member = member(row, variants, &properties);
        match groups.iter_mut().find(|(g, of)| *of == values && g.unit == row.unit) {
            Some((group, _)) => group.members.push(member),
            None => {
                let conditions = panels.iter().zip(&values).map(|(key, v)| words::parameter(key, v));
                let conditions = conditions.collect::<Vec<_>>().join(", ");
                let members = vec![member];
                let (metric, sweep) = (metric.clone(), sweep.clone());
                let group = Group { metric, unit: &row.unit, conditions, sweep, members, default: None };
                groups.push((group, values));
            }
        }
    }
    groups.into_iter().map(|(group, _)| sorted(group, variants)).collect()
}

fn sorted<'a>(mut group: Group<'a>, variants: &[Variant]) -> Group<'a> {
    let order = |m: &Member<'_>| variants.iter().position(|v| v.name == m.row.variant);
    let mut members = std::mem::take(&mut group.members);
    let place = |m: &Member<'_>| group.place(m.row).unwrap_or(f64::NEG_INFINITY);
    members.sort_by(|a, b| order(a).cmp(&order(b)).then(place(a).total_cmp(&place(b))));
    group.members = members;
    group
}

fn member<'a>(row: &'a Row, variants: &[Variant], properties: &[&str]) -> Member<'a> {
    let role = variants.iter().find(|v| v.name == row.variant).map_or(Role::Baseline, |v| v.role);
    let known = properties.iter().filter_map(|key| Some(words::parameter(key, row.params.get(*key)?)));
    let known: Vec<String> = known.collect();
    let label = if known.is_empty() {
        row.variant.clone()
    } else {
        format!("{} ({})", row.variant, known.join(", "))
    };
    Member { row, role, label }
}

fn value(row: &Row, key: &str) -> Value {
    row.params.get(key).cloned().unwrap_or(Value::Null)
}

/// The parameters that differ between rows.
fn varying<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    let keys: BTreeSet<&str> = rows.iter().flat_map(|r| r.params.keys().map(String::as_str)).collect();
    let differs = |key: &&str| rows.iter().any(|r| value(r, key) != value(rows[0], key));
    keys.into_iter().filter(differs).collect()
}

/// True if a variant has several values of the parameter; otherwise it is a property of the variant.
fn is_condition(rows: &[&Row], key: &str) -> bool {
    rows.iter().any(|a| rows.iter().any(|b| a.variant == b.variant && value(a, key) != value(b, key)))
}

/// The numeric parameter with the most values, if variants have different values or if it has three.
fn sweep(rows: &[&Row], varying: &[&str]) -> Option<Sweep> {
    let numbers = |key: &&&str| rows.iter().all(|r| value(r, key).is_null() || value(r, key).is_number());
    let sweeps = varying.iter().filter(numbers).map(|key| {
        let by_variant = places(rows, key);
        let all: BTreeSet<&String> = by_variant.values().flatten().collect();
        let own = by_variant.values().any(|places| places.len() != all.len());
        (all.len(), Sweep { key: (*key).to_owned(), own })
    });
    let sweeps = sweeps.filter(|(count, s)| (s.own && *count > 1) || *count > 2);
    // the first of equal counts
    sweeps.reduce(|best, s| if s.0 > best.0 { s } else { best }).map(|(_, sweep)| sweep)
}

/// The values of a parameter by variant; as text, since JSON numbers have no order.
fn places<'a>(rows: &[&'a Row], key: &str) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut by_variant: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let places = by_variant.entry(&row.variant).or_default();
        places.extend(row.params.get(key).map(Value::to_string));
    }
    by_variant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, params: &[(&str, Value)], samples: &[f64]) -> Row {
        let params = params.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        Row::new(variant, &params, "held", "documents", samples.to_vec())
    }

    fn report(rows: Vec<Row>) -> Report {
        let variant = |name: &str, role| Variant { name: name.into(), role, set_up: String::new() };
        let variants = vec![
            variant("none", Role::Baseline),
            variant("zram-tools", Role::Peer),
            variant("chromeos", Role::Peer),
            variant("eke", Role::Ours),
            variant("eke, no merging", Role::Variation),
        ];
        let metrics = vec![Metric { name: "held".into(), about: String::new(), better: Better::More }];
        Report { variants, metrics, rows, ..Report::default() }
    }

    #[test]
    fn different_sizes_are_a_sweep_and_the_best_of_all_is_the_reference() {
        let at = |n: u64| [("swap_mib", Value::from(n))];
        let report = report(vec![
            row("eke", &at(64), &[6.0, 6.0]),
            row("eke", &at(128), &[9.0, 10.0]),
            row("none", &at(0), &[2.0]),
            row("zram-tools", &at(62), &[5.0, 6.0]),
            row("chromeos", &at(248), &[8.0, 8.0]),
        ]);
        let groups = groups(&report);
        assert_eq!(groups.len(), 1);
        let group = &groups[0];
        assert_eq!(group.sweep, Some(Sweep { key: "swap_mib".into(), own: true }));
        let sentences: Vec<String> =
            group.members.iter().map(|m| group.beside(m).unwrap().sentence(m.role)).collect();
        assert_eq!(
            sentences,
            [
                "4.0x less",
                "1.5x less",
                "the best peer",
                "1.3x less (loses, by 2 runs)",
                "19 % more (wins, by 2 runs)"
            ]
        );
    }

    #[test]
    fn shared_conditions_are_groups_of_their_own() {
        let of = |document: &str| [("document", Value::from(document)), ("pages", 50.into())];
        let report = report(vec![
            row("eke", &of("A"), &[6.0, 8.0]),
            row("zram-tools", &of("A"), &[7.5, 7.9]),
            row("eke", &of("B"), &[6.0]),
            row("eke, no merging", &of("B"), &[3.0]),
        ]);
        let groups = groups(&report);
        assert_eq!(
            groups.iter().map(|g| g.conditions.as_str()).collect::<Vec<_>>(),
            ["document A", "document B"]
        );
        assert!(groups.iter().all(|g| g.sweep.is_none()));
        let ours = &groups[0].members[1];
        assert_eq!(groups[0].beside(ours).unwrap().sentence(Role::Ours), "9 % less (within the spread)");
        let variation = &groups[1].members[1];
        assert_eq!(groups[1].beside(variation).unwrap().sentence(Role::Variation), "2.0x less than eke");
        assert_eq!(groups[1].beside(&groups[1].members[0]), None);
    }

    #[test]
    fn a_win_by_one_run_is_marked() {
        let none = [];
        let report = report(vec![row("eke", &none, &[9.0]), row("zram-tools", &none, &[8.0, 8.0])]);
        let groups = groups(&report);
        let ours = groups[0].members.iter().find(|m| m.role == Role::Ours).unwrap();
        assert_eq!(groups[0].beside(ours).unwrap().sentence(Role::Ours), "12 % more (wins, by one run)");
    }

    /// With the names that experiments give.
    #[test]
    fn an_arm_that_is_measured_again_is_the_noise_floor() {
        let variant = |name: &str, role| Variant { name: name.into(), role, set_up: String::new() };
        for again in ["files, again", "files again"] {
            let rows = [("files", 10.0), (again, 11.0), ("eke", 10.5)];
            let rows = rows.map(|(name, value)| row(name, &[], &[value; 5])).to_vec();
            let variants = vec![
                variant("files", Role::Baseline),
                variant(again, Role::Peer),
                variant("eke", Role::Ours),
            ];
            let report = Report { variants, rows, ..Report::default() };
            let group = &groups(&report)[0];
            assert!((group.noise() - 0.1).abs() < 1e-9, "{again}: {}", group.noise());
            let eke = group.members.iter().find(|m| m.row.variant == "eke").unwrap();
            let sentence = group.beside(eke).unwrap().sentence(Role::Ours);
            assert!(sentence.contains("within the noise"), "{sentence}");
        }
    }

    #[test]
    fn the_better_of_two_equal_arms_is_not_the_result() {
        let mut report = report(vec![row("eke", &[], &[9.0]), row("eke, again", &[], &[12.0])]);
        report.variants.push(Variant { name: "eke, again".into(), role: Role::Ours, ..Variant::default() });
        let groups = groups(&report);
        assert_eq!(groups[0].best_of(is_ours).unwrap().row.variant, "eke");
    }

    #[test]
    fn what_eke_does_without_an_option_is_first_in_a_table() {
        let names = ["none", "zram-tools", "eke", "eke, no merging"];
        let rows = names.map(|name| row(name, &[], &[1.0])).to_vec();
        let mut report = report(rows);
        let table = |report: &Report| {
            let groups = groups(report);
            groups[0].in_table().iter().map(|m| m.row.variant.clone()).collect::<Vec<_>>()
        };
        assert_eq!(table(&report), ["eke", "none", "zram-tools", "eke, no merging"]);
        report.default_variant = "none".into();
        assert_eq!(table(&report), names);
    }

    #[test]
    fn a_property_of_a_variant_is_no_condition() {
        let of = |name: &str| [("algorithm", Value::from(name))];
        let report = report(vec![row("eke", &of("lz4"), &[6.0]), row("zram-tools", &of("lzo"), &[7.5])]);
        let groups = groups(&report);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].members[0].label, "zram-tools (algorithm lzo)");
    }
}
