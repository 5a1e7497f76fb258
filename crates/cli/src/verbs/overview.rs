//! `eke` without a verb: what this machine is short of, what eke does about it, what that gained.

use super::{Context, status};
use crate::exit::{Outcome, Status};
use crate::put;
use crate::show;

/// The verb. Useful without root, and no error where no agent runs.
pub fn run(context: &Context) -> Outcome {
    let document = status::document(context)?;
    context.print(&document, |d| put!("{}", show::overview::text(d)))?;
    Ok(Status::Done)
}
