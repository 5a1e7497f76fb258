//! Where a result comes from.

use std::collections::BTreeMap;

use eke_linux::Root;
use serde::{Deserialize, Serialize};

use super::{Report, Row};

/// The commit of what was built outside a repository, and of results that do not name theirs.
pub const UNKNOWN: &str = "unknown";

/// The code, the time, the kernel's command line, and settings. All of it is text for a reader; nothing computes with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// The version of eke.
    pub version: String,
    /// The commit of the source, with `-dirty` if files differed from it; `unknown` outside a repository.
    pub commit: String,
    /// When the experiment started, as HTTP writes it: `Tue, 24 Nov 2026 17:00:00 GMT`.
    pub started: String,
    /// `/proc/cmdline`: it can switch off mitigations, CPUs and memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_command_line: String,
    /// Settings of the kernel, of disks and of eke, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Provenance {
    /// With the command line of the kernel below `root`, empty if it cannot be read.
    pub fn new(version: &str, commit: &str, started: String, root: &Root) -> Self {
        Self {
            version: version.to_owned(),
            commit: commit.to_owned(),
            started,
            kernel_command_line: root.read("proc/cmdline").unwrap_or_default().trim().to_owned(),
            settings: BTreeMap::new(),
        }
    }

    /// Whether what `commit` measured is of this code for certain: two changed trees have the same name.
    pub fn is_of(&self, commit: &str) -> bool {
        is_same_code(&self.commit, commit)
    }
}

/// Whether two builds have the same code for certain.
pub fn is_same_code(commit: &str, other: &str) -> bool {
    commit == other && commit != UNKNOWN && !commit.is_empty() && !commit.ends_with("-dirty")
}

impl Report {
    /// The commit of the program that wrote it.
    pub fn written_by(&self) -> &str {
        self.provenance.as_ref().map(|from| from.commit.as_str()).filter(|c| !c.is_empty()).unwrap_or(UNKNOWN)
    }

    /// The commits that its rows are of, in their order; several if another build continued it.
    pub fn commits(&self) -> Vec<&str> {
        let mut all = Vec::new();
        let of = |row| Row::commits(row, self.written_by());
        for commit in self.rows.iter().flat_map(of) {
            if !all.contains(&commit) {
                all.push(commit);
            }
        }
        all
    }

    /// Its rows, each with its commit: for a report that another program may write.
    pub fn rows_with_commits(self) -> Vec<Row> {
        let own = self.written_by().to_owned();
        let named = |row: Row| Row { commit: row.commits(&own).join(" "), ..row };
        self.rows.into_iter().map(named).collect()
    }

    /// Without the commits of rows that are the report's own.
    pub fn settled(mut self) -> Self {
        let own = self.written_by().to_owned();
        self.rows.iter_mut().filter(|row| row.commit == own).for_each(|row| row.commit.clear());
        self
    }

    /// Names the commit of each row that an earlier result also has, with the same samples: programs of before December 2026 continued a result
    /// without doing so. Returns the number of such rows.
    pub fn attribute(&mut self, earlier: &Self) -> usize {
        let own = self.written_by().to_owned();
        let mut count = 0;
        for row in self.rows.iter_mut().filter(|row| row.commit.is_empty()) {
            let Some(first) = earlier.rows.iter().find(|first| first.is_measurement(row)) else { continue };
            row.commit = first.commits(earlier.written_by()).join(" ");
            if row.commit == own {
                row.commit.clear();
            }
            count += 1;
        }
        count
    }
}

impl Row {
    /// The commits that it is of, in a report that `written_by` wrote.
    fn commits<'a>(&'a self, written_by: &'a str) -> Vec<&'a str> {
        if self.commit.is_empty() { vec![written_by] } else { self.commit.split(' ').collect() }
    }

    /// Whether `other` is the same measurement. A number that was read from JSON and written again may differ in its last digit.
    fn is_measurement(&self, other: &Self) -> bool {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        (&self.variant, &self.params, &self.metric) == (&other.variant, &other.params, &other.metric)
            && self.samples.len() == other.samples.len()
            && self.samples.iter().zip(&other.samples).all(near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, sample: f64) -> Row {
        Row::new(variant, &BTreeMap::new(), "reads", "MB/s", vec![sample])
    }

    fn report(commit: &str, rows: Vec<Row>) -> Report {
        let provenance = Some(Provenance { commit: commit.into(), ..Provenance::default() });
        Report { provenance, rows, ..Report::default() }
    }

    #[test]
    fn only_a_named_tree_without_changes_is_the_same_code() {
        let same = |a: &str, b: &str| is_same_code(a, b);
        assert!(same("454f5e13938a", "454f5e13938a"));
        for (a, b) in [("a", "b"), ("a-dirty", "a-dirty"), (UNKNOWN, UNKNOWN), ("", "")] {
            assert!(!same(a, b), "{a}, {b}");
        }
    }

    #[test]
    fn a_row_keeps_its_commit_in_a_report_of_another() {
        let rows = report("a", vec![row("ext4", 1.0)]).rows_with_commits();
        let continued = report("b", [rows, report("b", vec![row("eke", 2.0)]).rows_with_commits()].concat());
        let settled = continued.settled();
        assert_eq!(settled.commits(), ["a", "b"]);
        assert_eq!(settled.rows[1].commit, "", "the report's own");
        assert_eq!(settled.rows_with_commits()[1].commit, "b");
        assert_eq!(Report { rows: vec![row("eke", 1.0)], ..Report::default() }.commits(), [UNKNOWN]);
    }

    #[test]
    fn rows_that_an_earlier_result_has_are_of_its_commit() {
        let earlier = report("a", vec![row("ext4", 0.1 + 0.2), row("eke", 7.0)]);
        let mut later = report("b", vec![row("ext4", 0.3), row("eke", 7.5), row("btrfs", 1.0)]);
        assert_eq!(later.attribute(&earlier), 1);
        assert_eq!(later.commits(), ["a", "b"]);
        assert_eq!(later.rows.iter().map(|row| row.commit.as_str()).collect::<Vec<_>>(), ["a", "", ""]);
    }
}
