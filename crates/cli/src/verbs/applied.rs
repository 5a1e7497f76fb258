//! What is applied on this machine, for the verbs that apply and undo.

use std::time::SystemTime;

use eke_apply::journal;
use eke_apply::state;
use eke_linux::read;
use eke_model::applied::Applied;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::Far;
use eke_swap::decide;
use serde::{Deserialize, Serialize};

use super::Context;

/// `down` makes this file; the next `up` or boot removes it. While it exists, a restarted service applies nothing.
pub const DOWN_MARK: &str = "run/eke/down";

/// The content of that file.
#[derive(Serialize, Deserialize)]
struct Down {
    /// systemd has stopped the service, so that only somebody's request starts it again.
    service_is_stopped: bool,
}

/// Makes the file.
pub fn mark_down(context: &Context, service_is_stopped: bool) -> eke_linux::error::Result<()> {
    state::save(&context.root, DOWN_MARK, &Down { service_is_stopped })
}

/// Whether a start of the service may be a restart that nobody asked for after `down`.
pub fn stays_down(context: &Context) -> bool {
    let is_stopped = |down: Down| down.service_is_stopped;
    context.root.exists(DOWN_MARK) && !state::load(&context.root, DOWN_MARK).is_some_and(is_stopped)
}

/// True if a whole plan is applied, or the agent runs without one. Leftovers of a killed process do not count.
pub fn is_up(context: &Context) -> Outcome<bool> {
    if state::load::<Applied>(&context.root, state::APPLIED).is_some_and(|applied| applied.plans.is_empty()) {
        return Ok(true);
    }
    let applied = context.root.exists(state::APPLIED);
    Ok(applied && journal::entries(&context.root)?.iter().any(|e| e.intent.owner == decide::REMEDY))
}

/// When `down` was last run since boot; `None` if a plan was applied since, or it was not.
pub fn last_down(context: &Context) -> Option<SystemTime> {
    context.root.path(DOWN_MARK).metadata().and_then(|mark| mark.modified()).ok()
}

/// An error if a plan is applied already.
pub fn refuse_if_up(context: &Context) -> Outcome<()> {
    if is_up(context)? {
        return Err(Failure::new(Status::Failed, "eke is up already")
            .hint("`eke status` shows it, `eke down` undoes everything"));
    }
    Ok(())
}

/// The progress of an undo: bytes that are back in memory, of those in eke's swap areas. Swapping off takes nearly all of its time.
pub fn swapped_back(context: &Context) -> Far {
    let root = context.root.clone();
    let made: Vec<String> =
        journal::entries(&root).unwrap_or_default().into_iter().filter_map(|e| e.made).collect();
    let swapped = move || {
        let areas = read::swaps(&root).unwrap_or_default();
        areas
            .iter()
            .filter(|a| made.iter().any(|m| a.device.as_ref() == Some(m)))
            .map(|a| a.used.0)
            .sum::<u64>()
    };
    let whole = swapped();
    Box::new(move |_| (whole > 0).then(|| (whole.saturating_sub(swapped()), whole)))
}
