//! Which processes to slow, stop or end. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use eke_model::process::{ProcessId, is_of_service};
use eke_model::units::Bytes;

use crate::growth::Growth;
use crate::process::Process;
use crate::shortage::MOST_RAM;
use crate::unit::{Unit, UnitKey, blame, growth_score};

/// A smaller unit gives too little back, and less growth is no cause: a share of RAM, of [`MOST_RAM`] at most.
pub const LEAST_SHARE: f64 = 0.03;
/// The members of a job that are to blame this much, compared with the worst one, are taken together: not the script that started
/// them.
const AS_BAD: f64 = 0.5;
/// Virtual machines, by the file name of the program: for what runs in one, its end is a power cut.
const VIRTUAL_MACHINES: [&str; 4] = ["VBoxHeadless", "cloud-hypervisor", "firecracker", "qemu-kvm"];
/// One for each architecture. `qemu-x86_64` without `system` runs a single program.
const QEMU: &str = "qemu-system-";
const MANY: usize = 3;

/// Processes that are slowed, stopped and ended together.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The unit that they belong to.
    pub key: UnitKey,
    /// The name of the largest one, as the kernel shows it.
    pub name: String,
    /// Its user.
    pub user: u32,
    /// Whose it is: the user, or the one whose subordinate uid that is.
    pub owner: u32,
    /// All of them.
    pub processes: Vec<ProcessId>,
    /// Their memory.
    pub size: Bytes,
    /// The control group, if they are all of it.
    pub group: Option<String>,
    /// Whether a parent would notice the stop of one of them, and take it for the user's own (Ctrl-Z): a shell at a terminal.
    pub shell_waits: bool,
    /// Whether it grew within the last ten seconds, by [`LEAST_SHARE`] of RAM.
    pub grows: bool,
    /// By how much these processes grew within the last ten seconds.
    pub grown: Bytes,
    /// The shared memory that it mapped within the last minute; part of `size`.
    pub mapped: Bytes,
}

/// The size of the smallest unit that is chosen.
pub fn least(ram: Bytes) -> Bytes {
    ram.min(MOST_RAM).scaled(LEAST_SHARE)
}

/// The target: of the units that grow the one with the highest score; if none grows, of all, virtual machines last, those of a login's user
/// only among that user's own units. `noticed`: the processes whose stop their parents would notice.
pub fn choose(units: &[Unit<'_>], growth: &Growth, noticed: &BTreeSet<u32>, ram: Bytes) -> Option<Target> {
    let least = least(ram);
    let grows = |u: &Unit<'_>| u.grown >= least;
    let large = || units.iter().filter(|u| u.size >= least);
    let rank = |u: &Unit<'_>| (grows(u), !is_spared(u, least), u.score);
    let worst = large().max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal))?;
    let is_instead = |u: &&Unit<'_>| user(u) == user(worst) && !is_virtual_machine(u);
    let others = || large().filter(is_instead).max_by(|a, b| a.score.total_cmp(&b.score));
    let unit = if grows(worst) || !is_virtual_machine(worst) { worst } else { others().unwrap_or(worst) };
    Some(Target { grows: grows(unit), ..target(unit, growth, least, noticed) })
}

