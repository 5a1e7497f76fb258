//! Units: the processes that are slowed, stopped and ended together. Pure.
//!
//! A service, an app's scope or a container is a unit as a whole, if nothing in it is protected and it is one user's. In a login
//! session, which has protected processes, and where several users have programs (jobs of `at`, a mail server, notebooks below root's hub),
//! each job is one.

use std::collections::{BTreeMap, BTreeSet};

use eke_model::process::is_of_service;
use eke_model::units::Bytes;

use crate::growth::Growth;
use crate::process::Process;

/// What a unit is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitKey {
    /// A whole control group, relative to the unified hierarchy.
    ControlGroup(String),
    /// A process group of a session.
    Job {
        /// The session.
        session: u32,
        /// The process group.
        group: u32,
    },
}

/// A unit with its growth.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit<'a> {
    /// Which.
    pub key: UnitKey,
    /// Its processes, the largest first.
    pub processes: Vec<&'a Process>,
    /// Their memory.
    pub size: Bytes,
    /// By how much it grew within the last ten seconds.
    pub grown: Bytes,
    /// How much the unit is to blame, in bytes: recent growth counts most, size a little, and the size of a process that
    /// declares itself dispensable (`oom_score_adj` above 0) more.
    pub score: f64,
}

/// Weights of the growth within 10 s, a minute and ten minutes: what grows now outweighs what was just started, and both what
/// has grown for long.
const WEIGHTS: [f64; 3] = [4.0, 2.0, 1.0];
/// The weight of size: it decides only where nothing grew.
const SIZE_WEIGHT: f64 = 0.1;

/// All units of processes that are not protected. `least`: the size of the smallest unit that may be chosen.
pub fn units<'a>(
    processes: &'a [Process],
    protected: &BTreeSet<u32>,
    growth: &Growth,
    least: Bytes,
) -> Vec<Unit<'a>> {
    let kept = |p: &Process| protected.contains(&p.id.pid);
    let mut shared: BTreeSet<&str> =
        processes.iter().filter(|p| kept(p)).map(|p| p.control_group.as_str()).collect();
    shared.extend(of_several_users(processes));
    let mut by_key: BTreeMap<UnitKey, Vec<&Process>> = BTreeMap::new();
    for process in processes.iter().filter(|p| !kept(p)) {
        by_key.entry(key(process, &shared)).or_default().push(process);
    }
    let all = by_key.into_iter().map(|(key, members)| unit(key, members, growth)).collect();
    with_swarms(with_crowds(all, growth), growth, least)
}

/// Groups in which more than one user has programs. Root is one beside a user who logs in, who would else end root's daemon; beside a service's own user,
/// and in a container, whose users are not the machine's, it is none.
fn of_several_users(processes: &[Process]) -> impl Iterator<Item = &str> {
    let mut users: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for process in processes.iter().filter(|p| p.user != 0 || p.has_roots_name()) {
        users.entry(&process.control_group).or_default().insert(process.owner());
    }
    let logs_in = |users: &BTreeSet<u32>| users.iter().any(|user| !is_of_service(*user));
    let are_several = move |users: &BTreeSet<u32>| match users.contains(&0) {
        true => users.len() > 2 || logs_in(users),
        false => users.len() > 1,
    };
    users.into_iter().filter(move |(_, users)| are_several(users)).map(|(group, _)| group)
}

/// So many jobs of one program that grow at once are one unit: a fork bomb.
const CROWD: usize = 3;

/// Unites jobs of the same user and program that grow.
fn with_crowds<'a>(all: Vec<Unit<'a>>, growth: &Growth) -> Vec<Unit<'a>> {
    let is_member = |u: &Unit<'a>| matches!(u.key, UnitKey::Job { .. }) && u.grown.0 > 0;
    let (members, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_member);
    let mut by_program: BTreeMap<(String, u32), Vec<Unit<'a>>> = BTreeMap::new();
    for member in members {
        let of = member.processes.first().map(|p| (p.name.clone(), p.owner())).unwrap_or_default();
        by_program.entry(of).or_default().push(member);
    }
    for crowd in by_program.into_values() {
        match crowd.first() {
            Some(first) if crowd.len() >= CROWD => {
                let key = first.key.clone();
                let together = crowd.into_iter().flat_map(|unit| unit.processes).collect();
                others.push(unit(key, together, growth));
            }
            _ => others.extend(crowd),
        }
    }
    others
}

/// So many small units of a user that grow at once are one, whatever their names, if they grow by so many times the smallest size that may be
/// chosen: a memory stressor in many pieces, each of them too small to be chosen.
const SWARM: usize = 8;
const SWARM_GREW: u64 = 3;

fn with_swarms<'a>(all: Vec<Unit<'a>>, growth: &Growth, least: Bytes) -> Vec<Unit<'a>> {
    let is_member = |u: &Unit<'a>| u.size < least && u.grown.0 > 0;
    let (members, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_member);
    let mut by_user: BTreeMap<u32, Vec<Unit<'a>>> = BTreeMap::new();
    for member in members {
        by_user.entry(member.processes.first().map_or(0, |p| p.owner())).or_default().push(member);
    }
    for (user, swarm) in by_user {
        let grown: Bytes = swarm.iter().map(|unit| unit.grown).sum();
        let is_one = user != 0 && swarm.len() >= SWARM && grown.0 >= least.0.saturating_mul(SWARM_GREW);
        match swarm.first().and_then(|unit| unit.processes.first()) {
            Some(first) if is_one => {
                let key = UnitKey::Job { session: first.session, group: first.group };
                let together = swarm.into_iter().flat_map(|unit| unit.processes).collect();
                others.push(unit(key, together, growth));
            }
            _ => others.extend(swarm),
        }
    }
    others
}

