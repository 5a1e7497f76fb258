//! Other programs and settings that do a guard's work. Pure.

use crate::process::Process;

/// Daemons that end programs when memory is short, by the kernel's name (at most 15 characters).
const DAEMONS: &[&str] =
    &["earlyoom", "nohang", "nohang-desktop", "oomd", "systemd-oomd", "psi-monitor", "bustd"];

/// Which of them runs; `None` if none does. Any user can choose a name, so only root's processes count, and those of users that
/// nobody logs in as (systemd-oomd and Debian's earlyoom have one) whose executable has that name. A script (`nohang` is one)
/// is found by the name that it gave itself.
pub fn running(processes: &[Process]) -> Option<&str> {
    let is_service = |p: &Process| is_of_service(p.user) && p.trusted_program.as_ref() == Some(&p.name);
    let is_one = |p: &&Process| DAEMONS.contains(&p.name.as_str()) && (p.is_roots || is_service(p));
    processes.iter().find(is_one).map(|p| p.name.as_str())
}

/// Users of the system, and those that systemd makes for one service (systemd's UIDS-GIDS.md, "Special Distribution UID Ranges"
/// and "Special systemd UIDs").
const fn is_of_service(user: u32) -> bool {
    user < 1000 || (user >= 61_184 && user <= 65_519)
}

/// Whether `lru_gen/min_ttl_ms` lets the kernel end programs before it evicts a young working set
/// (Documentation/admin-guide/mm/multigen_lru.rst, Linux 6.1). `text` is the file.
pub fn kernel_keeps_working_sets(text: &str) -> bool {
    text.trim().parse::<u64>().is_ok_and(|ms| ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::process;

    #[test]
    fn only_trusted_daemons_count() {
        let by = |user, program: Option<&str>| Process {
            user,
            is_roots: user == 0,
            trusted_program: program.map(str::to_owned),
            ..process(6, "earlyoom", 1)
        };
        let is_one = |process| running(&[self::process(5, "sh", 1), process]) == Some("earlyoom");
        assert!(is_one(by(0, None)), "a script of root");
        assert!(!is_one(Process { is_roots: false, ..by(0, Some("su")) }), "a link to su, of a user");
        assert!(is_one(by(65_000, Some("earlyoom"))) && is_one(by(107, Some("earlyoom"))));
        assert!(!is_one(by(1001, Some("python3.11"))), "a name that a user gave an interpreter");
        assert!(!is_one(by(1001, Some("earlyoom"))), "a user who starts it ends nobody else's programs");
        assert!(!is_one(by(107, Some("python3.11"))) && !is_one(by(107, None)));
        assert!(kernel_keeps_working_sets("1000\n") && !kernel_keeps_working_sets("0\n"));
        assert!(!kernel_keeps_working_sets(""));
    }
}
