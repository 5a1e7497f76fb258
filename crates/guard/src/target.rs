//! Which processes to slow, stop or end. Pure.

use std::collections::BTreeMap;

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use crate::process::Process;
use crate::unit::{Unit, UnitKey};

/// A smaller unit gives too little back, and less growth is no cause: a share of RAM.
pub const LEAST_SHARE: f64 = 0.03;
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
    match first {
        Some(unit) if !again(unit) => {
            Some(Target { grows: unit.grown.0 as f64 >= least, ..target(unit, leaders) })
        }
        _ => crowd(units, leaders, least),
    }
}

fn target(unit: &Unit<'_>, leaders: &[u32]) -> Target {
    let members = dispensable(unit).unwrap_or_else(|| unit.processes.clone());
    let whole = members.len() == unit.processes.len();
    let group = match &unit.key {
        UnitKey::ControlGroup(group) if whole => Some(group.clone()),
        _ => None,
    };
    of(unit.key.clone(), &members, group, leaders)
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
    use crate::process::History;
    use crate::process::tests::process;
    use crate::unit::units;

    const RAM: Bytes = Bytes::mib(1024);

    fn chosen(processes: &[Process], ended: &[Ended]) -> Option<(String, Vec<u32>)> {
        let units = units(processes, &BTreeSet::new(), &History::default(), 1_000);
        let target = choose(&units, &[], ended, RAM, 1_000)?;
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
        let large: Vec<Process> = (10..15).map(|pid| process(pid, "hog", 100)).collect();
        assert_eq!(chosen(&large, &[]).unwrap().1.len(), 1);
        let ended = Ended { name: "hog".into(), user: 1000, at_ms: 500 };
        assert_eq!(chosen(&large, &[ended]).unwrap().1.len(), 5, "it came back");
    }
}
