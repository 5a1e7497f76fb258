//! What the user may do beyond the plan, and overrides without effect.

use eke_model::guard::{self, Off, Others, Part};
use eke_model::step::{Reason, Step};

use super::backend::{Backend, describe, first_area, is_durable};
use super::overflow::Before;
use super::{Decision, Given, groups, hibernation, overcommit, overflow, steps, writeback};
use crate::facts::{Facts, Other};
use crate::probe::PSI;

/// The highest priority of a swap area: zram cannot be put before it.
const HIGHEST: i32 = i16::MAX as i32;

/// Sentences for the end of the plan, without their periods.
pub(super) fn advice(given: Given<'_>, decision: &Decision) -> Vec<Reason> {
    let changes = !decision.plan.steps.is_empty();
    let mut all = if changes { vec![early_kill(given, decision)] } else { Vec::new() };
    all.extend(match &decision.backend {
        Backend::Zram => zram(given),
        Backend::Zswap { area } => zswap(given, decision, area),
        Backend::Adopted { device } => adopted(given, device),
        Backend::Nothing => Vec::new(),
    });
    all.extend(overwritten(given.facts, decision));
    if given.measured.estimated && !given.measured.algorithms.is_empty() && !given.facts.is_root {
        all.push("the numbers are estimates from user space (run as root to measure)".into());
    }
    let limits = groups::note(given.facts, &decision.backend);
    all.into_iter().map(Reason::new).chain(limits).collect()
}

/// Another program sets what the plan sets, at boot or when somebody selects another profile.
fn overwritten(facts: &Facts, decision: &Decision) -> Vec<String> {
    let planned = |knob: &&String| sets(decision, knob);
    let active = facts.others.iter().filter(|other| other.active);
    let with_both = active.map(|other| {
        (other, other.sets.iter().filter(planned).map(String::as_str).collect::<Vec<_>>().join(", "))
    });
    with_both.filter(|(_, both)| !both.is_empty()).map(|(other, both)| overwrites(other, &both)).collect()
}

fn overwrites(other: &Other, both: &str) -> String {
    let Other { name, does, .. } = other;
    if name.starts_with('/') {
        return format!(
            "{name} ({does}) sets {both}, too: the plan replaces that until `eke down`, or until `sysctl --system` sets it again"
        );
    }
    format!(
        "{name} ({does}) sets {both}, too, and the later one wins: a profile of your own that includes this one, with `drop={}` below [sysctl], leaves it to eke",
        both.replace(", ", ",")
    )
}

/// Compressed swap can turn an OOM kill into a freeze: the machine thrashes in memory instead of failing. The agent's guard acts before that.
fn early_kill(given: Given<'_>, decision: &Decision) -> String {
    let facts = given.facts;
    let others = Others {
        daemon: facts.oom_daemons.first().map(String::as_str),
        lru_gen: if sets(decision, "lru_gen.enabled") { Some(true) } else { facts.lru_gen },
        min_ttl_ms: facts.min_ttl_ms,
    };
    let off = "so eke's guard stays off (guard.enabled = \"on\" runs both)";
    // Swap is compressed by every plan with steps.
    match guard::part(given.overrides.guard, &others, true) {
        Part::LastResort(daemon) => format!(
            "{daemon} runs, so eke's guard is the last resort (guard.enabled = \"on\" runs both): {daemon} counts the free space of compressed swap as free memory and may act late; let it act on available memory or pressure"
        ),
        Part::Nothing(Off::Daemon(daemon)) => format!("{daemon} runs, {off}"),
        Part::Nothing(Off::MinTtl { ms }) => {
            format!("lru_gen/min_ttl_ms is {ms}, {off}: the kernel kills before it evicts a working set of that age")
        }
        Part::Nothing(Off::BySettings) => {
            "guard.enabled = \"off\": if even compressed memory runs out, the machine may freeze for minutes before the kernel ends a program".to_owned()
        }
        Part::All if facts.missing.iter().any(|m| m.what == PSI) => {
            "if even compressed memory is exhausted, the agent's guard stops the program that took it; without PSI (psi=1 on the kernel's command line) it does not notice a freeze before that".to_owned()
        }
        Part::All => {
            "if even compressed memory runs out, the agent's guard stops the program that took it (guard.enabled = \"off\" leaves that to the kernel)".to_owned()
        }
    }
}

/// Does the plan set this knob?
fn sets(decision: &Decision, name: &str) -> bool {
    decision.plan.steps.iter().any(|p| matches!(&p.step, Step::Set { knob, .. } if knob == name))
}

fn zram(given: Given<'_>) -> Vec<String> {
    let facts = given.facts;
    let mut all = Vec::new();
    let effect = "that area stays unchanged, and zram's pool is part of the image that must fit there";
    all.extend(hibernation::note(facts, effect));
    all.extend(overcommit::note(facts));
    all.extend(behind_zram(facts));
    all.extend(same_priority(facts));
    all.extend(writeback::unused(given).map(|r| r.text));
    all.extend(managers(facts));
    all
}

