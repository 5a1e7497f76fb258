//! `eke cache status`, and the caches in what `eke status` shows.

use std::collections::HashMap;
use std::path::Path;

use eke_cache_mounts::status::{Request, Response};
use eke_cache_mounts::{Asked, Mount, SocketDirs, ask_all};
use eke_linux::Root;
use eke_present::exit::{Outcome, Status};
use eke_present::put;
use eke_present::task::{Task, unknown};

use super::{ANSWER_WITHIN, place};
use crate::documents::{Cache, CacheState, CacheStatus};
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
    let document = CacheStatus { caches: each(&asked) };
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
    each(&place::all().unwrap_or_default())
}

/// In the order of `mounts`. Asks the supervisors of this user's mounts in parallel.
fn each(mounts: &[Mount]) -> Vec<Cache> {
    let own = rustix::process::geteuid();
    let (yours, others): (Vec<&Mount>, Vec<&Mount>) =
        mounts.iter().partition(|mount| own.is_root() || own.as_raw() == mount.uid);
    let answers = ask_all(&SocketDirs::host(), &yours, Request::Status, ANSWER_WITHIN);
    let asked = yours.into_iter().zip(answers).map(|(mount, answer)| (mount.id, of(mount, answer)));
    let not_yours = || Some("only its user and root see details".to_owned());
    let hidden = others.into_iter().map(|mount| (mount.id, cache(mount, CacheState::NotYours, not_yours())));
    let mut found: HashMap<u64, Cache> = asked.chain(hidden).collect();
    mounts.iter().filter_map(|mount| found.remove(&mount.id)).collect()
}

fn of(mount: &Mount, answer: Asked) -> Cache {
    match answer {
        Ok(Some(Response::Status(details))) => {
            let found = cache(mount, CacheState::Serving, None);
            Cache { pid: Some(details.pid), worker_pid: details.worker_pid, details: Some(details), ..found }
        }
        Ok(Some(Response::Refused(refusal))) => cache(mount, CacheState::Silent, Some(refusal.what)),
        Ok(Some(Response::Done)) => {
            cache(mount, CacheState::Silent, Some("its supervisor sent an unexpected answer".into()))
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
