//! Which programs run, from their processes. Pure.

use std::collections::btree_map::Entry;
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

/// A process executes a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Executed {
    /// The process.
    pub pid: u32,
    /// Its real user id.
    pub uid: u32,
    /// The program, learned or not: it may be learned while it runs. `None` if it has no name here.
    pub program: Option<ProgramId>,
    /// Whether its start is an event: it is learned, and no wrapper.
    pub is_event: bool,
    /// Whether a log-in begins with it. `None` if only the processes show that: then a person's first one does.
    pub log_in: Option<bool>,
}

/// The processes of a program.
#[derive(Debug, Clone, Copy, Default)]
struct Instances {
    processes: usize,
    /// Whether their start was an event.
    has_started: bool,
}

/// The known processes.
#[derive(Debug, Default)]
pub(super) struct Running {
    by_pid: BTreeMap<u32, Process>,
    users: BTreeMap<u32, usize>,
    /// By account: a greeter's process, or another person's, does not make a program run for this one.
    programs: BTreeMap<(u32, ProgramId), Instances>,
    people: People,
}

impl Running {
    /// No processes yet. Only people's sessions count.
    pub fn new(people: People) -> Self {
        Self { people, ..Self::default() }
    }

    /// A process was found running. Neither a session nor a program begins with it.
    pub fn found(&mut self, executed: Executed) {
        self.executed(executed);
    }