fn key(process: &Process, shared: &BTreeSet<&str>) -> UnitKey {
    let group = process.control_group.as_str();
    if is_whole(group) && !shared.iter().any(|s| *s == group || is_below(s, group)) {
        UnitKey::ControlGroup(group.to_owned())
    } else {
        UnitKey::Job { session: process.session, group: process.group }
    }
}

fn is_below(group: &str, above: &str) -> bool {
    group.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a group stands for one service, app or container: not the root group, a slice, or a login session.
fn is_whole(group: &str) -> bool {
    let leaf = group.rsplit('/').next().unwrap_or_default();
    let is_session = leaf.starts_with("session-") && leaf.ends_with(".scope");
    !leaf.is_empty() && !leaf.ends_with(".slice") && !is_session && leaf != "init.scope"
}

fn unit<'a>(key: UnitKey, mut processes: Vec<&'a Process>, growth: &Growth) -> Unit<'a> {
    processes.sort_by_key(|p| std::cmp::Reverse((p.size, p.id)));
    let size = processes.iter().map(|p| p.size).sum();
    let score = processes.iter().map(|p| blame(p, growth)).sum();
    let grown = processes.iter().map(|p| growth.now(p)).sum();
    Unit { key, processes, size, grown, score }
}

/// The score of one process.
pub fn blame(process: &Process, growth: &Growth) -> f64 {
    let weight = SIZE_WEIGHT + f64::from(process.oom_score_adj.max(0)) / 1_000.0;
    growth_score(process, growth) + process.size.0 as f64 * weight
}

/// The part of the score that its growth gives, in bytes.
pub fn growth_score(process: &Process, growth: &Growth) -> f64 {
    growth.of(process).iter().zip(WEIGHTS).map(|(grown, weight)| grown.0 as f64 * weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::History;
    use crate::growth::tests::grown;
    use crate::process::tests::process;
    use crate::shortage::InUse;

    fn of(processes: &[Process], protected: &[u32]) -> Vec<UnitKey> {
        let protected = protected.iter().copied().collect();
        let mut keys: Vec<UnitKey> =
            units(processes, &protected, &grown(&History::default(), processes, 0), Bytes(0))
                .into_iter()
                .map(|u| u.key)
                .collect();
        keys.sort();
        keys
    }

    fn in_group(pid: u32, group: &str) -> Process {
        Process { control_group: group.into(), ..process(pid, "x", u64::from(pid)) }
    }

    #[test]
    fn a_service_is_one_unit_and_a_session_has_one_for_each_job() {
        let whole = |g: &str| UnitKey::ControlGroup(g.into());
        let job = |group| UnitKey::Job { session: 7, group };
        let both = [in_group(5, "system.slice/a.service"), in_group(6, "system.slice/a.service")];
        assert_eq!(of(&both, &[]), [whole("system.slice/a.service")]);
        assert_eq!(of(&both, &[5]), [job(6)], "nothing that is protected is taken along");
        assert_eq!(of(&[process(5, "a", 1), process(6, "b", 2)], &[]), [job(5), job(6)]);
        assert_eq!(of(&[in_group(5, ""), in_group(6, "user.slice")], &[]), [job(5), job(6)]);
        assert_eq!(of(&[in_group(5, "docker/0a1b")], &[]), [whole("docker/0a1b")]);
        assert_eq!(of(&[in_group(5, "a/b"), in_group(6, "a/b/c")], &[6]), [job(5)], "a group above it");
    }

    #[test]
    fn a_group_of_several_users_has_jobs() {
        let of = |users: [u32; 3], is_contained| {
            let members = (5..).zip(users);
            let member = |(pid, user)| Process {
                user,
                is_roots: user == 0,
                is_contained,
                ..in_group(pid, "system.slice/hub.service")
            };
            of(&members.map(member).collect::<Vec<_>>(), &[])
        };
        let whole = [UnitKey::ControlGroup("system.slice/hub.service".into())];
        let jobs = [5, 6, 7].map(|group| UnitKey::Job { session: 7, group });
        assert_eq!(of([1000; 3], false), whole);
        assert_eq!(of([0, 1000, 1001], false), jobs);
        assert_eq!(of([33, 1000, 1000], false), jobs);
        assert_eq!(of([0, 1000, 1000], false), jobs, "the user ends no daemon of root");
        assert_eq!(of([0, 33, 33], false), whole, "a service's own user");
        assert_eq!(of([0, 33, 34], false), jobs);
        assert_eq!(of([0, 1000, 1000], true), whole, "in a container");
    }

    #[test]
    fn a_container_of_a_user_with_subordinate_uids_is_one_unit() {
        let group = "user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1.scope";
        let both = [1000, 100_998].map(|user| Process { user, ..in_group(user, group) });
        assert_eq!(of(&both, &[]), [UnitKey::ControlGroup(group.into())]);
    }

    #[test]
    fn what_grew_lately_comes_before_what_is_large() {
        let mut history = History::default();
        history.push(0, &[process(5, "browser", 600), process(6, "leak", 10)], InUse::default());
        let now = [process(5, "browser", 620), process(6, "leak", 100)];
        let found = units(&now, &BTreeSet::new(), &grown(&history, &now, 60_000), Bytes(0));
        let most = found.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap();
        assert_eq!(most.processes[0].name, "leak");
        let tab = Process { oom_score_adj: 300, ..process(8, "tab", 620) };
        let tab = std::slice::from_ref(&tab);
        let found = units(tab, &BTreeSet::new(), &grown(&History::default(), tab, 0), Bytes(0));
        assert!(found[0].score > 620.0 * 7.3 * 1_048_576.0, "a tab says that it can go");
    }
}
