//! Where eke's other programs are.

use std::path::PathBuf;

/// The program of this name beside the running one. If there is none, the bare name, which the kernel looks up in PATH.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    beside.filter(|p| p.exists()).unwrap_or_else(|| name.into())
}
