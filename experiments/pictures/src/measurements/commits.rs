//! The list of stored results that name their version and commit.

use std::path::Path;

use anyhow::{Context, Result};
use eke_results::report::{Report, saved};

/// The list of the results in the directory.
///
/// # Errors
/// A result cannot be read.
pub(super) fn list(results: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in
        std::fs::read_dir(results).with_context(|| format!("{} cannot be listed", results.display()))?
    {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".json")));
    }
    names.sort();
    let mut lines = String::new();
    for name in names {
        let text = std::fs::read_to_string(results.join(&name)).with_context(|| name.clone())?;
        let report = saved::parse(&text).with_context(|| name.clone())?;
        lines.extend(line(&name, &report));
    }
    Ok(lines)
}

/// `- [names.json](results/names.json): eke 0.1.0, commit 9056ec20308a, Fri, 27 Nov 2026 06:43:56 GMT`; `None` for an older result.
fn line(name: &str, report: &Report) -> Option<String> {
    let from = report.provenance.as_ref()?;
    let commits: Vec<String> = report.commits().iter().map(|commit| format!("`{commit}`")).collect();
    let of = match &commits[..] {
        [one] => format!("commit {one}"),
        several => format!("commits {}", several.join(" and ")),
    };
    let (version, started) = (&from.version, &from.started);
    Some(format!("- [`{name}`](results/{name}): eke {version}, {of}, {started}\n"))
}

#[cfg(test)]
mod tests {
    use eke_results::report::{Provenance, Row};

    use super::*;

    #[test]
    fn a_result_of_two_commits_names_both_and_an_older_one_is_not_listed() {
        let row = |commit: &str| Row { commit: commit.into(), ..Row::default() };
        let provenance = Provenance {
            version: "0.1.0".into(),
            commit: "b".into(),
            started: "today".into(),
            ..Provenance::default()
        };
        let report = |rows| Report { provenance: Some(provenance.clone()), rows, ..Report::default() };
        let of = |rows| line("web.json", &report(rows)).unwrap();
        assert_eq!(of(vec![row("")]), "- [`web.json`](results/web.json): eke 0.1.0, commit `b`, today\n");
        assert!(of(vec![row("a"), row("")]).contains("commits `a` and `b`, today"));
        assert_eq!(line("old.json", &Report { rows: vec![row("")], ..Report::default() }), None);
    }
}
