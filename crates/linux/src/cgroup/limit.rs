//! Which control groups are at their memory limit.

use eke_model::sample::Pressure;

use crate::parse::{keyed, pressure};
use crate::root::Root;

/// The most groups to read.
const GROUPS: usize = 4096;
/// A group with this share of its limit is at it: the kernel reclaims in batches.
const AT_LIMIT: f64 = 0.9;
/// Tasks of the group wait from this share of the last 10 s on, in percent.
const WAITS: f64 = 1.0;
/// cgroup v1 prints a number near 2^63 for no limit.
const NO_LIMIT_FROM: u64 = 1 << 60;

/// One hierarchy with the memory controller.
struct Files {
    top: &'static str,
    limits: &'static [&'static str],
    usage: &'static str,
    /// What counts how often the limit was reached.
    reached: Reached,
}

enum Reached {
    /// `memory.events.local` (Linux 5.2), which leaves the groups below out, or `memory.events`.
    Events,
    /// `memory.failcnt` of cgroup v1, which counts no waiting of each group.
    FailCount,
}

const V2: Files = Files {
    top: "sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    reached: Reached::Events,
};
const HIERARCHIES: [Files; 3] = [
    V2,
    Files { top: "sys/fs/cgroup/unified", ..V2 },
    Files {
        top: "sys/fs/cgroup/memory",
        limits: &["memory.limit_in_bytes"],
        usage: "memory.usage_in_bytes",
        reached: Reached::FailCount,
    },
];

/// A group at its memory limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtLimit {
    /// `user.slice/app`.
    pub group: String,
    /// How often it reached its limit so far.
    pub reached: u64,
    /// Time in which all its tasks waited for memory so far; `None` on cgroup v1, which does not count it.
    pub stalled_us: Option<u64>,
}

/// The group that is nearest to its limit, if any is at it and its tasks wait for memory: `user.slice/app`. On cgroup v1, which counts no
/// waiting of groups, being at the limit is enough.
pub fn waiting_at_limit(root: &Root) -> Option<String> {
    let waiting = full(root).filter(|(_, files, group)| match files.reached {
        Reached::FailCount => true,
        Reached::Events => pressure(root, files, group).is_some_and(|p| p.some_avg10 >= WAITS),
    });
    waiting.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, _, group)| group)
}

/// The groups at their limit, without `except`, with what shows whether they wait there from one reading to the next. On cgroup v2, one
/// without pressure-stall information does not count as waiting, and is left out.
pub fn at_limit(root: &Root, except: &[&str]) -> Vec<AtLimit> {
    let others = full(root).filter(|(_, _, group)| !except.contains(&group.as_str()));
    let counted = others.filter_map(|(_, files, group)| {
        let stalled_us = match files.reached {
            Reached::FailCount => None,
            Reached::Events => Some(pressure(root, files, &group)?.full_total_us),
        };
        Some(AtLimit { reached: reached(root, files, &group)?, stalled_us, group })
    });
    counted.collect()
}

/// All groups at their limit, with their share of it.
fn full(root: &Root) -> impl Iterator<Item = (f64, &'static Files, String)> {
    HIERARCHIES.iter().flat_map(move |files| {
        let full = move |group: String| {
            let fill = fill(root, files, &group).filter(|fill| *fill >= AT_LIMIT)?;
            Some((fill, files, group))
        };
        groups(root, files).into_iter().filter_map(full)
    })
}

/// The groups whose memory is counted, of all hierarchies: `user.slice/app`.
pub fn with_memory(root: &Root) -> Vec<String> {
    HIERARCHIES.iter().flat_map(|files| groups(root, files)).collect()
}

/// The groups below the root group, which has no limit.
fn groups(root: &Root, files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = vec![String::new()];
    while let Some(group) = above.pop() {
        for name in root.list(format!("{}/{group}", files.top)).unwrap_or_default() {
            let child = if group.is_empty() { name } else { format!("{group}/{name}") };
            if found.len() < GROUPS && root.exists(format!("{}/{child}/{}", files.top, files.usage)) {
                found.push(child.clone());
                above.push(child);
            }
        }
    }
    found
}

