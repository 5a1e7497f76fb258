//! Finds the users of a device in `/proc`.

use std::path::Path;

use eke_linux::Root;
use eke_linux::parse::mountinfo;

/// A sentence about the first process that has `device` open, or mounted in any mount namespace.
pub(super) fn first(root: &Root, device: &Path) -> Option<String> {
    let numbers = root.list("proc").unwrap_or_default();
    numbers.iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())).find_map(|pid| {
        let what = uses(root, pid, device)?;
        let name = root.read(format!("proc/{pid}/comm")).unwrap_or_default();
        Some(format!("process {pid} ({}) {what}", name.trim_end()))
    })
}

fn uses(root: &Root, pid: &str, device: &Path) -> Option<&'static str> {
    if has_open(root, pid, device) {
        return Some("has it open; end that process");
    }
    let mounts = root.read_bytes(format!("proc/{pid}/mountinfo")).unwrap_or_default();
    mountinfo::parse(&mounts).iter().any(|mount| mount.source == device).then_some(
        "has it mounted, in a mount namespace that was created while it was mounted here; end that process",
    )
}

fn has_open(root: &Root, pid: &str, device: &Path) -> bool {
    let files = std::fs::read_dir(root.path(format!("proc/{pid}/fd")));
    files
        .into_iter()
        .flatten()
        .flatten()
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_it_open_or_mounted_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("proc").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = std::fs::OpenOptions::new();
            let mut file = file.write(true).create_new(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        };
        put("7/comm", "sshd\n");
        put("7/mountinfo", "60 27 7:3 / /mnt rw,relatime - ext4 /dev/loop3 rw\n");
        put("self/mountinfo", "60 27 7:4 / /mnt rw,relatime - ext4 /dev/loop4 rw\n");
        put("8/comm", "dd\n");
        std::fs::create_dir_all(dir.path().join("proc/8/fd")).unwrap();
        std::os::unix::fs::symlink("/dev/loop5", dir.path().join("proc/8/fd/3")).unwrap();
        let root = Root::at(dir.path());
        let who = |device: &str| first(&root, device.as_ref());
        assert!(who("/dev/loop3").unwrap().starts_with("process 7 (sshd) has it mounted"));
        assert!(who("/dev/loop5").unwrap().starts_with("process 8 (dd) has it open"));
        assert_eq!((who("/dev/loop4"), who("/dev/loop33")), (None, None));
    }
}
