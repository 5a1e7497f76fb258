//! Which users are people. Pure.

use std::ops::Range;

use eke_model::process::is_of_service;

/// nobody, and what no user may have, in 16 and in 32 bits.
const NOBODY: [u32; 4] = [65_534, 65_535, u32::MAX - 1, u32::MAX];

/// The users of this machine that may be people.
#[derive(Debug, Default)]
pub(super) struct People {
    /// Users of containers, in which a person's container has its own.
    subordinate: Vec<Range<u32>>,
}

impl People {
    /// From `/etc/subuid` (subuid(5)): `NAME:FIRST:COUNT` in each line. Other lines are ignored.
    pub fn new(subuid: &str) -> Self {
        let range = |line: &str| {
            let mut words = line.split(':').skip(1).map(|word| word.trim().parse::<u32>().ok());
            let (first, count) = (words.next()??, words.next()??);
            Some(first..first.saturating_add(count))
        };
        Self { subordinate: subuid.lines().filter_map(range).collect() }
    }

    /// Root may be a person too, but root's first process does not show a log-in.
    pub fn has(&self, uid: u32) -> bool {
        // Users of a directory (SSSD, AD) have numbers far above those of services.
        !is_of_service(uid)
            && !NOBODY.contains(&uid)
            && !self.subordinate.iter().any(|range| range.contains(&uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_no_services_and_no_users_of_containers() {
        let people = People::new("anna:100000:65536\n# none\nbob:165536\n:x:1\ncarl:4294967000:500\n");
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
