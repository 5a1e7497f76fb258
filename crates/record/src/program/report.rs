//! `eke report`: a recording as a page with plots, as SVG, as CSV.

use std::path::PathBuf;

use eke_model::text::one_line;
use eke_present::exit::{Outcome, Status};
use eke_present::table::Table;
use eke_present::task::{Task, unknown};
use eke_present::{document, output, put, putln};
use eke_record::load::Recording;
use eke_record::steps::{Document, Step};
use eke_record::{Error, csv, html, plots};

use crate::arguments::Report;
use crate::failure;

/// The longest part of a command that the terminal shows; the page shows all of it.
const LONGEST_SUBJECT: usize = 100;

/// Writes the files, and prints the steps.
pub fn run(json: bool, options: &Report) -> Outcome {
    let task = Task::begin(json, "reading the recording", unknown());
    let recording = Recording::read(&options.file).map_err(failure)?;
    task.doing("drawing it");
    let written = write(options, &recording).map_err(failure)?;
    drop(task);
    document::print(json, &Document::from(&recording), |document| show(document, &written))?;
    Ok(Status::Done)
}

fn write(options: &Report, recording: &Recording) -> Result<Vec<PathBuf>, Error> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let only_page = options.svg.is_none() && options.csv.is_none();
    if let Some(path) = options.html.clone().or(only_page.then(|| options.file.with_extension("html"))) {
        files.push((path, html::page(recording)));
    }
    if let Some(path) = &options.csv {
        files.push((path.clone(), csv::csv(recording)));
    }
    if let Some(directory) = &options.svg {
        output::directory(directory)?;
        files.extend(plots::files(recording).into_iter().map(|(name, svg)| (directory.join(name), svg)));
    }
    for (path, text) in &files {
        output::write(path, text, options.force)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn show(document: &Document, written: &[PathBuf]) {
    let subject = document.notes.get("subject").map_or("a recording", String::as_str);
    let subject: String = plain(subject).chars().take(LONGEST_SUBJECT).collect();
    putln!("{subject}: {:.1} s, {} samples", document.seconds, document.samples);
    if !document.complete {
        putln!("The recorder was killed or is still running: the last second may be missing.");
    }
    putln!("");
    let mut table =
        Table::new(&["step", "lasted", "available", "swapped", "pool", "page cache", "in", "out", "faults"]);
    for step in &document.steps {
        table.row(cells(step));
    }
    put!("{table}");
    putln!("");
    for path in written {
        putln!("Written: {}", plain(&path.display().to_string()));
    }
}

fn cells(step: &Step) -> [String; 9] {
    let shown = |bytes: Option<eke_model::units::Bytes>| bytes.map_or("-".into(), |b| b.to_string());
    [
        plain(&step.name),
        format!("{:.1} s", step.to_s - step.from_s),
        shown(step.end.available),
        shown(step.end.swapped),
        shown(step.end.pool),
        shown(step.end.file_cache),
        step.pages_in.to_string(),
        step.pages_out.to_string(),
        step.major_faults.to_string(),
    ]
}

/// Escapes control characters: a recording can come from anybody.
fn plain(text: &str) -> String {
    one_line(text).into_owned()
}
