//! `eke record` and `eke report`: execute `eke-record`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use eke_present::exit::Outcome;

use super::Context;
use super::program::{RECORD, execute};
use crate::args::{Record, RecordVerb, Report};

/// `eke record`. It returns only if the program cannot be executed.
pub fn record(context: &Context, options: &Record) -> Outcome {
    let mut command = RECORD.command(context)?;
    if let Some(RecordVerb::Mark { name }) = &options.verb {
        command.args(["mark", "--", name]);
        return execute(command);
    }
    command.arg("record");
    if let Some(every) = options.every {
        command.args(["--every", &ms(every)]);
    }
    file(&mut command, "--output", options.output.as_deref());
    command.args(options.force.then_some("--force"));
    if let Some(pid) = options.pid {
        command.args(["--pid", &pid.to_string()]);
    }
    command.args(options.system.then_some("--system"));
    if let Some(length) = options.at_most {
        command.args(["--for", &ms(length)]);
    }
    command.arg("--").args(&options.command);
    execute(command)
}

/// `eke report`. It returns only if the program cannot be executed.
pub fn report(context: &Context, options: &Report) -> Outcome {
    let mut command = RECORD.command(context)?;
    command.arg("report");
    file(&mut command, "--html", options.html.as_deref());
    file(&mut command, "--svg", options.svg.as_deref());
    file(&mut command, "--csv", options.csv.as_deref());
    command.args(options.force.then_some("--force"));
    command.arg("--").arg(&options.file);
    execute(command)
}

fn file(command: &mut Command, option: &str, path: Option<&Path>) {
    if let Some(path) = path {
        command.args([OsStr::new(option), path.as_os_str()]);
    }
}

fn ms(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
