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
    /// By account: a greeter's process, or another person's, does not make a program run for this one.
    programs: BTreeMap<(u32, ProgramId), usize>,
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
    /// start for its account. Each event has its user: a process may have ended another one's program.
    pub fn executed(&mut self, pid: u32, uid: u32, program: Option<ProgramId>) -> Vec<(u32, Event)> {
        if self.by_pid.len() >= MOST {
            let oldest = self.by_pid.keys().next().copied();
            oldest.into_iter().for_each(|pid| _ = self.ended(pid));
        }
        let mut events = Vec::new();
        let before = self.by_pid.insert(pid, Process { uid, program });
        let of_user = self.users.entry(uid).or_default();
        *of_user += 1;
        if *of_user == 1 && self.people.has(uid) && !self.found.remove(&uid) {
            events.push((uid, Event::Session));
        }
        if let Some(program) = program {
            let count = self.programs.entry((self.people.account(uid), program)).or_default();
            *count += 1;
            if *count == 1 {
                events.push((uid, Event::Start(program)));
            }
        }
        // Last, so that a process that becomes another program does not end its user's session.
        events.extend(before.and_then(|before| self.one_less(before)));
        events
    }

    /// A process ended.
    pub fn ended(&mut self, pid: u32) -> Option<(u32, Event)> {
        let process = self.by_pid.remove(&pid);
        process.and_then(|process| self.one_less(process))
    }

    fn one_less(&mut self, Process { uid, program }: Process) -> Option<(u32, Event)> {
        less(&mut self.users, uid);
        let account = self.people.account(uid);
        program
            .filter(|program| less(&mut self.programs, (account, *program)))
            .map(|program| (uid, Event::Stop(program)))
    }

    /// Whether a process of this program runs for the user's account.
    pub fn runs(&self, uid: u32, program: ProgramId) -> bool {
        self.programs.contains_key(&(self.people.account(uid), program))
    }

    /// The processes that are not among those that exist.
    pub fn without(&self, existing: &BTreeSet<u32>) -> Vec<u32> {
        self.by_pid.keys().filter(|pid| !existing.contains(pid)).copied().collect()
    }

    /// See [`People::has`].
    pub fn is_person(&self, uid: u32) -> bool {
        self.people.has(uid)
    }

    /// See [`People::account`].
    pub fn account(&self, uid: u32) -> u32 {
        self.people.account(uid)
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
    use eke_prefetch_model::learn::Owners;

    use super::*;

    const A: ProgramId = ProgramId(1);

    #[test]
    fn a_program_starts_with_its_first_process_and_stops_with_its_last() {
        let mut running = Running::default();
        running.found_user(1000);
        assert_eq!(running.executed(10, 1000, Some(A)), [(1000, Event::Start(A))]);
        assert_eq!(running.executed(11, 1000, Some(A)), []);
        assert!(running.runs(1000, A) && !running.runs(1000, ProgramId(2)));
        assert_eq!(running.ended(10), None);
        assert_eq!(running.ended(10), None, "reported twice");
        assert_eq!(running.executed(11, 1000, None), [(1000, Event::Stop(A))], "it became another program");
        assert_eq!(running.ended(99), None);
    }

    #[test]
    fn a_program_runs_for_each_account() {
        let mut running =
            Running::new(People::new(Owners::new("anna:100000:65536\n", "anna:x:1000:1000::/:\n")));
        [120, 1000, 1001].iter().for_each(|uid| running.found_user(*uid));
        assert_eq!(running.executed(10, 120, Some(A)), [(120, Event::Start(A))], "the greeter");
        assert!(running.runs(0, A) && !running.runs(1000, A), "services are on one account");
        assert_eq!(running.executed(11, 1000, Some(A)), [(1000, Event::Start(A))]);
        assert_eq!(running.executed(12, 1001, Some(A)), [(1001, Event::Start(A))]);
        assert_eq!(running.executed(13, 100_033, Some(A)), [], "a container of the person");
        assert_eq!(running.ended(10), Some((120, Event::Stop(A))));
        assert!(running.runs(1000, A) && !running.runs(0, A));
        assert_eq!(running.executed(12, 0, None), [(1001, Event::Stop(A))], "its user's program ended");
    }

    #[test]
    fn a_session_is_a_persons_first_process() {
        let mut running = Running::default();
        running.found_user(1000);
        assert_eq!(running.executed(10, 1000, None), [], "ran before");
        assert_eq!(running.executed(12, 1001, Some(A)), [(1001, Event::Session), (1001, Event::Start(A))]);
        assert_eq!(running.executed(13, 0, None), []);
        running.ended(10);
        assert_eq!(running.executed(14, 1000, None), [(1000, Event::Session)], "logged out and in again");
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
        assert_eq!(
            (running.by_pid.len(), running.programs[&(1000, A)], running.users[&1000]),
            (MOST, MOST, MOST)
        );
    }
}
