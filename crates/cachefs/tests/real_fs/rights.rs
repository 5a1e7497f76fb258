//! Users with bad intentions: through the mount they get what they get without it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eke_cache_mounts::settings::PassthroughMode;
use eke_cachefs::fs::{AttrChange, Caller, EntryRef, Fs, NewNode, Options, SetTime};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::Tier;
use eke_testkit::program::KilledOnDrop;
use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::RaiseOnDrop;
use rustix::fs::{
    CWD, FileType, Mode, RenameFlags, XattrFlags, getxattr, listxattr, mknodat, removexattr, renameat_with,
    setxattr,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::mounted::{Mounted, detach, each_for, is_root};

pub const NOBODY: u32 = 65534;
const GROUP: u32 = 1234;
const ROOT: u64 = 1;
/// `CAP_CHOWN`, permitted and effective.
const CAPABILITY: &[u8] = b"\x01\0\0\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// So long that the kernel uses its attributes until the test's end.
const LONG: Duration = Duration::from_secs(60);

/// Runs `act` on a thread of user nobody with one supplementary group.
pub fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let run = || {
        rustix::thread::set_thread_groups(&[Gid::from_raw(GROUP)]).unwrap();
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

pub fn errno<T>(result: io::Result<T>) -> Result<T, i32> {
    result.map_err(|e| e.raw_os_error().unwrap())
}

pub fn put(path: &Path, text: &str, owner: u32, mode: u32) {
    fs::write(path, text).unwrap();
    chown(path, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Puts root's objects under a name, one after the other, and removes them, until `stop` is set.
fn flap(dir: &Path, name: &Path, stop: &AtomicBool) {
    let things = ["file", "link", "pipe"].map(|thing| dir.join(thing));
    put(&things[0], "root's", 0, 0o600);
    symlink("file", &things[1]).unwrap();
    mknodat(CWD, &things[2], FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for thing in things.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let _ = fs::remove_file(name);
        if renameat_with(CWD, thing, CWD, name, RenameFlags::NOREPLACE).is_ok() {
            std::thread::yield_now();
            let _ = fs::rename(name, thing);
        }
    }
}

#[test]
fn a_file_that_comes_between_lookup_and_create_is_opened_with_its_own_permissions() {
    const NAME: &str = "a_file_that_comes_between_lookup_and_create_is_opened_with_its_own_permissions";
    if !is_root() {
        return skip(NAME, "not root");
    }
    each_for(NAME, Duration::from_secs(1), |m| {
        fs::set_permissions(m.backing(""), Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(m.backing("roots")).unwrap();
        let (stop, name, path) = (AtomicBool::new(false), m.backing("name"), m.at("name"));
        let (mut opened, mut refused, mut stale) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| flap(&m.backing("roots"), &name, &stop));
            let open = || {
                for round in 0..3000 {
                    let (cut, new) = (round % 3 == 1, round % 5 == 4);
                    let mut options = OpenOptions::new();
                    options.read(true).write(true).create(true).truncate(cut).create_new(new).mode(0o600);
                    match options.open(&path).map(|file| file.metadata().map(|of| of.uid())) {
                        Ok(Ok(NOBODY)) => opened += 1,
                        Err(e) if e.raw_os_error() == Some(libc::EACCES) => refused += 1,
                        Err(e) if new && e.raw_os_error() == Some(libc::EEXIST) => refused += 1,
                        Err(e) if e.raw_os_error() == Some(libc::ESTALE) => stale += 1,
                        other => return Some(format!("round {round}: {other:?}")),
                    }
                }
                None
            };
            let _ended = RaiseOnDrop(&stop);
            assert_eq!(as_nobody(open), None);
        });
        let counts = (opened, refused, stale);
        assert!(opened > 0 && refused > 0, "{counts:?}");
        // The kernel retries once. The name comes and goes twice in between more often on a busy machine.
        assert!(stale * 4 < opened + refused, "{counts:?}");
    });
}

/// Nobody's file in a sticky directory, which the kernel has looked up; then root exchanges the backing file for another
/// one.
fn replaced(m: &Mounted, spool: &str, directory: bool) -> PathBuf {
    fs::create_dir(m.backing(spool)).unwrap();
    fs::set_permissions(m.backing(spool), Permissions::from_mode(0o1777)).unwrap();
    let (name, roots) = (m.backing(spool).join("name"), m.backing(&format!("{spool}-roots")));
    for (path, owner) in [(&name, NOBODY), (&roots, 0)] {
        if directory {
            fs::create_dir(path).unwrap();
            chown(path, Some(owner), Some(owner)).unwrap();
        } else {
            put(path, "text", owner, 0o644);
        }
    }
    assert_eq!(fs::symlink_metadata(m.at(spool).join("name")).unwrap().uid(), NOBODY);
    renameat_with(CWD, &roots, CWD, &name, RenameFlags::EXCHANGE).unwrap();
    name
}

#[test]
fn a_name_in_a_sticky_directory_is_its_present_owners() {
    const NAME: &str = "a_name_in_a_sticky_directory_is_its_present_owners";
    if !is_root() {
        return skip(NAME, "not root");
    }
    each_for(NAME, LONG, |m| {
        type Act = fn(&Path, &Path) -> io::Result<()>;
        let acts: [(&str, bool, Act); 6] = [
            ("unlink", false, |name, _| fs::remove_file(name)),
            ("rmdir", true, |name, _| fs::remove_dir(name)),
            ("rename", false, |name, other| fs::rename(name, other)),
            ("rename a directory", true, |name, other| fs::rename(name, other)),
            ("rename over it", false, |name, other| {
                fs::write(other, "").and_then(|()| fs::rename(other, name))
            }),
            ("exchange", false, |name, other| {
                fs::write(other, "")?;
                Ok(renameat_with(CWD, other, CWD, name, RenameFlags::EXCHANGE)?)
            }),
        ];
        for (what, directory, act) in acts {
            let name = replaced(m, what, directory);
            let (path, other) = (m.at(what).join("name"), m.at(what).join("other"));
            assert_eq!(errno(as_nobody(|| act(&path, &other))), Err(libc::EPERM), "{what}");
            assert_eq!(fs::symlink_metadata(&name).unwrap().uid(), 0, "{what}");
        }
        // An own file can be removed, even if it is not the one that was looked up.
        for directory in [false, true] {
            let what = format!("own {directory}");
            let (name, path) = (replaced(m, &what, directory), m.at(&what).join("name"));
            chown(&name, Some(NOBODY), None).unwrap();
            as_nobody(|| if directory { fs::remove_dir(&path) } else { fs::remove_file(&path) }).unwrap();
        }
    });
}

fn without_mount(dir: &Path) -> Fs {
    let root = OwnedFd::from(File::open(dir).unwrap());
    Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap()
}

/// An ACL as an extended attribute: user::rwx, group::rwx, other::rwx.
fn open_acl() -> Vec<u8> {
    let entries = [(1_u16, 7_u16), (4, 7), (0x20, 7)].map(|(tag, bits)| [tag, bits, u16::MAX, u16::MAX]);
    let words = [2, 0].into_iter().chain(entries.into_iter().flatten());
    words.flat_map(u16::to_le_bytes).collect()
}

/// The kernel decides by attributes that can be old. So the requests come without a kernel here.
#[test]
fn operations_of_the_owner_are_checked_again_on_the_present_inode() {
    const NAME: &str = "operations_of_the_owner_are_checked_again_on_the_present_inode";
    if !is_root() {
        return skip(NAME, "not root");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    put(&dir.path().join("roots"), "text", 0, 0o666);
    let fs = without_mount(dir.path());
    let caller = Caller { uid: NOBODY, gid: NOBODY, pid: 0, resent: false };
    let (roots, to) = (OsStr::new("roots"), OsStr::new("to"));
    let node = fs.lookup(ROOT, roots).unwrap().attr.ino.0;
    let set = |change: AttrChange| errno(fs.setattr(&caller, node, &change)).map(drop);
    let mtime = Some(SetTime::At { seconds: 1, nanos: 0 });
    let end = |name| EntryRef { parent: ROOT, name };
    let acl = OsStr::new("system.posix_acl_access");
    let list = open_acl();
    let answers = [
        ("unlink", errno(fs.unlink(&caller, ROOT, roots, false))),
        ("rename", errno(fs.rename(&caller, end(roots), end(to), RenameFlags::empty()))),
        ("chmod", set(AttrChange { mode: Some(0o4777), ..AttrChange::default() })),
        ("chgrp", set(AttrChange { gid: Some(NOBODY), ..AttrChange::default() })),
        ("chown", set(AttrChange { uid: Some(NOBODY), ..AttrChange::default() })),
        ("utimes", set(AttrChange { mtime, ..AttrChange::default() })),
        ("acl", errno(fs.setxattr(&caller, node, acl, &list, 0))),
    ];
    for (what, answer) in answers {
        assert_eq!(answer, Err(libc::EPERM), "{what}");
    }
    let create = |flags| errno(fs.create(&caller, ROOT, roots, (0o600, 0), libc::O_RDWR | flags)).map(drop);
    assert_eq!(create(0), Err(libc::ESTALE), "the kernel repeats the lookup");
    assert_eq!(create(libc::O_TRUNC), Err(libc::ESTALE));
    assert_eq!(create(libc::O_EXCL), Err(libc::EEXIST));
    let statx = fs::metadata(dir.path().join("roots")).unwrap();
    assert_eq!((statx.uid(), statx.gid(), statx.mode() & 0o7777), (0, 0, 0o666));
    // Operations that the kernel allows to everybody with write permission.
    set(AttrChange { size: Some(2), mtime: Some(SetTime::Now), ..AttrChange::default() }).unwrap();
    set(AttrChange { atime: Some(SetTime::Now), mtime: Some(SetTime::Now), ..AttrChange::default() })
        .unwrap();
}

/// With `--allow-other`: the worker has no ids but those of the user who mounted. Without a kernel, since fuse.conf(5) may forbid it.
#[test]
fn a_users_worker_makes_nothing_in_that_users_name_for_others() {
    const NAME: &str = "a_users_worker_makes_nothing_in_that_users_name_for_others";
    if !is_root() {
        return skip(NAME, "not root");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    let fs = without_mount(dir.path());
    let answers = |uid| {
        let caller = Caller { uid, gid: NOBODY, pid: 0, resent: false };
        let make = |name, kind| errno(fs.make(&caller, ROOT, OsStr::new(name), kind, 0o600, 0)).map(drop);
        [
            errno(fs.create(&caller, ROOT, OsStr::new("file"), (0o600, 0), libc::O_RDWR)).map(drop),
            make("dir", NewNode::Directory),
            make("link", NewNode::Symlink(Path::new("file"))),
            make("pipe", NewNode::Node(libc::S_IFIFO, 0)),
        ]
    };
    as_nobody(|| {
        for other in [0, NOBODY - 1] {
            assert_eq!(answers(other), [Err(libc::EACCES); 4], "{other}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(answers(NOBODY), [Ok(()); 4]);
    });
}

#[test]
fn a_user_uses_other_groups_as_without_the_mount() {
    const NAME: &str = "a_user_uses_other_groups_as_without_the_mount";
    if !is_root() {
        return skip(NAME, "not root");
    }
    each_for(NAME, Duration::from_secs(1), |m| {
        for path in [m.at("file"), m.backing("beside")] {
            put(&path, "text", NOBODY, 0o644);
            as_nobody(|| {
                chown(&path, None, Some(GROUP)).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(0o2755)).unwrap();
                assert_eq!(errno(chown(&path, None, Some(4321))), Err(libc::EPERM));
            });
            assert_eq!((mode(&path), fs::metadata(&path).unwrap().gid()), (0o2755, GROUP), "{path:?}");
            chown(&path, None, Some(4321)).unwrap();
            as_nobody(|| fs::set_permissions(&path, Permissions::from_mode(0o2755)).unwrap());
            assert_eq!(mode(&path), 0o755, "{path:?}");
        }
    });
}

/// A user namespace of a container, whose ids 0 to 999 are 100,000 and on outside. Ended when dropped.
struct Container(KilledOnDrop);

impl Container {
    fn new() -> Self {
        let holds = Command::new("unshare").args(["--user", "sleep", "100"]).spawn().unwrap();
        let of = |name: &str| format!("/proc/{}/{name}", holds.id());
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        while fs::read_link(of("ns/user")).is_ok_and(|space| space == own) {
            std::thread::yield_now();
        }
        for map in ["uid_map", "gid_map"] {
            fs::write(of(map), "0 100000 1000\n").unwrap();
        }
        Self(KilledOnDrop(holds))
    }

    /// The output of a script that its root runs.
    fn run(&self, dir: &Path, script: &str) -> String {
        let target = self.0.0.id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--user", "--setuid", "0", "--setgid", "0", "--target", &target, "sh", "-c", script]);
        let ran = command.current_dir(dir).output().unwrap();
        assert!(ran.stderr.is_empty(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }
}

#[test]
fn a_containers_root_owns_the_files_of_the_containers_users_alone() {
    const NAME: &str = "a_containers_root_owns_the_files_of_the_containers_users_alone";
    const SCRIPT: &str = "for f in its roots nobodys; do for act in 'chmod 4711' 'chown 7:7' 'touch -d @9' 'mv -t to'; do \
        $act $f 2>/dev/null; echo $f $act $?; done; done; stat -c '%n %u %g %a' * to/*; stat -c %Y to/its roots";
    if let Some(why) = no_program(&["unshare", "nsenter"]) {
        return skip(NAME, &why);
    }
    if !is_root() {
        return skip(NAME, "not root");
    }
    each_for(NAME, LONG, |m| {
        let container = Container::new();
        for dir in ["on", "beside"] {
            fs::create_dir(m.backing(dir)).unwrap();
            fs::create_dir(m.backing(dir).join("to")).unwrap();
            for part in [m.backing(dir), m.backing(dir).join("to")] {
                fs::set_permissions(part, Permissions::from_mode(0o1777)).unwrap();
            }
            for (name, owner) in [("its", 100_005), ("roots", 0), ("nobodys", NOBODY)] {
                let path = m.backing(dir).join(name);
                put(&path, "text", owner, 0o666);
                File::open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
        }
        let output = [m.at("on"), m.backing("beside")].map(|dir| container.run(&dir, SCRIPT));
        assert_eq!(output[0], output[1]);
        assert!(
            output[0].contains("its mv -t to 0") && output[0].contains("roots chmod 4711 1"),
            "{}",
            output[0]
        );
    });
}

/// Runs `test` on a mount with passthrough, then on one without.
pub fn each_way(on: &Path, name: &str, test: impl Fn(&Mounted, PassthroughMode)) {
    if !Path::new("/dev/fuse").exists() {
        return skip(name, "no /dev/fuse on this machine");
    }
    for way in [PassthroughMode::Always, PassthroughMode::Never] {
        test(&Mounted::new(on, LONG, way), way);
    }
}

#[test]
fn a_write_to_a_set_user_id_program_leaves_nobody_its_owners_rights() {
    const NAME: &str = "a_write_to_a_set_user_id_program_leaves_nobody_its_owners_rights";
    if !is_root() {
        return skip(NAME, "not root");
    }
    each_way(&std::env::temp_dir(), NAME, |m, way| {
        for bits in [0o4777, 0o2777, 0o6777] {
            let (program, path) = (m.backing("program"), m.at("program"));
            fs::copy("/usr/bin/id", &program).unwrap();
            chown(&program, Some(0), Some(0)).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(bits)).unwrap();
            let id = || {
                let ran = Command::new(&path).uid(NOBODY).gid(NOBODY).output().unwrap();
                String::from_utf8(ran.stdout).unwrap()
            };
            assert!(id().contains("=0(root)"), "the mount has set-user-id programs");
            setxattr(&program, "security.capability", CAPABILITY, XattrFlags::empty()).unwrap();
            as_nobody(|| OpenOptions::new().append(true).open(&path).unwrap().write_all(b"x").unwrap());
            // As far as the kernel knows, the attributes are unchanged for a minute.
            assert!(!id().contains("=0(root)"), "{bits:o} {way:?}: {}", id());
            assert_eq!((mode(&program), mode(&path)), (0o777, 0o777), "{way:?}");
            assert_eq!(getxattr(&program, "security.capability", &mut [0; 64][..]), Err(Errno::NODATA));
            fs::remove_file(&path).unwrap();
        }
        if let Some(why) = m.no_passthrough() {
            skip(NAME, &why);
        }
    });
}

/// A file system's answers for an attribute: set, get, list, remove.
fn answers(path: &Path, name: &str, value: &[u8]) -> [Result<Vec<u8>, Errno>; 4] {
    let mut buffer = [0; 4096];
    let none = |()| Vec::new();
    let set = setxattr(path, name, value, XattrFlags::empty()).map(none);
    let got = getxattr(path, name, &mut buffer[..]).map(|len| buffer[..len].to_vec());
    let listed = listxattr(path, &mut buffer[..]).map(|len| buffer[..len].to_vec());
    [set, got, listed, removexattr(path, name).map(none)]
}

#[test]
fn users_attributes_are_those_that_they_have_without_the_mount() {
    const NAME: &str = "users_attributes_are_those_that_they_have_without_the_mount";
    if !is_root() {
        return skip(NAME, "not root");
    }
    // user::rw-, group::---, other::---
    let acl = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x04\0\0\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
    let names: [(&str, &[u8]); 9] = [
        ("user.own", b"value"),
        ("trusted.own", b"value"),
        ("trusted.roots", b"value"),
        ("security.own", b"value"),
        ("security.capability", CAPABILITY),
        ("system.own", b"value"),
        ("system.posix_acl_access", acl),
        ("system.posix_acl_default", acl),
        ("own", b"value"),
    ];
    each_for(NAME, LONG, |m| {
        for owner in [NOBODY, 0] {
            let (path, beside) = (m.at("file"), m.backing("beside"));
            for file in [&m.backing("file"), &beside] {
                put(file, "", owner, 0o666);
                setxattr(file, "trusted.roots", b"hidden", XattrFlags::empty()).unwrap();
                setxattr(file, "user.roots", b"seen", XattrFlags::empty()).unwrap();
            }
            for (name, value) in names {
                let both = as_nobody(|| [&path, &beside].map(|file| answers(file, name, value)));
                assert_eq!(both[0], both[1], "{name}, of user {owner}");
            }
            assert_eq!(answers(&path, "trusted.own", b"value"), answers(&beside, "trusted.own", b"value"));
            fs::remove_file(&path).unwrap();
        }
    });
}

/// A file system that accepts any attribute from its only client: as NFS and SMB do with `system.*`.
struct Takes;

impl fuser::Filesystem for Takes {
    fn getattr(
        &self,
        _: &fuser::Request,
        _: fuser::INodeNo,
        _: Option<fuser::FileHandle>,
        reply: fuser::ReplyAttr,
    ) {
        let statx =
            rustix::fs::statx(CWD, "/tmp", rustix::fs::AtFlags::empty(), rustix::fs::StatxFlags::BASIC_STATS);
        reply.attr(&LONG, &eke_cachefs::fs::attr_of(ROOT, &statx.unwrap()));
    }

    fn setxattr(
        &self,
        _: &fuser::Request,
        _: fuser::INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: fuser::ReplyEmpty,
    ) {
        reply.ok();
    }

    fn removexattr(&self, _: &fuser::Request, _: fuser::INodeNo, _: &OsStr, reply: fuser::ReplyEmpty) {
        reply.ok();
    }
}

/// Unmounts when dropped.
struct Detached<'a>(&'a Path);

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        detach(self.0);
    }
}

#[test]
fn an_attribute_of_the_file_system_itself_is_set_by_root_alone() {
    const NAME: &str = "an_attribute_of_the_file_system_itself_is_set_by_root_alone";
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return skip(NAME, "not root, or no /dev/fuse");
    }
    let place = tempfile::tempdir().unwrap();
    let mut config = fuser::Config::default();
    config.acl = fuser::SessionACL::All;
    let _session = fuser::Session::new(Takes, place.path(), &config).and_then(fuser::Session::spawn).unwrap();
    let _detached = Detached(place.path());
    let fs = without_mount(place.path());
    let ask = |uid: u32, name: &str| {
        let caller = Caller { uid, gid: uid, pid: 0, resent: false };
        let set = errno(fs.setxattr(&caller, ROOT, OsStr::new(name), b"value", 0));
        (set, errno(fs.removexattr(&caller, ROOT, OsStr::new(name))))
    };
    let refused = (Err(libc::EOPNOTSUPP), Err(libc::EOPNOTSUPP));
    for name in ["system.nfs4_acl", "system.cifs_acl", "system.ntfs_attrib"] {
        assert_eq!((ask(0, name), ask(NOBODY, name)), ((Ok(()), Ok(())), refused), "{name}");
    }
}
