//! The watcher on the real kernel: changes by others are reported, changes by this process are not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eke_cachefs::tier::Coverage;
use eke_cachefs::watch::{Change, IdentifyBy, Watch, WatchMode};
use eke_testkit::real::{lacking, skip};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(30);
const FILES: [&str; 6] = ["written", "cut", "reserved", "mapped", "ours", "last"];

/// A running watch, and its reports.
struct Running {
    changes: Receiver<Change>,
    stop: Option<OwnedFd>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn start(watch: Watch) -> Self {
        let (stopped, stop) = rustix::pipe::pipe().unwrap();
        let (sender, changes) = channel();
        let run = move || {
            watch.run(stopped.as_fd(), &Coverage::default(), |change, _| sender.send(change).unwrap())
        };
        Self { changes, stop: Some(stop), thread: Some(std::thread::spawn(run)) }
    }

    fn next(&self) -> Change {
        self.changes.recv_timeout(LONG).unwrap()
    }

    /// The files reported up to this one.
    fn until(&self, last: &Path) -> BTreeSet<(u64, u64)> {
        let mut all = BTreeSet::new();
        loop {
            match self.next() {
                Change::File { dev, ino } if (dev, ino) == identity(last) => {
                    all.insert((dev, ino));
                    return all;
                }
                Change::File { dev, ino } => drop(all.insert((dev, ino))),
                Change::Everything => panic!("nothing was lost"),
                Change::Attributes { .. } | Change::Name { .. } => {}
            }
        }
    }

    /// The reports up to this one, without those of other directories' files.
    fn all_until(&self, last: &Change) -> Vec<Change> {
        let mut all = Vec::new();
        loop {
            let change = self.next();
            all.push(change.clone());
            if change == *last {
                return all;
            }
        }
    }

    fn end(mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn identity(file: &Path) -> (u64, u64) {
    let is = file.metadata().unwrap();
    (is.dev(), is.ino())
}

/// Runs a script in another process.
fn by_another(dir: &Path, script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).current_dir(dir).status().unwrap().success());
}

fn directory(parent: &Path) -> (TempDir, File) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let opened = File::open(dir.path()).unwrap();
    (dir, opened)
}

fn reports_changes_of_others_only(parent: &Path, watch: impl FnOnce(BorrowedFd<'_>) -> Watch) {
    let (dir, opened) = directory(parent);
    let at = |name: &str| dir.path().join(name);
    for name in FILES {
        std::fs::write(at(name), [b'x'; 9000]).unwrap();
    }
    let running = Running::start(watch(opened.as_fd()));
    assert_eq!(running.next(), Change::Everything, "what was before is not known");

    by_another(
        dir.path(),
        "cat last ours >/dev/null; printf x >>written; truncate -s 10 cut; fallocate -l 20000 reserved",
    );
    File::options().append(true).open(at("ours")).unwrap().write_all(b"x").unwrap();
    by_another(
        dir.path(),
        "python3 -c 'import mmap; f = open(\"mapped\", \"r+b\"); mmap.mmap(f.fileno(), 0)[0] = 7' || printf x >>mapped",
    );
    // A mapped file is reported when its last mapping is closed, which may be a little after its process has ended.
    let mut reported = running.until(&at("mapped"));
    by_another(dir.path(), "printf x >>last");
    reported.append(&mut running.until(&at("last")));
    for name in FILES {
        assert_eq!(reported.contains(&identity(&at(name))), name != "ours", "{name} on {}", parent.display());
    }
    running.end();
}

#[test]
fn others_changes_are_reported_by_handle() {
    if let Some(why) = lacking(&["/dev/shm"]) {
        return skip("others_changes_are_reported_by_handle", &why);
    }
    reports_changes_of_others_only(Path::new("/dev/shm"), |dir| Watch::by(IdentifyBy::Handle, dir).unwrap());
}

#[test]
fn others_changes_are_reported_by_descriptor() {
    if let Some(why) = lacking(&["/dev/shm"]) {
        return skip("others_changes_are_reported_by_descriptor", &why);
    }
    reports_changes_of_others_only(Path::new("/dev/shm"), |dir| {
        Watch::by(IdentifyBy::Descriptor, dir).unwrap()
    });
    undisturbed(|| {
        reports_changes_of_others_only(&std::env::temp_dir(), |dir| {
            Watch::by(IdentifyBy::Descriptor, dir).unwrap()
        });
    });
}

/// With an event by descriptor the kernel opens the file, and opening a pipe would wake a program that waits for a reader.
#[test]
fn a_pipe_is_not_opened_for_an_event() {
    if let Some(why) = lacking(&["/dev/shm"]) {
        return skip("a_pipe_is_not_opened_for_an_event", &why);
    }
    let (dir, opened) = directory(Path::new("/dev/shm"));
    let running = Running::start(Watch::by(IdentifyBy::Descriptor, opened.as_fd()).unwrap());
    assert_eq!(running.next(), Change::Everything, "what was before is not known");
    by_another(dir.path(), "mkfifo pipe; cat pipe >/dev/null & printf x >pipe; wait; printf x >last");
    let at = |name: &str| dir.path().join(name);
    assert!(!running.until(&at("last")).contains(&identity(&at("pipe"))));
    running.end();
}

#[test]
fn others_changes_are_reported_on_the_disk_of_this_machine() {
    if let Some(why) = lacking(&[]) {
        return skip("others_changes_are_reported_on_the_disk_of_this_machine", &why);
    }
    undisturbed(|| reports_changes_of_others_only(&std::env::temp_dir(), |dir| Watch::new(dir).unwrap()));
}

/// On the disk of this machine other programs may overflow the queue, which is reported as everything: then it is tried again.
fn undisturbed(scenario: impl Fn()) {
    let passes = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(&scenario)).is_ok();
    assert!((0..5).any(|_| passes()), "see above");
}

