//! The compressed page caches that are mounted.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use eke_cache_mounts::status::{self, Request, Response};
use eke_cache_mounts::{Asked, Mount, SocketDirs, ask_all, mounts};
use eke_linux::Root;
use serde::Serialize;

/// A supervisor that does not answer within this time is reported as silent.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A compressed page cache that is mounted. A path that is not UTF-8 is an array of its bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// Where it is mounted.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The user who mounted it.
    pub uid: u32,
    /// Whether it serves.
    pub state: CacheState,
    /// Why there are no details; none if there are.
    pub why: Option<String>,
    /// The supervisor's process.
    pub pid: Option<u32>,
    /// The worker's process; none while a new one starts.
    pub worker_pid: Option<u32>,
    /// Settings and statistics.
    pub details: Option<Box<status::Status>>,
}

/// Whether a mount serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Its supervisor answers.
    Serving,
    /// Its supervisor is gone; `eke cache umount` uncovers the backing directory.
    Dead,
    /// Its supervisor runs but does not answer properly.
    Silent,
    /// It is another user's.
    NotYours,
}

/// All of this machine; none where the list of mounts cannot be read (an image's root).
pub fn all(root: &Root) -> Vec<Cache> {
    if !root.is_host() {
        return Vec::new();
    }
    each(&mounts::read().unwrap_or_default())
}

/// These, in the same order. Asks the supervisors of this user's mounts in parallel.
pub fn each(mounts: &[Mount]) -> Vec<Cache> {
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
        Ok(Some(Response::Done | Response::Warming(_) | Response::Warmed(_))) => {
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
