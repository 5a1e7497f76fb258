//! What the kernel's texts say of an open file and of a mapping. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use eke_linux::parse::escape::unescape;

/// Of `/proc/PID/fdinfo/FD` (proc_pid_fdinfo(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    /// The number of the mount that it was opened on.
    pub mount: u64,
    /// May it be written by this descriptor?
    pub writes: bool,
    /// Does its process hold a lock or a lease on it?
    pub locked: bool,
}

/// None if the text says less.
pub(super) fn open(text: &str) -> Option<Open> {
    let value = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let flags = u32::from_str_radix(value("flags:")?, 8).ok()?;
    let is_path = flags & libc::O_PATH.unsigned_abs() != 0;
    Some(Open {
        mount: value("mnt_id:")?.parse().ok()?,
        writes: !is_path && flags & libc::O_ACCMODE.unsigned_abs() != 0,
        locked: value("lock:").is_some(),
    })
}

/// The file of a line of `/proc/PID/maps` whose changes others see (`rw-s`), and the number of its file system.
pub(super) fn shared_writable(line: &[u8]) -> Option<(String, PathBuf)> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let (_, mode, _, device, inode) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let path = fields.next()?.trim_ascii_start();
    let is_file = inode != b"0" && path.starts_with(b"/") && !path.ends_with(b" (deleted)");
    let writes = mode.get(1) == Some(&b'w') && mode.get(3) == Some(&b's');
    let device = hexadecimal(device)?;
    (is_file && writes).then(|| (device, OsStr::from_bytes(&unescape(path)).into()))
}

/// `fe:1a` as mountinfo writes it: `254:26`.
fn hexadecimal(device: &[u8]) -> Option<String> {
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(format!("{}:{}", number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_says_whether_it_writes_or_holds_a_lock() {
        let text =
            |flags: &str, more: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t51\nino:\t9\n{more}");
        let writes = |flags| open(&text(flags, "")).unwrap().writes;
        assert!(writes("0100001") && writes("02100002"));
        assert!(!writes("0100000") && !writes("012100002"), "O_RDONLY, O_PATH");
        let locked = open(&text("0100000", "lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n"));
        assert_eq!(locked, Some(Open { mount: 51, writes: false, locked: true }));
        assert_eq!(open("pos:\t0\n"), None);
    }

    #[test]
    fn a_mapping_that_others_see_is_told_from_others() {
        let of = |line: &str| shared_writable(line.as_bytes());
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
        fn any_text_is_something_or_nothing(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = (shared_writable(&bytes), open(&String::from_utf8_lossy(&bytes)));
        }
    }
}
