//! Requests that wait for the disk do not keep others waiting, and one that fails does not end the mount. Real kernel, real program.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_testkit::real::{lacking, no_program, skip};

use crate::common::NEEDS;
use crate::common::mount::{Mount, MountSpec, run, scratch};
use crate::spill::SecondDisk;

/// More than the sessions that a worker begins with.
const WRITERS: usize = 40;
/// There are at most 128.
const MORE_THAN_SESSIONS: usize = 300;
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
    reads_while_writes_wait("reads_are_answered_while_many_writes_wait", WRITERS);
}

#[test]
fn a_user_with_more_writes_that_wait_than_there_are_sessions_leaves_some_to_reads() {
    reads_while_writes_wait(
        "a_user_with_more_writes_that_wait_than_there_are_sessions_leaves_some_to_reads",
        MORE_THAN_SESSIONS,
    );
}

fn reads_while_writes_wait(name: &str, number: usize) {
    let why = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "fsfreeze"]));
    if let Some(why) = why {
        return skip(name, &why);
    }
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    let _disk = SecondDisk::new(&scratch.path().join("image"), &disk);
    let backing = disk.join("backing");
    fs::create_dir(&backing).unwrap();
    (0..number).for_each(|n| fs::write(backing.join(n.to_string()), "before").unwrap());
    fs::write(backing.join("other"), "content").unwrap();
    let mount = Mount::of(&backing);
    let frozen = Frozen::new(&disk);
    let writers: Vec<_> = (0..number)
        .map(|n| {
            let path = mount.place().join(n.to_string());
            std::thread::spawn(move || {
                OpenOptions::new().append(true).open(path).unwrap().write_all(b" after").unwrap();
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let (sender, answer) = channel();
    let other = mount.place().join("other");
    std::thread::spawn(move || sender.send(fs::read_to_string(other)));
    let read = answer.recv_timeout(SOON);
    assert!(!writers.iter().all(|writer| writer.is_finished()), "the writes wait");
    drop(frozen);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(read.is_ok(), "no answer while writes wait");
    assert_eq!(read.unwrap().unwrap(), "content");
    assert!((0..number).all(|n| fs::read_to_string(backing.join(n.to_string())).unwrap() == "before after"));
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
