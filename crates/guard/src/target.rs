//! Which processes to slow, stop or end. Pure.

use std::collections::BTreeMap;

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use crate::process::{History, Process};
use crate::unit::{Unit, UnitKey, blame};

/// A smaller unit gives too little back, and less growth is no cause: a share of RAM.
pub const LEAST_SHARE: f64 = 0.03;
/// The members of a job that are to blame this much, compared with the worst one, are taken together: not the script that started
/// them.
const AS_BAD: f64 = 0.5;
/// A program was ended and came back within this time: its siblings go with it.
const SIBLINGS_MS: u64 = 15_000;

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
    /// Whether it grew within the last minute, by [`LEAST_SHARE`] of RAM.
    pub grows: bool,
}

/// A program that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Its user.
    pub user: u32,
    /// When.
    pub at_ms: u64,
}

/// The target among `units`, which are sorted by blame. `leaders` are session leaders, which shells at a terminal are.
pub fn choose(
    units: &[Unit<'_>],
    history: &History,
    leaders: &[u32],
    ended: &[Ended],
    ram: Bytes,
    now_ms: u64,
) -> Option<Target> {
    let least = ram.0 as f64 * LEAST_SHARE;
    let large = |u: &&Unit<'_>| u.size.0 as f64 >= least;
    let first = units.iter().find(large);
    let again = |u: &Unit<'_>| {
        let of = u.processes.first();
        ended.iter().any(|e| {
            now_ms.saturating_sub(e.at_ms) <= SIBLINGS_MS
                && of.is_some_and(|p| (p.name.as_str(), p.user) == (e.name.as_str(), e.user))
        })
    };
    let alone = |unit: &Unit<'_>| !again(unit) && !leads_a_crowd(unit, units);
    match first {
        Some(unit) if alone(unit) => {
            let score = |p: &Process| blame(p, history, now_ms);
            Some(Target { grows: unit.grown.0 as f64 >= least, ..target(unit, score, leaders) })
        }
        _ => crowd(units, leaders, least),
    }
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

/// Whether units of the same user and program, all as new, have together three times as much.
fn leads_a_crowd(unit: &Unit<'_>, units: &[Unit<'_>]) -> bool {
    let of = |u: &Unit<'_>| u.processes.first().map(|p| (p.name.clone(), p.user));
    let is_new = |u: &&Unit<'_>| u.grown == u.size;
    let (who, is_job) = (of(unit), matches!(unit.key, UnitKey::Job { .. }));
    let all: Bytes = units.iter().filter(|u| of(u) == who).filter(is_new).map(|u| u.size).sum();
    is_job && is_new(&unit) && all.0 >= unit.size.0.saturating_mul(3)
}

/// All jobs of one user and program together: many small processes, each in a session of its own.
fn crowd(units: &[Unit<'_>], leaders: &[u32], least: f64) -> Option<Target> {
    #[derive(Default)]
    struct Crowd<'a> {
        score: f64,
        grown: f64,
        members: Vec<&'a Process>,
    }
    let mut by_name: BTreeMap<(&str, u32), Crowd<'_>> = BTreeMap::new();
    for process in units.iter().flat_map(|u| &u.processes) {
        by_name.entry((&process.name, process.user)).or_default().members.push(process);
    }
    for unit in units {
        if let Some(first) = unit.processes.first() {
            let crowd = by_name.entry((&first.name, first.user)).or_default();
            crowd.score += unit.score;
            crowd.grown += unit.grown.0 as f64;
        }
    }
    let size = |crowd: &Crowd<'_>| crowd.members.iter().map(|p| p.size.0 as f64).sum::<f64>();
    let large = by_name.into_values().filter(|crowd| size(crowd) >= least);
    let most = large.max_by(|a, b| a.score.total_cmp(&b.score))?;
    let first = most.members.first()?;
    let key = UnitKey::Job { session: first.session, group: first.group };
    Some(Target { grows: most.grown >= least, ..of(key, &most.members, None, leaders) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::process::tests::process;
    use crate::unit::units;

    const RAM: Bytes = Bytes::mib(1024);

    fn chosen(processes: &[Process], ended: &[Ended]) -> Option<(String, Vec<u32>)> {
        let history = History::default();
        let units = units(processes, &BTreeSet::new(), &history, 1_000);
        let target = choose(&units, &history, &[], ended, RAM, 1_000)?;
        let mut pids: Vec<u32> = target.processes.iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        Some((target.name, pids))
    }

    #[test]
    fn the_unit_most_to_blame_is_chosen_if_it_gives_something_back() {
        let all = [process(5, "editor", 40), process(6, "hog", 400), process(8, "small", 1)];
        assert_eq!(chosen(&all, &[]), Some(("hog".into(), vec![6])));
        assert_eq!(chosen(&all[2..], &[]), None);
    }

    #[test]
    fn of_a_job_those_with_the_memory_are_chosen() {
        let member = |pid, name, mib| Process { group: 5, ..process(pid, name, mib) };
        let script = member(5, "sh", 1);
        assert_eq!(chosen(&[script.clone(), member(6, "hog", 400)], &[]), Some(("hog".into(), vec![6])));
        let mut build = vec![script, member(6, "make", 2)];
        build.extend((10..14).map(|pid| member(pid, "cc1plus", 100)));
        assert_eq!(chosen(&build, &[]), Some(("cc1plus".into(), vec![10, 11, 12, 13])));
    }

    #[test]
    fn a_tab_goes_before_its_browser() {
        let tab = |pid, mib| Process { oom_score_adj: 300, group: 5, ..process(pid, "tab", mib) };
        let all = [process(5, "browser", 150), tab(6, 100), tab(7, 300)];
        assert_eq!(chosen(&all, &[]), Some(("tab".into(), vec![7])));
    }

    #[test]
    fn many_small_ones_of_a_program_go_together() {
        let mut all: Vec<Process> = (10..60).map(|pid| process(pid, "bomb", 10)).collect();
        all.push(process(5, "editor", 25));
        assert_eq!(chosen(&all, &[]).unwrap().1.len(), 50);
        let large: Vec<Process> = (10..12).map(|pid| process(pid, "hog", 100)).collect();
        assert_eq!(chosen(&large, &[]).unwrap().1.len(), 1);
        let more: Vec<Process> = (10..15).map(|pid| process(pid, "hog", 100)).collect();
        assert_eq!(chosen(&more, &[]).unwrap().1.len(), 5);
        let ended = Ended { name: "hog".into(), user: 1000, at_ms: 500 };
        assert_eq!(chosen(&large, &[ended]).unwrap().1.len(), 2, "it came back");
    }
}
