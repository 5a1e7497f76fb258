//! Where a result comes from.

use std::collections::{BTreeMap, BTreeSet};

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
}

/// Whether two builds have the same code for certain: two changed trees have the same name.
pub fn is_same_code(commit: &str, other: &str) -> bool {
    commit == other && commit != UNKNOWN && !commit.is_empty() && !commit.ends_with("-dirty")
}

/// What would be continued has measurements of other code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "measurements of commit {commits}, and this program is of {own}. --any-commit continues them, and each row names its commit"
)]
pub struct OtherCommits {
    /// The commits.
    pub commits: String,
    /// This program's.
    pub own: String,
}

/// Refuses to continue measurements of `commits` by a program of `own`, unless `any_commit`.
///
/// # Errors
/// One of them is not for certain of the same code.
pub fn refuse_others<'a>(
    own: &str,
    commits: impl IntoIterator<Item = &'a str>,
    any_commit: bool,
) -> Result<(), OtherCommits> {
    let commits: BTreeSet<&str> = commits.into_iter().collect();
    if any_commit || commits.iter().all(|commit| is_same_code(commit, own)) {
        return Ok(());
    }
    let commits = commits.into_iter().collect::<Vec<_>>().join(" and ");
    Err(OtherCommits { commits, own: own.to_owned() })
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
}

impl Row {
    /// The commits that it is of, in a report that `written_by` wrote.
    fn commits<'a>(&'a self, written_by: &'a str) -> Vec<&'a str> {
        if self.commit.is_empty() { vec![written_by] } else { self.commit.split(' ').collect() }
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
}
