//! Who logs in, and whose sessions have just begun. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// A log-in starts its programs within this time.
pub(super) const LASTS: Duration = Duration::from_secs(60);

/// logind's sessions: a file for each, named by its number.
pub(super) const LOGIND_SESSIONS: &str = "run/systemd/sessions";

/// The begin of each session, by its user, in time of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct LogIns(BTreeMap<u32, Duration>);

impl LogIns {
    /// A user's session began.
    pub fn begins(&mut self, user: u32, now: Duration) {
        self.0.retain(|_, begun| now.saturating_sub(*begun) < LASTS);
        self.0.insert(user, now);
    }

    /// Whether the user's programs of a log-in are still starting.
    pub fn has(&self, user: u32, now: Duration) -> bool {
        self.0.get(&user).is_some_and(|begun| now.saturating_sub(*begun) < LASTS)
    }
}

/// The most audit sessions that are remembered: each of cron's jobs has one.
const MOST_SESSIONS: usize = 1_024;

/// The audit sessions with a process of their user. They do not begin in the order of their numbers: sshd takes a number, then logind starts the
/// user's own systemd, which has the next one, and the shell follows.
#[derive(Debug, Default)]
pub(super) struct AuditSessions {
    /// The last look at each session of a user.
    seen: BTreeMap<(u32, u32), u64>,
    looks: u64,
}

impl AuditSessions {
    /// Whether this session of a user is a new one. Later calls return false, while the session is among the last ones with a process.
    pub fn is_new(&mut self, user: u32, session: u32) -> bool {
        self.looks += 1;
        let is_new = self.seen.insert((user, session), self.looks).is_none();
        if self.seen.len() > MOST_SESSIONS {
            let oldest = self.seen.iter().min_by_key(|(_, look)| **look).map(|(session, _)| *session);
            oldest.map(|oldest| self.seen.remove(&oldest));
        }
        is_new
    }
}

/// Whether an audit session is a log-in of this user, from its file in `/run/systemd/sessions` (logind names its sessions by these numbers). Cron's jobs, timers
/// and the user's own systemd have sessions, too, and so has each command over ssh: that is a log-in only if its first process `has_terminal`.
pub(super) fn is_log_in(text: &str, user: u32, has_terminal: impl FnOnce() -> bool) -> bool {
    let value = |key: &str| value(text, key);
    let is_of_user = value("UID").and_then(|uid| uid.parse().ok()) == Some(user);
    let is_persons = value("CLASS").is_none_or(|class| class.starts_with("user"));
    let is_known = value("TYPE").is_some_and(|kind| kind != "unspecified");
    let is_ssh = value("REMOTE") == Some("1") && value("TYPE") == Some("tty");
    is_of_user && is_persons && is_known && (!is_ssh || has_terminal())
}

/// Whether such a file is of a session without a person, as a job of cron's.
pub(super) fn is_background(text: &str) -> bool {
    value(text, "CLASS").is_some_and(|class| class.starts_with("background"))
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_lasts_a_minute() {
        let (mut log_ins, s) = (LogIns::default(), Duration::from_secs);
        log_ins.begins(1000, s(5));
        assert!(log_ins.has(1000, s(64)) && !log_ins.has(1000, s(65)) && !log_ins.has(1001, s(5)));
        log_ins.begins(1001, s(100));
        assert_eq!(log_ins.0.len(), 1);
    }

    #[test]
    fn a_session_is_new_once() {
        let mut sessions = AuditSessions::default();
        assert!(sessions.is_new(1000, 3) && !sessions.is_new(1000, 3) && sessions.is_new(1001, 3));
        assert!(sessions.is_new(1000, 5) && !sessions.is_new(1000, 3), "it goes on beside the other");
        assert!(sessions.is_new(1000, 4), "they come in any order");
    }

    #[test]
    fn of_many_sessions_those_in_use_are_remembered() {
        let mut sessions = AuditSessions::default();
        let most = u32::try_from(MOST_SESSIONS).unwrap();
        for job in 0..2 * most {
            assert!(sessions.is_new(1000, 10 + job));
            assert_eq!(sessions.is_new(1001, 3), job == 0, "a desktop beside cron's jobs");
        }
        assert_eq!(sessions.seen.len(), MOST_SESSIONS);
    }

    #[test]
    fn jobs_and_commands_are_no_log_ins() {
        let file = |class: &str, kind: &str, remote: u32| {
            format!("# private\nUID=1000\nUSER=anna\nACTIVE=1\nTYPE={kind}\nCLASS={class}\nREMOTE={remote}\n")
        };
        for (class, kind, remote, expected) in [
            ("user", "wayland", 0, true),
            ("user", "x11", 1, true),
            ("user-early", "tty", 0, true),
            ("background", "unspecified", 0, false),
            ("manager", "unspecified", 0, false),
            ("greeter", "wayland", 0, false),
            ("user", "unspecified", 0, false),
            ("user", "tty", 1, false),
        ] {
            let text = file(class, kind, remote);
            assert_eq!(is_log_in(&text, 1000, || false), expected, "{text}");
            assert!(!is_log_in(&text, 1001, || true), "su takes another user's session along");
        }
        assert!(is_log_in(&file("user", "tty", 1), 1000, || true), "a shell over ssh");
        assert!(!is_log_in("", 1000, || true));
    }
}
