//! The promises of `docs/cache-coherence.md` about changes in the backing directory.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;

use crate::common::mount::{Mount, MountSpec};
use crate::common::server::Stopped;
use crate::common::{NEEDS, pattern, tree};

/// A backing file with content, open to write; and the same file through the mount.
fn file(mount: &Mount, len: usize) -> (File, File) {
    let backing = mount.backing().join("file");
    fs::write(&backing, pattern(1, 0, len)).unwrap();
    let mounted = File::open(mount.place().join("file")).unwrap();
    (OpenOptions::new().write(true).open(backing).unwrap(), mounted)
}

fn content(of: &File, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    of.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn an_open_after_a_change_of_the_backing_file_sees_it() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("an_open_after_a_change_of_the_backing_file_sees_it", &why);
    }
    let mount = Mount::new();
    let (backing, mounted) = file(&mount, 200_000);
    assert_eq!(content(&mounted, 200_000), pattern(1, 0, 200_000));
    drop(mounted);
    for (round, len) in [200_000, 50_000, 300_000, 0, 70_000].into_iter().enumerate() {
        let seed = round as u8 + 2;
        backing.set_len(len as u64).unwrap();
        backing.write_all_at(&pattern(seed, 0, len), 0).unwrap();
        let seen = fs::read(mount.place().join("file")).unwrap();
        assert!(seen == pattern(seed, 0, len), "round {round}: {}", tree::summary(&seen));
        assert_eq!(fs::metadata(mount.place().join("file")).unwrap().len(), len as u64, "round {round}");
    }
}

#[test]
fn names_that_change_in_the_backing_directory_are_seen_soon() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("names_that_change_in_the_backing_directory_are_seen_soon", &why);
    }
    let mount = Mount::new();
    let (mounted, backing) = (|name: &str| mount.place().join(name), |name: &str| mount.backing().join(name));
    fs::write(backing("old"), b"old").unwrap();
    assert!(mounted("old").exists() && !mounted("new").exists());
    fs::rename(backing("old"), backing("new")).unwrap();
    wait_for("the new name", || {
        fs::read(mounted("new")).is_ok_and(|b| b == b"old") && !mounted("old").exists()
    });
    fs::write(backing("other"), b"other").unwrap();
    fs::rename(backing("other"), backing("new")).unwrap();
    wait_for("another file with this name", || fs::read(mounted("new")).is_ok_and(|b| b == b"other"));
    fs::remove_file(backing("new")).unwrap();
    wait_for("no name", || fs::read_dir(mount.place()).unwrap().count() == 0 && !mounted("new").exists());
}

/// The attributes of a path, and the names below it, by another process: this one must not wait for a stopped worker.
fn listed(place: &Path) -> String {
    tried_to_list(place).unwrap()
}

fn tried_to_list(place: &Path) -> Result<String, std::process::Output> {
    let mut ls = Command::new("timeout");
    let listed = ls.args(["20", "ls", "-lnR", "--time-style=+%s.%N"]).current_dir(place).output().unwrap();
    if !listed.status.success() {
        return Err(listed);
    }
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
}

#[test]
fn a_watch_keeps_names_and_attributes_until_they_change() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_watch_keeps_names_and_attributes_until_they_change", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let (mounted, backing) = (|name: &str| mount.place().join(name), |name: &str| mount.backing().join(name));
    fs::create_dir_all(backing("dir/deep")).unwrap();
    for name in ["dir/moved", "dir/removed", "dir/deep/changed", "dir/deep/same"] {
        fs::write(backing(name), name).unwrap();
    }
    // Between a change and its report, a name may be listed that is gone.
    let same = || tried_to_list(mount.place()).is_ok_and(|now| now == listed(mount.backing()));
    assert!(same() && !mounted("dir/new").exists());
    for change in [
        |at: &Path| fs::write(at.join("dir/new"), "new").unwrap(),
        |at: &Path| fs::rename(at.join("dir/moved"), at.join("dir/deep/moved")).unwrap(),
        |at: &Path| fs::remove_file(at.join("dir/removed")).unwrap(),
        |at: &Path| fs::set_permissions(at.join("dir/deep/changed"), Permissions::from_mode(0o600)).unwrap(),
        |at: &Path| fs::write(at.join("dir/deep/changed"), "longer than before").unwrap(),
        |at: &Path| fs::create_dir_all(at.join("dir/deep/more/and more")).unwrap(),
        |at: &Path| fs::rename(at.join("dir/deep"), at.join("depth")).unwrap(),
        |at: &Path| fs::remove_dir_all(at.join("depth/more")).unwrap(),
    ] {
        change(mount.backing());
        wait_for("the mount to show the change", same);
        change_back_and_forth(&mounted("dir"));
    }
}