fn behind_zram(facts: &Facts) -> Option<String> {
    let behind = facts.areas.iter().filter(|a| a.zram_name().is_none() && a.priority < HIGHEST);
    let paths: Vec<&str> = behind.map(|a| a.path.as_str()).collect();
    let (stays, takes) = if paths.len() == 1 { ("stays", "takes") } else { ("stay", "take") };
    (!paths.is_empty()).then(|| {
        format!("{} {stays} on behind zram and {takes} pages only when zram is full", paths.join(", "))
    })
}

fn same_priority(facts: &Facts) -> Option<String> {
    let area = facts.areas.iter().find(|a| a.zram_name().is_none() && a.priority >= HIGHEST)?;
    Some(format!(
        "{} has the highest possible priority ({HIGHEST}), so the kernel alternates between it and zram: give it a lower one",
        area.path
    ))
}

fn zswap(given: Given<'_>, decision: &Decision, area: &str) -> Vec<String> {
    let facts = given.facts;
    let mut all = Vec::new();
    let effect = "pages in zswap keep their slots in the swap area, so the image must fit beside them";
    all.extend(hibernation::note(facts, effect));
    all.extend(replaced_zswap(facts, decision));
    all.extend(small_area(given, decision));
    all.extend(
        first_area(facts)
            .filter(|a| a.path == area && !is_durable(a.kind))
            .map(|a| format!("when zswap is full, pages are written to {} ({})", a.path, describe(a.kind))),
    );
    all.extend(
        writeback::requested(given)
            .map(|w| format!("{w} is not used: it is for zram, and zswap writes to {area}")),
    );
    if !decision.plan.steps.is_empty() {
        all.push("`eke swap boot-config` sets the same zswap on the kernel's command line, so that it is on before the first program starts".into());
    }
    all.extend(managers(facts));
    all
}

/// zswap that somebody else set up. eke's own is not: a plan that is applied differs from it in nothing, or in little.
fn replaced_zswap(facts: &Facts, decision: &Decision) -> Option<String> {
    let now =
        facts.zswap.as_ref().filter(|z| z.enabled && !facts.managers.iter().any(|m| m.name == "eke"))?;
    let is_replaced = decision
        .plan
        .steps
        .iter()
        .any(|p| matches!(&p.step, Step::Set { knob, .. } if knob.starts_with("zswap.")));
    let most = now.max_pool_percent.map(|percent| format!(", at most {percent} % of RAM"));
    is_replaced.then(|| {
        format!(
            "zswap is on already ({}{}), and the plan replaces values of it while eke is up (existing = \"leave\" keeps them)",
            now.compressor,
            most.unwrap_or_default()
        )
    })
}

/// Advises more swap if the pool can never be full.
fn small_area(given: Given<'_>, decision: &Decision) -> Option<String> {
    let planned = decision.plan.steps.iter().find_map(|p| match &p.step {
        Step::Set { knob, value, .. } if knob == "zswap.max_pool_percent" => value.parse().ok(),
        _ => None,
    });
    let percent = planned.or(given.facts.zswap.as_ref()?.max_pool_percent)?;
    let ratio = decision.plan.prediction.as_ref()?.ratio;
    let (fits, can) = steps::could_hold(given.facts, percent, ratio);
    (can < fits).then(|| {
        format!(
            "the pool has room for {fits}, but each of its pages needs a slot in a swap area, and these have {can}: more swap on the disk would let it grow"
        )
    })
}

fn adopted(given: Given<'_>, device: &str) -> Vec<String> {
    let facts = given.facts;
    let stat = facts.zram_in_use.iter().find(|z| z.name == device);
    let settings = &given.overrides.settings;
    let other = settings.algorithm != "auto" && stat.is_none_or(|z| z.algorithm != settings.algorithm);
    let ignored = [
        (other, format!("algorithm = \"{}\"", settings.algorithm)),
        (given.overrides.size.is_some(), format!("a size of {}", given.overrides.size.unwrap_or_default())),
    ];
    let ignored = ignored.into_iter().filter(|(is, _)| *is).map(|(_, what)| what);
    let requested = ignored.chain(writeback::requested(given).map(|request| request.to_string()));
    let ignored = requested.map(|what| format!("{what} has no effect while {device} is kept"));
    disk_first(facts).into_iter().chain(ignored).collect()
}

/// `mkswap` and `swapon` without a priority put a device behind every area that is on already.
fn disk_first(facts: &Facts) -> Option<String> {
    let Before { zram, disk } = overflow::before(facts)?;
    let order = if disk.priority > zram.priority { "first" } else { "in turn with zram" };
    Some(format!(
        "swap goes to {} {order}, because its priority ({}) is not below that of {} ({}): give zram a higher one (`swapon -p`)",
        disk.path, disk.priority, zram.path, zram.priority
    ))
}

fn managers(facts: &Facts) -> Option<String> {
    let active = facts.managers.iter().find(|m| m.active)?;
    Some(format!(
        "{} is installed ({}) and sets up its own compressed swap at every boot: `eke enable` works beside it (existing = \"adopt\", \"replace\" or \"leave\" says how), but one of the two is enough; run `eke down` before you remove it",
        active.name,
        active.found.join(", ")
    ))
}
