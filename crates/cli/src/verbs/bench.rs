//! `eke bench ...`.

use super::Context;
use crate::exit::{Failure, Outcome, Status};
use crate::put;

/// The agent's resident set and idle CPU; fails where they are more than was promised.
pub fn agent(context: &Context, seconds: u64) -> Outcome {
    let report = eke_bench::agent::run(&crate::agent::program(), seconds);
    let report = report.map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    context.print(&report, |d| put!("{d}"))?;
    let excesses = eke_bench::agent::excesses(&report);
    for excess in &excesses {
        eprintln!("eke: {excess}");
    }
    Ok(if excesses.is_empty() { Status::Done } else { Status::Failed })
}
