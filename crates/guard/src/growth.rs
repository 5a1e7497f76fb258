//! By how much each process grew lately. Pure.
//!
//! A process that was forked has its parent's pages, and the kernel counts them for both until one of them writes
//! (fork(2), copy-on-write). They are no growth, as long as all programs together did not grow by them. Of what all grew, nobody has
//! written more than a page for each of its page faults: forks that do nothing take no blame from the one that writes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use crate::process::Process;
use crate::shortage::InUse;

/// Ages of the tables that growth is compared with.
const AGES_MS: [u64; 3] = [10_000, 60_000, 600_000];
/// A table this soon after the last one adds nothing.
const APART_MS: u64 = 5_000;
/// Forks of forks are followed so far.
const GENERATIONS: usize = 8;

/// What every process had at a time.
#[derive(Debug, Default)]
struct Table {
    at_ms: u64,
    in_use: InUse,
    processes: BTreeMap<ProcessId, Had>,
}

#[derive(Debug, Clone, Copy)]
struct Had {
    size: Bytes,
    shared: Bytes,
    written: Bytes,
}

/// Tables of the last ten minutes, oldest first.
#[derive(Debug, Default)]
pub struct History {
    tables: VecDeque<Table>,
    /// Processes in the tables that were ended by the guard.
    ended: BTreeSet<ProcessId>,
}

impl History {
    /// Keeps the sizes of all processes at this time, and what they have together, unless the last ones are fresh.
    pub fn push(&mut self, at_ms: u64, processes: &[Process], in_use: InUse) {
        if self.tables.back().is_some_and(|last| at_ms.saturating_sub(last.at_ms) < APART_MS) {
            return;
        }
        let had = |p: &Process| Had { size: p.size, shared: p.shared, written: p.written };
        let processes = processes.iter().map(|p| (p.id, had(p))).collect();
        self.tables.push_back(Table { at_ms, in_use, processes });
        self.thin(at_ms);
        self.ended.retain(|id| self.tables.iter().any(|table| table.processes.contains_key(id)));
    }

    /// These were ended: what they had is given back.
    pub fn note_end(&mut self, processes: &[ProcessId]) {
        self.ended.extend(processes);
    }

    /// Keeps two minutes in steps of five seconds, and what is older in steps of a minute.
    fn thin(&mut self, now_ms: u64) {
        let mut kept_ms = None::<u64>;
        self.tables.retain(|table| {
            let age_ms = now_ms.saturating_sub(table.at_ms);
            let step_ms = if age_ms > 120_000 { 60_000 } else { APART_MS };
            let keep = age_ms <= AGES_MS[2] + 60_000
                && kept_ms.is_none_or(|kept| table.at_ms.saturating_sub(kept) >= step_ms);
            kept_ms = if keep { Some(table.at_ms) } else { kept_ms };
            keep
        });
    }

    /// How these processes grew. `in_use`: what all have now.
    pub fn growth(&self, processes: &[Process], in_use: InUse, now_ms: u64) -> Growth {
        let by_pid: BTreeMap<u32, &Process> = processes.iter().map(|p| (p.id.pid, p)).collect();
        let inherited: Vec<Bytes> =
            processes.iter().map(|p| self.inherited(p, &by_pid, GENERATIONS).unwrap_or_default()).collect();
        let shared = shared(processes, &inherited);
        let mut grown: BTreeMap<ProcessId, [Bytes; 3]> = BTreeMap::new();
        for (age, age_ms) in AGES_MS.into_iter().enumerate() {
            let then = self.before(now_ms, age_ms);
            for (process, bytes) in
                processes.iter().zip(grown_since(then, processes, &inherited, &shared, in_use.private))
            {
                grown.entry(process.id).or_default()[age] = bytes;
            }
        }
        let [_, minute_ms, _] = AGES_MS;
        let by_processes = grown.values().map(|[_, within_a_minute, _]| *within_a_minute).sum();
        let then = self.before(now_ms, minute_ms);
        let had = |p: &Process| then.and_then(|t| t.processes.get(&p.id)).map(|had| had.shared);
        Growth {
            of_no_process: self.of_no_process(then, processes, in_use, by_processes),
            mapped: processes
                .iter()
                .map(|p| (p.id, p.shared.saturating_sub(had(p).unwrap_or_default())))
                .collect(),
            grown,
        }
    }

