//! `eke bench agent`.

use std::time::Duration;

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::{Task, expected};
use eke_present::{programs, put};

use crate::agent;
use crate::context::Context;

const PROGRAM: &str = "eke-agent";

/// The agent's resident set and idle CPU; fails where they are more than was promised.
pub fn run(context: &Context, seconds: u64) -> Outcome {
    let whole = Duration::from_secs(seconds) * (2 * agent::REPEATS as u32);
    let task = Task::begin(context.json, "watching an agent, idle and asked", expected(whole));
    let report = agent::run(&programs::beside(PROGRAM), seconds);
    drop(task);
    let report = report.map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    context.print(&report, |d| put!("{d}"))?;
    let excesses = agent::excesses(&report);
    for excess in &excesses {
        eke_present::warn!("eke: {excess}");
    }
    Ok(if excesses.is_empty() { Status::Done } else { Status::Failed })
}
