//! Reads `/proc` for one process. Nothing here waits for disks.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use eke_linux::Root;
use eke_linux::parse::{process_io, process_status};

/// The most bytes of arguments.
const ARGS_BYTES: u64 = 16 << 10;
/// The most descendants.
const CHILDREN: usize = 4096;

/// Its working directory.
pub fn cwd(root: &Root, pid: u32) -> Option<PathBuf> {
    std::fs::read_link(root.path(format!("proc/{pid}/cwd"))).ok()
}

/// Its executable; `None` also if deleted.
pub fn exe(root: &Root, pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(root.path(format!("proc/{pid}/exe"))).ok()?;
    (path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)")).then_some(path)
}

/// The begin of its arguments, each followed by a zero byte.
pub fn args(root: &Root, pid: u32) -> Vec<u8> {
    let mut args = Vec::new();
    let file = File::open(root.path(format!("proc/{pid}/cmdline")));
    _ = file.map(|file| file.take(ARGS_BYTES).read_to_end(&mut args));
    args
}

/// Splits arguments; drops a last one that was cut off.
pub fn split_args(args: &[u8], is_whole: bool) -> Vec<&[u8]> {
    let mut split: Vec<&[u8]> = args.split(|b| *b == 0).collect();
    let last = split.pop();
    split.extend(last.filter(|last| is_whole && !last.is_empty()));
    split
}

/// Whether it has the same mounts as this process.
pub fn has_our_mounts(root: &Root, pid: u32) -> bool {
    let mounts = |of: &str| std::fs::read_link(root.path(format!("proc/{of}/ns/mnt"))).ok();
    mounts(&pid.to_string()).is_some_and(|theirs| mounts("self") == Some(theirs))
}

/// Its parent and its real user id.
pub fn parent_and_user(root: &Root, pid: u32) -> Option<(u32, u32)> {
    let status = process_status::parse(&root.read(format!("proc/{pid}/status")).ok()?);
    Some((status.parent?, status.real_user?))
}

/// Bytes that it and its threads have read from disks (`read_bytes` of `/proc/PID/io`; needs CONFIG_TASK_IO_ACCOUNTING).
pub fn read_bytes(root: &Root, pid: u32) -> Option<u64> {
    process_io::parse(&root.read(format!("proc/{pid}/io")).ok()?).map(|io| io.read)
}

/// Its children and theirs; none without CONFIG_PROC_CHILDREN.
pub fn descendants(root: &Root, pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop().filter(|_| found.len() < CHILDREN) {
        for thread in root.list(format!("proc/{pid}/task")).unwrap_or_default() {
            let text = root.read(format!("proc/{pid}/task/{thread}/children")).unwrap_or_default();
            let children = text.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok());
            open.extend(children.clone());
            found.extend(children);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_were_cut_off_are_left_out() {
        assert_eq!(split_args(b"sh\0-c\0", true), [&b"sh"[..], b"-c"]);
        assert_eq!(split_args(b"sh\0\0a b\0/usr/bi", false), [&b"sh"[..], b"", b"a b"]);
        assert_eq!(split_args(b"odd", true), [&b"odd"[..]]);
        assert_eq!(split_args(b"", true), Vec::<&[u8]>::new());
    }

    #[test]
    fn this_process_is_as_it_knows_itself() {
        let (root, pid) = (Root::host(), std::process::id());
        assert_eq!(exe(&root, pid), std::env::current_exe().ok());
        assert_eq!(cwd(&root, pid), std::env::current_dir().ok());
        let own: Vec<Vec<u8>> = std::env::args_os().map(|arg| arg.as_bytes().to_vec()).collect();
        assert_eq!(split_args(&args(&root, pid), true), own);
        assert_eq!(
            parent_and_user(&root, pid).map(|found| found.1),
            Some(rustix::process::getuid().as_raw())
        );
    }
}
