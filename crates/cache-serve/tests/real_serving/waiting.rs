//! Requests that wait for the disk do not keep others waiting, and one that fails does not end the mount. Real kernel, real program.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::NEEDS;
use crate::common::mount::{Mount, MountSpec, run, scratch};
use crate::spill::SecondDisk;
use eke_testkit::real::{lacking, no_program, skip};

/// More than the sessions that a worker begins with.
const WRITERS: usize = 40;
/// There are at most 128.
const MORE_THAN_SESSIONS: usize = 300;
const BEFORE: &[u8] = b"before";
/// Longer than a request takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A file system that waits with every change until this is dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new(place: &Path) -> Self {
        run("fsfreeze", &["-f", place.to_str().unwrap()]);
        Self(place.to_owned())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        run("fsfreeze", &["-u", self.0.to_str().unwrap()]);
    }
}

#[test]
fn reads_are_answered_while_many_writes_wait() {
    let write = each(|path| append(path, b" after"));
    reads_while_changes_wait("reads_are_answered_while_many_writes_wait", WRITERS, write, b" after");
}

#[test]
fn a_user_with_more_writes_that_wait_than_there_are_sessions_leaves_some_to_reads() {
    let name = "a_user_with_more_writes_that_wait_than_there_are_sessions_leaves_some_to_reads";
    let write = each(|path| append(path, b" after"));
    reads_while_changes_wait(name, MORE_THAN_SESSIONS, write, b" after");
}

/// More bytes than wait without a session.
#[test]
fn a_user_with_much_to_write_that_waits_leaves_sessions_to_reads() {
    let name = "a_user_with_much_to_write_that_waits_leaves_sessions_to_reads";
    let much = vec![b'x'; 1 << 20];
    let of_writer = much.clone();
    reads_while_changes_wait(name, MORE_THAN_SESSIONS, each(move |path| append(path, &of_writer)), &much);
}

/// Processes of their own: a store that waits for its page stops every other thread that maps memory or starts a program.
#[test]
fn mapped_pages_that_wait_to_be_written_leave_sessions_to_reads() {
    let name = "mapped_pages_that_wait_to_be_written_leave_sessions_to_reads";
    if let Some(why) = no_program(&["python3"]) {
        return skip(name, &why);
    }
    let script = "import mmap,os,sys,threading\nfs=[os.open(n,os.O_RDWR) for n in sys.argv[1:]]\n\
        ms=[mmap.mmap(f,0) for f in fs]\nfor m in ms: m[0]=66\n\
        for f in fs: threading.Thread(target=os.fsync,args=(f,)).start()";
    let store = |paths: &[PathBuf]| {
        let paths: Vec<_> = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
        vec![std::thread::spawn(move || {
            let args: Vec<_> = ["-c", script].into_iter().chain(paths.iter().map(String::as_str)).collect();
            run("python3", &args);
        })]
    };
    reads_while_changes_wait(name, MORE_THAN_SESSIONS, store, b"");
}

/// A thread for each file.
fn each(change: impl Fn(&Path) + Clone + Send + 'static) -> impl FnOnce(&[PathBuf]) -> Vec<JoinHandle<()>> {
    move |paths| {
        let start = |path: &PathBuf| {
            let (path, change) = (path.clone(), change.clone());
            std::thread::spawn(move || change(&path))
        };
        paths.iter().map(start).collect()
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// `change` changes each of `number` files, on threads. Afterwards each ends with `end`.
fn reads_while_changes_wait(
    name: &str,
    number: usize,
    change: impl FnOnce(&[PathBuf]) -> Vec<JoinHandle<()>>,
    end: &[u8],
) {
    let why = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "fsfreeze"]));
    if let Some(why) = why {
        return skip(name, &why);
    }
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    let _disk = SecondDisk::with_mib(&scratch.path().join("image"), &disk, 512);
    let backing = disk.join("backing");
    fs::create_dir(&backing).unwrap();
    (0..number).for_each(|n| fs::write(backing.join(n.to_string()), BEFORE).unwrap());
    fs::write(backing.join("other"), "content").unwrap();
    let mount = Mount::of(&backing);
    let frozen = Frozen::new(&disk);
    let paths: Vec<_> = (0..number).map(|n| mount.place().join(n.to_string())).collect();
    let writers = change(&paths);
    std::thread::sleep(Duration::from_secs(1));
    let other = mount.place().join("other");
    let read = soon(move || fs::read_to_string(other));
    assert!(!writers.iter().all(|writer| writer.is_finished()), "the changes wait");
    drop(frozen);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(read.is_some(), "no answer while changes wait");
    assert_eq!(read.unwrap().unwrap(), "content");
    for n in 0..number {
        let content = fs::read(backing.join(n.to_string())).unwrap();
        assert!(content[1..].starts_with(&BEFORE[1..]) && content.ends_with(end), "file {n}");
        assert_eq!(
            (content.len(), content[0] == b'B'),
            (BEFORE.len() + end.len(), end.is_empty()),
            "file {n}"
        );
    }
}

/// What `act` returns, on a thread of its own; `None` if it hangs.
fn soon<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, answer) = channel();
    std::thread::spawn(move || sender.send(act()));
    answer.recv_timeout(SOON).ok()
}

#[test]
fn the_limits_of_a_shell_end_no_mount() {
    let why = lacking(&NEEDS).or_else(|| no_program(&["prlimit"]));
    if let Some(why) = why {
        return skip("the_limits_of_a_shell_end_no_mount", &why);
    }
    let limits = ["--fsize=100000:100000", "--nofile=300:300"];
    let mount = Mount::start(&MountSpec { limits: &limits, ..MountSpec::default() }, |_| {});
    let content = vec![b'x'; 1 << 20];
    let written = fs::write(mount.place().join("large"), &content);
    let open: Vec<_> = (0..600).map(|n| File::create_new(mount.place().join(format!("open-{n}")))).collect();
    if may_lift(&limits) {
        written.unwrap();
        assert!(open.iter().all(Result::is_ok), "{:?}", open.iter().find(|file| file.is_err()));
    } else {
        assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::EFBIG));
    }
    assert!(mount.is_mounted() && mount.place().join("large").exists());
}

/// Whether a process of this user may have more than `limits` again: root of a container may not.
fn may_lift(limits: &[&str]) -> bool {
    let lifted = ["prlimit", "--fsize=unlimited:unlimited", "true"];
    Command::new("prlimit").args(limits).args(lifted).stderr(Stdio::null()).status().unwrap().success()
}
