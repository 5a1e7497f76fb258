//! Groups in a directory that answers like cgroup v1 and v2.

use eke_linux::discard::Discard;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eke_model::units::Bytes;

use super::{Group, GroupParent, Hierarchy, sweep};
use crate::sys::{FilesOnly, Sys};
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_linux::source::{Files, Source};

const V1_FILES: [(&str, &str); 7] = [
    ("cgroup.procs", ""),
    ("memory.limit_in_bytes", "9223372036854771712\n"),
    ("memory.memsw.limit_in_bytes", "9223372036854771712\n"),
    ("memory.usage_in_bytes", "4096\n"),
    ("memory.swappiness", "60\n"),
    ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
    ("memory.stat", "swap 1\ntotal_swap 8192\ntotal_pgmajfault 7\n"),
];
const V2_FILES: [(&str, &str); 9] = [
    ("cgroup.procs", ""),
    ("cgroup.type", "domain\n"),
    ("cgroup.subtree_control", ""),
    ("cgroup.controllers", "memory\n"),
    ("memory.max", "max\n"),
    ("memory.swap.max", "max\n"),
    ("memory.current", "4096\n"),
    ("memory.events", "low 0\noom 3\noom_kill 2\n"),
    ("memory.stat", "anon 0\npgmajfault 7\npswpin 1\npswpout 2\n"),
];

/// A directory in which a new group gets its files, and removing a group removes them.
struct CgroupFs;

fn fill(dir: &Path) {
    let v1 = dir.components().any(|c| c.as_os_str() == "memory");
    let files = if v1 { V1_FILES.as_slice() } else { V2_FILES.as_slice() };
    for (file, text) in files {
        put(&dir.join(file), text);
    }
}

#[expect(clippy::disallowed_methods, reason = "the fake's own files")]
fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

impl Source for CgroupFs {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Files.read(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Files.list(path)
    }

    fn sleep(&self, _: Duration) {}
}

impl Sys for CgroupFs {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::metadata(path)?;
        let text = String::from_utf8_lossy(bytes);
        put(path, &format!("{}\n", text.trim_start_matches('+').replace("-memory", "")));
        Ok(())
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        FilesOnly.append(path, bytes)
    }
    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        FilesOnly.replace(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        FilesOnly.remove(path)
    }
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|p| !p.exists()).collect();
        missing.reverse();
        FilesOnly.create_dir(path, mode)?;
        missing.into_iter().for_each(fill);
        Ok(())
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let has_groups = std::fs::read_dir(path)?.any(|e| e.is_ok_and(|e| e.path().is_dir()));
        if has_groups {
            Err(io::Error::from_raw_os_error(libc::EBUSY))
        } else {
            std::fs::remove_dir_all(path)
        }
    }
    fn swapon(&self, _: &Path, _: Option<i16>, _: Option<Discard>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn swapoff(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A machine in a directory; `own` is this process's group in the unified hierarchy.
fn machine(own: &str) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let me = std::process::id();
    put(&dir.path().join("proc/self/cgroup"), &format!("4:memory:/\n0::/{own}\n"));
    put(&dir.path().join(format!("proc/{me}/stat")), &format!("{me} (x) S{}\n", " 5".repeat(30)));
    let root = crate::sys::simulated(dir.path(), Arc::new(CgroupFs));
    (dir, root)
}

fn v1() -> (tempfile::TempDir, Root) {
    let (dir, root) = machine("");
    fill(&dir.path().join("sys/fs/cgroup/memory"));
    put(&dir.path().join("sys/fs/cgroup/unified/cgroup.procs"), "1\n");
    (dir, root)
}

/// A machine's root group has no type, but processes.
fn v2(own: &str) -> (tempfile::TempDir, Root) {
    let (dir, root) = machine(own);
    let top = dir.path().join("sys/fs/cgroup");
    put(&top.join("cgroup.controllers"), "cpu memory\n");
    put(&top.join("cgroup.subtree_control"), "\n");
    put(&top.join("cgroup.procs"), "1\n");
    (dir, root)
}

fn tree(root: &Root) -> Vec<(String, String)> {
    fn walk(dir: &Path, out: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                out.push((entry.path().display().to_string(), String::new()));
                walk(&entry.path(), out);
            } else {
                out.push((
                    entry.path().display().to_string(),
                    std::fs::read_to_string(entry.path()).unwrap().trim().to_owned(),
                ));
            }
        }
    }
    let mut out = Vec::new();
    walk(&root.path("sys/fs/cgroup"), &mut out);
    out.sort();
    out
}

fn text(root: &Root, group: &Group, file: &str) -> String {
    root.read(format!("{}/{file}", group.dir())).unwrap().trim().to_owned()
}

#[test]
fn a_v1_group_and_its_twin_come_and_go() {
    let (_dir, root) = v1();
    let before = tree(&root);
    let parent = GroupParent::find(&root).unwrap();
    let group = Group::make(&root, &parent, "box").unwrap();
    assert_eq!(group.hierarchy(), Hierarchy::V1);
    group.limit(Bytes(10_000_000)).unwrap();
    group.swappiness(100).unwrap();
    group.admit(42).unwrap();
    assert_eq!(text(&root, &group, "memory.limit_in_bytes"), "9998336", "whole pages");
    assert_eq!(text(&root, &group, "memory.swappiness"), "100");
    assert_eq!(group.pids().unwrap(), [42]);
    let stats = group.stats().unwrap();
    assert_eq!((stats.usage, stats.swapped, stats.oom_kills), (Bytes(4096), Bytes(8192), 2));
    assert_eq!((stats.major_faults, stats.swap_pages), (7, None));
    group.remove().unwrap();
    assert_eq!(tree(&root), before);
}

