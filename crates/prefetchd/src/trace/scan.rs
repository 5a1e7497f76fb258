//! Polls `/proc`: compares the processes of two polls. Processes that begin and end in between are missed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::process_stat;
use eke_linux::read::answers;

use super::proc_event::ProcEvent;
use super::process;

/// A process: the path of its executable, unless that is gone, and its start in clock ticks since boot, which distinguishes processes that reuse a
/// process id.
pub type Seen = (Option<PathBuf>, u64);

/// All processes with an executable.
pub type Processes = BTreeMap<u32, Seen>;

/// The current processes.
pub fn processes(root: &Root) -> Processes {
    let of = |pid: u32| look(root, pid).map(|(seen, _)| (pid, seen)).filter(|(_, (exe, _))| exe.is_some());
    eke_linux::read::pids(root).into_iter().filter_map(of).collect()
}

/// A process now, and whether it has executed a program since it was forked. Within execve(2) it has no program yet.
pub fn look(root: &Root, pid: u32) -> Option<(Seen, bool)> {
    let text = process::text(root, pid, "stat").unwrap_or_default();
    // A zombie has executed a program, and has none any more.
    let exe = process::exe(root, pid);
    match process_stat::parse(&text) {
        Some(stat) if exe.is_some() || answers(root, pid) => {
            Some(((exe, stat.start_ticks), stat.has_executed()))
        }
        // It has come out of execve since its memory was not there, or is within it now.
        _ if exe.is_some() || !answers(root, pid) => Some(((None, 0), false)),
        _ => None,
    }
}

/// The events between two polls. Exits come first, because process ids are reused.
pub fn between(before: &Processes, now: &Processes, at: Duration) -> Vec<ProcEvent> {
    let is_same_process = |pid: &u32, found: &Seen| now.get(pid).is_some_and(|other| other.1 == found.1);
    let ended = before.iter().filter(|(pid, found)| !is_same_process(pid, found));
    let begun = now.iter().filter(|(pid, found)| before.get(pid) != Some(found));
    let exits = ended.map(|(pid, _)| ProcEvent::Exit { pid: *pid, at });
    exits.chain(begun.map(|(pid, _)| ProcEvent::Exec { pid: *pid, at })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks_are_told_apart() {
        let of = |found: &[(u32, &str, u64)]| -> Processes {
            found.iter().map(|(pid, exe, start)| (*pid, (Some(exe.into()), *start))).collect()
        };
        let before = of(&[(1, "/init", 0), (5, "/bin/sh", 9), (6, "/bin/a", 9), (7, "/bin/b", 9)]);
        let now = of(&[(1, "/init", 0), (5, "/bin/x", 9), (6, "/bin/a", 44), (8, "/bin/c", 50)]);
        let at = Duration::from_secs(3);
        let exit = |pid| ProcEvent::Exit { pid, at };
        let exec = |pid| ProcEvent::Exec { pid, at };
        assert_eq!(between(&before, &now, at), [exit(6), exit(7), exec(5), exec(6), exec(8)]);
    }

    #[test]
    fn this_process_is_there() {
        let found = processes(&Root::host());
        let own = found.get(&std::process::id()).and_then(|found| found.0.clone());
        assert_eq!(own, std::env::current_exe().ok());
    }
}
