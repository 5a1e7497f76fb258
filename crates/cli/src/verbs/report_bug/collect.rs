//! Collects what a maintainer needs. Each section is a function; what cannot be read is an `error` in its place.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use eke_apply::boot::enable;
use eke_apply::journal::{self, record::Undo, replay::Entry};
use eke_apply::{files, knob, state};
use eke_client::caches;
use eke_client::snapshot::snapshot;
use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_linux::read::kernel_release;
use eke_model::applied::Applied;
use eke_model::snapshot::Snapshot;
use eke_present::exit::Outcome;
use eke_present::programs;
use eke_swap::decide;
use eke_swap::facts::Facts;
use eke_swap::measure::measurements::Measured;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::verbs::{Context, doctor, plan};

/// The last lines of the agent's log.
const LOG_LINES: usize = 100;
/// Settings and states of the kernel that eke reads.
const FEATURES: [&str; 16] = [
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/lru_gen/enabled",
    "sys/kernel/mm/lru_gen/min_ttl_ms",
    "sys/module/zswap/parameters/enabled",
    "sys/module/zswap/parameters/compressor",
    "sys/module/zswap/parameters/max_pool_percent",
    "sys/module/zswap/parameters/shrinker_enabled",
    "sys/fs/cgroup/cgroup.controllers",
    "proc/sys/vm/swappiness",
    "proc/sys/vm/page-cluster",
    "proc/sys/vm/overcommit_memory",
    "proc/sys/vm/min_free_kbytes",
    "proc/sys/vm/watermark_scale_factor",
    "proc/sys/vm/vfs_cache_pressure",
    "proc/sys/vm/dirty_bytes",
    "proc/pressure/memory",
];
/// Words of the kernel's command line that concern eke; all others may identify the machine.
const BOOT_WORDS: [&str; 8] = [
    "zswap.",
    "psi",
    "cgroup",
    "swapaccount",
    "transparent_hugepage",
    "systemd.unified_cgroup_hierarchy",
    "maxcpus",
    "mitigations",
];
/// Types of file systems that FUSE programs give themselves and that name no user.
const FUSE: [&str; 7] = ["eke-cache", "sshfs", "portal", "gvfsd-fuse", "lxcfs", "snapfuse", "ntfs-3g"];

/// All sections, by name.
pub fn sections(context: &Context, facts: Option<&Facts>) -> Map<String, Value> {
    let root = &context.root;
    let all = [
        ("eke", eke(root)),
        ("kernel", kernel(root)),
        ("distribution", distribution(root)),
        ("features", features(root)),
        ("memory", memory(root)),
        ("mounts", json!(mount_types(&root.read_bytes("proc/self/mountinfo").unwrap_or_default()))),
        ("configuration", configuration(context)),
        ("doctor", of(doctor::document(context))),
        ("plan", plan_of(context, facts)),
        ("status", of(snapshot(&context.root).map(Snapshot::for_all))),
        ("caches", caches(root)),
        ("journal", journaled(root)),
        ("files", changed_files(root)),
        ("log", json!(log(root))),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn of(result: Outcome<impl Serialize>) -> Value {
    match result {
        Ok(value) => serde_json::to_value(value).unwrap_or_else(|e| json!({ "error": e.to_string() })),
        Err(failure) => json!({ "error": failure.message() }),
    }
}

fn eke(root: &Root) -> Value {
    let names = [
        "eke-agent",
        "eke-cache",
        "eke-dash",
        "eke-io",
        "eke-ltsp",
        "eke-prefetch",
        "eke-record",
        "eke-bench",
    ];
    let beside: BTreeMap<&str, bool> =
        names.into_iter().map(|name| (name, programs::beside(name).is_absolute())).collect();
    let exe = std::env::current_exe().unwrap_or_default();
    let dir = exe.parent().and_then(|dir| dir.to_str()).unwrap_or_default();
    let usual = ["/usr/bin", "/usr/local/bin"].contains(&dir);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "in": if usual { dir } else { "another directory" },
        "beside_it": beside,
        "at_boot": enable::state(root).is_ok_and(|state| state.enabled),
    })
}

fn kernel(root: &Root) -> Value {
    let words = root.read("proc/cmdline").unwrap_or_default();
    json!({
        "release": line(root, "proc/sys/kernel/osrelease"),
        "architecture": std::env::consts::ARCH,
        "page_bytes": root.page_size().bytes(),
        "boot_words": words.split_ascii_whitespace().filter(|word| is_about_eke(word)).collect::<Vec<_>>(),
    })
}

fn is_about_eke(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._=-,%".contains(c);
    BOOT_WORDS.iter().any(|known| word.starts_with(known)) && word.len() < 60 && word.chars().all(plain)
}

fn distribution(root: &Root) -> Value {
    let text = root.read("etc/os-release").or_else(|_| root.read("usr/lib/os-release")).unwrap_or_default();
    let value = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"').to_owned()
    };
    let (init, _) = enable::detect(root);
    json!({ "id": value("ID"), "version": value("VERSION_ID"), "init": format!("{init:?}") })
}

fn features(root: &Root) -> Value {
    let found = FEATURES.iter().map(|path| (format!("/{path}"), line(root, path)));
    json!(found.collect::<BTreeMap<_, _>>())
}

/// The first line of a file; `None` if it cannot be read.
fn line(root: &Root, path: &str) -> Option<String> {
    root.read(path).ok().map(|text| text.lines().next().unwrap_or_default().to_owned())
}

