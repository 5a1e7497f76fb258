//! Which processes no person started at a session, although they have a person's number: those of services, timers, cron's jobs and containers.

use eke_linux::Root;
use eke_linux::parse::groups;
use eke_prefetch_model::learn::Exec;

use super::log_ins::{self, LOGIND_SESSIONS};

/// It exists where systemd manages the control groups (sd_booted(3)).
const SYSTEMD: &str = "run/systemd/system";

/// Whether that is known of the process of this exec: systemd's control groups tell, and for a job of cron with a session, logind. An audit session that
/// logind does not list shows nothing: before systemd 256 the user's own systemd has one, which starts the programs of a desktop.
pub(super) fn is_in_background(root: &Root, exec: &Exec) -> bool {
    let group = || root.read(format!("proc/{}/cgroup", exec.pid)).unwrap_or_default();
    let session = |session| root.read(format!("{LOGIND_SESSIONS}/{session}")).unwrap_or_default();
    root.exists(SYSTEMD)
        && (is_outside(&group()) || exec.session.is_some_and(|of| log_ins::is_background(&session(of))))
}

/// Whether a process is in a group of systemd's, and not in one of a user's sessions or of a user's own systemd.
fn is_outside(text: &str) -> bool {
    let group = groups::own(text, "name=systemd").or_else(|| groups::own(text, ""));
    group.is_some_and(|group| !["/", "/init.scope"].contains(&group) && !group.starts_with("/user.slice/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_timers_and_containers_are_outside_of_sessions() {
        for (text, expected) in [
            ("0::/system.slice/backup.service\n", true),
            ("0::/system.slice/cron.service\n", true),
            ("0::/system.slice/docker-4f2a.scope\n", true),
            ("0::/machine.slice/libpod-4f2a.scope\n", true),
            ("5:memory:/x\n1:name=systemd:/system.slice/cron.service\n", true),
            ("0::/user.slice/user-1000.slice/session-2.scope\n", false),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gedit.scope\n", false),
            ("5:memory:/system.slice\n1:name=systemd:/user.slice/user-1000.slice/session-2.scope\n", false),
            ("0::/\n", false),
            ("0::/init.scope\n", false),
            ("", false),
        ] {
            assert_eq!(is_outside(text), expected, "{text}");
        }
    }
}