/// Its usage as a share of its lowest limit; `None` without a limit.
fn fill(root: &Root, files: &Files, group: &str) -> Option<f64> {
    let number = |file: &str| -> Option<u64> {
        root.read(format!("{}/{group}/{file}", files.top)).ok()?.trim().parse().ok()
    };
    let limits = files.limits.iter().filter_map(|file| number(file));
    let limit = limits.filter(|limit| *limit < NO_LIMIT_FROM).min()?;
    Some(number(files.usage)? as f64 / limit.max(1) as f64)
}

fn pressure(root: &Root, files: &Files, group: &str) -> Option<Pressure> {
    pressure::parse(&root.read(format!("{}/{group}/memory.pressure", files.top)).ok()?)
}

/// How often the group reached its own limit.
fn reached(root: &Root, files: &Files, group: &str) -> Option<u64> {
    let text = |file: &str| root.read(format!("{}/{group}/{file}", files.top)).ok();
    match files.reached {
        Reached::FailCount => text("memory.failcnt")?.trim().parse().ok(),
        Reached::Events => {
            let events = text("memory.events.local").or_else(|| text("memory.events"))?;
            let count = |name: &str| keyed::count(&events, name).unwrap_or_default();
            Some(count("max").saturating_add(count("high")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[expect(clippy::disallowed_methods, reason = "a file of a fake machine")]
    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join("sys/fs/cgroup").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn group(root: &Path, name: &str, max: &str, current: &str, some_avg10: &str) {
        put(root, &format!("{name}/memory.max"), max);
        put(root, &format!("{name}/memory.high"), "max\n");
        put(root, &format!("{name}/memory.current"), current);
        let pressure = format!(
            "some avg10={some_avg10} avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
        );
        put(root, &format!("{name}/memory.pressure"), &pressure);
    }

    #[test]
    fn only_a_group_at_its_limit_whose_tasks_wait() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert_eq!(waiting_at_limit(&root), None);
        group(dir.path(), "user.slice", "max\n", "900\n", "50.00");
        group(dir.path(), "user.slice/half", "1000\n", "500\n", "50.00");
        group(dir.path(), "user.slice/calm", "1000\n", "1000\n", "0.00");
        assert_eq!(waiting_at_limit(&root), None);
        group(dir.path(), "user.slice/full", "1000\n", "950\n", "50.00");
        group(dir.path(), "user.slice/high", "max\n", "990\n", "3.00");
        put(dir.path(), "user.slice/high/memory.high", "1000\n");
        assert_eq!(waiting_at_limit(&root).as_deref(), Some("user.slice/high"));
    }

    #[test]
    fn a_group_without_pressure_does_not_wait_on_cgroup_v2() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        put(dir.path(), "box/memory.max", "1000\n");
        put(dir.path(), "box/memory.current", "1000\n");
        put(dir.path(), "box/memory.events", "low 0\nhigh 0\nmax 9\n");
        assert_eq!((waiting_at_limit(&root), at_limit(&root, &[])), (None, Vec::new()));
    }

    #[test]
    fn groups_at_their_limit_are_counted_by_their_own_events() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        group(dir.path(), "above", "1000\n", "990\n", "50.00");
        put(dir.path(), "above/memory.events", "low 0\nhigh 2\nmax 30\noom 1\n");
        let found = |reached| vec![AtLimit { group: "above".into(), reached, stalled_us: Some(7) }];
        assert_eq!(at_limit(&root, &[]), found(32), "before Linux 5.2");
        put(dir.path(), "above/memory.events.local", "low 0\nhigh 1\nmax 3\noom 0\n");
        assert_eq!(at_limit(&root, &[]), found(4));
        assert_eq!(at_limit(&root, &["above"]), []);
    }

    #[test]
    fn cgroup_v1_counts_no_waiting_of_groups() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "memory/free/memory.limit_in_bytes", "9223372036854771712\n");
        put(dir.path(), "memory/free/memory.usage_in_bytes", "9000\n");
        assert_eq!(waiting_at_limit(&Root::at(dir.path())), None);
        put(dir.path(), "memory/free/box/memory.limit_in_bytes", "1000\n");
        put(dir.path(), "memory/free/box/memory.usage_in_bytes", "999\n");
        assert_eq!(waiting_at_limit(&Root::at(dir.path())).as_deref(), Some("free/box"));
        put(dir.path(), "memory/free/box/memory.failcnt", "12\n");
        let counted = AtLimit { group: "free/box".into(), reached: 12, stalled_us: None };
        assert_eq!(at_limit(&Root::at(dir.path()), &[]), [counted]);
    }
}
