//! Many threads and few descriptors: no answer belongs to another file. In a program of its own, because the limit is the
//! process's.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "test code")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eke_cachefs::fs::{Caller, Fs, Options};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::Tier;
use eke_testkit::real::skip;
use fuser::{FileHandle, OpenFlags};
use rustix::fs::{Mode, OFlags, XattrFlags, open, setxattr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ROOT: u64 = 1;
const NO_HANDLE: FileHandle = FileHandle(0);
const ROOTS: Caller = Caller { uid: 0, gid: 0, pid: 0, resent: false };
const USER: Caller = Caller { uid: 1000, gid: 1000, pid: 0, resent: false };
const ANOTHER: Caller = Caller { uid: 1001, gid: 1001, pid: 0, resent: false };
const DIRS: usize = 400;
const THREADS: usize = 8;
const ROUNDS: usize = 4000;
/// A quarter of them are for paths.
const DESCRIPTORS: u64 = 300;
const ATTRIBUTE: &str = "user.name";
/// The limit is the process's.
static LIMIT: Mutex<()> = Mutex::new(());

/// Lets this process open few files, until it is dropped.
struct FewDescriptors<'a> {
    before: Rlimit,
    _alone: MutexGuard<'a, ()>,
}

impl FewDescriptors<'_> {
    fn new(limit: u64) -> Self {
        let alone = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..before }).unwrap();
        Self { before, _alone: alone }
    }
}

impl Drop for FewDescriptors<'_> {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.before).unwrap();
    }
}

fn served(dir: &Path) -> Fs {
    let root = open(dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap()
}

fn name(number: usize) -> OsString {
    format!("dir-{number}").into()
}

/// Directories, each with its own name as its attribute and as the name of its only file.
fn fill(dir: &Path) -> rustix::io::Result<()> {
    for name in (0..DIRS).map(name) {
        let path = dir.join(&name);
        fs::DirBuilder::new().mode(0o755).create(&path).unwrap();
        fs::write(path.join(&name), "").unwrap();
        setxattr(&path, ATTRIBUTE, name.as_encoded_bytes(), XattrFlags::empty())?;
    }
    Ok(())
}

/// What is wrong with the answers for this directory.
fn wrong(fs: &Fs, node: u64, name: &OsStr) -> Option<String> {
    let value = fs.getxattr(&ROOTS, node, OsStr::new(ATTRIBUTE), 0);
    if !value.as_ref().is_ok_and(|v| v == name.as_encoded_bytes()) {
        return Some(format!("{}: its attribute is {value:?}", name.to_string_lossy()));
    }
    let mut names = Vec::new();
    let listed = fs.readdir(node, NO_HANDLE, 0, |entry| {
        names.push(entry.name.to_owned());
        false
    });
    let is_right = listed.is_ok() && names.len() == 3 && names.iter().any(|n| n == name);
    (!is_right).then(|| format!("{}: {listed:?}, {names:?}", name.to_string_lossy()))
}

#[test]
fn with_few_descriptors_no_answer_is_another_files() {
    let dir = tempfile::tempdir().unwrap();
    if let Err(e) = fill(dir.path()) {
        return skip("with_few_descriptors_no_answer_is_another_files", &format!("no user attributes: {e}"));
    }
    let few = FewDescriptors::new(DESCRIPTORS);
    let fs = served(dir.path());
    let nodes: Vec<(u64, OsString)> =
        (0..DIRS).map(name).map(|n| (fs.lookup(ROOT, &n).unwrap().attr.ino.0, n)).collect();
    let next = AtomicUsize::new(0);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let read = || {
            let mut faults = Vec::new();
            for _ in 0..ROUNDS {
                // Far apart, so that the last one's descriptors are closed by now.
                let at = next.fetch_add(1, Ordering::Relaxed) * 7 % DIRS;
                faults.extend(wrong(&fs, nodes[at].0, &nodes[at].1));
            }
            faults
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(read)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    drop(few);
    assert!(faults.is_empty(), "{} wrong answers: {:?}", faults.len(), &faults[..faults.len().min(5)]);
}

/// Opens as many of the files as this caller may.
fn open_all(fs: &Fs, caller: &Caller, nodes: &[u64], flags: i32) -> Vec<std::io::Error> {
    nodes.iter().filter_map(|node| fs.open(caller, *node, OpenFlags(flags)).err()).collect()
}

#[test]
fn a_user_with_many_open_files_leaves_descriptors_to_others() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a_user_with_many_open_files_leaves_descriptors_to_others",
            "only root serves other users",
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<OsString> = (0..DIRS).map(name).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "content").unwrap());
    let _few = FewDescriptors::new(4 * DESCRIPTORS);
    let fs = served(dir.path());
    let nodes: Vec<u64> = names.iter().map(|name| fs.lookup(ROOT, name).unwrap().attr.ino.0).collect();
    let (mine, others) = nodes.split_at(DIRS - 10);
    let read = |node: &u64| fs.read(*node, 0, 100, <[u8]>::to_vec).unwrap();

    assert!(open_all(&fs, &USER, mine, libc::O_RDONLY).is_empty(), "files to be read can be opened again");
    assert!(nodes.iter().all(|node| read(node) == b"content"), "open or not");

    let refused = open_all(&fs, &USER, mine, libc::O_RDWR);
    assert!(
        !refused.is_empty() && refused.iter().all(|e| e.raw_os_error() == Some(libc::EMFILE)),
        "{refused:?}"
    );
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let theirs = (0..10)
        .map(|n| fs.create(&ANOTHER, ROOT, OsStr::new(&format!("other-{n}")), (0o644, 0), libc::O_RDWR));
    let errors: Vec<_> = theirs.filter_map(Result::err).collect();
    assert!(errors.is_empty(), "another user makes files: {errors:?}");
    assert!(nodes.iter().all(|node| read(node) == b"content"), "others read");
    assert!(fs.readdir(ROOT, NO_HANDLE, 0, |_| false).is_ok(), "and list");
    assert!(open_all(&fs, &ROOTS, others, libc::O_RDWR).is_empty(), "and root writes");
    let new = fs.create(&USER, ROOT, OsStr::new("new"), (0o644, 0), libc::O_RDWR);
    assert_eq!(new.unwrap_err().raw_os_error(), Some(libc::EMFILE));
    assert!(!dir.path().join("new").exists(), "what was refused is not there");
}

