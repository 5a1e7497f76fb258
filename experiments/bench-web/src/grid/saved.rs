//! The file of a grid: a report, from which the next command knows what is finished.

use std::path::Path;

use eke_bench_cache::tiers::grid::Cell;
use eke_bench_core::fault::on;
use eke_bench_core::kept::replace;
use eke_results::report::provenance::refuse_others;
use eke_results::report::{Provenance, Report, Row, saved};

use crate::error::{Error, Result};
use crate::metrics::THROUGHPUT;

/// The parameter of a row that is the cell's number in the whole grid.
pub const CELL: &str = "cell";

/// The cell of a row.
pub fn cell(row: &Row) -> Option<Cell> {
    let number = usize::try_from(row.params.get(CELL)?.as_u64()?).ok()?;
    Cell::all(false).get(number).copied()
}

/// The number of a cell in the whole grid.
pub fn number(cell: &Cell) -> usize {
    Cell::all(false).iter().position(|other| other == cell).unwrap_or(0)
}

/// The cells that have their measurements, in the order of the file.
pub fn finished(rows: &[Row]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == THROUGHPUT) {
        cells.extend(cell(row).filter(|cell| !cells.contains(cell)));
    }
    cells
}

/// The rows of earlier runs of this command, each with its commit; none without a file. Those of other code than `provenance` has are
/// continued only if `any_commit`.
///
/// # Errors
/// The file cannot be read, or is of another command, or of other code.
pub fn read(path: &Path, command: &str, provenance: &Provenance, any_commit: bool) -> Result<Vec<Row>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(on("read", path)(e).into()),
    };
    let other = |what: String| Error::Usage(format!("{} {what}: give another file", path.display()));
    let report = saved::parse(&text).map_err(|e| other(format!("is no grid ({e})")))?;
    if report.command != command {
        return Err(other(format!("is of \"{}\"", report.command)));
    }
    refuse_others(&provenance.commit, report.commits(), any_commit)
        .map_err(|of| other(format!("has {of}. Or")))?;
    Ok(report.rows_with_commits())
}

/// Replaces the file as a whole.
///
/// # Errors
/// The file system refuses; the old file is as before.
pub fn write(path: &Path, report: &Report) -> Result<()> {
    Ok(replace(path, &(serde_json::to_string_pretty(report).unwrap_or_default() + "\n"))?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_finished_cell_is_known_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grid.json");
        let provenance = |commit: &str| Provenance { commit: commit.into(), ..Provenance::default() };
        let read = |command: &str| read(&path, command, &provenance("a"), false);
        assert_eq!(read("eke bench web --grid").unwrap(), []);
        let third = Cell::all(false)[3];
        let params = [(CELL.to_owned(), number(&third).into())].into();
        let row = Row::new("ext4", &params, THROUGHPUT, "MB/s", vec![1.5, 2.5]);
        let command = "eke bench web --grid".to_owned();
        let provenance = Some(provenance("a"));
        let report = Report { command, provenance, rows: vec![row], ..Report::default() };
        write(&path, &report).unwrap();
        write(&path, &report).unwrap();
        let rows = read("eke bench web --grid").unwrap();
        assert_eq!(finished(&rows), [third]);
        assert_eq!(Report { rows, ..report.clone() }.settled(), report);
        let error = read("eke bench web --grid --quick").unwrap_err().to_string();
        assert!(error.contains("is of \"eke bench web --grid\": give another file"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it");
    }

    #[test]
    fn what_other_code_measured_is_continued_only_on_demand_and_keeps_its_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grid.json");
        let provenance = |commit: &str| Provenance { commit: commit.into(), ..Provenance::default() };
        let row = Row::new("ext4", &BTreeMap::new(), THROUGHPUT, "MB/s", vec![1.5]);
        for (of, now, is_continued) in
            [("a", "a", true), ("a", "b", false), ("a-dirty", "a-dirty", false), ("a", "a-dirty", false)]
        {
            let rows = vec![row.clone()];
            write(&path, &Report { provenance: Some(provenance(of)), rows, ..Report::default() }).unwrap();
            let continued = read(&path, "", &provenance(now), false);
            assert_eq!(continued.is_ok(), is_continued, "{of}, then {now}");
            if let Err(error) = continued {
                let error = error.to_string();
                assert!(error.contains(of) && error.contains("--any-commit"), "{error}");
            }
            assert_eq!(read(&path, "", &provenance(now), true).unwrap()[0].commit, of);
        }
        write(&path, &Report { rows: vec![row], ..Report::default() }).unwrap();
        assert!(read(&path, "", &provenance("a"), false).is_err(), "nobody knows of which code it is");
    }

    #[test]
    fn another_file_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap()
            .write_all(b"x")
            .unwrap();
        let error = read(&path, "", &Provenance::default(), true).unwrap_err().to_string();
        assert!(error.contains("is no grid"), "{error}");
    }
}
