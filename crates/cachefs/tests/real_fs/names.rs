//! Names and attributes.

use std::ffi::OsStr;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags,
    getxattr, listxattr, mknodat, removexattr, renameat_with, setxattr, utimensat,
};
use rustix::io::Errno;

use super::mounted::{Mounted, each, each_for};

/// What stat(2) returns, except the device, which differs.
fn stat(path: &Path) -> (Vec<u64>, Vec<i64>) {
    let m: Metadata = fs::symlink_metadata(path).unwrap();
    let whole = vec![m.ino(), m.mode().into(), m.nlink(), m.uid().into(), m.gid().into(), m.size(), m.rdev()];
    (whole, vec![m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()])
}

fn same(mount: &Mounted, name: &str) {
    assert_eq!(stat(&mount.at(name)), stat(&mount.backing(name)), "{name}");
}

#[test]
fn new_files_have_the_same_number_and_attributes_in_the_backing_directory() {
    each_for("made", Duration::ZERO, |m| {
        fs::create_dir(m.at("dir")).unwrap();
        fs::write(m.at("dir/file"), "content").unwrap();
        symlink("dir/file", m.at("link")).unwrap();
        fs::hard_link(m.at("dir/file"), m.at("second")).unwrap();
        mknodat(CWD, m.at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
        std::os::unix::net::UnixListener::bind(m.at("socket")).unwrap();
        for name in ["dir", "dir/file", "link", "second", "pipe", "socket"] {
            same(m, name);
        }
        assert_eq!(fs::read_link(m.at("link")).unwrap(), Path::new("dir/file"));
        assert_eq!(fs::metadata(m.backing("second")).unwrap().nlink(), 2);
        assert!(fs::metadata(m.backing("pipe")).unwrap().file_type().is_fifo());
    });
}

#[test]
fn errors_are_those_of_the_backing_file_system() {
    each("errors", |m| {
        fs::create_dir_all(m.at("full/inner")).unwrap();
        fs::write(m.at("file"), "x").unwrap();
        let errno = |e: std::io::Error| e.raw_os_error().unwrap();
        assert_eq!(errno(fs::remove_dir(m.at("full")).unwrap_err()), libc::ENOTEMPTY);
        assert_eq!(errno(fs::create_dir(m.at("file")).unwrap_err()), libc::EEXIST);
        assert_eq!(errno(fs::read_dir(m.at("file")).unwrap_err()), libc::ENOTDIR);
        assert_eq!(errno(fs::remove_file(m.at("none")).unwrap_err()), libc::ENOENT);
        assert_eq!(errno(fs::write(m.at(&"n".repeat(256)), "").unwrap_err()), libc::ENAMETOOLONG);
        assert_eq!(errno(fs::rename(m.at("full"), m.at("full/inner/x")).unwrap_err()), libc::EINVAL);
        fs::write(m.at(&"n".repeat(255)), "").unwrap();
    });
}

#[test]
fn names_are_moved_exchanged_and_replaced() {
    each("moved", |m| {
        let rename = |from: &str, to: &str, flags| renameat_with(CWD, m.at(from), CWD, m.at(to), flags);
        fs::write(m.at("a"), "a").unwrap();
        fs::create_dir_all(m.at("dir/deep")).unwrap();
        fs::write(m.at("dir/deep/b"), "b").unwrap();
        assert_eq!(rename("a", "dir", RenameFlags::NOREPLACE), Err(Errno::EXIST));
        rename("dir", "moved", RenameFlags::NOREPLACE).unwrap();
        assert_eq!(fs::read(m.at("moved/deep/b")).unwrap(), b"b");
        rename("a", "moved/deep/b", RenameFlags::EXCHANGE).unwrap();
        assert_eq!(fs::read(m.at("a")).unwrap(), b"b");
        assert_eq!(fs::read(m.backing("moved/deep/b")).unwrap(), b"a");
        rename("a", "moved/deep/b", RenameFlags::empty()).unwrap();
        assert_eq!(fs::read(m.at("moved/deep/b")).unwrap(), b"b");
        assert!(!m.backing("a").exists());
    });
}

#[test]
fn names_are_any_bytes() {
    each("bytes", |m| {
        let name = OsStr::from_bytes(b"\xff\x01 \n\\ \xc3(");
        fs::write(m.at("").join(name), "x").unwrap();
        assert_eq!(fs::read(m.backing("").join(name)).unwrap(), b"x");
        let listed: Vec<_> = fs::read_dir(m.at("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(listed, [name]);
    });
}

#[test]
fn attributes_are_changed_on_the_backing_file() {
    each_for("attributes", Duration::ZERO, |m| {
        fs::write(m.at("file"), "0123456789").unwrap();
        symlink("nowhere", m.at("link")).unwrap();
        fs::set_permissions(m.at("file"), Permissions::from_mode(0o4751)).unwrap();
        same(m, "file");
        let old = Timespec { tv_sec: -2, tv_nsec: 500_000_000 };
        let keep = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        for name in ["file", "link"] {
            let times = Timestamps { last_access: keep, last_modification: old };
            utimensat(CWD, m.at(name), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            let found = fs::symlink_metadata(m.backing(name)).unwrap();
            assert_eq!((found.mtime(), found.mtime_nsec()), (-2, 500_000_000), "{name}");
            same(m, name);
        }
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        utimensat(
            CWD,
            m.at("file"),
            &Timestamps { last_access: now, last_modification: now },
            AtFlags::empty(),
        )
        .unwrap();
        assert!(fs::metadata(m.backing("file")).unwrap().mtime() > 1_000_000_000);
        OpenOptions::new().write(true).open(m.at("file")).unwrap().set_len(4).unwrap();
        assert_eq!(fs::read(m.at("file")).unwrap(), b"0123");
        same(m, "file");
    });
}

#[test]
fn changes_of_backing_files_are_seen_at_the_next_open() {
    each_for("backing", Duration::ZERO, |m| {
        fs::write(m.at("file"), "one").unwrap();
        assert_eq!(fs::read(m.at("file")).unwrap(), b"one");
        fs::write(m.backing("file"), "two").unwrap();
        assert_eq!(fs::read(m.at("file")).unwrap(), b"two");
        // Another inode by this name, which may get the same number.
        for round in 0..20 {
            let text = format!("round {round}");
            fs::remove_file(m.backing("file")).unwrap();
            fs::write(m.backing("file"), &text).unwrap();
            assert_eq!(fs::read_to_string(m.at("file")).unwrap(), text);
        }
        fs::create_dir(m.at("dir")).unwrap();
        fs::rename(m.backing("dir"), m.backing("other")).unwrap();
        fs::write(m.at("other/x"), "x").unwrap();
        assert!(!m.at("dir").exists());
    });
}

#[test]
fn extended_attributes_are_those_of_the_backing_file() {
    each("xattrs", |m| {
        let (path, mut value) = (m.at("file"), [0; 64]);
        fs::write(&path, "").unwrap();
        setxattr(&path, "user.a", b"value", XattrFlags::CREATE).unwrap();
        assert_eq!(setxattr(&path, "user.a", b"other", XattrFlags::CREATE), Err(Errno::EXIST));
        assert_eq!(getxattr(m.backing("file"), "user.a", &mut value[..]), Ok(5));
        assert_eq!(getxattr(&path, "user.a", &mut value[..2]), Err(Errno::RANGE));
        assert_eq!(getxattr(&path, "user.b", &mut value[..]), Err(Errno::NODATA));
        let listed = listxattr(&path, &mut value[..]).unwrap();
        assert_eq!(&value[..listed], b"user.a\0");
        removexattr(&path, "user.a").unwrap();
        assert_eq!(removexattr(&path, "user.a"), Err(Errno::NODATA));
    });
}

#[test]
fn without_selinux_a_missing_label_tells_ls_to_ask_no_more() {
    if std::fs::read_to_string("/proc/filesystems").unwrap().contains("selinuxfs") {
        return eke_testkit::real::skip("label", "SELinux is on, and answers for labels itself");
    }
    each("label", |m| {
        let (path, mut value) = (m.at("file"), [0; 64]);
        fs::write(&path, "").unwrap();
        assert_eq!(getxattr(&path, "security.selinux", &mut value[..]), Err(Errno::OPNOTSUPP));
        assert_eq!(getxattr(&path, "security.other", &mut value[..]), Err(Errno::NODATA));
        setxattr(m.backing("file"), "security.selinux", b"a:b:c", XattrFlags::CREATE).unwrap();
        assert_eq!(getxattr(&path, "security.selinux", &mut value[..]), Ok(5));
    });
}