/// The unit to blame for shared memory that grew: one of its processes has mapped and touched more than half of it within the last minute, and no
/// program of another owner has. What was only written to a file of tmpfs is mapped by nobody.
pub fn mapper(units: &[Unit<'_>], growth: &Growth, noticed: &BTreeSet<u32>, ram: Bytes) -> Option<Target> {
    let half = Bytes(growth.of_no_process().0.max(least(ram).0) / 2);
    let mapped = |unit: &Unit<'_>| unit.processes.iter().map(|p| growth.mapped(p)).max().unwrap_or_default();
    let mut all: Vec<_> = units.iter().filter(|unit| mapped(unit) > half).collect();
    all.sort_by_key(|unit| mapped(unit));
    let unit = *all.last().filter(|_| growth.of_no_process() >= least(ram))?;
    if all.iter().any(|other| user(other) != user(unit)) {
        return None;
    }
    let (members, group) = match &unit.key {
        UnitKey::ControlGroup(group) => (unit.processes.clone(), Some(group.clone())),
        UnitKey::Job { .. } => {
            let maps = |p: &&Process| growth.mapped(p) > half;
            (unit.processes.iter().copied().filter(maps).collect(), None)
        }
    };
    let mapped = mapped(unit).min(growth.of_no_process());
    let target = of(unit.key.clone(), &members, group, noticed);
    Some(Target { grows: true, mapped, size: target.size + mapped, ..target })
}

/// Whether a unit comes after those of all users: a virtual machine of root or a service that does not grow. Any user can start one.
fn is_spared(unit: &Unit<'_>, least: Bytes) -> bool {
    let is_of_machine = |p: &&Process| p.is_roots || p.user != 0 && is_of_service(p.user);
    unit.grown < least && is_virtual_machine(unit) && unit.processes.first().is_some_and(is_of_machine)
}

/// Its largest process counts: others of the unit serve it. A name counts only if root gave it.
fn is_virtual_machine(unit: &Unit<'_>) -> bool {
    let is_one = |name: &str| name.starts_with(QEMU) || VIRTUAL_MACHINES.contains(&name);
    let name =
        |p: &&Process| p.trusted_program.as_deref().or(p.contained_program.as_deref()).is_some_and(is_one);
    unit.processes.first().is_some_and(name)
}

fn user(unit: &Unit<'_>) -> Option<u32> {
    unit.processes.first().map(|p| p.owner())
}

/// Whether a target may fork while it is ended: it has many processes.
pub fn may_fork(target: &Target) -> bool {
    target.processes.len() >= MANY
}

/// The processes of a target that were forked after all were read as `known`: in its group, or of its user, name and session.
pub fn newborn(
    target: &Target,
    known: &[Process],
    now: &[Process],
    protected: &BTreeSet<u32>,
) -> Vec<ProcessId> {
    let was_there = |id: ProcessId| known.iter().any(|p| p.id == id);
    let is_member = |p: &&Process| target.processes.contains(&p.id);
    let sessions: BTreeSet<u32> = known.iter().filter(is_member).map(|p| p.session).collect();
    let is_of_it = |p: &&Process| match &target.group {
        Some(group) => p.control_group == *group,
        None => p.owner() == target.owner && p.name == target.name && sessions.contains(&p.session),
    };
    let is_new = |p: &&Process| is_of_it(p) && !was_there(p.id) && !protected.contains(&p.id.pid);
    now.iter().filter(is_new).map(|p| p.id).collect()
}

/// Whether programs of another user took the memory that are not chosen, because they are protected, in units too small, or virtual
/// machines that come last: together they grew by a share of RAM that counts, and by more than all of the target's unit (its largest tab
/// may be an old one). What a user does in a protected program (a shell, a program with another library), or in many small ones, must not
/// end other users' programs. The guard then does nothing; the kernel's OOM killer chooses by size. `protected`: the pids.
pub fn is_anothers_fault(
    target: &Target,
    units: &[Unit<'_>],
    processes: &[Process],
    protected: &BTreeSet<u32>,
    growth: &Growth,
    ram: Bytes,
) -> bool {
    let least = least(ram);
    let is_passed_over = |unit: &&Unit<'_>| unit.size < least || is_spared(unit, least);
    let in_units = units.iter().filter(is_passed_over).flat_map(|unit| &unit.processes);
    let passed_over: BTreeSet<u32> = in_units.map(|p| p.id.pid).collect();
    let is_not_chosen = |pid: u32| protected.contains(&pid) || passed_over.contains(&pid);
    let is_other = |p: &&Process| is_not_chosen(p.id.pid) && !p.is_roots && p.owner() != target.owner;
    let mut by_user: BTreeMap<u32, (Bytes, f64)> = BTreeMap::new();
    for process in processes.iter().filter(is_other) {
        let (grown, score) = by_user.entry(process.owner()).or_default();
        let [.., within_ten_minutes] = growth.of(process);
        *grown = *grown + within_ten_minutes;
        *score += growth_score(process, growth);
    }
    let units_score: f64 = members(target, units).map(|p| growth_score(p, growth)).sum();
    by_user.values().any(|(grown, score)| *grown >= least && *score > units_score)
}

/// The processes of the target's unit, of which the target may be one.
pub(crate) fn members<'p>(target: &Target, units: &[Unit<'p>]) -> impl Iterator<Item = &'p Process> {
    units.iter().filter(|unit| unit.key == target.key).flat_map(|unit| unit.processes.iter().copied())
}

