//! The files of a result.

use eke_present::exit::{Outcome, Status};
use eke_present::{output, put, putln};
use eke_results::page::page;
use eke_results::report::Report;

use crate::args::Files;
use crate::context::Context;

/// Checks the files before the experiment, so that hours of measurements are not lost at the end.
pub fn refuse_existing(files: &Files) -> Outcome<()> {
    for path in files.output.iter().chain(&files.html) {
        output::may_write(path, files.force)?;
    }
    Ok(())
}

/// Prints the table or the JSON, and writes the files.
pub fn finish(context: &Context, report: &Report, files: &Files) -> Outcome {
    // The table comes first, in case a file cannot be written.
    context.print(report, |r| put!("{r}"))?;
    write(context, report, files)
}

/// Writes the files, if any.
pub fn write(context: &Context, report: &Report, files: &Files) -> Outcome {
    let mut written = Vec::new();
    if let Some(path) = &files.output {
        written.push((path, serde_json::to_string_pretty(report)? + "\n"));
    }
    if let Some(path) = &files.html {
        written.push((path, page(report)));
    }
    for (path, text) in &written {
        output::write(path, text, files.force)?;
    }
    if !context.json && !written.is_empty() {
        putln!("");
        written.iter().for_each(|(path, _)| putln!("Written: {}", path.display()));
    }
    Ok(Status::Done)
}
