//! The surroundings of eke: OOM daemons, a container.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;

use eke_linux::parse::process_status::{self, ProcessStatus};
use eke_linux::{Root, read};
use eke_model::guard::is_daemon;

/// The bit of a file's mode (inode(7)).
const SET_USER_ID: u32 = 0o4000;

/// Running user-space OOM killers. The kernel cuts names to 15 bytes.
pub(crate) fn oom_daemons(root: &Root) -> Vec<String> {
    let mut found: Vec<String> =
        read::answering(root).into_iter().filter_map(|pid| oom_daemon(root, pid)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn oom_daemon(root: &Root, pid: u32) -> Option<String> {
    let name = root.read(format!("proc/{pid}/comm")).ok()?.trim().to_owned();
    let status = process_status::parse(&root.read(format!("proc/{pid}/status")).ok()?);
    let is_roots = is_roots(root, pid, &status);
    let program = std::fs::read_link(root.path(format!("proc/{pid}/exe"))).unwrap_or_default();
    let program = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // An upgrade has replaced it.
    let program = program.strip_suffix(" (deleted)").unwrap_or(program);
    is_daemon(&name, is_roots, status.effective_user?, Some(program)).then_some(name)
}

/// Did root start it, so that its name is right? Whoever starts a set-user-id program chooses its name.
pub(super) fn is_roots(root: &Root, pid: u32, status: &ProcessStatus) -> bool {
    let exe = root.path(format!("proc/{pid}/exe"));
    let is_set_user_id = || std::fs::metadata(&exe).is_ok_and(|file| file.mode() & SET_USER_ID != 0);
    (status.real_user, status.effective_user) == (Some(0), Some(0)) && !is_set_user_id()
}

/// The Windows Subsystem for Linux: "5.15.167.4-microsoft-standard-WSL2", "4.4.0-19041-Microsoft".
pub(crate) fn is_wsl(root: &Root) -> bool {
    let release = read::kernel_release(root).to_ascii_lowercase();
    release.contains("microsoft") || release.contains("wsl")
}

/// The evidence for a container. If process 2 is the kernel's `kthreadd`, this is a host, also with an image that has a container's files: the process
/// numbers of a container have no kernel threads. Where other users' processes are hidden (`hidepid`, proc(5)), the first namespace of them says so.
pub(crate) fn container(root: &Root) -> Option<String> {
    let is_hidden = || !root.exists("proc/2") && process_numbers(root).is_some_and(|link| link == FIRST);
    if root.read("proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") || is_hidden() {
        return None;
    }
    for file in ["run/systemd/container", "run/.containerenv", ".dockerenv"] {
        if root.exists(file) {
            let kind = root.read(file).unwrap_or_default();
            let word = kind
                .split_whitespace()
                .next()
                .filter(|_| file == "run/systemd/container")
                .unwrap_or_default();
            return Some(format!("/{file} {word}").trim_end().to_owned());
        }
    }
    let environment = root.read("proc/1/environ").unwrap_or_default();
    let variable = environment.split('\0').find(|v| v.starts_with("container="));
    variable.map(|v| format!("/proc/1/environ {v}")).or_else(|| own_process_numbers(root))
}

/// The kernel's first namespace of process numbers has a fixed inode (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST: &str = "pid:[4026531836]";

/// The namespace of process numbers of this process.
fn process_numbers(root: &Root) -> Option<String> {
    let link = std::fs::read_link(root.path("proc/self/ns/pid")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// containerd, CRI-O and Kubernetes leave none of that, as systemd knows (detect_container).
fn own_process_numbers(root: &Root) -> Option<String> {
    process_numbers(root).filter(|link| link != FIRST).map(|link| format!("/proc/self/ns/pid {link}"))
}
