//! Parses the kernel's texts about an open file and a mapping. Pure.

use std::path::PathBuf;

use eke_cache_mounts::Device;
use eke_linux::parse::keyed::value;
use eke_linux::parse::maps::Mapping;

/// An open file, from `/proc/PID/fdinfo/FD` (proc_pid_fdinfo(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mount) struct OpenFile {
    /// The number of the mount that it was opened on.
    pub mount: u64,
    /// Is the descriptor writable?
    pub writes: bool,
    /// Does its process hold a lock or a lease on it?
    pub locked: bool,
}

/// `None` if a field is missing.
pub(in crate::mount) fn open(text: &str) -> Option<OpenFile> {
    let flags = u32::from_str_radix(value(text, "flags")?, 8).ok()?;
    let is_path = flags & libc::O_PATH.unsigned_abs() != 0;
    Some(OpenFile {
        mount: value(text, "mnt_id")?.parse().ok()?,
        writes: !is_path && flags & libc::O_ACCMODE.unsigned_abs() != 0,
        locked: value(text, "lock").is_some(),
    })
}

/// True if the descriptor is of watches of which one is on this file system or on this mount (inotify and fanotify, proc_pid_fdinfo(5)).
/// A device is written in hexadecimal, as the kernel has it: the major number above 20 bits of the minor one.
pub(in crate::mount) fn watches(text: &str, device: Device, mount: u64) -> bool {
    let (device, mount) =
        (format!("sdev:{:x}", device.major << 20 | device.minor), format!("mnt_id:{mount:x}"));
    let marks = text.lines().filter(|l| l.starts_with("inotify ") || l.starts_with("fanotify "));
    marks.flat_map(str::split_ascii_whitespace).any(|word| word == device || word == mount)
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
    fn watches_are_found_by_file_system_and_by_mount() {
        let device = Device { major: 0, minor: 57 };
        let of = |line: &str| watches(&format!("pos:\t0\nmnt_id:\t57\n{line}\n"), device, 51);
        assert!(of(
            "inotify wd:1 ino:9 sdev:39 mask:fce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:00"
        ));
        assert!(
            of("fanotify sdev:39 mflags:0 mask:3b ignored_mask:0")
                && of("fanotify mnt_id:33 mflags:0 mask:3b")
        );
        assert!(
            !of("inotify wd:1 ino:39 sdev:3a mask:fce") && !of("fanotify flags:10 event-flags:0") && !of("")
        );
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
