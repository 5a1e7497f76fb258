//! `eke box`: a command in little memory.

use std::ffi::OsString;

use eke_model::units::Bytes;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_sandbox::cgroup_box::{self, BoxReport, BoxSpec, Output};

use super::Context;

/// The verb; the status is the command's own.
pub fn run(context: &Context, memory: Bytes, command: Vec<OsString>) -> Outcome {
    let stop = stop::on_signals()?;
    let mut spec = BoxSpec::new(memory, command);
    if context.json {
        spec.output = Output::ToStderr;
    }
    let report = cgroup_box::run(&context.root, &spec, &stop).map_err(|e| failure(context, &e))?;
    if context.json {
        context.print_json(&report)?;
    } else {
        eke_present::warn!("{}", summary(&report));
    }
    Ok(Status::Of(u8::try_from(report.exit_code()).unwrap_or(1)))
}

fn failure(context: &Context, error: &cgroup_box::Error) -> Failure {
    match error {
        cgroup_box::Error::Spec(_) => Failure::new(Status::Usage, error.to_string()),
        e if e.is_permission() => Failure::new(
            Status::NotPermitted,
            format!("a box needs root or a delegated group of cgroup v2: {error}"),
        )
        // Nothing can be delegated in cgroup v1.
        .hint(match context.root.exists("sys/fs/cgroup/cgroup.controllers") {
            true => "sudo eke box ..., or systemd-run --user --scope -p Delegate=yes eke box ...",
            false => "sudo eke box ...",
        }),
        _ => Failure::new(Status::Failed, error.to_string()),
    }
}

/// One or two lines after the command, on standard error.
fn summary(r: &BoxReport) -> String {
    let end = match (r.over_budget, r.oom_killed, r.exit_code, r.signal) {
        (true, ..) => format!("killed: over {} for more than a second", r.memory),
        (_, true, ..) => format!("killed by the kernel for lack of memory in {}", r.memory),
        (.., Some(code), _) => format!("ended with {code}"),
        (.., Some(signal)) => format!("ended by signal {signal}"),
        _ => "ended".into(),
    };
    let mut text = format!("eke box: {end} after {:.1} s; peak {} of {}", r.seconds, r.peak, r.memory);
    if r.most_swapped.0 > 0 {
        text +=
            &format!("; at most {} in swap, charged {} for it", r.most_swapped, r.charged_for_most_swapped);
    }
    for note in &r.notes {
        text += &format!("\neke box: {note}");
    }
    text
}
