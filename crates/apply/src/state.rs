//! Small files that eke processes leave for each other: the applied plan, the measurement.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// The applied plan ([`eke_model::applied::Applied`]), for the agent and `eke status`; ends with the boot.
pub const APPLIED: &str = "run/eke/applied.json";
/// The state that `eke-prefetch` publishes ([`eke_model::snapshot::PrefetchState`]); ends with the boot.
pub const PREFETCH: &str = "run/eke/prefetch.json";
/// The state that `eke-io` publishes ([`eke_model::snapshot::IoState`]); ends with the boot.
pub const IO: &str = "run/eke/io.json";
/// The last measurement, for the next boot.
pub const MEASURED: &str = "var/lib/eke/measured.json";

/// Writes `value` as JSON, readable by everybody; replaces the file atomically.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn save<T: Serialize>(root: &Root, relative: &str, value: &T) -> Result<()> {
    let path = root.path(relative);
    let io = |e| Error::io("write", &path, e);
    if let Some(dir) = path.parent() {
        sys::of(root).create_dir(dir, 0o755).map_err(io)?;
    }
    let bytes = serde_json::to_vec(value).map_err(|e| io(e.into()))?;
    sys::of(root).replace(&path, &bytes, 0o644).map_err(io)
}

/// Creates the directory at an absolute path below the root, and its parents; an existing one is fine.
///
/// # Errors
/// The kernel's answer.
pub fn make_dir(root: &Root, path: &Path, mode: u32) -> io::Result<()> {
    sys::of(root).create_dir(path, mode)
}

/// Reads a value; `None` if there is none or its format is another eke's.
pub fn load<T: DeserializeOwned>(root: &Root, relative: &str) -> Option<T> {
    serde_json::from_str(&root.read(relative).ok()?).ok()
}

/// Removes the file.
///
/// # Errors
/// The kernel's answer; a missing file is fine.
pub fn forget(root: &Root, relative: &str) -> Result<()> {
    let path = root.path(relative);
    match sys::of(root).remove(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
        _ => Ok(()),
    }
}
