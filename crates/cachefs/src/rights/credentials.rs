//! What the process of a request may do beyond its user and group.
//!
//! The process waits for the answer, so it can neither end nor execute another program meanwhile, and its number cannot be
//! reused.

use rustix::fs::Statx;
use rustix::thread::CapabilitySet;

use super::processes;

/// Groups and capabilities of a process, and the ids of its user namespace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Credentials {
    user: u32,
    groups: Vec<u32>,
    /// Bits of capabilities.
    effective: u64,
    uids: Vec<Range>,
    gids: Vec<Range>,
}

/// The first id, in this process's namespace, and the count.
type Range = (u32, u32);

impl Credentials {
    /// The credentials of process `pid`, which must belong to user `uid`. `None`: the kernel does not show them.
    pub fn of(pid: u32, uid: u32) -> Option<Self> {
        let read = |what: &str| processes::read(pid, what);
        let found = Self::parse(&read("status")?, &read("uid_map")?, &read("gid_map")?);
        (pid != 0 && found.user == uid).then_some(found)
    }

    /// Parses `status`, `uid_map` and `gid_map` (proc(5), user_namespaces(7)).
    fn parse(status: &str, uids: &str, gids: &str) -> Self {
        let line = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).unwrap_or("").trim();
        Self {
            // The fourth is the file system id. An unreadable line is nobody's.
            user: line("Uid:").split_whitespace().nth(3).and_then(|id| id.parse().ok()).unwrap_or(u32::MAX),
            groups: line("Groups:").split_whitespace().filter_map(|id| id.parse().ok()).collect(),
            effective: u64::from_str_radix(line("CapEff:"), 16).unwrap_or(0),
            uids: ranges(uids),
            gids: ranges(gids),
        }
    }

    /// True if the process has this capability over this inode (`capable_wrt_inode_uidgid` in kernel/capability.c).
    pub fn holds(&self, capability: CapabilitySet, over: &Statx) -> bool {
        let has = |ranges: &[Range], id: u32| {
            ranges.iter().any(|(first, count)| id.checked_sub(*first).is_some_and(|at| at < *count))
        };
        self.effective & capability.bits() == capability.bits()
            && has(&self.uids, over.stx_uid)
            && has(&self.gids, over.stx_gid)
    }

    /// Its supplementary groups.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// True if this is one of its supplementary groups.
    pub fn is_in(&self, group: u32) -> bool {
        self.groups.contains(&group)
    }
}

fn ranges(map: &str) -> Vec<Range> {
    let range = |line: &str| {
        let mut numbers = line.split_whitespace().skip(1).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    map.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tsh\nUid:\t1000\t1000\t1000\t100000\nGid:\t5\t5\t5\t5\nGroups:\t4 24 100 \n\
        CapPrm:\t0000000000000000\nCapEff:\t0000000000000009\n";

    fn inode(uid: u32, gid: u32) -> Statx {
        let mut statx = crate::backing::at::stat(std::fs::File::open("/").unwrap()).unwrap();
        (statx.stx_uid, statx.stx_gid) = (uid, gid);
        statx
    }

    #[test]
    fn a_containers_root_has_its_capabilities_over_the_containers_ids_alone() {
        let map = "         0     100000      65536\n     65536          7          1\n";
        let credentials = Credentials::parse(STATUS, map, map);
        assert_eq!((credentials.user, credentials.is_in(24), credentials.is_in(5)), (100_000, true, false));
        let owner = |uid, gid| credentials.holds(CapabilitySet::FOWNER, &inode(uid, gid));
        assert!(owner(100_000, 165_535) && owner(7, 100_033));
        assert!(!owner(0, 0) && !owner(100_000, 0) && !owner(0, 100_000) && !owner(165_536, 100_000));
        assert!(!credentials.holds(CapabilitySet::SYS_ADMIN, &inode(100_000, 100_000)));
    }

    #[test]
    fn unreadable_credentials_grant_nothing() {
        let credentials = Credentials::parse("", "x\n0 0\n", "");
        assert_eq!(credentials, Credentials { user: u32::MAX, ..Credentials::default() });
        assert_eq!(Credentials::of(0, 0), None);
        let own = rustix::process::geteuid().as_raw();
        assert!(Credentials::of(std::process::id(), own).is_some());
        assert_eq!(Credentials::of(std::process::id(), own + 1), None);
    }
}