fn memory(root: &Root) -> Value {
    let text = root.read("proc/meminfo").unwrap_or_default();
    let sizes = text.lines().filter_map(|line| {
        let (name, size) = line.split_once(':')?;
        let kib: u64 = size.trim().trim_end_matches(" kB").parse().ok()?;
        name.chars().all(|c| c.is_ascii_alphanumeric() || "_()".contains(c)).then(|| (name.to_owned(), kib))
    });
    json!({ "kib": sizes.collect::<BTreeMap<_, _>>() })
}

/// How many mounts each type of file system has. A FUSE program chooses its own type.
fn mount_types(mountinfo: &[u8]) -> BTreeMap<String, usize> {
    let mut types = BTreeMap::new();
    for mount in mountinfo::parse(mountinfo) {
        let plain =
            mount.kind.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
        let of_fuse = ["fuse.", "fuseblk."].iter().find_map(|begin| mount.kind.strip_prefix(begin));
        let kind = match of_fuse {
            Some(program) if !FUSE.contains(&program) => "fuse.other",
            _ if !plain => "other",
            _ => &mount.kind,
        };
        *types.entry(kind.to_owned()).or_default() += 1;
    }
    types
}

/// The settings that differ from the shipped ones. Texts, also in lists, are shown only where they are a choice.
fn configuration(context: &Context) -> Value {
    let shown = |(key, value): (String, String)| {
        let is_choice = key == "swap.algorithm";
        let value = if value.contains('"') && !is_choice { "(set)".to_owned() } else { value };
        (key, value)
    };
    json!(context.settings.changed().into_iter().map(shown).collect::<BTreeMap<_, _>>())
}

/// The applied plan; without one, the plan of the last measurement, or of a new one.
fn plan_of(context: &Context, facts: Option<&Facts>) -> Value {
    if let Some(applied) = state::load::<Applied>(&context.root, state::APPLIED) {
        return json!({ "applied": applied });
    }
    let overrides = plan::with_overrides(context, &crate::args::Overrides::default());
    let kept = state::load::<Measured>(&context.root, state::MEASURED);
    let kept = kept.filter(|measured| measured.kernel == kernel_release(&context.root));
    if let (Some(measured), Some(facts)) = (kept, facts) {
        let decision = decide::decide(facts, &measured, &overrides).map_err(plan::refused);
        return json!({ "measured_before": measured, "decision": of(decision) });
    }
    let made = plan::make(context, &overrides, plan::Effort::Full);
    json!({ "measured_now": of(made.map(|p| json!({ "measured": p.measured, "decision": p.decision }))) })
}

fn caches(root: &Root) -> Value {
    let caches = caches::all(root);
    json!(
        caches.into_iter().map(|cache| json!({ "state": cache.state, "why": cache.why })).collect::<Vec<_>>()
    )
}

/// Settings only: no reasons, and no names of groups.
fn journaled(root: &Root) -> Value {
    match journal::entries(root) {
        Ok(entries) => json!(entries.iter().map(entry).collect::<Vec<_>>()),
        Err(e) => json!({ "error": e.to_string() }),
    }
}

fn entry(entry: &Entry) -> Value {
    let owner = &entry.intent.owner;
    match &entry.intent.undo {
        Undo::Write { knob, target, old, new, .. } => {
            let of_group = knob::find(knob).is_some_and(|k| k.path.starts_with("sys/fs/cgroup"));
            let target = if of_group && !target.is_empty() { "<group>" } else { target };
            json!({ "owner": owner, "knob": knob, "at": target, "old": old, "new": new, "done": entry.done })
        }
        _ => {
            json!({ "owner": owner, "step": entry.intent.step.to_string(), "made": entry.made, "done": entry.done })
        }
    }
}

fn changed_files(root: &Root) -> Value {
    match files::journal::load(root) {
        Ok(records) => {
            let count = |owner: &str| records.iter().filter(|r| r.owner == owner).count();
            let owners = records.iter().map(|r| (r.owner.clone(), count(&r.owner)));
            json!(owners.collect::<BTreeMap<_, _>>())
        }
        Err(e) => json!({ "error": e.to_string() }),
    }
}

/// The agent's last lines: of its own file, or of the system's journal.
fn log(root: &Root) -> Vec<String> {
    // Root's alone. Of another user the report says so.
    let own =
        root.read_if_exists("run/eke/agent.log").map_or_else(|e| format!("{e}\n"), Option::unwrap_or_default);
    let text = if root.is_host() && root.exists("run/systemd/system") { own + &of_systemd() } else { own };
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

fn of_systemd() -> String {
    let mut command = Command::new("journalctl");
    command.args(["--unit=eke.service", "--output=cat", "--no-pager", "--quiet", "--lines=100"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_about_eke_are_taken_from_the_command_line() {
        let words =
            ["root=UUID=7f3c9a52", "zswap.enabled=1", "psi=1", "ip=10.0.0.7", "zswap.x=/home/a", "quiet"];
        assert_eq!(words.map(is_about_eke), [false, true, true, false, false, false]);
    }

    #[test]
    fn a_fuse_program_names_nobody() {
        let mounts = b"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / /m rw - fuse.annas-diary x rw\n5 1 0:5 / /p rw - fuseblk.annas-stick x rw\n3 1 0:3 / /n rw - fuse.sshfs x rw\n4 1 0:4 / /o rw - Anna x rw\n";
        let types: Vec<_> = mount_types(mounts).into_iter().collect();
        let expected = [("ext4", 1), ("fuse.other", 2), ("fuse.sshfs", 1), ("other", 1)];
        assert_eq!(types, expected.map(|(kind, n)| (kind.to_owned(), n)));
    }
}
