//! Other programs that do a guard's work. Pure.

use eke_model::guard::is_daemon;

use crate::process::Process;

/// The running daemon that ends programs when memory is short; `None` if none does.
pub fn running(processes: &[Process]) -> Option<&str> {
    let is_one = |p: &&Process| is_daemon(&p.name, p.has_roots_name(), p.user, p.trusted_program.as_deref());
    processes.iter().find(is_one).map(|p| p.name.as_str())
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
        assert!(!is_one(Process { is_contained: true, ..by(0, None) }), "it sees its container alone");
        assert!(!is_one(Process { is_roots: false, ..by(0, Some("su")) }), "a link to su, of a user");
        assert!(is_one(by(65_000, Some("earlyoom"))) && is_one(by(107, Some("earlyoom"))));
        assert!(!is_one(by(1001, Some("python3.11"))), "a name that a user gave an interpreter");
        assert!(!is_one(by(1001, Some("earlyoom"))), "a user who starts it ends nobody else's programs");
        assert!(!is_one(by(107, Some("python3.11"))) && !is_one(by(107, None)));
    }
}