fn target(unit: &Unit<'_>, growth: &Growth, least: Bytes, noticed: &BTreeSet<u32>) -> Target {
    let (members, group) = match (dispensable(unit, growth, least), &unit.key) {
        (Some(tab), _) => (vec![tab], None),
        (None, UnitKey::ControlGroup(group)) => (unit.processes.clone(), Some(group.clone())),
        (None, UnitKey::Job { .. }) => (to_blame(unit, growth), None),
    };
    let grown = members.iter().map(|p| growth.now(p)).sum();
    Target { grown, ..of(unit.key.clone(), &members, group, noticed) }
}

/// The worst member, and those that are nearly as bad.
fn to_blame<'a>(unit: &Unit<'a>, growth: &Growth) -> Vec<&'a Process> {
    let score = |p: &Process| blame(p, growth);
    let worst = unit.processes.iter().map(|p| score(p)).fold(0.0, f64::max);
    unit.processes.iter().copied().filter(|p| score(p) >= worst * AS_BAD).collect()
}

fn of(key: UnitKey, members: &[&Process], group: Option<String>, noticed: &BTreeSet<u32>) -> Target {
    let first = members.first();
    Target {
        key,
        name: first.map(|p| p.name.clone()).unwrap_or_default(),
        user: first.map_or(0, |p| p.user),
        owner: first.map_or(0, |p| p.owner()),
        processes: members.iter().map(|p| p.id).collect(),
        size: members.iter().map(|p| p.size).sum(),
        group,
        shell_waits: members.iter().any(|p| noticed.contains(&p.id.pid)),
        grows: false,
        grown: Bytes(0),
        mapped: Bytes(0),
    }
}

/// Of the processes that a program itself declares more dispensable than its first one (browsers do with tabs) the one that grew most; where
/// none grew, the worst by size, those in the background first. `None` unless together they have most of the unit's memory, and of its growth.
fn dispensable<'a>(unit: &Unit<'a>, growth: &Growth, least: Bytes) -> Option<&'a Process> {
    let pids: BTreeSet<u32> = unit.processes.iter().map(|p| p.id.pid).collect();
    let first = unit.processes.iter().filter(|p| !pids.contains(&p.parent)).map(|p| p.oom_score_adj).min()?;
    let tabs = || unit.processes.iter().copied().filter(move |p| p.oom_score_adj > first);
    let grown = |p: &Process| growth_score(p, growth);
    let by_tabs: f64 = tabs().map(grown).sum();
    let in_all: f64 = unit.processes.iter().map(|p| grown(p)).sum();
    let is_most = tabs().map(|p| p.size).sum::<Bytes>().0 >= unit.size.0 / 2
        && (in_all < least.0 as f64 || by_tabs >= in_all / 2.0);
    // Less than this is noise.
    let much = |p: &Process| Some(grown(p)).filter(|grown| *grown >= least.0 as f64).unwrap_or_default();
    let rank = |p: &Process| (much(p), blame(p, growth));
    tabs().filter(|_| is_most).max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