#[test]
fn a_user_who_removes_many_open_files_leaves_descriptors_to_others() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a_user_who_removes_many_open_files_leaves_descriptors_to_others",
            "only root serves other users",
        );
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let names: Vec<OsString> = (0..DIRS).map(name).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "content").unwrap());
    let _few = FewDescriptors::new(DESCRIPTORS);
    let fs = served(dir.path());
    let nodes: Vec<u64> = names.iter().map(|name| fs.lookup(ROOT, name).unwrap().attr.ino.0).collect();
    let (mine, others) = nodes.split_at(DIRS - 10);
    let read = |node: &u64| fs.read(*node, 0, 100, <[u8]>::to_vec).unwrap();
    let leaves_descriptors = || {
        assert!(nodes.iter().all(|node| read(node) == b"content"), "all that is open is read");
        assert!(fs.readdir(ROOT, NO_HANDLE, 0, |_| false).is_ok(), "others list");
        assert!(open_all(&fs, &ROOTS, others, libc::O_RDWR).is_empty(), "and root writes");
    };

    assert!(open_all(&fs, &USER, mine, libc::O_RDONLY).is_empty());
    assert!(open_all(&fs, &USER, others, libc::O_RDONLY).is_empty());
    let refused: Vec<_> =
        names[..mine.len()].iter().filter_map(|name| fs.unlink(&USER, ROOT, name, false).err()).collect();
    let is_refused = |e: &std::io::Error| e.raw_os_error() == Some(libc::EMFILE);
    assert!(!refused.is_empty() && refused.iter().all(is_refused), "{refused:?}");
    leaves_descriptors();
    assert!(fs.footprint().descriptors as usize >= mine.len() - refused.len(), "they are counted");

    // What nobody has open is removed all the same.
    mine.iter().for_each(|node| fs.release(&USER, *node, FileHandle(1), OpenFlags(libc::O_RDONLY)));
    let left = names[..mine.len()].iter().filter(|name| dir.path().join(name).exists());
    let refused: Vec<_> = left.filter_map(|name| fs.unlink(&USER, ROOT, name, false).err()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(names[..mine.len()].iter().all(|name| !dir.path().join(name).exists()));
}
