//! The promises of `docs/cache-coherence.md` about changes in the backing directory.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;

use crate::common::mount::Mount;
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
fn names_that_change_in_the_backing_directory_are_seen_within_a_second() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("names_that_change_in_the_backing_directory_are_seen_within_a_second", &why);
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
