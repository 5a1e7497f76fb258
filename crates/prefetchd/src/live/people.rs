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
}
