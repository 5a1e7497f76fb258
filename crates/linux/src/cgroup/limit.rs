//! Which control group is at its memory limit.

use crate::parse::pressure;
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
}

const HIERARCHIES: [Files; 3] = [
    Files { top: "sys/fs/cgroup", limits: &["memory.max", "memory.high"], usage: "memory.current" },
    Files { top: "sys/fs/cgroup/unified", limits: &["memory.max", "memory.high"], usage: "memory.current" },
    Files { top: "sys/fs/cgroup/memory", limits: &["memory.limit_in_bytes"], usage: "memory.usage_in_bytes" },
];

/// The group that is nearest to its limit, if any is at it and its tasks wait for memory: `user.slice/app`. Where the kernel counts no waiting for
/// each group, being at the limit is enough.
pub fn waiting_at_limit(root: &Root) -> Option<String> {
    let fullest = found(root).max_by(|a, b| a.0.total_cmp(&b.0));
    fullest.map(|(_, group)| group)
}

/// Whether such a group waits that is none of `except`.
pub fn any_waits_at_limit(root: &Root, except: &[&str]) -> bool {
    found(root).any(|(_, group)| !except.contains(&group.as_str()))
}

fn found(root: &Root) -> impl Iterator<Item = (f64, String)> {
    HIERARCHIES.iter().flat_map(move |files| {
        let waiting = move |group: String| {
            let fill = fill(root, files, &group).filter(|fill| *fill >= AT_LIMIT)?;
            waits(root, files, &group).then_some((fill, group))
        };
        groups(root, files).into_iter().filter_map(waiting)
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

fn waits(root: &Root, files: &Files, group: &str) -> bool {
    let text = root.read(format!("{}/{group}/memory.pressure", files.top));
    text.ok().and_then(|text| pressure::parse(&text)).is_none_or(|p| p.some_avg10 >= WAITS)
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
            "some avg10={some_avg10} avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
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
        assert!(any_waits_at_limit(&root, &["user.slice/high"]));
        assert!(!any_waits_at_limit(&root, &["user.slice/high", "user.slice/full"]));
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
    }
}
