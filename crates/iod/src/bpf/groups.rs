//! Control groups by number. The number is their directory's inode, and a request has its group's number.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use eke_linux::Root;

/// The deepest level that is read.
const DEPTH: usize = 12;

/// All groups that requests may be charged to: those of cgroup v2, or of cgroup v1's controller `blkio`.
pub fn by_number(root: &Root) -> BTreeMap<u64, String> {
    let mut groups = BTreeMap::new();
    for top in ["sys/fs/cgroup/blkio", "sys/fs/cgroup/unified", "sys/fs/cgroup"] {
        let top = root.path(top);
        if top.join("cgroup.procs").exists() {
            walk(&top, &top, DEPTH, &mut groups);
        }
    }
    groups
}

fn walk(top: &Path, at: &Path, depth: usize, groups: &mut BTreeMap<u64, String>) {
    let Ok(about) = fs::metadata(at) else { return };
    let name = at.strip_prefix(top).unwrap_or(at).to_string_lossy();
    groups.entry(about.ino()).or_insert_with(|| format!("/{name}"));
    if depth == 0 {
        return;
    }
    // a group that is removed meanwhile is skipped
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(top, &entry.path(), depth - 1, groups);
        }
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn groups_are_known_by_their_inode() {
        let machine = FakeKernel::new();
        let top = machine.dir().join("sys/fs/cgroup");
        machine.put("sys/fs/cgroup/cgroup.procs", "");
        machine.put("sys/fs/cgroup/user/a/cgroup.procs", "");
        let groups = by_number(&machine.root());
        let inode = fs::metadata(top.join("user/a")).unwrap().ino();
        assert_eq!(groups[&inode], "/user/a");
        assert!(by_number(&Root::at("/nonexistent")).is_empty());
    }
}