    /// The newest table that is at least so old, else the oldest.
    fn before(&self, now_ms: u64, age_ms: u64) -> Option<&Table> {
        let old = |t: &&Table| now_ms.saturating_sub(t.at_ms) >= age_ms;
        self.tables.iter().rev().find(old).or(self.tables.front())
    }

    /// What was taken since a table without any process having grown by it. Swapped out, shared memory is in swap and no longer in `Shmem`, so it is
    /// what all took less what the processes did. What an ended one gave back hides none of it.
    fn of_no_process(
        &self,
        then: Option<&Table>,
        processes: &[Process],
        in_use: InUse,
        by_processes: Bytes,
    ) -> Bytes {
        let Some(then) = then else { return Bytes(0) };
        let has = |id| processes.iter().find(|p| p.id == id).map_or(Bytes(0), |p| p.size);
        let gave_back = |id: &ProcessId| Some(then.processes.get(id)?.size.saturating_sub(has(*id)));
        let given_back: Bytes = self.ended.iter().filter_map(gave_back).sum();
        let taken = (in_use.all() + given_back).saturating_sub(then.in_use.all() + by_processes);
        let most = in_use.shared_or_swapped() + given_back;
        taken.min(most.saturating_sub(then.in_use.shared_or_swapped()))
    }

    /// What a process had of its parent when it was forked: the parent's size in the last table before that, or in the oldest table. `None`
    /// if it has no parent of the same program; if it executed a program since, the pages are not shared.
    fn inherited(
        &self,
        child: &Process,
        by_pid: &BTreeMap<u32, &Process>,
        generations: usize,
    ) -> Option<Bytes> {
        let parent = by_pid.get(&child.parent)?;
        let is_fork = child.file.is_some() && parent.file == child.file && parent.id != child.id;
        if !is_fork {
            return None;
        }
        let lacks_child = |t: &&Table| !t.processes.contains_key(&child.id);
        let before = self.tables.iter().rev().find(lacks_child).or(self.tables.front())?;
        let had = before.processes.get(&parent.id).map(|had| had.size);
        had.or_else(|| self.inherited(parent, by_pid, generations.checked_sub(1)?))
    }
}

/// The most that each process can share with one that it forked, or with its parent.
fn shared(processes: &[Process], inherited: &[Bytes]) -> Vec<Bytes> {
    let mut by_parent: BTreeMap<u32, Bytes> = BTreeMap::new();
    for (process, bytes) in processes.iter().zip(inherited) {
        let most = by_parent.entry(process.parent).or_default();
        *most = (*most).max(*bytes);
    }
    let with_forks = |p: &Process| by_parent.get(&p.id.pid).copied().unwrap_or_default();
    processes.iter().zip(inherited).map(|(p, bytes)| with_forks(p).max(*bytes).min(p.size)).collect()
}

/// The growth of each process since a table, in the order of `processes`. One that is younger has grown from what it `inherited`.
/// If all together grew by more than that, processes have written to what they have `shared` with their parent or forks: then each of them grew
/// by its share of the rest, as far as it can have written so much.
fn grown_since(
    then: Option<&Table>,
    processes: &[Process],
    inherited: &[Bytes],
    shared: &[Bytes],
    private: Bytes,
) -> Vec<Bytes> {
    let had = |p: &Process| then.and_then(|t| t.processes.get(&p.id)).copied();
    let own = |p: &Process, inherited: Bytes| p.size.saturating_sub(had(p).map_or(inherited, |had| had.size));
    let own: Vec<Bytes> = processes.iter().zip(inherited).map(|(p, i)| own(p, *i)).collect();
    // What is new in a process was written to, too.
    let copied = |p: &Process, own: Bytes| {
        let before = had(p).map_or(Bytes(0), |had| had.written);
        p.written.saturating_sub(before).saturating_sub(own)
    };
    let members = processes.iter().zip(&own).zip(shared);
    let shares: Vec<Bytes> = members.map(|((p, own), shared)| copied(p, *own).min(*shared)).collect();
    let all = private.saturating_sub(then.map_or(private, |t| t.in_use.private));
    let rest = all.saturating_sub(own.iter().copied().sum());
    let part = (rest.0 as f64 / shares.iter().copied().sum::<Bytes>().0.max(1) as f64).min(1.0);
    own.into_iter().zip(shares).map(|(own, share)| own + share.scaled(part)).collect()
}

