//! `eke status`: what is applied, what it gains, and what was predicted.

use eke_client::snapshot::snapshot;
use eke_client::{agent, caches};
use eke_linux::Root;
use eke_model::snapshot::Snapshot;
use eke_present::exit::{Outcome, Status};
use eke_present::put;
use eke_present::task::{Task, unknown};
use eke_present::terminal::{columns, folded};
use eke_present::warn;

use super::Context;
use crate::agent as agent_process;
use crate::documents;
use crate::show;

/// The verb.
pub fn run(context: &Context) -> Outcome {
    let document = document(context)?;
    context.print(&document, |d| put!("{}", folded(&show::status::text(d), columns(), show::LABEL)))?;
    if context.root.is_host() && agent_process::is_outdated(&context.root) {
        warn!(
            "eke: the agent is of an older version, its program was replaced: `sudo eke up` starts the new one"
        );
    }
    match (document.snapshot.agent, document.snapshot.agent_silent) {
        (Some(_), _) => Ok(Status::Done),
        (None, Some(why)) => Err(agent::silent(why)),
        (None, None) => Ok(Status::NoAgent),
    }
}

/// The snapshot with the caches, which the agent does not know.
pub fn document(context: &Context) -> Outcome<documents::Status> {
    let _task = Task::begin(context.json, "asking the agent and the mounts", unknown());
    Ok(with_caches(snapshot(&context.root)?, &context.root))
}

/// A snapshot and the caches of this user.
pub fn with_caches(snapshot: Snapshot, root: &Root) -> documents::Status {
    documents::Status { snapshot, caches: caches::all(root) }
}
