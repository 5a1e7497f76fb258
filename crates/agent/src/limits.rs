//! Limits how often users other than root are answered. Pure: the time is an argument.

/// A rate with a burst.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Milliseconds between two answers.
    pub every_ms: u64,
    /// Answers at once after a pause.
    pub burst: u64,
}

/// Rate of one user: more than `eke top`, a page and a scraper need together.
pub const OF_A_USER: Rate = Rate { every_ms: 50, burst: 40 };
/// Rate of all users but root: about a hundredth of a core.
pub const OF_ALL: Rate = Rate { every_ms: 5, burst: 200 };
/// Most users to distinguish. A user with more uids (subuid(5)) shares the limit of all.
const USERS: usize = 64;

/// The virtual schedule of the generic cell rate algorithm (ATM Forum TM 4.1): the time at which the burst is whole
/// again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    until_ms: u64,
}

impl Used {
    /// The earliest time of the next answer: `now_ms` or later.
    pub fn next_ms(self, rate: Rate, now_ms: u64) -> u64 {
        (self.until_ms + rate.every_ms).saturating_sub(rate.every_ms * rate.burst).max(now_ms)
    }

    /// Counts one answer.
    pub fn take(&mut self, rate: Rate, now_ms: u64) {
        self.until_ms = self.until_ms.max(now_ms) + rate.every_ms;
    }
}

/// Recent answers to users other than root.
#[derive(Debug, Default)]
pub struct Users {
    each: Vec<(u32, Used)>,
    all: Used,
}

impl Users {
    /// The earliest time at which a request of this user may be answered: `now_ms` or later.
    pub fn next_ms(&self, uid: u32, now_ms: u64) -> u64 {
        let own = self.each.iter().find(|(user, _)| *user == uid).map(|(_, used)| *used);
        let own_ms = own.unwrap_or_default().next_ms(OF_A_USER, now_ms);
        own_ms.max(self.all.next_ms(OF_ALL, now_ms))
    }

    /// Counts an answer to this user.
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

    /// Requests as often as allowed for `for_ms`; returns the number of answers.
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
    fn a_clock_may_start_at_zero() {
        let mut users = Users::default();
        assert_eq!(users.next_ms(1, 0), 0);
        assert_eq!(asks(&mut users, &[1], 0, 1), 40);
    }
}
