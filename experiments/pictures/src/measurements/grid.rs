//! The table of the grid's cells on the mount (`eke bench web --grid`), beside the model.

use std::path::Path;

use anyhow::{Context, Result};
use eke_results::report::{DataTable, saved};

const FILE: &str = "web-grid.json";
const TITLE: &str = "eke beside ext4 by cell";
/// Columns of the stored table, and their names on the page.
const COLUMNS: [(&str, &str); 9] = [
    ("content", "content"),
    ("working set", "working set"),
    ("requests", "requests"),
    ("files", "files"),
    ("disk", "disk"),
    ("eke", "throughput"),
    ("p99", "99th percentile"),
    ("model", "the model's throughput"),
    ("best", "its best way"),
];

/// All cells, those with the greatest loss first; a loss is bold, a doubtful one has a dagger.
///
/// # Errors
/// The result cannot be read, or has another table.
pub(super) fn cells(results: &Path) -> Result<String> {
    let text = std::fs::read_to_string(results.join(FILE)).context(FILE)?;
    let report = saved::parse(&text).context(FILE)?;
    let table = report.tables.iter().find(|table| table.title.starts_with(TITLE));
    let table = table.with_context(|| format!("{FILE} has no table \"{TITLE}\""))?;
    written(table).context(FILE)
}

fn written(table: &DataTable) -> Result<String> {
    let column = |name: &str| {
        let found = table.columns.iter().position(|column| column == name);
        found.with_context(|| format!("no column \"{name}\""))
    };
    let shown = COLUMNS.iter().map(|(name, _)| column(name)).collect::<Result<Vec<_>>>()?;
    let (eke, loses, doubt) = (column("eke")?, column("loses")?, column("doubt")?);
    let heads: Vec<_> = COLUMNS.iter().map(|(_, head)| *head).collect();
    let mut out = format!("| {} |\n|{}\n", heads.join(" | "), " --- |".repeat(heads.len()));
    for line in &table.lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let is_loss = |at: usize| at == eke && cell(loses) == "slower";
        let mark = |at: usize| if at == eke && !cell(doubt).is_empty() { " †" } else { "" };
        let bold = |at: usize| if is_loss(at) { format!("**{}**", cell(at)) } else { cell(at).to_owned() };
        let shown: Vec<_> = shown.iter().map(|at| bold(*at) + mark(*at)).collect();
        out += &format!("| {} |\n", shown.join(" | "));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_bold_and_another_table_is_an_error() {
        let columns = "content|working set|requests|files|disk|eke|p99|model|p99|best|way|loses|doubt";
        let columns: Vec<String> = columns.split('|').map(Into::into).collect();
        let lines =
            vec!["1.0|4|scan|4K|sd|0.31|1.78|0.95|0.98|1.00|ext4|slower|caches not full".replace('|', "\t")];
        let mut table = DataTable { title: TITLE.into(), columns, lines, ..DataTable::default() };
        let written_of = written(&table).unwrap();
        assert!(
            written_of.ends_with("| 1.0 | 4 | scan | 4K | sd | **0.31** † | 1.78 | 0.95 | 1.00 |\n"),
            "{written_of}"
        );
        table.columns.remove(0);
        assert!(written(&table).is_err());
    }
}
