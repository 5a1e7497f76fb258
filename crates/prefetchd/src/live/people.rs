//! Which users are people. Pure.

use eke_model::process::is_of_service;
use eke_prefetch_model::learn::Owners;

/// nobody, and what no user may have, in 16 and in 32 bits.
const NOBODY: [u32; 4] = [65_534, 65_535, u32::MAX - 1, u32::MAX];

/// The users of this machine that may be people.
#[derive(Debug, Default)]
pub(super) struct People {
    /// Users of containers are none.
    owners: Owners,
}

impl People {
    /// All users without an owner.
    pub fn new(owners: Owners) -> Self {
        Self { owners }
    }

    /// Root may be a person too, but root's first process does not show a log-in.
    pub fn has(&self, uid: u32) -> bool {
        // Users of a directory (SSSD, AD) have numbers far above those of services.
        !is_of_service(uid) && !NOBODY.contains(&uid) && !self.owners.is_subordinate(uid)
    }

    /// Whose habits a start counts for: a person's, also if a subordinate user of the person starts, or 0: those of root and services.
    pub fn account(&self, uid: u32) -> u32 {
        let account = self.owners.account(uid);
        if self.has(account) { account } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_no_services_and_no_users_of_containers() {
        let subuid = "anna:100000:65536\n# none\nbob:165536\n:x:1\ncarl:4294967000:500\n";
        let people = People::new(Owners::new(subuid, ""));
        for person in [1000, 60_001, 61_183, 65_520, 99_999, 165_536, 1_600_001_104] {
            assert!(people.has(person), "{person}");
        }
        for other in
            [0, 999, 61_184, 65_519, 65_534, 65_535, 100_000, 165_535, u32::MAX - 100, u32::MAX - 1, u32::MAX]
        {
            assert!(!people.has(other), "{other}");
        }
        assert!(People::default().has(100_000));
    }

    #[test]
    fn a_start_counts_for_a_person_or_for_root() {
        let people = People::new(Owners::new(
            "anna:100000:65536\nlxc:300000:9\n",
            "anna:x:1000:1000::/:\nlxc:x:120:1::/:\n",
        ));
        for (uid, account) in
            [(1000, 1000), (100_033, 1000), (1001, 1001), (0, 0), (33, 0), (300_001, 0), (65_534, 0)]
        {
            assert_eq!(people.account(uid), account, "{uid}");
        }
    }
}
