//! Which processes to slow, stop or end. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use crate::process::{History, Process};
use crate::unit::{Unit, UnitKey, blame, growth_score};

/// A smaller unit gives too little back, and less growth is no cause: a share of RAM.
pub const LEAST_SHARE: f64 = 0.03;
/// The members of a job that are to blame this much, compared with the worst one, are taken together: not the script that started
/// them.
const AS_BAD: f64 = 0.5;
/// Processes that are slowed, stopped and ended together.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The unit that they belong to.
    pub key: UnitKey,
    /// The name of the largest one, as the kernel shows it.
    pub name: String,
    /// Its user.
    pub user: u32,
    /// All of them.
    pub processes: Vec<ProcessId>,
    /// Their memory.
    pub size: Bytes,
    /// The control group, if they are all of it.
    pub group: Option<String>,
    /// Whether a shell at a terminal waits for one of them. It would take a stop for the user's own (Ctrl-Z).
    pub shell_waits: bool,
    /// Whether it grew within the last ten seconds, by [`LEAST_SHARE`] of RAM.
    pub grows: bool,
}

/// The size of the smallest unit that is chosen.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of RAM")]
pub fn least(ram: Bytes) -> Bytes {
    Bytes((ram.0 as f64 * LEAST_SHARE) as u64)
}

/// The target: of the units that grow the one with the highest score; if none grows, of all. `leaders` are session leaders, which
/// shells at a terminal are.
pub fn choose(
    units: &[Unit<'_>],
    history: &History,
    leaders: &[u32],
    ram: Bytes,
    now_ms: u64,
) -> Option<Target> {
    let least = least(ram);
    let grows = |u: &Unit<'_>| u.grown >= least;
    let large = units.iter().filter(|u| u.size >= least);
    let unit = large
        .max_by(|a, b| (grows(a), a.score).partial_cmp(&(grows(b), b.score)).unwrap_or(Ordering::Equal))?;
    let score = |p: &Process| blame(p, history, now_ms);
    Some(Target { grows: grows(unit), ..target(unit, score, leaders) })
}

/// Whether programs of another user took the memory that are never chosen, because they are protected or in units too small: together they grew by a
/// share of RAM that counts, and by more than all of the target's unit (its largest tab may be an old one). What a user does in a protected program
/// (a shell, a program with another library), or in many small ones, must not end other users' programs. The guard then does nothing; the kernel's OOM killer chooses by size. `protected`: the pids.
pub fn is_anothers_fault(
    target: &Target,
    units: &[Unit<'_>],
    processes: &[Process],
    protected: &BTreeSet<u32>,
    history: &History,
    ram: Bytes,
    now_ms: u64,
) -> bool {
    let least = least(ram);
    let in_small = units.iter().filter(|unit| unit.size < least).flat_map(|unit| &unit.processes);
    let small: BTreeSet<u32> = in_small.map(|p| p.id.pid).collect();
    let is_never_chosen = |pid: u32| protected.contains(&pid) || small.contains(&pid);
    let is_other = |p: &&Process| is_never_chosen(p.id.pid) && !p.is_roots && p.user != target.user;
    let mut by_user: BTreeMap<u32, (Bytes, f64)> = BTreeMap::new();
    for process in processes.iter().filter(is_other) {
        let (grown, score) = by_user.entry(process.user).or_default();
        let [.., within_ten_minutes] = history.growth(process, now_ms);
        *grown = *grown + within_ten_minutes;
        *score += growth_score(process, history, now_ms);
    }
    let members = units.iter().filter(|unit| unit.key == target.key).flat_map(|unit| &unit.processes);
    let units_score: f64 = members.map(|p| growth_score(p, history, now_ms)).sum();
    by_user.values().any(|(grown, score)| *grown >= least && *score > units_score)
}

fn target(unit: &Unit<'_>, score: impl Fn(&Process) -> f64, leaders: &[u32]) -> Target {
    let (members, group) = match (dispensable(unit), &unit.key) {
        (Some(tab), _) => (tab, None),
        (None, UnitKey::ControlGroup(group)) => (unit.processes.clone(), Some(group.clone())),
        (None, UnitKey::Job { .. }) => (to_blame(unit, score), None),
    };
    of(unit.key.clone(), &members, group, leaders)
}

/// The worst member, and those that are nearly as bad.
fn to_blame<'a>(unit: &Unit<'a>, score: impl Fn(&Process) -> f64) -> Vec<&'a Process> {
    let worst = unit.processes.iter().map(|p| score(p)).fold(0.0, f64::max);
    unit.processes.iter().copied().filter(|p| score(p) >= worst * AS_BAD).collect()
}

