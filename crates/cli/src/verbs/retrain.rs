//! Trains a dictionary anew, as a child of the agent, which reads the outcome in its record.

use eke_apply::{end, state};
use eke_model::applied::Applied;
use eke_present::exit::{Failure, Outcome, Status};
use eke_swap::measure::Scope;
use rustix::process::setpriority_process;

use super::Context;

/// The lowest priority: nobody waits for it.
const NICE: i32 = 19;

/// The verb. `agent`: the agent's process, with which it ends.
pub fn run(context: &Context, agent: &str) -> Outcome {
    let failed = |why: String| Failure::new(Status::Failed, format!("no dictionary is trained: {why}"));
    end::with_parent(&context.root, agent).map_err(failed)?;
    setpriority_process(None, NICE).map_err(|e| failed(format!("cannot take a low priority: {e}")))?;
    let applied: Applied = state::load(&context.root, state::APPLIED).unwrap_or_default();
    let settings = applied.bounds.bind(&context.settings.swap);
    eke_swap::retrain::run(&context.root, &settings, &Scope::default(), eke_client::unix_s())?;
    Ok(Status::Done)
}
