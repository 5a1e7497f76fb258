//! `eke bench show`.

use std::path::Path;

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::terminal::one_lined;
use eke_results::report::{Report, saved};

use super::files::{finish, refuse_existing};
use crate::args::{Files, Show};
use crate::context::Context;

/// A saved result is a megabyte or two; more is something else.
const LONGEST: u64 = 256 << 20;

/// The verb.
pub fn run(context: &Context, options: &Show) -> Outcome {
    let report = read(&options.file)?;
    let files = Files { output: None, html: options.html.clone(), force: options.force };
    refuse_existing(&files)?;
    finish(context, &report, &files)
}

fn read(path: &Path) -> Outcome<Report> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Status::Failed, format!("cannot show {}: {why}", path.display()))
    };
    let metadata = std::fs::metadata(path).map_err(|e| failed(&e))?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Err(failed(&"it is no file that `eke bench ... --output` wrote"));
    }
    let bytes = std::fs::read(path).map_err(|e| failed(&e))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not text, so not JSON either"))?;
    // It can come from anybody. What is no JSON is an error with a place in the text as it is.
    let cleaned = serde_json::from_str(&text).map(|json| one_lined(json).to_string());
    saved::parse(&cleaned.unwrap_or(text)).map_err(|e| failed(&e))
}
