#![expect(clippy::disallowed_methods, reason = "test code")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;
use crate::file::resident::tests::refusing;
use eke_prefetch_model::pages::Pages;

struct TestDir {
    dir: tempfile::TempDir,
    root: OwnedFd,
}

impl TestDir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = openat(CWD, dir.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        Self { dir, root }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn learned(&self, name: &str, kind: Kind) -> ReadRequest {
        let meta = fs::symlink_metadata(self.path(name)).unwrap();
        let mtime_ns = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
        let stamp = Stamp { dev: meta.dev(), ino: meta.ino(), size: meta.len(), mtime_ns };
        ReadRequest {
            path: Path::new("/").join(name),
            kind,
            stamp,
            pages: Pages::default(),
            user: rustix::process::getuid().as_raw(),
            is_own: false,
        }
    }

    fn why_not(&self, request: &ReadRequest) -> String {
        open(&self.root, request).map(|opened| opened.bytes).unwrap_err().why
    }
}

#[test]
fn a_learned_file_is_opened() {
    let dir = TestDir::new();
    fs::create_dir_all(dir.path("a/b")).unwrap();
    fs::write(dir.path("a/b/file"), "12345").unwrap();
    let file = dir.learned("a/b/file", Kind::File);
    assert_eq!(open(&dir.root, &file).unwrap().bytes, 5);
    assert_eq!(open(&dir.root, &dir.learned("a", Kind::Directory)).unwrap().bytes, 0);
    let top = ReadRequest { path: "/".into(), ..dir.learned("", Kind::Directory) };
    assert!(open(&dir.root, &top).is_ok());
}

#[test]
fn a_changed_replaced_or_removed_file_is_not_opened() {
    let dir = TestDir::new();
    fs::write(dir.path("file"), "12345").unwrap();
    let learned = dir.learned("file", Kind::File);
    fs::write(dir.path("other"), "12345").unwrap();
    fs::rename(dir.path("other"), dir.path("file")).unwrap();
    let own = ReadRequest { is_own: true, ..learned };
    assert_eq!(dir.why_not(&own), "another file is there now");
    let learned = dir.learned("file", Kind::File);
    fs::write(dir.path("file"), "123456").unwrap();
    assert_eq!(open(&dir.root, &learned).unwrap().bytes, 6, "its program changed it");
    fs::create_dir(dir.path("usr")).unwrap();
    fs::write(dir.path("usr/file"), "12345").unwrap();
    let of_package = dir.learned("usr/file", Kind::File);
    fs::write(dir.path("usr/file"), "123456").unwrap();
    assert_eq!(dir.why_not(&of_package), "it was changed since it was learned");
    fs::remove_file(dir.path("usr/file")).unwrap();
    assert!(open(&dir.root, &of_package).unwrap_err().changed);
    fs::remove_file(dir.path("file")).unwrap();
    assert_eq!(dir.why_not(&learned), "it is gone");
    let refusal = open(&dir.root, &learned).unwrap_err();
    assert!(!refusal.changed && refusal.is_gone, "a user's document");
    fs::create_dir(dir.path("file")).unwrap();
    assert_eq!(dir.why_not(&learned), "a directory is there now");
    assert!(!open(&dir.root, &learned).unwrap_err().is_gone);
}

#[test]
fn another_file_beside_the_program_is_a_new_version_of_it() {
    let dir = TestDir::new();
    for (is_own, is_upgrade) in [(true, true), (false, false)] {
        fs::write(dir.path("lib.so"), "12345").unwrap();
        let learned = ReadRequest { is_own, ..dir.learned("lib.so", Kind::File) };
        fs::write(dir.path("new"), "12345").unwrap();
        fs::rename(dir.path("new"), dir.path("lib.so")).unwrap();
        assert_eq!(open(&dir.root, &learned).is_err_and(|refusal| refusal.changed), is_upgrade);
        fs::remove_file(dir.path("lib.so")).unwrap();
        assert!(!open(&dir.root, &learned).unwrap_err().changed, "a temporary file");
    }
}

#[test]
fn a_file_that_its_program_replaces_is_opened_where_nobody_else_can_write() {
    let dir = TestDir::new();
    fs::create_dir_all(dir.path("home/profile")).unwrap();
    let mode =
        |name: &str, mode| fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap();
    ["home", "home/profile"].iter().for_each(|name| mode(name, 0o755));
    fs::write(dir.path("home/profile/prefs"), "12345").unwrap();
    let learned = dir.learned("home/profile/prefs", Kind::File);
    fs::write(dir.path("home/profile/new"), "123456").unwrap();
    fs::rename(dir.path("home/profile/new"), dir.path("home/profile/prefs")).unwrap();
    assert_eq!(open(&dir.root, &learned).unwrap().bytes, 6);
    for (name, bits) in [("home", 0o775), ("home/profile", 0o777), ("home/profile", 0o1777)] {
        mode(name, bits);
        assert_eq!(dir.why_not(&learned), "another file is there now", "{name} {bits:o}");
        mode(name, 0o755);
    }
    symlink("profile", dir.path("home/link")).unwrap();
    let by_link = ReadRequest { path: "/home/link/prefs".into(), ..learned.clone() };
    assert!(open(&dir.root, &by_link).is_err());
    let for_another = ReadRequest { user: learned.user + 1, ..learned };
    assert!(rustix::process::getuid().is_root() || open(&dir.root, &for_another).is_err());
}

