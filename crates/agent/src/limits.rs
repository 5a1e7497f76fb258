//! How often users who are not root are answered. Pure: the time is an argument.

/// So often, and so many at once after a pause.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Milliseconds between two.
    pub every_ms: u64,
    /// At once.
    pub burst: u64,
}

/// Requests of one user: more than `eke top`, a page and a scraper together make.
pub const OF_A_USER: Rate = Rate { every_ms: 50, burst: 40 };
/// Requests of all users but root: about a hundredth of a core.
pub const OF_ALL: Rate = Rate { every_ms: 5, burst: 200 };
/// Users that are told apart. Whoever owns more numbers (subuid(5)) is bounded with all others together.
const USERS: usize = 64;

/// What was used up, as the time from which nothing is (the generic cell rate algorithm of ATM Forum TM 4.1).
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    until_ms: u64,
}

impl Used {
    /// When the next may be: `now_ms` or later.
    pub fn next_ms(self, rate: Rate, now_ms: u64) -> u64 {
        (self.until_ms + rate.every_ms).saturating_sub(rate.every_ms * rate.burst).max(now_ms)
    }

    /// Uses one.
    pub fn take(&mut self, rate: Rate, now_ms: u64) {
        self.until_ms = self.until_ms.max(now_ms) + rate.every_ms;
    }
}

/// What users who are not root have asked of late.
#[derive(Debug, Default)]
pub struct Users {
    each: Vec<(u32, Used)>,
    all: Used,
}

impl Users {
    /// When a request of this user may be answered: `now_ms` or later.
    pub fn next_ms(&self, uid: u32, now_ms: u64) -> u64 {
        let own = self.each.iter().find(|(user, _)| *user == uid).map(|(_, used)| *used);
        let own_ms = own.unwrap_or_default().next_ms(OF_A_USER, now_ms);
        own_ms.max(self.all.next_ms(OF_ALL, now_ms))
    }

    /// A request of this user is answered.
    pub fn take(&mut self, uid: u32, now_ms: u64) {
        self.all.take(OF_ALL, now_ms);
        if let Some((_, used)) = self.each.iter_mut().find(|(user, _)| *user == uid) {
            return used.take(OF_A_USER, now_ms);
        }
        self.each.retain(|(_, used)| used.until_ms > now_ms);
        if self.each.len() < USERS {
            let mut used = Used::default();
            used.take(OF_A_USER, now_ms);
            self.each.push((uid, used));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks as soon as it may, for so long; how often that was.
    fn asks(users: &mut Users, uids: &[u32], from_ms: u64, for_ms: u64) -> u64 {
        let mut answered = 0;
        for now_ms in from_ms..from_ms + for_ms {
            for uid in uids {
                while users.next_ms(*uid, now_ms) <= now_ms {
                    users.take(*uid, now_ms);
                    answered += 1;
                }
            }
        }
        answered
    }

    #[test]
    fn a_user_has_a_burst_then_a_rate_and_another_has_its_own() {
        let mut users = Users::default();
        assert_eq!(asks(&mut users, &[1], 1_000_000, 1), 40);
        assert_eq!(users.next_ms(1, 1_000_000), 1_000_050);
        assert_eq!(asks(&mut users, &[2], 1_000_000, 1), 40);
        assert_eq!(asks(&mut users, &[1], 1_000_001, 10_000), 200);
        assert_eq!(asks(&mut users, &[1], 1_020_000, 1), 40, "after a pause");
    }

    #[test]
    fn many_users_together_have_a_rate_and_little_memory() {
        let mut users = Users::default();
        let all: Vec<u32> = (1000..3000).collect();
        let answered = asks(&mut users, &all, 1_000_000, 1_000);
        assert!((380..=400).contains(&answered), "{answered}");
        assert!(users.each.len() <= USERS);
    }

    #[test]
    fn a_clock_that_begins_at_nothing_is_a_clock() {
        let mut users = Users::default();
        assert_eq!(users.next_ms(1, 0), 0);
        assert_eq!(asks(&mut users, &[1], 0, 1), 40);
    }
}
