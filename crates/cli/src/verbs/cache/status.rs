//! `eke cache status`.

use std::path::Path;

use eke_client::{Cache, CacheState, caches};
use eke_present::exit::{Outcome, Status};
use eke_present::put;
use eke_present::task::{Task, unknown};

use super::place;
use crate::documents::CacheStatus;
use crate::show;
use crate::verbs::Context;

/// The verb.
pub fn run(context: &Context, path: Option<&Path>) -> Outcome {
    let all = place::all()?;
    let asked = match path {
        None => all,
        Some(path) => vec![place::of(&all, path)?.clone()],
    };
    let task = Task::begin(context.json, "asking the mounts", unknown());
    let document = CacheStatus { caches: caches::each(&asked) };
    drop(task);
    context.print(&document, |d| put!("{}", show::cache::status(d)))?;
    let serves = |c: &Cache| matches!(c.state, CacheState::Serving | CacheState::NotYours);
    Ok(if document.caches.iter().all(serves) { Status::Done } else { Status::Failed })
}
