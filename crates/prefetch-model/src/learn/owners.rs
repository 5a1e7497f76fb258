//! Whose account a process is on: that of the person who may take the number of its user. Pure.
//!
//! A person has 65,536 numbers (subuid(5)) for the users of own containers, so limits for each user would limit nobody.

use std::ops::Range;

use eke_model::process::is_of_service;

/// Numbers that belong to one account.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subordinate {
    users: Range<u32>,
    account: u32,
}

/// The owners of subordinate users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners(Vec<Subordinate>);

impl Owners {
    /// From `/etc/subuid` (`NAME:FIRST:COUNT` in each line) and `/etc/passwd` (`NAME:PASSWORD:NUMBER:...`). Other lines are ignored. The numbers of
    /// root, of a service, or of a user that `passwd` lacks are on an account of their own, that of the first one.
    pub fn new(subuid: &str, passwd: &str) -> Self {
        let number = |name: &str| {
            let entry =
                passwd.lines().map(|line| line.split(':')).find(|words| words.clone().next() == Some(name));
            name.parse().ok().or_else(|| entry?.nth(2)?.parse::<u32>().ok())
        };
        let subordinate = |line: &str| {
            let mut words = line.split(':').map(str::trim);
            let (name, first, count) = (words.next()?, words.next()?, words.next()?);
            let (first, count) = (first.parse::<u32>().ok()?, count.parse::<u32>().ok()?);
            let person = number(name).filter(|owner| !is_of_service(*owner));
            Some(Subordinate { users: first..first.saturating_add(count), account: person.unwrap_or(first) })
        };
        Self(subuid.lines().filter_map(subordinate).collect())
    }

    /// The account of a user: its owner's, or its own.
    pub fn account(&self, user: u32) -> u32 {
        self.of(user).map_or(user, |subordinate| subordinate.account)
    }

    /// Whether a user is only a number of another one.
    pub fn is_subordinate(&self, user: u32) -> bool {
        self.of(user).is_some()
    }

    fn of(&self, user: u32) -> Option<&Subordinate> {
        self.0.iter().find(|subordinate| subordinate.users.contains(&user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n+\nlxc:x:120:1::/:/bin/sh\n";

    #[test]
    fn a_person_has_one_account() {
        let owners = Owners::new(
            "anna:100000:65536\n1001:165536:10\nroot:300000:9\nlxc:400000:9\ndirectory:500000:9\n",
            PASSWD,
        );
        for (user, account) in [
            (1000, 1000),
            (100_000, 1000),
            (165_535, 1000),
            (165_536, 1001),
            (165_546, 165_546),
            (0, 0),
            (300_008, 300_000),
            (400_001, 400_000),
            (500_001, 500_000),
        ] {
            assert_eq!(owners.account(user), account, "{user}");
        }
        assert_eq!(Owners::default().account(100_000), 100_000);
    }

    #[test]
    fn other_lines_are_ignored() {
        let owners = Owners::new("# none\nanna:165536\n:x:1\nanna:x:1\nanna:4294967000:500\n", PASSWD);
        assert!(!owners.is_subordinate(165_536) && !owners.is_subordinate(1));
        assert_eq!(owners.account(4_294_967_001), 1000);
    }
}
