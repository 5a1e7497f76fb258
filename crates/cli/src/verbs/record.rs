//! `eke record`: the memory behaviour of a command, a process or the machine, as one SQLite file.

use std::path::Path;

use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::stop;
use eke_present::task::{Task, expected, unknown};
use eke_record::marks;
use eke_record::output::free_name;
use eke_record::recording::{Ended, Spec, record};
use eke_record::subject::Subject;

use super::Context;
use crate::args::{Record, RecordVerb};

/// The verb; the status is the command's own.
pub fn run(context: &Context, options: Record) -> Outcome {
    if let Some(RecordVerb::Mark { name }) = &options.verb {
        return mark(name);
    }
    let stop = stop::on_signals()?;
    // A recorded command has the terminal to itself: no status line.
    let (what, far) = match options.at_most {
        Some(length) => ("recording", expected(length)),
        None => ("recording until Ctrl-C", unknown()),
    };
    let task = options.command.is_empty().then(|| Task::begin(context.json, what, far));
    let ended = record(&context.root, &spec(context, options), &stop).map_err(failure);
    drop(task);
    let ended = ended?;
    if context.json {
        context.print_json(&ended)?;
    } else {
        eke_present::warn!("{}", summary(&ended));
    }
    Ok(ended.exit_status.map_or(Status::Done, Status::Of))
}

fn mark(name: &str) -> Outcome {
    let socket = std::env::var_os(marks::VARIABLE);
    marks::send(socket.as_deref(), &marks::directories(), name).map_err(failure)?;
    putln!("The step \"{}\" begins.", name.trim());
    Ok(Status::Done)
}

fn spec(context: &Context, options: Record) -> Spec {
    let subject = match options.pid {
        Some(pid) => Subject::Process(pid),
        None if options.system => Subject::System,
        None => Subject::Command { argv: options.command, to_stderr: context.json },
    };
    let output = options.output.unwrap_or_else(|| free_name(Path::new(""), &subject.file_stem(), "sqlite"));
    Spec {
        subject,
        every: options.every,
        at_most: options.at_most,
        output,
        overwrite: options.force,
        sockets: marks::directories(),
    }
}

/// For `record` and `report`.
pub fn failure(error: eke_record::Error) -> Failure {
    use eke_record::Error;
    let status = match &error {
        e if e.start_status().is_some() => e.start_status().map_or(Status::Failed, Status::Of),
        Error::Exists(_) | Error::BadName | Error::Several(_) => Status::Usage,
        Error::Kernel(e) if e.is_permission() => Status::NotPermitted,
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Status::NotPermitted
        }
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
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
