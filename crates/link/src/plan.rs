//! What to measure, in which order, and with how many bytes. Pure.
//!
//! Twenty seconds and 200 MB in all: the user waits, and others use the link too.

use std::time::Duration;

use crate::suite::Suite;

/// The most time and bytes of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// From the first connection on, without the time for typing passwords.
    pub time: Duration,
    /// Both directions together.
    pub bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { time: Duration::from_secs(20), bytes: 200_000_000 }
    }
}

impl Budget {
    /// The time after which a measurement is given up: a slow link needs more than planned, since a slice has a least size.
    pub fn most_time(&self) -> Duration {
        self.time * 6
    }
}

/// The most ciphers. Each is a connection of its own.
pub const MOST_CIPHERS: usize = 4;
/// The same if a password must be typed for each.
pub const MOST_TYPED: usize = 3;
/// Slices of each cipher and direction that do not count: a connection starts slowly.
pub const WARM_UP: usize = 1;
/// Slices of every cipher that count.
pub const ROUNDS: usize = 2;
/// More slices for the ciphers near the fastest.
pub const MORE_ROUNDS: usize = 4;
/// The most ciphers near the fastest.
pub const NEAR: usize = 3;
/// A cipher is near the fastest if its best slices reach this share of the fastest one's.
pub const NEAR_FASTEST: f64 = 0.75;
/// The share of the bytes for the slices; the rest is for finding their size, for several sessions, and for the link without ssh.
const FOR_SLICES: f64 = 0.7;
const FOR_SESSIONS: f64 = 0.1;
const FOR_BARE: f64 = 0.1;
/// The share for the slices of the time that is left after connecting.
const TIME_FOR_SLICES: f64 = 0.6;
/// A longer slice gains nothing.
const LONGEST_SLICE: Duration = Duration::from_millis(300);
/// A smaller slice only waits.
const SMALLEST_SLICE: u64 = 8 << 10;

/// Parallel streams over the link without ssh.
pub const BARE_STREAMS: usize = 4;
/// Slices of one stream and direction that count.
pub const BARE_SLICES: usize = 3;

/// Slices of so many ciphers, both directions together.
pub fn slices(ciphers: usize) -> usize {
    2 * (ciphers * (WARM_UP + ROUNDS) + ciphers.min(NEAR) * MORE_ROUNDS)
}

/// The ciphers to measure, the most promising first, and the others with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// To measure, in this order.
    pub measured: Vec<Suite>,
    /// Not to measure.
    pub left_out: Vec<(Suite, &'static str)>,
}

/// Chooses at most `most` of the allowed ciphers; the one in use is among them if it is allowed.
///
/// A cipher with a longer key or a slower MAC does strictly more work for each byte than its sibling, so it can be no faster: it comes last, if at
/// all.
pub fn plan(allowed: &[Suite], in_use: Option<&Suite>, most: usize) -> Plan {
    let mut order: Vec<&Suite> = allowed.iter().collect();
    order.sort_by_key(|s| (rank(s), (*s).clone()));
    let mut plan = Plan::default();
    let reserved = usize::from(in_use.is_some_and(|s| allowed.contains(s)));
    for suite in order {
        let is_in_use = in_use == Some(suite);
        let has_in_use = plan.measured.iter().any(|s| in_use == Some(s));
        let room = most.saturating_sub(if has_in_use { 0 } else { reserved });
        if is_in_use || (plan.measured.len() < room && !needs_more_work(suite, allowed)) {
            plan.measured.push(suite.clone());
        } else if needs_more_work(suite, allowed) {
            plan.left_out.push((suite.clone(), "it does more work for each byte than one that is measured"));
        } else {
            plan.left_out.push((suite.clone(), "others are more promising"));
        }
    }
    plan
}

/// Ranks ciphers, the most promising first: one of each family, then MACs that are rarely faster.
fn rank(suite: &Suite) -> u32 {
    let cipher = match suite.cipher.as_str() {
        "aes128-gcm@openssh.com" => 0,
        "chacha20-poly1305@openssh.com" => 1,
        "aes128-ctr" => 2,
        "aes256-gcm@openssh.com" => 6,
        "aes192-ctr" => 10,
        _ => 14,
    };
    let mac = match suite.mac.as_deref() {
        None | Some("umac-128-etm@openssh.com") => 0,
        // SHA-256 has instructions of its own on many CPUs, SHA-512 is the faster one on 64 bits without them
        Some("hmac-sha2-256-etm@openssh.com") => 1,
        _ => 2,
    };
    cipher + mac
}

/// Is there a sibling with a shorter key?
fn needs_more_work(suite: &Suite, allowed: &[Suite]) -> bool {
    let shorter: &[&str] = match suite.cipher.as_str() {
        "aes256-gcm@openssh.com" => &["aes128-gcm@openssh.com"],
        "aes192-ctr" => &["aes128-ctr"],
        "aes256-ctr" => &["aes128-ctr", "aes192-ctr"],
        _ => &[],
    };
    allowed.iter().any(|s| shorter.contains(&s.cipher.as_str()) && s.mac == suite.mac)
}

