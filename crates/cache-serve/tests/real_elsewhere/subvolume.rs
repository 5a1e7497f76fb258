//! A subvolume of btrfs is on the directory's own mount: it hangs only with the directory, so its requests have no share. A removed one
//! leaves its device number to the next one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::tree::put;
use eke_testkit::wait::wait_for;
use rustix::mount::{UnmountFlags, unmount};

use crate::child::Child;
use crate::common::NEEDS;
use crate::common::mount::{Mount, MountSpec, run, scratch};
use crate::{SHARE, USER};

/// More than a user's share.
const WRITERS: usize = SHARE + 16;
const APPEND: &str = "echo ready; read -r go; echo after >>\"$1\"";

/// A frozen file system, and the processes that wait for it. Drop thaws it.
struct Frozen {
    writers: Vec<Child>,
    disk: PathBuf,
}

impl Frozen {
    fn thaw(&self) {
        run("fsfreeze", &["-u", self.disk.to_str().unwrap()]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.thaw();
        }
    }
}

/// Unmounts it when dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(dir: &Path) -> Self {
        let (image, place) = (dir.join("image"), dir.join("disk"));
        File::create(&image).unwrap().set_len(256 << 20).unwrap();
        fs::create_dir(&place).unwrap();
        let (image, path) = (image.to_str().unwrap(), place.to_str().unwrap());
        run("mkfs.btrfs", &["-q", image]);
        run("mount", &["-o", "loop", image, path]);
        Self(place)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// The threads of a process that wait for a disk.
fn waiting(process: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let waits = |stat: &str| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" D"));
    threads.filter(|t| fs::read_to_string(t.path().join("stat")).is_ok_and(|stat| waits(&stat))).count()
}

#[test]
fn a_subvolume_has_no_share() {
    let programs = ["mkfs.btrfs", "btrfs", "mount", "fsfreeze", "sh"];
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&programs)) {
        return skip("a_subvolume_has_no_share", &why);
    }
    let _machine = lock_machine();
    let scratch = scratch();
    let disk = Disk::new(scratch.path());
    let sub = disk.0.join("sub");
    run("btrfs", &["-q", "subvolume", "create", sub.to_str().unwrap()]);
    for n in 0..WRITERS {
        fs::write(sub.join(n.to_string()), "before\n").unwrap();
        std::os::unix::fs::chown(sub.join(n.to_string()), Some(USER), Some(USER)).unwrap();
    }
    let mount = Mount::of(&disk.0);
    let file = |n: usize| mount.place().join("sub").join(n.to_string());
    let writers: Vec<_> = (0..WRITERS).map(|n| Child::shell(APPEND, &file(n), USER)).collect();
    writers.iter().for_each(Child::is_ready);
    run("fsfreeze", &["-f", disk.0.to_str().unwrap()]);
    let mut frozen = Frozen { writers, disk: disk.0.clone() };
    frozen.writers.iter_mut().for_each(Child::go);
    let worker = mount.server.worker();
    wait_for("all writes to wait", || {
        let waiting = waiting(worker);
        if waiting >= WRITERS { Ok(()) } else { Err(format!("{waiting} of {WRITERS} wait")) }
    });
    frozen.thaw();
    let written: Vec<_> = frozen.writers.drain(..).map(Child::output).collect();
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert!((0..WRITERS).all(|n| fs::read_to_string(sub.join(n.to_string())).unwrap() == "before\nafter\n"));
}

fn subvolume(words: &[&str], paths: &[&Path]) {
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    run(
        "btrfs",
        &["-q", "subvolume"].into_iter().chain(words.iter().copied()).chain(paths).collect::<Vec<_>>(),
    );
}

fn names(dir: &Path) -> BTreeSet<OsString> {
    fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().file_name()).collect()
}

/// The text of this file of the mount, or the error.
fn seen(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| e.to_string())
}

#[test]
fn a_snapshot_in_the_place_of_a_removed_one_is_another() {
    let name = "a_snapshot_in_the_place_of_a_removed_one_is_another";
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&["mkfs.btrfs", "btrfs", "mount"])) {
        return skip(name, &why);
    }
    let _machine = lock_machine();
    let scratch = scratch();
    let disk = Disk::new(scratch.path());
    let (data, snapshot) = (disk.0.join("data"), disk.0.join("snapshot"));
    subvolume(&["create"], &[&data]);
    put(&data, "dir/file", "old");
    put(&data, "same", "same");
    subvolume(&["snapshot"], &[&data, &snapshot]);
    let spec = MountSpec { backing: Some(&disk.0), ..MountSpec::default() };
    let mount = Mount::start(&spec, |settings| settings.watch = true);
    let place = mount.place().join("snapshot");
    assert_eq!(seen(&place.join("dir/file")), "old");
    let mut open = File::open(place.join("same")).unwrap();
    let device = || fs::metadata(&snapshot).unwrap().dev();
    let (mut before, mut again) = (device(), 0);
    for round in 0..3 {
        let text = format!("new {round}");
        put(&data, "dir/file", &text);
        put(&data, &format!("added-{round}"), "");
        subvolume(&["delete"], &[&snapshot]);
        subvolume(&["snapshot"], &[&data, &snapshot]);
        // The kernel gives the number again, unless a mount of another program got it in between.
        again += u32::from(device() == before);
        before = device();
        let file = place.join("dir/file");
        wait_for("the new snapshot", || {
            let (seen, listed) = (seen(&file), names(&place));
            if seen == text && listed == names(&snapshot) {
                Ok(())
            } else {
                Err(format!("{seen}: {listed:?}"))
            }
        });
        put(&place, "dir/written", &text);
        assert_eq!(seen(&snapshot.join("dir/written")), text);
    }
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "same", "an open file of a removed subvolume is read on");
    drop(open);
    fs::remove_dir_all(&place).unwrap();
    assert!(!snapshot.exists());
    if again == 0 {
        skip(name, "each new snapshot had another device number than the one before it");
    }
}
