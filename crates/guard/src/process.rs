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
    /// Whether it has a pid namespace of its own: root in a container is whoever makes the container's image.
    pub is_contained: bool,
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
    /// Shared memory and files of tmpfs that it maps and has touched, in RAM. Others may have the same pages.
    pub shared: Bytes,
    /// The most that it can have written to of pages that it shares with forks: one page for each fault since it was forked.
    pub written: Bytes,
    /// `oom_score_adj`. Only root can lower it.
    pub oom_score_adj: i32,
    /// Its group in the unified hierarchy of control groups, without the first `/`; empty for the root group.
    pub control_group: String,
}

/// Subordinate uids begin here (`SUB_UID_MIN` of login.defs(5)): usual distributions give each user 65,536 of them.
const SUBORDINATE: u32 = 100_000;

impl Process {
    /// Whose it is: of a subordinate uid, as in a rootless container, the user whose login it is below. No user leaves the slice that systemd made.
    pub fn owner(&self) -> u32 {
        let of_slice = || {
            let slice = self.control_group.strip_prefix("user.slice/user-")?;
            slice.split_once(".slice")?.0.parse().ok()
        };
        Some(self.user).filter(|user| *user >= SUBORDINATE).and_then(|_| of_slice()).unwrap_or(self.user)
    }

    /// Whether it is the machine's root that started it and chose its name.
    pub fn has_roots_name(&self) -> bool {
        self.is_roots && !self.is_contained
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_subordinate_uid_is_the_user_who_logged_in() {
        let owner = |user, control_group: &str| {
            Process { user, control_group: control_group.into(), ..process(5, "a", 1) }.owner()
        };
        let below = "user.slice/user-1001.slice/user@1001.service/user.slice/libpod-1.scope";
        assert_eq!([owner(100_999, below), owner(1001, below)], [1001; 2]);
        assert_eq!(owner(0, below), 0, "of sudo");
        assert_eq!(owner(1002, below), 1002, "of su");
        assert_eq!(owner(100_999, "machine.slice/user-1001.slice/a.scope"), 100_999);
        assert_eq!(owner(100_999, "user.slice/user-x.slice"), 100_999);
    }

    /// A process of user 1000 with `mib` of memory, in a session of its own.
    pub(crate) fn process(pid: u32, name: &str, mib: u64) -> Process {
        Process {
            id: ProcessId { pid, start_ticks: u64::from(pid) },
            parent: 1,
            group: pid,
            session: 7,
            user: 1000,
            is_roots: false,
            is_contained: false,
            name: name.into(),
            trusted_program: Some(name.into()),
            contained_program: None,
            file: None,
            size: Bytes::mib(mib),
            shared: Bytes(0),
            written: Bytes::mib(mib),
            oom_score_adj: 0,
            control_group: "user.slice/user-1000.slice/session-1.scope".into(),
        }
    }
}
