//! `eke doctor`: what this kernel supports, each line with its reason.

use std::collections::BTreeSet;

use eke_apply::knob;
use eke_linux::parse::lru_gen;
use eke_linux::parse::release::version;
use eke_linux::read::kernel_release;
use eke_present::exit::{Outcome, Status};
use eke_present::table::Table;
use eke_present::terminal::{columns, folded};
use eke_present::{put, putln};
use eke_swap::Swap;
use eke_swap::facts::Facts;
use eke_swap::probe::has_pressure;

use super::Context;
use super::program::{IO, PREFETCH, Program};
use crate::documents::{self, DoctorLine as Line};

/// The verb.
pub fn run(context: &Context, knobs: bool) -> Outcome {
    if knobs {
        put!("{}", knob::as_markdown());
        return Ok(Status::Done);
    }
    context.print(&document(context)?, show)?;
    Ok(Status::Done)
}

/// All lines.
pub fn document(context: &Context) -> Outcome<documents::Doctor> {
    let facts = Swap.probe(&context.root).map_err(super::plan::failure)?;
    let agent = agent_line(context, &facts)?;
    let kernel = kernel_release(&context.root);
    Ok(documents::Doctor { kernel, lines: lines(context, &facts, agent) })
}

fn show(document: &documents::Doctor) {
    putln!("Linux {}\n", document.kernel);
    let mut table = Table::new(&[]);
    for line in &document.lines {
        table.row([format!("{} {:<22} {}", answer(line), line.what, line.why)]);
    }
    put!("{}", folded(table.to_string().trim_start_matches('\n'), columns(), 29));
}

/// What was found is no answer to a question.
fn answer(line: &Line) -> &'static str {
    match (line.what.as_str(), line.available) {
        ("swap" | "also here" | "hibernation", true) => "  -",
        (_, true) => "yes",
        (_, false) => "no ",
    }
}

fn lines(context: &Context, facts: &Facts, agent: Line) -> Vec<Line> {
    let mut lines = vec![root_line(facts), agent];
    if !context.root.exists("sys/kernel") {
        let why =
            "nothing is mounted on /sys, so most of what follows is not known (mount -t sysfs sysfs /sys)";
        lines.push(line("sysfs", false, "", why));
    }
    lines.push(version_line(&kernel_release(&context.root)));
    if let Some(why) = facts.elsewhere() {
        lines.push(Line { what: "host".to_owned(), available: false, why });
    }
    lines.extend(zram_lines(facts));
    lines.extend(zswap_lines(facts));
    lines.extend(kernel_lines(context, facts));
    lines.push(source_line("launches are seen", &PREFETCH));
    lines.push(source_line("disks are measured", &IO));
    lines.extend(super::cache::fuse::Fuse::host(&context.root).lines());
    lines.extend(super::link::beyond_policy(context).map(|beyond| link_line(&beyond)));
    lines.extend(found_lines(facts));
    for missing in &facts.missing {
        if !lines.iter().any(|l| l.what == missing.what) {
            lines.push(Line { what: missing.what.clone(), available: false, why: missing.why.clone() });
        }
    }
    lines
}

fn agent_line(context: &Context, facts: &Facts) -> Outcome<Line> {
    let found = match eke_client::agent::snapshot(&context.root) {
        Err(silent) if silent.status() == Status::NoAgent => {
            let why = format!("{} (`sudo eke down` ends it, `sudo eke up` starts another)", silent.message());
            return Ok(line("agent", false, "", why));
        }
        found => found?.is_some(),
    };
    let not_running = match facts.elsewhere() {
        Some(_) => "does not run here",
        None => "not running (`sudo eke up` starts it)",
    };
    Ok(line("agent", found, "answers on /run/eke/agent.sock", not_running))
}

fn line(what: &str, available: bool, yes: impl Into<String>, no: impl Into<String>) -> Line {
    Line { what: what.into(), available, why: if available { yes.into() } else { no.into() } }
}

fn why(facts: &Facts, what: &str, otherwise: &str) -> String {
    facts.missing.iter().find(|m| m.what == what).map_or(otherwise.to_owned(), |m| m.why.clone())
}

