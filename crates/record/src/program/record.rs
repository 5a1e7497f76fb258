//! `eke record`: the memory behaviour of a command, a process or the machine, as one SQLite file.

use std::path::Path;
use std::time::Duration;

use eke_linux::Root;
use eke_model::text::one_line;
use eke_present::document;
use eke_present::exit::{Outcome, Status};
use eke_present::output::free_name;
use eke_present::stop;
use eke_present::task::{Task, expected, unknown};
use eke_present::{putln, warn};
use eke_record::marks::{self, Inbox};
use eke_record::recording::{Ended, Spec, record};
use eke_record::subject::Subject;

use crate::arguments::Record;
use crate::failure;

/// The time between two samples where none is given: of a command.
const EVERY: Duration = Duration::from_millis(100);
/// The same of what may be recorded for days: the file grows with each sample, and the report reads all of them.
const EVERY_OF_LONG: Duration = Duration::from_secs(1);

/// Records; the status is the command's own.
pub fn run(root: &Root, json: bool, options: Record) -> Outcome {
    let stop = stop::on_signals()?;
    // A recorded command has the terminal to itself: no status line.
    let (what, far) = match options.at_most {
        Some(length) => ("recording", expected(length)),
        None => ("recording until Ctrl-C", unknown()),
    };
    let task = options.command.is_empty().then(|| Task::begin(json, what, far));
    // Anybody can make a user's directory in /tmp first.
    let inbox = Inbox::bind(&marks::directories());
    let inbox = inbox.inspect_err(|e| warn!("eke record: steps cannot be named: {e}")).ok();
    let ended = record(root, &spec(json, options), inbox, &stop).map_err(failure);
    drop(task);
    let ended = ended?;
    document::print(json, &ended, |ended| warn!("{}", summary(ended)))?;
    Ok(ended.exit_status.map_or(Status::Done, Status::Of))
}

/// Starts a named step in the running recording.
pub fn mark(name: &str) -> Outcome {
    let socket = std::env::var_os(marks::VARIABLE);
    marks::send(socket.as_deref(), &marks::directories(), name).map_err(failure)?;
    putln!("The step \"{}\" begins.", name.trim());
    Ok(Status::Done)
}

fn spec(json: bool, options: Record) -> Spec {
    let is_command = !options.command.is_empty();
    let subject = match options.pid {
        Some(pid) => Subject::Process(pid),
        None if options.system => Subject::System,
        None => Subject::Command { argv: options.command, to_stderr: json },
    };
    let output = options.output.unwrap_or_else(|| free_name(Path::new(""), &subject.file_stem(), "sqlite"));
    Spec {
        subject,
        every: options.every.unwrap_or(if is_command { EVERY } else { EVERY_OF_LONG }),
        at_most: options.at_most,
        output,
        overwrite: options.force,
    }
}

/// One line after the command, on standard error.
fn summary(e: &Ended) -> String {
    let steps = if e.marks == 0 { String::new() } else { format!(", {} named steps", e.marks) };
    let file = e.file.display().to_string();
    let file = one_line(&file);
    format!(
        "eke record: {} after {:.1} s; {} samples{steps} in {file}; the recording cost {:.1} % of one CPU\n\
         eke record: `eke report {file}` makes a page of it",
        e.end, e.seconds, e.samples, e.cost_percent
    )
}
