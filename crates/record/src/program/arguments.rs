//! The options, as `eke` passes them: times are checked here again, other values by `eke`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use eke_linux::Root;
use eke_model::span;
use lexopt::prelude::{Long, Short, Value, ValueExt};
use lexopt::{Error, Parser};

/// The help.
pub const USAGE: &str =
    "eke-record records memory behaviour. `eke record` and `eke report` execute it; their help explains the options.

    eke-record record [--json] [--every TIME] [--output FILE] [--force] -- COMMAND...
    eke-record record [--json] [--every TIME] [--output FILE] [--force] [--for TIME] --pid PID | --system
    eke-record mark NAME
    eke-record report [--json] [--html FILE] [--svg DIR] [--csv FILE] [--force] RECORDING";

/// What the program shall do.
pub struct Arguments {
    /// The machine.
    pub root: Root,
    /// Print JSON.
    pub json: bool,
    /// The verb with its options.
    pub verb: Verb,
}

/// The verbs.
pub enum Verb {
    /// Record.
    Record(Record),
    /// Start a step of this name.
    Mark(String),
    /// Show a recording.
    Report(Report),
}

/// `record`.
#[derive(Default)]
pub struct Record {
    /// The time between two samples.
    pub every: Option<Duration>,
    /// The file.
    pub output: Option<PathBuf>,
    /// Replace an existing file.
    pub force: bool,
    /// The process to record.
    pub pid: Option<u32>,
    /// Record the machine alone.
    pub system: bool,
    /// The longest duration.
    pub at_most: Option<Duration>,
    /// The command to record.
    pub command: Vec<OsString>,
}

/// `report`.
#[derive(Default)]
pub struct Report {
    /// The recording.
    pub file: PathBuf,
    /// The page.
    pub html: Option<PathBuf>,
    /// The directory of the plots.
    pub svg: Option<PathBuf>,
    /// The samples.
    pub csv: Option<PathBuf>,
    /// Replace existing files.
    pub force: bool,
}

/// `None` if the user requested the help.
///
/// # Errors
/// An option is unknown, lacks its value or has a wrong one.
pub fn parse(mut parser: Parser) -> Result<Option<Arguments>, Error> {
    let (mut root, mut json) = (Root::host(), false);
    let (mut record, mut report) = (Record::default(), Report::default());
    let mut values = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => json = true,
            // for tests: the directory that stands for /
            Long("root") => root = Root::at(PathBuf::from(parser.value()?)),
            Long("every") => record.every = Some(parser.value()?.parse_with(span::every)?),
            Long("for") => record.at_most = Some(parser.value()?.parse_with(span::length)?),
            Long("output") => record.output = Some(parser.value()?.into()),
            Long("pid") => record.pid = Some(parser.value()?.parse()?),
            Long("system") => record.system = true,
            Long("force") => (record.force, report.force) = (true, true),
            Long("html") => report.html = Some(parser.value()?.into()),
            Long("svg") => report.svg = Some(parser.value()?.into()),
            Long("csv") => report.csv = Some(parser.value()?.into()),
            Short('h') | Long("help") => return Ok(None),
            Value(value) => values.push(value),
            other => return Err(other.unexpected()),
        }
    }
    let verb = verb(record, report, values)?;
    Ok(Some(Arguments { root, json, verb }))
}

fn verb(record: Record, report: Report, values: Vec<OsString>) -> Result<Verb, Error> {
    let mut values = values.into_iter();
    let verb = values.next().unwrap_or_default().string()?;
    let missing = |what: &str| Error::from(format!("{verb} needs {what}"));
    match verb.as_str() {
        "record" => {
            let command: Vec<OsString> = values.collect();
            let subjects = [!command.is_empty(), record.pid.is_some(), record.system];
            match subjects.iter().filter(|named| **named).count() {
                1 => Ok(Verb::Record(Record { command, ..record })),
                _ => Err(missing("one of a command, --pid and --system")),
            }
        }
        "mark" => Ok(Verb::Mark(values.next().ok_or_else(|| missing("a name"))?.string()?)),
        "report" => {
            let file = values.next().ok_or_else(|| missing("a recording"))?.into();
            Ok(Verb::Report(Report { file, ..report }))
        }
        "" => Err("a verb is missing: record, mark or report".into()),
        other => Err(format!("\"{other}\" is not a verb: record, mark or report").into()),
    }
}