/// Bytes of one slice of a cipher at `bytes_per_s`, with so many slices in all and so much time left.
pub fn slice_bytes(bytes_per_s: f64, slices: usize, left: Duration, budget: &Budget) -> u64 {
    let slices = slices.max(1) as f64;
    let time = (left.as_secs_f64() * TIME_FOR_SLICES / slices).min(LONGEST_SLICE.as_secs_f64());
    let most = budget.bytes as f64 * FOR_SLICES / slices;
    ((bytes_per_s * time).min(most) as u64).max(SMALLEST_SLICE)
}

/// Bytes for each of several sessions at once, which together may be `sessions` times as fast.
pub fn session_bytes(bytes_per_s: f64, sessions: usize, left: Duration, budget: &Budget) -> u64 {
    let time = (left.as_secs_f64() / 3.0).min(2.0 * LONGEST_SLICE.as_secs_f64());
    let most = budget.bytes as f64 * FOR_SESSIONS / sessions.max(1) as f64;
    ((bytes_per_s * time).min(most) as u64).max(SMALLEST_SLICE)
}

/// Bytes of a slice of the link without ssh, which carries at least `bytes_per_s`.
pub fn bare_bytes(bytes_per_s: f64, left: Duration, budget: &Budget) -> u64 {
    let slices = 2.0 * (1 + BARE_SLICES + BARE_STREAMS) as f64;
    let time = (left.as_secs_f64() / 4.0 / slices).min(LONGEST_SLICE.as_secs_f64() / 2.0);
    let most = budget.bytes as f64 * FOR_BARE / slices;
    ((bytes_per_s * time).min(most) as u64).max(SMALLEST_SLICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Offers, Policy};

    fn allowed(is_strict: bool) -> Vec<Suite> {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Policy::Modern.allowed(&Offers {
            ciphers: list("aes128-ctr aes192-ctr aes256-ctr aes128-gcm@openssh.com aes256-gcm@openssh.com chacha20-poly1305@openssh.com"),
            macs: list("umac-128-etm@openssh.com hmac-sha2-256-etm@openssh.com hmac-sha2-512-etm@openssh.com"),
            is_strict,
        })
    }

    fn shown(plan: &Plan) -> Vec<String> {
        plan.measured.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_of_each_family_comes_first_and_longer_keys_not_at_all() {
        let plan = plan(&allowed(true), None, MOST_CIPHERS);
        assert_eq!(
            shown(&plan),
            [
                "aes128-gcm",
                "chacha20-poly1305",
                "aes128-ctr + umac-128-etm",
                "aes128-ctr + hmac-sha2-256-etm"
            ]
        );
        assert_eq!(plan.measured.len() + plan.left_out.len(), allowed(true).len());
        assert!(plan.left_out.iter().filter(|(_, why)| !why.contains("more work")).count() == 1);
    }

    #[test]
    fn the_cipher_in_use_is_measured_in_any_case() {
        let in_use = Suite::new("aes256-ctr", Some("hmac-sha2-512-etm@openssh.com"));
        for most in [1, MOST_TYPED, MOST_CIPHERS] {
            let plan = plan(&allowed(true), Some(&in_use), most);
            assert!(plan.measured.len() <= most && plan.measured.contains(&in_use), "{most}");
        }
        let forbidden = Suite::new("aes128-cbc", Some("hmac-sha1"));
        assert!(!plan(&allowed(true), Some(&forbidden), 5).measured.contains(&forbidden));
    }

    #[test]
    fn a_longer_key_is_measured_if_there_is_no_shorter_one() {
        let only = vec![Suite::new("aes256-gcm@openssh.com", None)];
        assert_eq!(plan(&only, None, 5).measured, only);
    }

    proptest::proptest! {
        #[test]
        fn the_budget_holds(rate in 1e3f64..1e10, ciphers in 1usize..=MOST_CIPHERS, left_ms in 0u64..20_000, sessions in 1usize..64) {
            let budget = Budget::default();
            let slices = slices(ciphers);
            let left = Duration::from_millis(left_ms);
            let all = slice_bytes(rate, slices, left, &budget) * slices as u64;
            let sessions_all = session_bytes(rate, sessions, left, &budget) * sessions as u64;
            let bare = 2 * (1 + BARE_SLICES + BARE_STREAMS);
            let bare_all = bare_bytes(rate, left, &budget) * bare as u64;
            let floor = SMALLEST_SLICE * (slices + sessions + bare) as u64;
            proptest::prop_assert!(all + sessions_all + bare_all <= budget.bytes * 9 / 10 + floor);
            let time = all as f64 / rate;
            proptest::prop_assert!(time <= left.as_secs_f64() * 0.61 + floor as f64 / rate);
        }
    }
}