fn name(dir: &Path, name: &str) -> Change {
    let (dev, ino) = identity(dir);
    Change::Name { dev, ino, name: name.into() }
}

fn attributes(file: &Path) -> Change {
    let (dev, ino) = identity(file);
    Change::Attributes { dev, ino }
}

fn reports_names_and_attributes(parent: &Path) {
    let (dir, opened) = directory(parent);
    let at = |name: &str| dir.path().join(name);
    for name in ["old", "mode", "owner", "linked", "gone", "ours"] {
        std::fs::write(at(name), b"x").unwrap();
    }
    std::fs::create_dir(at("sub")).unwrap();
    let running = Running::start(Watch::by(IdentifyBy::HandleAndName, opened.as_fd()).unwrap());
    assert_eq!(running.next(), Change::Everything, "what was before is not known");
    std::fs::rename(at("ours"), at("our new")).unwrap();
    by_another(
        dir.path(),
        "mv old sub/new; chmod 600 mode; chown 1 owner; ln linked sub/link; rm gone; mkdir made; chmod 700 sub; ln -s x symbolic",
    );
    let reported = running.all_until(&name(dir.path(), "symbolic"));
    let mut expected: Vec<Change> =
        ["old", "gone", "made", "symbolic"].iter().map(|n| name(dir.path(), n)).collect();
    expected.extend(["new", "link"].iter().map(|n| name(&at("sub"), n)));
    expected.extend(["sub/new", "mode", "owner", "linked", "sub"].iter().map(|n| attributes(&at(n))));
    // The others of the round may follow.
    let missing = |reported: &[Change]| expected.iter().find(|change| !reported.contains(change)).cloned();
    let mut all = reported;
    while let Some(change) = missing(&all) {
        all.extend(running.all_until(&change));
    }
    assert!(
        !all.contains(&name(dir.path(), "ours")) && !all.contains(&name(dir.path(), "our new")),
        "{all:?}"
    );

    let again = running.all_until(&name(dir.path(), "symbolic"));
    assert!(!again.is_empty(), "a second time, a second later");
    running.end();
}

#[test]
fn others_changes_of_names_and_attributes_are_reported() {
    if let Some(why) = lacking(&["/dev/shm"]) {
        return skip("others_changes_of_names_and_attributes_are_reported", &why);
    }
    reports_names_and_attributes(Path::new("/dev/shm"));
    undisturbed(|| reports_names_and_attributes(&std::env::temp_dir()));
}

#[test]
fn a_change_of_a_file_that_is_gone_is_nothing_and_the_next_is_reported() {
    if let Some(why) = lacking(&["/dev/shm"]) {
        return skip("a_change_of_a_file_that_is_gone_is_nothing_and_the_next_is_reported", &why);
    }
    let (dir, opened) = directory(Path::new("/dev/shm"));
    std::fs::write(dir.path().join("last"), b"x").unwrap();
    let running = Running::start(Watch::new(opened.as_fd()).unwrap());
    by_another(dir.path(), "for i in 1 2 3; do echo x >gone$i; rm gone$i; done; echo y >last");
    assert_eq!(running.next(), Change::Everything);
    running.until(&dir.path().join("last"));
    running.end();
}

#[test]
fn a_full_queue_is_reported_as_everything() {
    if let Some(why) = lacking(&["/proc/sys/fs/fanotify/max_queued_events"]) {
        return skip("a_full_queue_is_reported_as_everything", &why);
    }
    let most: u32 =
        std::fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap().trim().parse().unwrap();
    if most > 100_000 {
        return skip("a_full_queue_is_reported_as_everything", "the queue is longer than a test should fill");
    }
    let (dir, opened) = directory(Path::new("/dev/shm"));
    let watch = Watch::new(opened.as_fd()).unwrap();
    by_another(dir.path(), &format!("seq {} | xargs touch", most + 100));
    let running = Running::start(watch);
    assert_eq!([running.next(), running.next()], [Change::Everything, Change::Everything]);
    by_another(dir.path(), "echo x >1");
    running.until(&dir.path().join("1"));
    running.end();
}

/// Set for a copy of this test program without rights.
const NOBODY: &str = "EKE_WATCH_AS_NOBODY";

#[test]
fn without_rights_it_gives_the_reason() {
    if std::env::var_os(NOBODY).is_some() {
        let Err(WatchMode::AtOpens { why }) = Watch::new(File::open("/").unwrap().as_fd()) else {
            panic!("nobody may not watch")
        };
        return eprintln!("why: {why}");
    }
    if let Some(why) = lacking(&[]) {
        return skip("without_rights_it_gives_the_reason", &why);
    }
    // In a directory that everybody may enter.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut copy = Command::new(program);
    copy.args(["without_rights_it_gives_the_reason", "--exact", "--nocapture"]).env(NOBODY, "1");
    let output = copy.uid(65534).gid(65534).current_dir("/").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && stderr.contains("why: fanotify_init: "), "{output:?}");
    assert!(stderr.contains("CAP_SYS_ADMIN"), "{stderr}");
}
