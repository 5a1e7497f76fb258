//! `eke bench replay`.

use std::io::Read;
use std::path::Path;

use eke_prefetch_replay::trace::parse;
use eke_prefetch_replay::{self as replay, Settings, Trace, generate, purdue};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::put;
use eke_present::task::{Counter, Task};

use super::files::{refuse_existing, write};
use crate::args::{Form, Replay, Scenario};
use crate::context::Context;
use crate::documents;
use crate::replay_report;
use crate::show;

/// Traces that are larger are not read: they would not fit into little memory.
const MOST_BYTES: u64 = 512 << 20;

/// The verb.
pub fn run(context: &Context, options: &Replay) -> Outcome {
    refuse_existing(&options.files)?;
    let (name, trace) = trace(options)?;
    let mut settings = Settings::of(&trace);
    if !options.budget.is_empty() {
        settings.budgets_bytes = options.budget.iter().map(|budget| budget.0).collect();
    }
    let counter = Counter::default();
    let task = Task::begin(context.json, "replaying the trace", counter.far());
    let rows = replay::replay_with_progress(&trace, &settings, &mut |done, whole| counter.set(done, whole));
    drop(task);
    let report = replay_report::report(&context.root, &name, &rows, context.command.clone());
    let rows = rows.into_iter().map(row).collect();
    let document = documents::Replay { trace: name, rows };
    context.print(&document, |d| put!("{}", show::replay::replay(d)))?;
    write(context, &report, &options.files)
}

fn trace(options: &Replay) -> Outcome<(String, Trace)> {
    let Replay { scenario, days, seed, .. } = options;
    if let Some(scenario) = scenario {
        let (what, trace) = match scenario {
            Scenario::OneUser => ("one user", generate::one_user(*seed, *days)),
            Scenario::TwoUsers => ("two users in turn", generate::two_users(*seed, *days)),
        };
        return Ok((format!("{what}, {days} days, generated with the seed {seed}"), trace));
    }
    let path = options.trace.as_deref().unwrap_or(Path::new("-"));
    let text = read(path)?;
    let name = path.display().to_string();
    let trace = match options.form {
        Form::Eke => parse(&text).map_err(|e| Failure::new(Status::Usage, format!("{name}: {e}")))?,
        Form::Purdue => purdue::import(&text, 0),
    };
    if trace.starts() == 0 {
        return Err(Failure::new(
            Status::Failed,
            format!("no program starts in {name}: there is nothing to replay"),
        ));
    }
    Ok((name, trace))
}

fn read(path: &Path) -> Outcome<String> {
    let cannot =
        |e: std::io::Error| Failure::new(Status::Failed, format!("cannot read {}: {e}", path.display()));
    let mut text = String::new();
    let mut from: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).map_err(cannot)?),
    };
    let bytes = from.by_ref().take(MOST_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if bytes as u64 > MOST_BYTES {
        return Err(Failure::new(Status::Failed, format!("{} is larger than 512 MiB", path.display())));
    }
    Ok(text)
}

fn row(row: replay::Row) -> documents::Row {
    let replay::Row { variant, params, metric, unit, value } = row;
    documents::Row { variant, params, metric, unit, value }
}
