//! Processes as data.

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

/// Which file, whatever its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Major and minor number of its file system's device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
}

/// One process of a user program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Which.
    pub id: ProcessId,
    /// Its parent's pid.
    pub parent: u32,
    /// Its process group: a job of a shell.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Its effective user.
    pub user: u32,
    /// Whether root started it and chose its name: its real user is root, too, and its program is not set-user-id.
    pub is_roots: bool,
    /// The kernel's name of it (`comm`), which it can choose itself.
    pub name: String,
    /// File name of its executable if that belongs to root, who alone can replace it.
    pub trusted_program: Option<String>,
    /// The same of a program in a container: root made the container's mounts, and the process is root's or a service's. Who makes
    /// the container's image chooses it, so it counts only for what root lists, and for virtual machines.
    pub contained_program: Option<String>,
    /// The file that it executes; `None` if the kernel does not tell.
    pub file: Option<FileId>,
    /// Its anonymous memory, in RAM and in swap.
    pub size: Bytes,
    /// The most that it can have written to of pages that it shares with forks: one page for each fault since it was forked.
    pub written: Bytes,
    /// `oom_score_adj`. Only root can lower it.
    pub oom_score_adj: i32,
    /// Its group in the unified hierarchy of control groups, without the first `/`; empty for the root group.
    pub control_group: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A process of user 1000 with `mib` of memory, in a session of its own.
    pub(crate) fn process(pid: u32, name: &str, mib: u64) -> Process {
        Process {
            id: ProcessId { pid, start_ticks: u64::from(pid) },
            parent: 1,
            group: pid,
            session: 7,
            user: 1000,
            is_roots: false,
            name: name.into(),
            trusted_program: Some(name.into()),
            contained_program: None,
            file: None,
            size: Bytes::mib(mib),
            written: Bytes::mib(mib),
            oom_score_adj: 0,
            control_group: "user.slice/user-1000.slice/session-1.scope".into(),
        }
    }
}