fn root_line(facts: &Facts) -> Line {
    line(
        "root",
        facts.is_root,
        "settings can be changed",
        "measurements are estimates and nothing can be applied (sudo)",
    )
}

/// The oldest kernel for everything but `eke cache`, which has a line of its own. An unreadable version counts as new enough.
fn version_line(release: &str) -> Line {
    const OLDEST: (u32, u32) = (4, 14);
    let new_enough = version(release).is_none_or(|version| version >= OLDEST);
    line("kernel", new_enough, "4.14 or newer (`eke cache`: 5.6)", "older than 4.14, which eke needs")
}

/// How a daemon measures here: by BPF or by something coarser. The daemon finds out, as root.
fn source_line(what: &str, daemon: &Program) -> Line {
    let program = match daemon.find() {
        Ok(program) => program,
        Err(missing) => return line(what, false, "", missing.to_string()),
    };
    let asked = std::process::Command::new(&program).arg("source").output();
    let (available, why) = match &asked {
        Ok(output) if output.status.success() => (true, String::from_utf8_lossy(&output.stdout)),
        // The daemon runs as root, whoever asks.
        Ok(output) if output.status.code() == Some(4) => {
            (false, "only root can tell: sudo eke doctor".into())
        }
        Ok(output) => (false, String::from_utf8_lossy(&output.stderr)),
        Err(e) => (false, format!("{} cannot be started: {e}", program.display()).into()),
    };
    line(what, available, why.trim(), why.trim())
}

fn link_line(beyond: &BTreeSet<String>) -> Line {
    let names: Vec<&str> = beyond.iter().map(String::as_str).collect();
    let why = format!(
        "blocks in /etc/ssh/ssh_config.d/50-eke-link.conf go beyond the rest of ssh's configuration ({}): `sudo eke link --undo`, or measure again",
        names.join(", ")
    );
    line("ciphers of `eke link`", beyond.is_empty(), "within the rest of ssh's configuration", why)
}

fn zram_lines(facts: &Facts) -> Vec<Line> {
    if facts.elsewhere().is_some() {
        return vec![line("zram", false, "", "not set up from here")];
    }
    let mut lines = vec![zram_line(facts)];
    let Some(f) = &facts.zram.features else {
        lines.extend((lines[0].available).then(|| recompression_line(facts.zram.multi_comp)));
        return lines;
    };
    lines.push(line("zram algorithms", !f.algorithms.is_empty(), f.algorithms.join(", "), "none"));
    lines.push(line(
        "zram parameters",
        f.algorithm_params,
        "levels can be set and are measured",
        "no algorithm_params (Linux 6.12)",
    ));
    lines.push(recompression_line(Some(f.recompression)));
    lines.push(line(
        "zram writeback",
        f.writeback,
        "pages that do not compress can move to a disk (writeback_device)",
        "no backing_dev (Linux 4.14, CONFIG_ZRAM_WRITEBACK)",
    ));
    lines
}

fn zram_line(facts: &Facts) -> Line {
    if facts.zram.loadable {
        return line("zram", true, "its module is not loaded; `eke up` loads it", "");
    }
    line(
        "zram",
        facts.zram.control,
        "devices can be made (hot_add)",
        why(facts, "zram", "no /sys/class/zram-control"),
    )
}

/// `can` is by a device's files, or by the kernel's configuration; `None` if neither shows it.
fn recompression_line(can: Option<bool>) -> Line {
    line(
        "zram recompression",
        can == Some(true),
        "pages that compress badly are recompressed with a stronger algorithm",
        match can {
            Some(_) => "no recomp_algorithm (Linux 6.2, CONFIG_ZRAM_MULTI_COMP)",
            None => "unknown until there is a zram device: the kernel's configuration cannot be read",
        },
    )
}

fn zswap_lines(facts: &Facts) -> Vec<Line> {
    let Some(z) = &facts.zswap else {
        return vec![line("zswap", false, "", why(facts, "zswap", "no /sys/module/zswap (CONFIG_ZSWAP)"))];
    };
    let state = format!(
        "{}, {}, at most {} % of RAM",
        if z.enabled { "on" } else { "off" },
        z.compressor,
        z.max_pool_percent.unwrap_or(0)
    );
    vec![
        line("zswap", true, state, ""),
        line("zswap algorithms", !z.compressors.is_empty(), z.compressors.join(", "), "none"),
        line(
            "zswap shrinker",
            z.shrinker.is_some(),
            "cold pages can move to the disk before the pool is full",
            "no shrinker_enabled (Linux 6.8)",
        ),
    ]
}

