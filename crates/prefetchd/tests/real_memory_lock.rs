//! A process whose memory stays locked for ever keeps others from reading its arguments, and `eke-prefetch` from nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

mod daemon;
#[allow(dead_code, reason = "the tests of fetching use all of it")]
#[path = "real_fetch/silent.rs"]
mod silent;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use daemon::{Running, copy_program};
use eke_linux::Root;
use eke_prefetchd::trace::memory_files::MemoryFiles;
use eke_prefetchd::trace::process;
use eke_testkit::program::kill;
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use silent::{Silence, Silent};

const PAGE: usize = 4096;
/// The environment variable with the file that the locking process maps.
const FILE: &str = "EKE_LOCKS_WITH";
/// The name of its thread that waits for the lock.
const WAITS: &str = "waits";
/// A user id that nothing else on this machine uses.
const SOMEBODY: u32 = 54_321;

/// Not a test: the process that [`Locked`] starts.
#[test]
fn locks_its_memory_on_request() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let (file, memory) = (File::open(path).unwrap(), File::open("/proc/self/mem").unwrap());
    let read = ProtFlags::READ;
    #[expect(unsafe_code, reason = "only the kernel reads what is mapped")]
    // SAFETY: the kernel chooses the place, and nothing uses it.
    let at = unsafe { mmap(std::ptr::null_mut(), PAGE, read, MapFlags::PRIVATE, &file, 0) }.unwrap() as u64;
    let waits = std::thread::Builder::new().name(WAITS.to_owned()).spawn(map_again_and_again).unwrap();
    _ = memory.read_at(&mut [0; 1], at);
    waits.join().unwrap();
}

/// Waits for the lock once the other thread has it.
fn map_again_and_again() {
    loop {
        #[expect(unsafe_code, reason = "nothing uses what is mapped")]
        // SAFETY: the kernel chooses the place, and only this mapping is removed.
        unsafe {
            let at = mmap_anonymous(std::ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::PRIVATE).unwrap();
            munmap(at, PAGE).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that has locked its memory.
struct Locked {
    child: Child,
    silent: Silent,
    dir: tempfile::TempDir,
}

impl Drop for Locked {
    /// The process ends once it is answered, and the file system once the process has ended.
    fn drop(&mut self) {
        self.silent.answer();
        kill(&mut self.child);
    }
}

/// A process that is killed on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        kill(&mut self.0);
    }
}

impl Locked {
    /// An interpreter, by its name.
    fn start() -> Self {
        let (silent, dir) = (Silent::mount(Silence::Read), tempfile::tempdir().unwrap());
        let python = dir.path().join("python3");
        copy_program(&std::env::current_exe().unwrap(), &python);
        let mut command = Command::new(&python);
        command.args(["--exact", "locks_its_memory_on_request"]).env(FILE, silent.file("file").0);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let locked = Self { child, silent, dir };
        // The other thread waits for the lock only for a moment before that.
        let mut in_a_row = 0;
        wait_for("a thread that waits for the lock", || {
            in_a_row = if is_waiting(locked.child.id()) { in_a_row + 1 } else { 0 };
            in_a_row == 10
        });
        locked
    }
}

/// Whether that thread sleeps uninterruptibly.
fn is_waiting(pid: u32) -> bool {
    let root = Root::host();
    let text = |thread: &String, file: &str| {
        root.read(format!("proc/{pid}/task/{thread}/{file}")).unwrap_or_default()
    };
    let threads = root.list(format!("proc/{pid}/task")).unwrap_or_default();
    let mut waiting = threads.iter().filter(|thread| text(thread, "comm").trim() == WAITS);
    waiting.any(|thread| text(thread, "stat").contains(") D "))
}

/// This process's threads that read the memory of others.
fn readers() -> usize {
    let root = Root::host();
    let name = |thread: &String| root.read(format!("proc/self/task/{thread}/comm")).unwrap_or_default();
    root.list("proc/self/task")
        .unwrap_or_default()
        .iter()
        .filter(|thread| name(thread).trim() == "memory")
        .count()
}

/// The arguments of a process, read by a thread, as a test must not wait for ever either.
fn args(files: &MemoryFiles, pid: u32) -> Vec<u8> {
    let files = files.clone();
    let reads = std::thread::spawn(move || files.args(pid));
    wait_for("an answer about a process whose memory is locked", || reads.is_finished());
    reads.join().unwrap()
}

fn why_not() -> Option<String> {
    lacking(&["/dev/fuse"]).or_else(|| no_program(&["sleep"]))
}

#[test]
fn memory_that_stays_locked_is_waited_for_once() {
    if let Some(why) = why_not() {
        return skip("memory_that_stays_locked_is_waited_for_once", &why);
    }
    let _machine = lock_machine();
    let (locked, files) = (Locked::start(), MemoryFiles::new(&Root::host()));
    let pid = locked.child.id();
    let kernels = std::thread::spawn(move || process::args(&Root::host(), pid));
    let sleep = Ended(Command::new("sleep").arg("600").uid(SOMEBODY).spawn().unwrap());
    assert_eq!(args(&files, pid), b"", "they cannot be read");
    assert!(!kernels.is_finished(), "the kernel gives them at once: this test shows nothing");
    assert_eq!(
        (args(&files, pid), args(&files, std::process::id())),
        (vec![], vec![]),
        "of this user nothing is read"
    );
    assert_eq!(readers(), 1, "and nobody else waits");
    assert_eq!(args(&files, sleep.0.id()), b"sleep\x00600\0", "another user's");
    locked.silent.answer();
    assert!(kernels.join().unwrap().starts_with(locked.dir.path().as_os_str().as_encoded_bytes()));
    wait_for("the reader returns", || readers() == 0);
    assert_eq!(args(&files, pid), b"", "it could be locked again");
}

#[test]
fn the_daemon_starts_and_ends_beside_it() {
    if let Some(why) = why_not() {
        return skip("the_daemon_starts_and_ends_beside_it", &why);
    }
    let _machine = lock_machine();
    let (_locked, kept) = (Locked::start(), tempfile::tempdir().unwrap());
    let (running, _) = Running::ready(kept.path(), &[]);
    running.end();
}