/// Changes through the mount need no report.
fn change_back_and_forth(dir: &Path) {
    for round in 0..3 {
        fs::write(dir.join("through"), "x".repeat(round)).unwrap();
        assert_eq!(fs::metadata(dir.join("through")).unwrap().len(), round as u64);
        fs::rename(dir.join("through"), dir.join("the mount")).unwrap();
        assert!(!dir.join("through").exists() && dir.join("the mount").exists());
        fs::remove_file(dir.join("the mount")).unwrap();
        assert!(!dir.join("the mount").exists());
    }
}

#[test]
fn what_is_kept_needs_no_worker() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("what_is_kept_needs_no_worker", &why);
    }
    // An old directory, because attributes that changed a moment ago are asked for again.
    let spec = MountSpec { backing: Some(Path::new("/usr/bin")), ..MountSpec::default() };
    let mount = Mount::start(&spec, |settings| settings.watch = true);
    let worker = mount.server.worker_now().unwrap();
    // Several times, because a package that is installed meanwhile changes the directory, and then the kernel asks once.
    wait_for("an answer while the worker is stopped", || {
        assert!(looked_up(mount.place()));
        let stopped = Stopped::new(worker);
        let (sender, answer) = channel();
        let place = mount.place().to_owned();
        let looking = std::thread::spawn(move || sender.send(looked_up(&place)));
        let without_worker = answer.recv_timeout(Duration::from_secs(5)).unwrap_or(false);
        // First of all: whoever waits for a stopped worker cannot even be killed.
        drop(stopped);
        looking.join().unwrap().ok();
        without_worker
    });
}

/// True if a present and an absent name are answered rightly.
fn looked_up(bin: &Path) -> bool {
    bin.join("ls").exists() && !bin.join("no such name").exists()
}

#[test]
fn a_watch_shows_changes_to_open_files() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_watch_shows_changes_to_open_files", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let (backing, mounted) = file(&mount, 200_000);
    for seed in 2..6 {
        let was = content(&mounted, 200_000);
        assert!(was == pattern(seed - 1, 0, 200_000));
        backing.write_all_at(&pattern(seed, 0, 200_000), 0).unwrap();
        wait_for("what was written to the backing file", || {
            content(&mounted, 200_000) == pattern(seed, 0, 200_000)
        });
    }
    backing.set_len(100).unwrap();
    wait_for("a shorter file", || mounted.read_at(&mut [0; 10], 100).unwrap() == 0);
    assert_eq!(content(&mounted, 100), pattern(5, 0, 100));
    backing.set_len(0).unwrap();
    backing.write_all_at(&pattern(9, 0, 400_000), 0).unwrap();
    wait_for("a longer file", || mounted.metadata().unwrap().len() == 400_000);
    wait_for("its end", || content(&mounted, 400_000) == pattern(9, 0, 400_000));
}

#[test]
fn a_write_reaches_the_backing_file_at_once() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_write_reaches_the_backing_file_at_once", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let path = mount.place().join("file");
    let mounted = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    for (seed, at) in (1..40).zip((0..).step_by(40_000)) {
        mounted.write_all_at(&pattern(seed, at, 50_000), at).unwrap();
        assert!(fs::read(mount.backing().join("file")).unwrap()[at as usize..] == pattern(seed, at, 50_000));
        let mut seen = vec![0; 50_000];
        mounted.read_exact_at(&mut seen, at).unwrap();
        assert!(seen == pattern(seed, at, 50_000), "its own writer at {at}");
    }
}