#[test]
fn a_v1_group_without_swap_accounting_forbids_swap_by_swappiness() {
    let (_dir, root) = v1();
    let group = Group::make(&root, &GroupParent::find(&root).unwrap(), "box").unwrap();
    group.forbid_swap(Bytes::mib(64)).unwrap();
    assert_eq!(text(&root, &group, "memory.memsw.limit_in_bytes"), "67108864");
    std::fs::remove_file(root.path(format!("{}/memory.memsw.limit_in_bytes", group.dir()))).unwrap();
    group.forbid_swap(Bytes::mib(64)).unwrap();
    assert_eq!(text(&root, &group, "memory.swappiness"), "0");
}

#[test]
fn on_v2_the_controller_is_enabled_and_disabled_again() {
    let (_dir, root) = v2("a.scope");
    let before = tree(&root);
    let group = Group::make(&root, &GroupParent::find(&root).unwrap(), "box").unwrap();
    let second = Group::make(&root, &GroupParent::find(&root).unwrap(), "other").unwrap();
    assert!(group.dir().starts_with("sys/fs/cgroup/eke/box-"));
    assert_eq!(root.read("sys/fs/cgroup/cgroup.subtree_control").unwrap().trim(), "memory");
    group.limit(Bytes::mib(64)).unwrap();
    group.forbid_swap(Bytes::mib(64)).unwrap();
    assert_eq!(text(&root, &group, "memory.swap.max"), "0");
    assert_eq!(group.stats().unwrap().swap_pages, Some((1, 2)));
    assert!(group.swappiness(10).is_err());
    drop(second);
    assert_eq!(root.read("sys/fs/cgroup/cgroup.subtree_control").unwrap().trim(), "memory", "one is left");
    group.remove().unwrap();
    assert_eq!(tree(&root), before);
}

#[test]
fn on_v2_an_enabled_controller_stays_enabled() {
    let (dir, root) = v2("");
    put(&dir.path().join("sys/fs/cgroup/cgroup.subtree_control"), "memory\n");
    let before = tree(&root);
    Group::make(&root, &GroupParent::find(&root).unwrap(), "box").unwrap().remove().unwrap();
    assert_eq!(tree(&root), before);
}

#[test]
fn on_v2_the_controller_stays_enabled_for_other_users_of_it() {
    let (dir, root) = v2("");
    let group = Group::make(&root, &GroupParent::find(&root).unwrap(), "box").unwrap();
    fill(&dir.path().join("sys/fs/cgroup/theirs"));
    put(&dir.path().join("sys/fs/cgroup/theirs/memory.max"), "4096\n");
    group.remove().unwrap();
    assert_eq!(root.read("sys/fs/cgroup/cgroup.subtree_control").unwrap().trim(), "memory");
}

#[test]
fn in_a_container_the_nearest_group_without_processes_is_taken() {
    let (dir, root) = v2("app.slice/me.scope");
    let at = |name: &str| dir.path().join("sys/fs/cgroup").join(name);
    put(&at("cgroup.type"), "domain\n");
    fill(&at("app.slice"));
    fill(&at("app.slice/me.scope"));
    put(&at("app.slice/me.scope/cgroup.procs"), "77\n");
    assert_eq!(GroupParent::find(&root).unwrap().path, "app.slice/eke");
    let before = tree(&root);
    Group::make(&root, &GroupParent::find(&root).unwrap(), "box").unwrap().remove().unwrap();
    assert_eq!(tree(&root), before);
}

#[test]
fn a_machine_without_controller_is_an_error() {
    let (_dir, root) = machine("");
    let why = GroupParent::find(&root).unwrap_err().to_string();
    assert!(why.contains("no memory controller"), "{why}");
}

#[test]
fn a_sweep_removes_only_groups_of_dead_owners() {
    for (_dir, root) in [v1(), v2("")] {
        let before = tree(&root);
        let parent = GroupParent::find(&root).unwrap();
        let mine = Group::make(&root, &parent, "box").unwrap();
        let top =
            if parent.hierarchy == Hierarchy::V1 { "sys/fs/cgroup/memory/eke" } else { "sys/fs/cgroup/eke" };
        let dead = format!("box-{}", name::Owner { pid: std::process::id(), start_ticks: 4 });
        CgroupFs.create_dir(&root.path(format!("{top}/{dead}")), 0o755).unwrap();
        CgroupFs.create_dir(&root.path(format!("{top}/somebody")), 0o755).unwrap();
        if parent.twin.is_some() {
            CgroupFs.create_dir(&root.path("sys/fs/cgroup/unified/eke/gone-999999999-1"), 0o755).unwrap();
        }
        let swept = sweep(&root).unwrap();
        assert_eq!(swept.len(), 1 + usize::from(parent.twin.is_some()), "{swept:?}");
        assert!(swept.contains(&dead));
        assert!(root.exists(mine.dir()) && root.exists(format!("{top}/somebody")));
        CgroupFs.remove_dir(&root.path(format!("{top}/somebody"))).unwrap();
        mine.remove().unwrap();
        assert_eq!(tree(&root), before);
    }
}
