//! Whose parent notices a stop. Pure.
//!
//! A shell with job control takes the stop of a job for Ctrl-Z, and its user has to continue it. `sudo` and `su` stop themselves when
//! their command stops, and nobody lets them continue. Only a direct parent learns of a stop (waitpid(2), WUNTRACED): a script, which has no
//! job control, and `make` wait on, so nothing above them notices.

use std::collections::{BTreeMap, BTreeSet};

use crate::process::Process;
use crate::protect::SHELLS;

/// They run a command for another user or at another terminal, and stop with it.
const STOP_WITH_COMMAND: &[&str] = &[
    "doas",
    "pkexec",
    "run0",
    "runuser",
    "script",
    "scriptlive",
    "su",
    "su-l",
    "sudo",
    "sudo-rs",
    "sudoedit",
];

/// The pids of the processes whose stop their parent would notice. `protected`: the leaders of sessions among them hold terminals.
pub fn noticed(processes: &[Process], protected: &BTreeSet<u32>) -> BTreeSet<u32> {
    let by_pid: BTreeMap<u32, &Process> = processes.iter().map(|p| (p.id.pid, p)).collect();
    let is_noticed = |p: &Process| by_pid.get(&p.parent).is_some_and(|above| notices(above, p, protected));
    processes.iter().filter(|p| is_noticed(p)).map(|p| p.id.pid).collect()
}

fn notices(parent: &Process, child: &Process, protected: &BTreeSet<u32>) -> bool {
    let leads_session = parent.id.pid == parent.session && protected.contains(&parent.id.pid);
    // With job control, each job has a process group of its own.
    let is_job = is_one_of(parent, SHELLS) && parent.group != child.group;
    leads_session || is_job || is_one_of(parent, STOP_WITH_COMMAND)
}

/// By its own word: one that lies is not stopped, and is ended all the same.
fn is_one_of(process: &Process, names: &[&str]) -> bool {
    let program = process.trusted_program.as_deref().unwrap_or_default();
    names.iter().any(|name| *name == process.name || *name == program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::process;

    /// Whether a parent of this name, in process group `group`, notices the stop of its child 6 in group 6.
    fn is_noticed(name: &str, group: u32) -> bool {
        let parent = Process { group, ..process(5, name, 1) };
        let child = Process { parent: 5, ..process(6, "stressor", 400) };
        noticed(&[parent, child], &BTreeSet::new()).contains(&6)
    }

    #[test]
    fn a_shell_within_a_shell_has_jobs_and_a_script_has_none() {
        assert!(is_noticed("bash", 5) && is_noticed("fish", 5));
        assert!(!is_noticed("bash", 6), "a script is in the group of what it starts");
        assert!(!is_noticed("make", 6) && !is_noticed("make", 5));
    }

    #[test]
    fn what_stops_with_its_command_notices() {
        for name in ["sudo", "su", "runuser", "doas", "pkexec"] {
            assert!(is_noticed(name, 6) && is_noticed(name, 5), "{name}");
        }
        let own = Process { trusted_program: None, ..process(5, "zsh", 1) };
        let child = Process { parent: 5, ..process(6, "stressor", 400) };
        assert_eq!(noticed(&[own, child], &BTreeSet::new()), BTreeSet::from([6]), "a shell of one's own");
    }

    #[test]
    fn the_leader_of_a_session_notices() {
        let leader = Process { session: 5, group: 6, ..process(5, "login", 1) };
        let child = Process { parent: 5, ..process(6, "stressor", 400) };
        assert_eq!(noticed(&[leader.clone(), child.clone()], &BTreeSet::from([5])), BTreeSet::from([6]));
        assert!(noticed(&[leader, child], &BTreeSet::new()).is_empty());
    }
}
