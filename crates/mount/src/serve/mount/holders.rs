//! Which processes hold a mount, as far as this one may see.

use eke_kernel::Root;

/// More names than anyone reads.
const MOST: usize = 5;

/// `NAME (PID)` of processes with a file open on mount `id`, but not of `ours`.
pub fn holders(root: &Root, id: u64, ours: &[u32]) -> Vec<String> {
    let mut pids: Vec<u32> =
        root.list("proc").unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort_unstable();
    pids.retain(|pid| !ours.contains(pid));
    pids.into_iter().filter(|pid| holds(root, *pid, id)).map(|pid| name(root, pid)).take(MOST).collect()
}

fn holds(root: &Root, pid: u32, id: u64) -> bool {
    let dir = format!("proc/{pid}/fdinfo");
    let files = root.list(&dir).unwrap_or_default();
    files.iter().any(|file| root.read(format!("{dir}/{file}")).is_ok_and(|text| mount_id(&text) == Some(id)))
        || stands_in(root, pid, id)
}

/// Its working directory is no open file, but the mount of it can be asked for.
fn stands_in(root: &Root, pid: u32, id: u64) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    ["cwd", "root", "exe"].iter().any(|link| {
        let path = root.path(format!("proc/{pid}/{link}"));
        // Nothing is asked of the mount's server: it may be this process.
        let flags = AtFlags::STATX_DONT_SYNC;
        statx(CWD, path, flags, StatxFlags::MNT_ID).is_ok_and(|s| s.stx_mnt_id == id)
    })
}

/// `mnt_id:` of `/proc/PID/fdinfo/FD` (proc_pid_fdinfo(5)).
fn mount_id(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

fn name(root: &Root, pid: u32) -> String {
    let comm = root.read(format!("proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", comm.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_tells_its_mount() {
        assert_eq!(mount_id("pos:\t0\nflags:\t02\nmnt_id:\t29\nino:\t4\n"), Some(29));
        assert_eq!(mount_id("pos:\t0\n"), None);
    }

    #[test]
    fn who_holds_is_named_but_not_ourselves() {
        let tmp = tempfile::tempdir().unwrap();
        for (pid, id) in [(10, 29), (11, 30), (12, 29)] {
            let dir = tmp.path().join(format!("proc/{pid}/fdinfo"));
            std::fs::create_dir_all(&dir).unwrap();
            let put = |path, text: String| {
                use std::io::Write as _;
                let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
                file.unwrap().write_all(text.as_bytes()).unwrap();
            };
            put(dir.join("3"), format!("mnt_id:\t{id}\n"));
            put(tmp.path().join(format!("proc/{pid}/comm")), format!("p{pid}\n"));
        }
        assert_eq!(holders(&Root::at(tmp.path()), 29, &[12]), ["p10 (10)"]);
    }
}
