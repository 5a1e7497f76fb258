//! Who logs in, and whose sessions have just begun. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// A log-in starts its programs within this time.
pub(super) const LASTS: Duration = Duration::from_secs(60);

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

/// The newest audit session of each user. Their numbers only grow within a boot.
#[derive(Debug, Default)]
pub(super) struct AuditSessions(BTreeMap<u32, u32>);

impl AuditSessions {
    /// Whether this session of a user is a new one; it is none from now on.
    pub fn is_new(&mut self, user: u32, session: u32) -> bool {
        let newest = self.0.get(&user).copied();
        let is_new = newest.is_none_or(|newest| session > newest);
        if is_new {
            self.0.insert(user, session);
        }
        is_new
    }
}

/// Whether an audit session is a log-in of this user, from its file in `/run/systemd/sessions` (logind names its sessions by these numbers). Cron's jobs, timers
/// and the user's own systemd have sessions, too, and so has each command over ssh: that is a log-in only if its first process `has_terminal`.
pub(super) fn is_log_in(text: &str, user: u32, has_terminal: impl FnOnce() -> bool) -> bool {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let is_of_user = value("UID").and_then(|uid| uid.parse().ok()) == Some(user);
    let is_persons = value("CLASS").is_none_or(|class| class.starts_with("user"));
    let is_known = value("TYPE").is_some_and(|kind| kind != "unspecified");
    let is_ssh = value("REMOTE") == Some("1") && value("TYPE") == Some("tty");
    is_of_user && is_persons && is_known && (!is_ssh || has_terminal())
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
