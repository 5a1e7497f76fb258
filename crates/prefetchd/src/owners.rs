//! Reads whose the subordinate users of this machine are.

use eke_linux::Root;
use eke_prefetch_model::learn::Owners;

/// By the files of this moment.
pub(crate) fn owners(root: &Root) -> Owners {
    let text = |path: &str| root.read(path).unwrap_or_default();
    Owners::new(&text("etc/subuid"), &text("etc/passwd"))
}