#[test]
fn files_of_other_users_are_not_read() {
    if !rustix::process::getuid().is_root() {
        return eke_testkit::real::skip("files_of_other_users_are_not_read", "needs root");
    }
    let dir = TestDir::new();
    for (name, owner) in [("root's", 0), ("own", 1000), ("another's", 1001), ("a service's", 33)] {
        fs::write(dir.path(name), "12345").unwrap();
        std::os::unix::fs::chown(dir.path(name), Some(owner), Some(owner)).unwrap();
    }
    let request = |name: &str, user| ReadRequest { user, ..dir.learned(name, Kind::File) };
    for (name, user, is_read) in [
        ("root's", 1000, true),
        ("own", 1000, true),
        ("another's", 1000, false),
        ("a service's", 1000, false),
        ("own", 0, false),
        ("root's", 0, true),
    ] {
        let opened = open(&dir.root, &request(name, user));
        assert_eq!(opened.is_ok(), is_read, "{name} for {user}");
        assert!(!opened.is_err_and(|refusal| refusal.changed), "{name}: it is as it was learned");
    }
}

#[test]
fn of_a_device_the_file_system_counts() {
    if !rustix::process::getuid().is_root() {
        return eke_testkit::real::skip("of_a_device_the_file_system_counts", "needs root");
    }
    let dir = TestDir::new();
    // No driver has this number.
    let dev = rustix::fs::makedev(511, 7);
    rustix::fs::mknodat(CWD, dir.path("disk"), FileType::BlockDevice, Mode::RUSR, dev).unwrap();
    let learned = ReadRequest {
        stamp: Stamp { dev, ino: file_system::of_udev("E:ID_FS_UUID=a\n"), ..Stamp::default() },
        ..dir.learned("disk", Kind::Device)
    };
    let earlier = ReadRequest { stamp: Stamp { dev, ..Stamp::default() }, ..learned.clone() };
    let is_refused = |udev: &str, request: &ReadRequest| {
        eke_testkit::tree::put(dir.dir.path(), "run/udev/data/b511:7", udev);
        let refusal = open(&dir.root, request).map(|opened| opened.bytes).unwrap_err();
        assert!(!refusal.changed, "its program is as it was");
        refusal.why == "another file system is on it now"
    };
    assert!(is_refused("E:ID_FS_UUID=b\n", &learned));
    assert!(!is_refused("E:ID_FS_UUID=a\n", &learned));
    assert!(!is_refused("E:ID_FS_TYPE=ext4\n", &learned), "udev does not know it");
    assert!(!is_refused("E:ID_FS_UUID=b\n", &earlier), "an earlier eke did not store it");
}

/// A learned file, `real/file`, with links to its directory and to it.
fn with_links() -> (TestDir, ReadRequest) {
    let dir = TestDir::new();
    fs::create_dir(dir.path("real")).unwrap();
    fs::write(dir.path("real/file"), "12345").unwrap();
    let learned = dir.learned("real/file", Kind::File);
    symlink("real", dir.path("dir")).unwrap();
    symlink("real/file", dir.path("link")).unwrap();
    (dir, learned)
}

#[test]
fn links_are_not_followed_anywhere() {
    let (dir, learned) = with_links();
    let by = |path: &str| ReadRequest { path: path.into(), ..learned.clone() };
    assert!(open(&dir.root, &learned).is_ok());
    assert_eq!(dir.why_not(&by("/dir/file")), "a symbolic link is in its path now");
    assert_eq!(dir.why_not(&by("/link")), "a symbolic link is there now");
    assert!(open(&dir.root, &by("/../real/file")).is_err(), "nothing above the root");
}

#[test]
fn where_openat2_may_not_be_called_files_are_found_and_links_are_not_followed() {
    let (dir, learned) = with_links();
    let opened = |path: &str| {
        let request = ReadRequest { path: path.into(), ..learned.clone() };
        refusing(&[libc::SYS_openat2], || open(&dir.root, &request).map_err(|refusal| refusal.why))
    };
    assert_eq!(opened("/real/file").unwrap().bytes, 5);
    for by_link in ["/dir/file", "/link", "/dir/../real/file", "/../real/file"] {
        assert!(opened(by_link).is_err(), "{by_link}");
    }
}

#[test]
fn a_fifo_is_not_waited_at() {
    let dir = TestDir::new();
    fs::write(dir.path("file"), "12345").unwrap();
    let learned = dir.learned("file", Kind::File);
    fs::remove_file(dir.path("file")).unwrap();
    rustix::fs::mknodat(CWD, dir.path("file"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(dir.why_not(&learned), "a FIFO is there now");
    // Not even with the inode number of the learned file.
    assert_eq!(dir.why_not(&dir.learned("file", Kind::File)), "a FIFO is there now");
}
