//! Which files the store may not name: those whose names are, or may be, encrypted on their disk, unless the store is, too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::trace::mounts::Mounts;
use eke_prefetch_model::learn::Finished;

/// The launch without such files; `None` if its program is one.
pub(super) fn storable(mut finished: Finished, mounts: &Mounts, store: &Path) -> Option<Finished> {
    if mounts.encrypts(store) == Some(true) {
        return Some(finished);
    }
    let mut known: HashMap<PathBuf, bool> = HashMap::new();
    let mut is_private = |path: &Path| {
        let dir = path.parent().unwrap_or(path);
        if let Some(is_private) = known.get(dir) {
            return *is_private;
        }
        let is_private = mounts.encrypts(dir) != Some(false);
        known.insert(dir.to_owned(), is_private);
        is_private
    };
    let program = &finished.launch.program;
    if is_private(&program.exe) || program.script.as_deref().is_some_and(&mut is_private) {
        return None;
    }
    finished.launch.set.files.retain(|file| !is_private(&file.path));
    finished.cold.retain(|file| !is_private(&file.path));
    Some(finished)
}
