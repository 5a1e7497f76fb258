//! Other programs that set what eke sets, or do what one of its remedies does.

use std::collections::BTreeMap;

use eke_linux::Root;

use super::parse;
use crate::facts::Other;

const TUNED: [&str; 2] = ["usr/sbin/tuned", "usr/bin/tuned"];
/// The profile in use; several are separated by blanks.
const TUNED_PROFILE: &str = "etc/tuned/active_profile";
/// tuned starts at boot, or runs.
const TUNED_ON: [&str; 3] = [
    "etc/systemd/system/multi-user.target.wants/tuned.service",
    "run/tuned/tuned.pid",
    "etc/runlevels/default/tuned",
];
/// The directories of profiles, the first one wins: tuned 2.24 added `profiles`.
const TUNED_DIRS: [&str; 4] = ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// Profiles include others; a longer chain is a cycle.
const MOST_PROFILES: usize = 16;

/// The directories of sysctl.d(5), and the file that `sysctl --system` and Debian's link `99-sysctl.conf` read last.
const SYSCTL_DIRS: [&str; 5] =
    ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];
const SYSCTL_CONF: &str = "etc/sysctl.conf";

const PRELOAD: &str = "usr/sbin/preload";
const PRELOAD_ON: [&str; 3] = [
    "etc/systemd/system/multi-user.target.wants/preload.service",
    "etc/rc2.d/S01preload",
    "etc/runlevels/default/preload",
];

/// The installed ones.
pub(crate) fn installed(root: &Root, oom_daemons: &[String]) -> Vec<Other> {
    let daemon = |name: &String| Other {
        name: name.clone(),
        active: true,
        does: "kills programs when memory is short".into(),
        sets: Vec::new(),
    };
    let programs = tuned(root).into_iter().chain(preload(root)).chain(oom_daemons.iter().map(daemon));
    programs.chain(sysctl(root)).collect()
}

fn exists(root: &Root, files: &[&str]) -> bool {
    // Units are enabled by links, whose targets may be outside this root.
    files.iter().any(|file| root.path(file).symlink_metadata().is_ok())
}

fn tuned(root: &Root) -> Option<Other> {
    if !exists(root, &TUNED) {
        return None;
    }
    let profile = root.read(TUNED_PROFILE).unwrap_or_default().trim().to_owned();
    let active = !profile.is_empty() && exists(root, &TUNED_ON);
    let sets = if active { settings(root, &profile) } else { Vec::new() };
    let does = if profile.is_empty() { "has no profile".into() } else { format!("profile {profile}") };
    Some(Other { name: "tuned".into(), active, does, sets })
}

/// What the profiles set of what eke can set, each once.
fn settings(root: &Root, profile: &str) -> Vec<String> {
    let mut waiting: Vec<String> = profile.split_whitespace().map(str::to_owned).collect();
    let (mut seen, mut sets) = (Vec::new(), Vec::new());
    while let Some(name) = waiting.pop() {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !plain || name.starts_with('.') || seen.contains(&name) || seen.len() >= MOST_PROFILES {
            continue;
        }
        let text = TUNED_DIRS.iter().find_map(|dir| root.read(format!("{dir}/{name}/tuned.conf")).ok());
        let (includes, found) = parse::tuned_profile(&text.unwrap_or_default());
        seen.push(name);
        waiting.extend(includes);
        sets.extend(found);
    }
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The file that sets each of eke's knobs at boot: of files with one name the first directory's counts, and of those the last one by name that has the knob.
fn sysctl(root: &Root) -> Vec<Other> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in SYSCTL_DIRS {
        let names = root.list(dir).unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            files.entry(name.clone()).or_insert_with(|| format!("{dir}/{name}"));
        }
    }
    let last = root.exists(SYSCTL_CONF).then(|| SYSCTL_CONF.to_owned());
    let mut by_knob: BTreeMap<&str, (String, u32)> = BTreeMap::new();
    for file in files.into_values().chain(last) {
        for (knob, value) in parse::sysctl_values(&root.read(&file).unwrap_or_default()) {
            by_knob.insert(knob, (file.clone(), value));
        }
    }
    let other = |(knob, (file, value)): (&str, (String, u32))| Other {
        name: format!("/{file}"),
        active: true,
        does: format!("{knob} = {value}"),
        sets: vec![knob.to_owned()],
    };
    by_knob.into_iter().map(other).collect()
}

fn preload(root: &Root) -> Option<Other> {
    exists(root, &[PRELOAD]).then(|| Other {
        name: "preload".into(),
        active: exists(root, &PRELOAD_ON),
        does: "reads files of programs ahead, as `prefetch` does".into(),
        sets: Vec::new(),
    })
}