fn of(key: UnitKey, members: &[&Process], group: Option<String>, leaders: &[u32]) -> Target {
    let first = members.first();
    Target {
        key,
        name: first.map(|p| p.name.clone()).unwrap_or_default(),
        user: first.map_or(0, |p| p.user),
        processes: members.iter().map(|p| p.id).collect(),
        size: members.iter().map(|p| p.size).sum(),
        group,
        shell_waits: members.iter().any(|p| leaders.contains(&p.parent)),
        grows: false,
    }
}

/// The largest of the processes that a program itself declares more dispensable than its others (browsers do with tabs), if
/// they have most of its memory.
fn dispensable<'a>(unit: &Unit<'a>) -> Option<Vec<&'a Process>> {
    let most = unit.processes.iter().map(|p| p.oom_score_adj).max()?;
    let least = unit.processes.iter().map(|p| p.oom_score_adj).min()?;
    let tabs: Vec<&Process> = unit.processes.iter().copied().filter(|p| p.oom_score_adj == most).collect();
    let size: Bytes = tabs.iter().map(|p| p.size).sum();
    (most >= least + 100 && size.0 * 2 >= unit.size.0).then(|| tabs.into_iter().take(1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::process;
    use crate::unit::units;

    const RAM: Bytes = Bytes::mib(1024);

    fn chosen_after(history: &History, processes: &[Process]) -> Option<(String, Vec<u32>)> {
        let units = units(processes, &BTreeSet::new(), history, least(RAM), 20_000);
        let target = choose(&units, history, &[], RAM, 20_000)?;
        let mut pids: Vec<u32> = target.processes.iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        Some((target.name, pids))
    }

    fn chosen(processes: &[Process]) -> Option<(String, Vec<u32>)> {
        chosen_after(&History::default(), processes)
    }

    #[test]
    fn the_unit_most_to_blame_is_chosen_if_it_gives_something_back() {
        let all = [process(5, "editor", 40), process(6, "stressor", 400), process(8, "small", 1)];
        assert_eq!(chosen(&all), Some(("stressor".into(), vec![6])));
        assert_eq!(chosen(&all[2..]), None);
    }

    #[test]
    fn of_a_job_those_with_the_memory_are_chosen() {
        let member = |pid, name, mib| Process { group: 5, ..process(pid, name, mib) };
        let script = member(5, "sh", 1);
        assert_eq!(chosen(&[script.clone(), member(6, "stressor", 400)]), Some(("stressor".into(), vec![6])));
        let mut build = vec![script, member(6, "make", 2)];
        build.extend((10..14).map(|pid| member(pid, "cc1plus", 100)));
        assert_eq!(chosen(&build), Some(("cc1plus".into(), vec![10, 11, 12, 13])));
    }

    #[test]
    fn a_tab_goes_before_its_browser() {
        let tab = |pid, mib| Process { oom_score_adj: 300, group: 5, ..process(pid, "tab", mib) };
        let all = [process(5, "browser", 150), tab(6, 100), tab(7, 300)];
        assert_eq!(chosen(&all), Some(("tab".into(), vec![7])));
    }

    #[test]
    fn many_small_ones_of_a_program_go_together() {
        let mut all: Vec<Process> = (10..60).map(|pid| process(pid, "bomb", 10)).collect();
        all.push(process(5, "editor", 25));
        assert_eq!(chosen(&all).unwrap().1.len(), 50);
        let two: Vec<Process> = (10..12).map(|pid| process(pid, "stressor", 100)).collect();
        assert_eq!(chosen(&two).unwrap().1.len(), 1, "two are no crowd");
    }

    #[test]
    fn what_grows_now_comes_before_what_is_new() {
        let mut history = History::default();
        history.push(0, &[]);
        history.push(5_000, &[process(5, "editor", 300)]);
        history.push(10_000, &[process(5, "editor", 300)]);
        let crowd = (10..20).map(|pid| process(pid, "crowd", 10));
        let all: Vec<Process> = crowd.chain([process(5, "editor", 300)]).collect();
        assert_eq!(chosen_after(&history, &all).unwrap().0, "crowd");
        assert_eq!(chosen_after(&history, &all[10..]).unwrap().0, "editor", "nothing grows");
    }

    #[test]
    fn what_a_user_does_in_a_protected_program_ends_nothing_of_another_user() {
        let shell = |user, mib| Process { user, session: 5, ..process(5, "bash", mib) };
        let victim = Process { user: 1002, ..process(6, "victim", 40) };
        let is_spared = |shell: Process| {
            let all = [shell, victim.clone()];
            let protected = BTreeSet::from([5]);
            let history = History::default();
            let units = units(&all, &protected, &history, least(RAM), 0);
            let target = choose(&units, &history, &[], RAM, 0).unwrap();
            assert_eq!(target.name, "victim");
            is_anothers_fault(&target, &units, &all, &protected, &history, RAM, 0)
        };
        assert!(is_spared(shell(1001, 300)));
        assert!(!is_spared(shell(1002, 300)), "of the same user");
        assert!(!is_spared(shell(1001, 35)), "the target took more");
        assert!(!is_spared(Process { is_roots: true, ..shell(0, 300) }));
    }

    /// Pieces of a memory stressor of user 1001, each in a session of its own with a name of its own.
    fn pieces(count: u32, mib: u64) -> impl Iterator<Item = Process> {
        (100..100 + count).map(move |pid| {
            let group = format!("user.slice/user-1001.slice/run-{pid}.scope");
            Process {
                user: 1001,
                session: pid,
                control_group: group,
                ..process(pid, &format!("n{pid}"), mib)
            }
        })
    }

    #[test]
    fn a_stressor_in_many_pieces_is_ended_and_not_another_users_program() {
        let mut history = History::default();
        let victim = process(5, "victim", 100);
        history.push(0, std::slice::from_ref(&victim));
        let all: Vec<Process> = std::iter::once(victim).chain(pieces(40, 20)).collect();
        assert_eq!(chosen_after(&history, &all).unwrap().1, (100..140).collect::<Vec<_>>());
    }

    #[test]
    fn pieces_that_no_longer_grow_end_nothing_of_another_user() {
        let mut history = History::default();
        let victim = process(5, "victim", 100);
        history.push(0, std::slice::from_ref(&victim));
        let all: Vec<Process> = std::iter::once(victim).chain(pieces(40, 20)).collect();
        history.push(300_000, &all);
        let none = BTreeSet::new();
        let units = units(&all, &none, &history, least(RAM), 360_000);
        let target = choose(&units, &history, &[], RAM, 360_000).unwrap();
        assert_eq!(target.name, "victim");
        assert!(is_anothers_fault(&target, &units, &all, &none, &history, RAM, 360_000));
    }

    #[test]
    fn a_few_small_programs_that_grow_are_no_swarm() {
        let all: Vec<Process> = pieces(7, 20).chain([process(5, "editor", 100)]).collect();
        assert_eq!(chosen(&all), Some(("editor".into(), vec![5])));
    }

    #[test]
    fn a_browser_that_grows_in_new_tabs_is_not_spared_for_its_old_tab() {
        let of_browser = |pid, mib, oom_score_adj| Process {
            oom_score_adj,
            control_group: "app.slice/browser.scope".into(),
            ..process(pid, "browser", mib)
        };
        let old = [of_browser(5, 100, 0), of_browser(6, 300, 300)];
        let mut history = History::default();
        history.push(0, &old);
        let mut all = old.to_vec();
        all.extend((10..14).map(|pid| of_browser(pid, 200, 300)));
        all.push(Process { user: 1001, session: 20, ..process(20, "gnome-shell", 40) });
        let protected = BTreeSet::from([20]);
        let units = units(&all, &protected, &history, least(RAM), 600_000);
        let target = choose(&units, &history, &[], RAM, 600_000).unwrap();
        assert_eq!(target.processes, [old[1].id], "the old tab is the largest");
        assert!(!is_anothers_fault(&target, &units, &all, &protected, &history, RAM, 600_000));
    }
}