fn lru_gen_is_on(context: &Context) -> Option<bool> {
    lru_gen::is_on(&context.root.read("sys/kernel/mm/lru_gen/enabled").ok()?)
}

fn kernel_lines(context: &Context, facts: &Facts) -> Vec<Line> {
    let has = |path: &str| context.root.exists(path);
    let v2 = context
        .root
        .read("sys/fs/cgroup/cgroup.controllers")
        .is_ok_and(|c| c.split_whitespace().any(|w| w == "memory"));
    let v1 = has("sys/fs/cgroup/memory/memory.limit_in_bytes");
    let groups =
        if v2 { "cgroup v2" } else { "cgroup v1 (eke itself charges the compressed pool to the box)" };
    let is_host = facts.elsewhere().is_none();
    let lru_gen = match lru_gen_is_on(context) {
        Some(false) if is_host => "off; `eke up` switches it on with lru_gen = true in the settings",
        Some(false) => "off",
        _ => "reclaim by generations is on; min_ttl_ms can guard against freezes",
    };
    let mut lines = vec![
        line(
            "pressure (PSI)",
            has_pressure(&context.root),
            "the agent is woken by memory pressure",
            "no /proc/pressure that answers (CONFIG_PSI, or psi=1 on the kernel's command line): nothing wakes the agent, and the guard acts only when memory is exhausted",
        ),
        line("memory groups", v1 || v2, groups, "no memory controller: `eke box` and `eke demo` cannot run"),
        line(
            "MGLRU",
            has("sys/kernel/mm/lru_gen/enabled"),
            lru_gen,
            "no /sys/kernel/mm/lru_gen (Linux 6.1, CONFIG_LRU_GEN)",
        ),
    ];
    lines.extend(is_host.then(|| systemd_line(has("run/systemd/system"))));
    lines
}

fn systemd_line(runs: bool) -> Line {
    line(
        "systemd",
        runs,
        "`eke enable` installs a unit",
        "not running; `eke enable` uses the init system that runs",
    )
}

fn found_lines(facts: &Facts) -> Vec<Line> {
    let mut lines = Vec::new();
    for area in &facts.areas {
        lines.push(line(
            "swap",
            true,
            format!("{}: {} used of {}, priority {}", area.path, area.used, area.size, area.priority),
            "",
        ));
    }
    for manager in &facts.managers {
        lines.push(line("also here", true, format!("{} ({})", manager.name, manager.found.join(", ")), ""));
    }
    for other in &facts.others {
        let state = if other.active { "" } else { ", not started at boot" };
        let sets =
            if other.sets.is_empty() { String::new() } else { format!("; sets {}", other.sets.join(", ")) };
        lines.push(line("also here", true, format!("{} ({}{state}{sets})", other.name, other.does), ""));
    }
    if let Some(h) = &facts.hibernation {
        lines.push(line("hibernation", true, format!("to {} (from {})", h.resume, h.source), ""));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_not_loaded_is_no_obstacle() {
        let mut facts = Facts::default();
        facts.zram.loadable = true;
        facts.zram.multi_comp = Some(false);
        let shown = |facts: &Facts| {
            let lines = zram_lines(facts).into_iter();
            lines.map(|l| format!("{} {} {}", l.available, l.what, l.why)).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&facts),
            [
                "true zram its module is not loaded; `eke up` loads it",
                "false zram recompression no recomp_algorithm (Linux 6.2, CONFIG_ZRAM_MULTI_COMP)",
            ]
        );
        facts.zram.loadable = false;
        assert_eq!(shown(&facts), ["false zram no /sys/class/zram-control"]);
    }

    #[test]
    fn an_old_kernel_is_reported_as_old() {
        for release in ["4.14.1", "6.18.44-cloud-amd64\n", ""] {
            assert!(version_line(release).available, "{release}");
        }
        let old = version_line("4.9.0-19-amd64\n");
        assert!(!old.available && old.why.contains("older than 4.14"), "{old:?}");
    }
}
