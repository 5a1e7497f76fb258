//! Which programs run, from their processes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::people::People;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::Event;

/// The most processes; beyond it, the lowest process ids are dropped.
const MOST: usize = 32_768;

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    uid: u32,
    program: Option<ProgramId>,
}

/// The known processes.
#[derive(Debug, Default)]
pub(super) struct Running {
    by_pid: BTreeMap<u32, Process>,
    users: BTreeMap<u32, usize>,
    programs: BTreeMap<ProgramId, usize>,
    /// Users with processes at the start: their next process begins no session.
    found: BTreeSet<u32>,
    people: People,
}

impl Running {
    /// No processes yet. Only people's sessions count.
    pub fn new(people: People) -> Self {
        Self { people, ..Self::default() }
    }

    /// Marks a user whose processes run already.
    pub fn found_user(&mut self, uid: u32) {
        self.found.insert(uid);
    }

    /// A process executed a program (`None`: not a learned one). A person's first process begins a session, and a program's first process is its
    /// start.
    pub fn executed(&mut self, pid: u32, uid: u32, program: Option<ProgramId>) -> Vec<Event> {
        if self.by_pid.len() >= MOST {
            let oldest = self.by_pid.keys().next().copied();
            oldest.into_iter().for_each(|pid| drop(self.ended(pid)));
        }
        let mut events = Vec::new();
        let before = self.by_pid.insert(pid, Process { uid, program });
        let of_user = self.users.entry(uid).or_default();
        *of_user += 1;
        if *of_user == 1 && self.people.has(uid) && !self.found.remove(&uid) {
            events.push(Event::Session);
        }
        if let Some(program) = program {
            let count = self.programs.entry(program).or_default();
            *count += 1;
            if *count == 1 {
                events.push(Event::Start(program));
            }
        }
        // Last, so that a process that becomes another program does not end its user's session.
        events.extend(before.and_then(|before| self.one_less(before)));
        events
    }

    /// A process ended.
    pub fn ended(&mut self, pid: u32) -> Vec<Event> {
        let process = self.by_pid.remove(&pid);
        process.and_then(|process| self.one_less(process)).into_iter().collect()
    }

    fn one_less(&mut self, process: Process) -> Option<Event> {
        less(&mut self.users, process.uid);
        process.program.filter(|program| less(&mut self.programs, *program)).map(Event::Stop)
    }

    /// Whether a process of this program runs.
    pub fn runs(&self, program: ProgramId) -> bool {
        self.programs.contains_key(&program)
    }

    /// The processes that are not among those that exist.
    pub fn without(&self, existing: &BTreeSet<u32>) -> Vec<u32> {
        self.by_pid.keys().filter(|pid| !existing.contains(pid)).copied().collect()
    }

    /// See [`People::account`].
    pub fn account(&self, uid: u32) -> u32 {
        self.people.account(uid)
    }

    /// The user of a process.
    pub fn user(&self, pid: u32) -> Option<u32> {
        self.by_pid.get(&pid).map(|process| process.uid)
    }
}

/// Decrements a count; returns whether it reached zero.
fn less<K: Ord + Copy>(counts: &mut BTreeMap<K, usize>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(&key);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramId = ProgramId(1);

    #[test]
    fn a_program_starts_with_its_first_process_and_stops_with_its_last() {
        let mut running = Running::default();
        running.found_user(1000);
        assert_eq!(running.executed(10, 1000, Some(A)), [Event::Start(A)]);
        assert_eq!(running.executed(11, 1000, Some(A)), []);
        assert!(running.runs(A) && !running.runs(ProgramId(2)));
        assert_eq!(running.ended(10), []);
        assert_eq!(running.ended(10), [], "reported twice");
        assert_eq!(running.executed(11, 1000, None), [Event::Stop(A)], "it became another program");
        assert_eq!(running.ended(99), []);
    }

    #[test]
    fn a_session_is_a_persons_first_process() {
        let mut running = Running::default();
        running.found_user(1000);
        assert_eq!(running.executed(10, 1000, None), [], "ran before");
        assert_eq!(running.executed(12, 1001, Some(A)), [Event::Session, Event::Start(A)]);
        assert_eq!(running.executed(13, 0, None), []);
        running.ended(10);
        assert_eq!(running.executed(14, 1000, None), [Event::Session], "logged out and in again");
    }

    #[test]
    fn a_process_whose_end_was_lost_is_found() {
        let mut running = Running::default();
        [10, 11, 12].iter().for_each(|pid| drop(running.executed(*pid, 1000, Some(A))));
        assert_eq!(running.without(&BTreeSet::from([1, 11])), [10, 12]);
    }

    #[test]
    fn it_is_bounded() {
        let mut running = Running::default();
        (0..MOST as u32 + 10).for_each(|pid| drop(running.executed(pid + 1, 1000, Some(A))));
        assert_eq!((running.by_pid.len(), running.programs[&A], running.users[&1000]), (MOST, MOST, MOST));
    }
}
