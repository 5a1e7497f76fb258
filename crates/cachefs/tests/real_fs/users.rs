//! Users other than the one who mounted, and a mount by a user who is not root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use eke_testkit::real::{no_program, skip};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::mounted::{each, is_root};

const NOBODY: u32 = 65534;

fn as_nobody(dir: &Path, script: &str) -> Output {
    Command::new("sh").args(["-ec", script]).current_dir(dir).uid(NOBODY).gid(NOBODY).output().unwrap()
}

fn mode(path: &Path) -> (u32, u32, u32) {
    let m = fs::symlink_metadata(path).unwrap();
    (m.uid(), m.gid(), m.mode() & 0o7777)
}

#[test]
fn new_files_belong_to_the_user_who_makes_them() {
    if !is_root() {
        return skip("new_files_belong_to_the_user_who_makes_them", "not root");
    }
    each("others", |m| {
        for (dir, bits, group) in [("open", 0o777, 0), ("group", 0o2777, 1234), ("closed", 0o755, 0)] {
            fs::create_dir(m.backing(dir)).unwrap();
            chown(m.backing(dir), None, Some(group)).unwrap();
            fs::set_permissions(m.backing(dir), Permissions::from_mode(bits)).unwrap();
        }
        let script = "umask 027; mkdir dir; echo x >file; ln -s file link; mkfifo pipe; ln file second";
        for (dir, group, set) in [("open", NOBODY, 0), ("group", 1234, 0o2000)] {
            let made = as_nobody(&m.at(dir), script);
            assert!(made.status.success(), "{made:?}");
            assert_eq!(mode(&m.backing(dir).join("dir")), (NOBODY, group, 0o750 | set));
            assert_eq!(mode(&m.backing(dir).join("file")), (NOBODY, group, 0o640));
            assert_eq!(mode(&m.backing(dir).join("pipe")), (NOBODY, group, 0o640));
            assert_eq!(mode(&m.backing(dir).join("link")), (NOBODY, group, 0o777));
        }
        assert!(!as_nobody(&m.at("closed"), "mkdir dir").status.success());
        assert!(!m.backing("closed/dir").exists());
        fs::write(m.at("roots"), "").unwrap();
        assert_eq!(mode(&m.backing("roots")).0, 0);
    });
}

#[test]
fn a_write_by_another_takes_set_id_bits_away() {
    if !is_root() {
        return skip("a_write_by_another_takes_set_id_bits_away", "not root");
    }
    each("set-id", |m| {
        for change in ["echo x >>FILE", "echo x >FILE", "truncate -s 1 FILE", "chown :65534 FILE"] {
            let file = m.at("file");
            fs::write(&file, "text").unwrap();
            chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o6777)).unwrap();
            fs::OpenOptions::new()
                .append(true)
                .open(&file)
                .and_then(|mut f| std::io::Write::write(&mut f, b"x"))
                .unwrap();
            assert_eq!(mode(&m.backing("file")).2, 0o6777, "root's own write");
            let done = as_nobody(&m.at(""), &change.replace("FILE", "file"));
            assert!(done.status.success(), "{done:?}");
            assert_eq!(mode(&m.backing("file")).2, 0o777, "{change}");
            assert_eq!(mode(&file).2, 0o777, "{change}");
            fs::remove_file(&file).unwrap();
        }
    });
}

/// An ACL as an extended attribute: version 2, then tag, permissions and id of each entry.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |&(tag, perm, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
}

#[test]
fn access_control_lists_are_inherited_and_hold() {
    if !is_root() {
        return skip("access_control_lists_are_inherited_and_hold", "not root");
    }
    each("acl", |m| {
        const NONE: u32 = u32::MAX;
        // user::rwx, user:nobody:rw-, group::---, mask::rwx, other::---
        let list = acl(&[(1, 7, NONE), (2, 6, NOBODY), (4, 0, NONE), (0x10, 7, NONE), (0x20, 0, NONE)]);
        fs::create_dir(m.at("dir")).unwrap();
        setxattr(m.at("dir"), "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
        let made =
            Command::new("sh").args(["-ec", "umask 077; echo text >dir/file"]).current_dir(m.at("")).status();
        assert!(made.unwrap().success());
        // A default ACL replaces the umask: the group's bits are the mask's.
        assert_eq!(mode(&m.backing("dir/file")).2, 0o660);
        let (mut mounted, mut backing) = ([0; 128], [0; 128]);
        let name = "system.posix_acl_access";
        let len = getxattr(m.at("dir/file"), name, &mut mounted[..]).unwrap();
        assert_eq!(getxattr(m.backing("dir/file"), name, &mut backing[..]), Ok(len));
        assert_eq!(mounted, backing);
        assert!(as_nobody(&m.at(""), "cat dir/file").status.success());
        let twin = as_nobody(&m.at(""), "cat dir/file; exec 3<dir/file");
        assert_eq!(twin.stdout, b"text\n");
        let other = Command::new("cat").arg(m.at("dir/file")).uid(4321).gid(4321).output().unwrap();
        assert!(!other.status.success());
    });
}

/// Runs all tests of this program once more as a user who is not root. In its own mount namespace, because a machine without
/// udev has a `/dev/fuse` that only root may open.
#[test]
fn nobodys_mount_does_the_same() {
    const NAME: &str = "nobodys_mount_does_the_same";
    const SCRIPT: &str = "mknod fuse c 10 229; chmod 666 fuse; mount --bind fuse /dev/fuse; \
        exec setpriv --reuid 65534 --regid 65534 --clear-groups ./test --skip users:: --skip rights:: --skip hundred_thousand";
    if let Some(why) = no_program(&["fusermount3", "unshare", "setpriv"]) {
        return skip(NAME, &why);
    }
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return skip(NAME, "only root can become nobody, and with /dev/fuse");
    }
    let dir = tempfile::tempdir().unwrap();
    let temp = dir.path().join("tmp");
    // By another process: one that a test beside this starts meanwhile would hold the file open for writing, and nobody could execute it (ETXTBSY).
    let copied =
        Command::new("cp").arg(std::env::current_exe().unwrap()).arg(dir.path().join("test")).status();
    assert!(copied.unwrap().success());
    fs::create_dir(&temp).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    chown(&temp, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-ec", SCRIPT]).current_dir(dir.path());
    let ran = command.env("TMPDIR", &temp).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(text.contains(" passed") && !text.contains(" 0 passed"), "{text}");
}