/// By how much processes grew within the last 10 s, minute and ten minutes. One that is younger than that has grown from
/// nothing, or from what its parent had; without a table that old, the oldest one counts.
#[derive(Debug, Default)]
pub struct Growth {
    grown: BTreeMap<ProcessId, [Bytes; 3]>,
    of_no_process: Bytes,
    mapped: BTreeMap<ProcessId, Bytes>,
}

impl Growth {
    /// Of one of the processes.
    pub fn of(&self, process: &Process) -> [Bytes; 3] {
        self.grown.get(&process.id).copied().unwrap_or_default()
    }

    /// Within the last ten seconds.
    pub fn now(&self, process: &Process) -> Bytes {
        self.of(process)[0]
    }

    /// Within the last minute.
    pub fn within_a_minute(&self, process: &Process) -> Bytes {
        self.of(process)[1]
    }

    /// What was taken within the last minute and is in no process: shared memory, files of tmpfs.
    pub fn of_no_process(&self) -> Bytes {
        self.of_no_process
    }

    /// How much more of that a process maps than a minute ago. A fork begins with none of it: its
    /// faults map these pages (`vma_needs_copy`, mm/memory.c).
    pub fn mapped(&self, process: &Process) -> Bytes {
        self.mapped.get(&process.id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::process::FileId;
    use crate::process::tests::process;

    fn private(mib: u64) -> InUse {
        InUse { private: Bytes::mib(mib), ..InUse::default() }
    }

    /// The growth of processes that have no memory in common, or all that they inherited.
    pub(crate) fn grown(history: &History, processes: &[Process], now_ms: u64) -> Growth {
        history.growth(processes, InUse::default(), now_ms)
    }

    #[test]
    fn growth_is_against_each_age() {
        let mut history = History::default();
        history.push(0, &[process(5, "a", 10)], InUse::default());
        history.push(590_000, &[process(5, "a", 50)], InUse::default());
        history.push(595_000, &[process(5, "a", 60)], InUse::default());
        let of = |p: Process| grown(&history, std::slice::from_ref(&p), 600_000).of(&p);
        assert_eq!(of(process(5, "a", 100)), [50, 90, 90].map(Bytes::mib));
        assert_eq!(of(process(6, "new", 9)), [Bytes::mib(9); 3]);
        assert_eq!(of(process(5, "a", 5)), [Bytes(0); 3], "it shrank");
    }

    #[test]
    fn what_no_process_grew_by_is_shared_memory_also_in_swap_and_after_an_end() {
        let in_use = |private, shared| InUse { shared: Bytes::mib(shared), ..self::private(private) };
        let of_no_process = |now: &[Process], in_use, ended: &[Process]| {
            let mut history = History::default();
            history.push(0, &[process(5, "a", 300), process(6, "b", 100)], private(400));
            ended.iter().for_each(|p| history.note_end(&[p.id]));
            history.growth(now, in_use, 30_000).of_no_process().0 >> 20
        };
        let both = [process(5, "a", 300), process(6, "b", 150)];
        assert_eq!(of_no_process(&both, in_use(450, 0), &[]), 0);
        assert_eq!(of_no_process(&both, in_use(450, 200), &[]), 200);
        let half_in_swap = InUse { swapped: Bytes::mib(100), ..in_use(550, 100) };
        assert_eq!(of_no_process(&both, half_in_swap, &[]), 200);
        assert_eq!(of_no_process(&both, in_use(650, 0), &[]), 0, "anonymous memory is some process'");
        assert_eq!(of_no_process(&both[1..], in_use(150, 200), &[]), 0, "who knows what was in it");
        assert_eq!(of_no_process(&both[1..], in_use(150, 200), &both[..1]), 200, "that was ended");
        assert_eq!(of_no_process(&both[1..], in_use(150, 0), &both[..1]), 0);
    }

    #[test]
    fn the_history_stays_small() {
        let mut history = History::default();
        (0..3_000).for_each(|s| history.push(s * 1_000, &[process(5, "a", 10)], InUse::default()));
        assert!((30..=40).contains(&history.tables.len()), "{}", history.tables.len());
        let last = history.tables.back().unwrap().at_ms;
        assert!(history.tables.iter().any(|t| last - t.at_ms >= 600_000));
    }

    fn executes(inode: u64, parent: u32, process: Process) -> Process {
        Process { parent, file: Some(FileId { device: (8, 1), inode }), ..process }
    }

    /// The growth of server 5's child 6 in the last ten seconds, in MiB: the server had 400 MiB, all programs grew by `all`.
    fn of_child(child: Process, all: u64) -> u64 {
        let server = executes(1, 1, process(5, "server", 400));
        let mut history = History::default();
        history.push(0, std::slice::from_ref(&server), private(500));
        let now = [server, child];
        history.push(10_000, &now, private(500 + all));
        history.growth(&now, private(500 + all), 12_000).now(&now[1]).0 >> 20
    }

    #[test]
    fn a_forked_child_has_not_grown_by_its_parents_pages() {
        let child = |inode, parent, mib| executes(inode, parent, process(6, "child", mib));
        assert_eq!(of_child(child(1, 5, 400), 0), 0);
        assert_eq!(of_child(child(1, 5, 460), 60), 60, "what it took itself");
        assert_eq!(of_child(child(2, 5, 400), 400), 400, "another program");
        assert_eq!(of_child(child(1, 1, 400), 400), 400, "not its child");
        let unknown = Process { file: None, ..child(1, 5, 400) };
        assert_eq!(of_child(unknown, 400), 400);
    }

    #[test]
    fn what_a_forked_child_wrote_to_is_its_growth() {
        let child = executes(1, 5, process(6, "child", 400));
        assert_eq!(of_child(child.clone(), 100), 100);
        assert_eq!(of_child(child, 900), 400, "no more than it has");
    }

    /// Server 5 with 400 MiB and its forks 6 and on, with what each has written: 10 s ago, when they were `old`, and now. All programs grew by
    /// `all`. Their growth in the last ten seconds, in MiB.
    fn of_family(old: &[u64], now: &[u64], all: u64) -> Vec<u64> {
        let family = |written: &[u64]| -> Vec<Process> {
            let member = |(pid, written): (u32, &u64)| {
                let parent = if pid == 5 { 1 } else { 5 };
                Process { written: Bytes::mib(*written), ..executes(1, parent, process(pid, "server", 400)) }
            };
            (5..).zip(written).map(member).collect()
        };
        let mut history = History::default();
        history.push(0, &family(old), private(500));
        let now = family(now);
        let growth = history.growth(&now, private(500 + all), 12_000);
        now.iter().map(|p| growth.now(p).0 >> 20).collect()
    }

    #[test]
    fn forks_that_write_nothing_take_no_blame_from_the_one_that_writes() {
        assert_eq!(of_family(&[400], &[400, 1, 1, 1, 1, 400], 404), [0, 1, 1, 1, 1, 400]);
        assert_eq!(of_family(&[400], &[400, 0, 300, 300], 300), [0, 0, 150, 150]);
    }

    #[test]
    fn a_parent_that_writes_to_what_its_forks_keep_grew_by_it() {
        assert_eq!(of_family(&[400], &[800, 0], 400), [400, 0]);
        assert_eq!(of_family(&[400], &[9_000, 0], 900), [400, 0], "no more than they share");
        assert_eq!(of_family(&[400], &[900], 400), [0], "it has no forks");
    }

    #[test]
    fn a_fork_that_waits_before_it_writes_grew_by_it() {
        assert_eq!(of_family(&[400, 0], &[400, 400], 400), [0, 400]);
        assert_eq!(of_family(&[400, 400], &[400, 400], 400), [0, 0]);
    }

    #[test]
    fn where_a_fault_copies_huge_pages_forks_share_what_all_grew() {
        let unlimited = u64::MAX >> 20;
        assert_eq!(of_family(&[unlimited], &[unlimited; 3], 400), [0, 200, 200]);
    }

    #[test]
    fn forks_of_forks_are_followed_also_in_a_circle() {
        let server = executes(1, 1, process(5, "server", 400));
        let mut history = History::default();
        history.push(0, std::slice::from_ref(&server), InUse::default());
        let fork = |pid, parent| executes(1, parent, process(pid, "child", 400));
        let all = [server, fork(6, 5), fork(7, 6), fork(8, 9), fork(9, 8)];
        let growth = grown(&history, &all, 5_000);
        assert_eq!([1, 2, 3, 4].map(|i| growth.now(&all[i]).0 >> 20), [0, 0, 400, 400]);
    }
}