    /// A process executed a program. A person's log-in begins a session, and a program's first process is its start for its account. Each event has its
    /// user: a process may have ended another one's program.
    pub fn executed(&mut self, executed: Executed) -> Vec<(u32, Event)> {
        let Executed { pid, uid, program, is_event, log_in } = executed;
        if self.by_pid.len() >= MOST {
            let oldest = self.by_pid.keys().next().copied();
            oldest.into_iter().for_each(|pid| _ = self.ended(pid));
        }
        let mut events = Vec::new();
        let before = self.by_pid.insert(pid, Process { uid, program });
        let of_user = self.users.entry(uid).or_default();
        *of_user += 1;
        if log_in.unwrap_or(*of_user == 1) && self.people.has(uid) {
            events.push((uid, Event::Session));
        }
        if let Some(program) = program {
            let instances = self.programs.entry((self.people.account(uid), program)).or_default();
            instances.processes += 1;
            if instances.processes == 1 && is_event {
                instances.has_started = true;
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

    /// A program is forgotten: that its processes end is no event.
    pub fn forget(&mut self, program: ProgramId) {
        let instances = self.programs.iter_mut().filter(|((_, id), _)| *id == program);
        instances.for_each(|(_, instances)| instances.has_started = false);
    }

    fn one_less(&mut self, Process { uid, program }: Process) -> Option<(u32, Event)> {
        if let Entry::Occupied(mut of_user) = self.users.entry(uid) {
            *of_user.get_mut() -= 1;
            if *of_user.get() == 0 {
                of_user.remove();
            }
        }
        let program = program?;
        let Entry::Occupied(mut instances) = self.programs.entry((self.people.account(uid), program)) else {
            return None;
        };
        instances.get_mut().processes -= 1;
        let is_last = instances.get().processes == 0;
        let has_stopped = is_last && instances.get().has_started;
        if is_last {
            instances.remove();
        }
        has_stopped.then_some((uid, Event::Stop(program)))
    }

    /// Whether a process of this program runs for the user's account.
    pub fn runs(&self, uid: u32, program: ProgramId) -> bool {
        self.programs.contains_key(&(self.people.account(uid), program))
    }

    /// Whether a process of this program runs, whoever started it.
    pub fn runs_for_anyone(&self, program: ProgramId) -> bool {
        self.programs.keys().any(|(_, id)| *id == program)
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

#[cfg(test)]
mod tests {
    use eke_prefetch_model::learn::Owners;

    use super::*;

    const A: ProgramId = ProgramId(1);

    fn exec(pid: u32, uid: u32, program: Option<ProgramId>) -> Executed {
        Executed { pid, uid, program, is_event: true, log_in: None }
    }

    /// Users with a process each.
    fn with_users(mut running: Running, users: &[u32]) -> Running {
        users.iter().for_each(|uid| running.found(exec(10_000 + uid, *uid, None)));
        running
    }

    #[test]
    fn a_program_starts_with_its_first_process_and_stops_with_its_last() {
        let mut running = with_users(Running::default(), &[1000]);
        assert_eq!(running.executed(exec(10, 1000, Some(A))), [(1000, Event::Start(A))]);
        assert_eq!(running.executed(exec(11, 1000, Some(A))), []);
        assert!(running.runs(1000, A) && !running.runs(1000, ProgramId(2)));
        assert_eq!(running.ended(10), None);
        assert_eq!(running.ended(10), None, "reported twice");
        let becomes = running.executed(exec(11, 1000, None));
        assert_eq!(becomes, [(1000, Event::Stop(A))], "it became another program");
        assert_eq!(running.ended(99), None);
    }

    #[test]
    fn a_program_that_is_learned_while_it_runs_does_not_start_again() {
        let mut running = with_users(Running::default(), &[1000]);
        let unknown = Executed { is_event: false, ..exec(10, 1000, Some(A)) };
        assert_eq!(running.executed(unknown), [], "nobody knows it yet");
        assert!(running.runs(1000, A));
        assert_eq!(running.executed(exec(11, 1000, Some(A))), [], "a second document, or a tab");
        assert_eq!([running.ended(11), running.ended(10)], [None, None], "its start was no event");
        assert_eq!(running.executed(exec(12, 1000, Some(A))), [(1000, Event::Start(A))]);
    }

    #[test]
    fn a_program_runs_for_each_account() {
        let people = People::new(Owners::new("anna:100000:65536\n", "anna:x:1000:1000::/:\n"));
        let mut running = with_users(Running::new(people), &[120, 1000, 1001, 100_033]);
        assert_eq!(running.executed(exec(10, 120, Some(A))), [(120, Event::Start(A))], "the greeter");
        assert!(running.runs(0, A) && !running.runs(1000, A), "services are on one account");
        assert_eq!(running.executed(exec(11, 1000, Some(A))), [(1000, Event::Start(A))]);
        assert_eq!(running.executed(exec(12, 1001, Some(A))), [(1001, Event::Start(A))]);
        assert_eq!(running.executed(exec(13, 100_033, Some(A))), [], "a container of the person");
        assert_eq!(running.ended(10), Some((120, Event::Stop(A))));
        assert!(running.runs(1000, A) && !running.runs(0, A));
        let becomes = running.executed(exec(12, 0, None));
        assert_eq!(becomes, [(1001, Event::Stop(A))], "its user's program ended");
    }

    #[test]
    fn a_session_is_a_persons_first_process() {
        let mut running = Running::default();
        // Two processes that ran before.
        [10, 11].iter().for_each(|pid| running.found(exec(*pid, 1000, None)));
        assert_eq!(running.executed(exec(14, 1000, None)), []);
        let first = running.executed(exec(12, 1001, Some(A)));
        assert_eq!(first, [(1001, Event::Session), (1001, Event::Start(A))]);
        assert_eq!(running.executed(exec(13, 0, None)), []);
        [10, 11, 14].iter().for_each(|pid| _ = running.ended(*pid));
        let again = running.executed(exec(15, 1000, None));
        assert_eq!(again, [(1000, Event::Session)], "logged out and in again");
    }

    #[test]
    fn a_known_log_in_counts_more_than_processes() {
        let mut running = with_users(Running::default(), &[1000]);
        let by = |log_in, pid, uid| Executed { log_in: Some(log_in), ..exec(pid, uid, None) };
        assert_eq!(running.executed(by(true, 20, 1000)), [(1000, Event::Session)], "beside a lingering one");
        assert_eq!(running.executed(by(false, 21, 1001)), [], "cron's job");
        assert_eq!(running.executed(by(true, 22, 0)), [], "root is no person");
    }

    #[test]
    fn a_process_whose_end_was_lost_is_found() {
        let mut running = Running::default();
        [10, 11, 12].iter().for_each(|pid| drop(running.executed(exec(*pid, 1000, Some(A)))));
        assert_eq!(running.without(&BTreeSet::from([1, 11])), [10, 12]);
    }

    #[test]
    fn it_is_bounded() {
        let mut running = Running::default();
        (0..MOST as u32 + 10).for_each(|pid| drop(running.executed(exec(pid + 1, 1000, Some(A)))));
        let of_program = running.programs[&(1000, A)].processes;
        assert_eq!((running.by_pid.len(), of_program, running.users[&1000]), (MOST, MOST, MOST));
    }
}
