//! `eke cache status`, and the caches in what `eke status` shows.

use std::path::Path;

use eke_kernel::Root;
use eke_mount::registry::{Dirs, Mount, ask};
use eke_mount::status::{Request, Response};

use super::{ANSWER_WITHIN, place};
use crate::documents::{Cache, CacheState, CacheStatus};
use crate::exit::{Outcome, Status};
use crate::put;
use crate::show;
use crate::show::task::{Task, unknown};
use crate::verbs::Context;

/// The verb.
pub fn run(context: &Context, path: Option<&Path>) -> Outcome {
    let all = place::all()?;
    let asked = match path {
        None => all,
        Some(path) => vec![place::of(&all, path)?.clone()],
    };
    let task = Task::begin(context.json, "asking the mounts", unknown());
    let document = CacheStatus { caches: asked.iter().map(one).collect() };
    drop(task);
    context.print(&document, |d| put!("{}", show::cache::status(d)))?;
    let serves = |c: &Cache| matches!(c.state, CacheState::Serving | CacheState::NotYours);
    Ok(if document.caches.iter().all(serves) { Status::Done } else { Status::Failed })
}

/// All of this machine; none where the list of mounts cannot be read (an image's root).
pub fn caches(root: &Root) -> Vec<Cache> {
    if !root.is_host() {
        return Vec::new();
    }
    place::all().unwrap_or_default().iter().map(one).collect()
}

fn one(mount: &Mount) -> Cache {
    let own = rustix::process::geteuid();
    if !own.is_root() && own.as_raw() != mount.uid {
        return cache(mount, CacheState::NotYours, Some("details are for its user and root".into()));
    }
    match ask(&Dirs::host(), mount, Request::Status, ANSWER_WITHIN) {
        Ok(Some(Response::Status(details))) => {
            let found = cache(mount, CacheState::Serving, None);
            Cache { pid: Some(details.pid), worker_pid: details.worker_pid, details: Some(details), ..found }
        }
        Ok(Some(Response::Refused(refusal))) => cache(mount, CacheState::Silent, Some(refusal.what)),
        Ok(Some(Response::Done)) => {
            cache(mount, CacheState::Silent, Some("its supervisor does not answer what was asked".into()))
        }
        Ok(None) => cache(mount, CacheState::Dead, Some("no supervisor answers: it was killed".into())),
        Err(e) => cache(mount, CacheState::Silent, Some(e.to_string())),
    }
}

fn cache(mount: &Mount, state: CacheState, why: Option<String>) -> Cache {
    Cache {
        place: mount.place.clone(),
        dir: mount.dir.clone(),
        uid: mount.uid,
        state,
        why,
        pid: None,
        worker_pid: None,
        details: None,
    }
}
