//! `eke cache status`.

use std::path::Path;

use eke_apply::boot::cache_mount::{self, MountedBy};
use eke_client::{Cache, CacheState, caches};
use eke_present::exit::{Outcome, Status};
use eke_present::put;
use eke_present::task::{Task, unknown};
use eke_present::terminal::{columns, folded};

use super::place;
use crate::documents::{CacheAtBoot, CacheStatus};
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
    let mut document = CacheStatus { caches: caches::each(&asked), at_boot: at_boot(context) };
    if path.is_some() {
        document.at_boot.retain(|known| asked.iter().any(|mount| mount.place == known.place));
    }
    drop(task);
    context.print(&document, |d| put!("{}", folded(&show::cache::status(d), columns(), 13)))?;
    let serves = |c: &Cache| matches!(c.state, CacheState::Serving | CacheState::NotYours);
    Ok(if document.caches.iter().all(serves) { Status::Done } else { Status::Failed })
}

/// The caches that are mounted at boot. Other users cannot read the journal that has them.
fn at_boot(context: &Context) -> Vec<CacheAtBoot> {
    let enabled = cache_mount::enabled(&context.root).unwrap_or_default();
    let of = |known: cache_mount::EnabledCache| CacheAtBoot {
        place: known.place.into(),
        unit: match known.by {
            MountedBy::Unit(unit) => Some(unit),
            MountedBy::Fstab => None,
        },
        stands: known.stands,
    };
    enabled.into_iter().map(of).collect()
}
