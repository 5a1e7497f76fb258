//! `eke` without a verb: what this machine is short of, what eke does about it, and what that gains.

use eke_present::exit::{Outcome, Status};
use eke_present::put;
use eke_present::terminal::{columns, folded};

use super::{Context, status};
use crate::show;

/// The verb. It needs neither root nor an agent.
pub fn run(context: &Context) -> Outcome {
    let document = status::document(context)?;
    context.print(&document, |d| put!("{}", folded(&show::overview::text(d), columns(), show::LABEL)))?;
    Ok(Status::Done)
}
