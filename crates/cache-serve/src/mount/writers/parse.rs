//! Parses the kernel's texts about an open file and a mapping. Pure.

use std::path::PathBuf;

use eke_linux::parse::keyed::value;
use eke_linux::parse::maps::Mapping;

/// An open file, from `/proc/PID/fdinfo/FD` (proc_pid_fdinfo(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenFile {
    /// The number of the mount that it was opened on.
    pub mount: u64,
    /// Is the descriptor writable?
    pub writes: bool,
    /// Does its process hold a lock or a lease on it?
    pub locked: bool,
}

/// `None` if a field is missing.
pub(super) fn open(text: &str) -> Option<OpenFile> {
    let flags = u32::from_str_radix(value(text, "flags")?, 8).ok()?;
    let is_path = flags & libc::O_PATH.unsigned_abs() != 0;
    Some(OpenFile {
        mount: value(text, "mnt_id")?.parse().ok()?,
        writes: !is_path && flags & libc::O_ACCMODE.unsigned_abs() != 0,
        locked: value(text, "lock").is_some(),
    })
}

/// The file of a shared writable mapping (`rw-s`), after its file system's number as mountinfo writes it.
pub(super) fn shared_writable(mapping: Mapping) -> Option<(String, PathBuf)> {
    let changes = mapping.is_writable && mapping.is_shared && !mapping.is_deleted;
    changes.then(|| (mapping.device.to_string(), mapping.path))
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::maps;

    use super::*;

    #[test]
    fn fdinfo_shows_writable_descriptors_and_locks() {
        let text =
            |flags: &str, more: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t51\nino:\t9\n{more}");
        let writes = |flags| open(&text(flags, "")).unwrap().writes;
        assert!(writes("0100001") && writes("02100002"));
        assert!(!writes("0100000") && !writes("012100002"), "O_RDONLY, O_PATH");
        let locked = open(&text("0100000", "lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n"));
        assert_eq!(locked, Some(OpenFile { mount: 51, writes: false, locked: true }));
        assert_eq!(open("pos:\t0\n"), None);
    }

    #[test]
    fn only_shared_writable_mappings_of_files_count() {
        let of = |line: &str| maps::parse(line.as_bytes()).pop().and_then(shared_writable);
        let line = "7f1c1000-7f1d2000 rw-s 00001000 fe:1a 42                         /srv/a b\\012c";
        assert_eq!(of(line), Some(("254:26".into(), "/srv/a b\nc".into())));
        for other in [
            "7f1c-7f1d rw-p 00000000 fe:00 42 /srv/a",
            "7f1c-7f1d r--s 00000000 fe:00 42 /srv/a",
            "7f1c-7f1d rw-s 00000000 00:01 7 /dev/zero (deleted)",
            "55aa-55ab rw-p 00000000 00:00 0 [heap]",
            "55aa-55ab rw-s 00000000 00:00 0",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_never_panics(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = open(&String::from_utf8_lossy(&bytes));
        }
    }
}
