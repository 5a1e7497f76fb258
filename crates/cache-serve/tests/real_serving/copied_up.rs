//! An overlayfs below the cache: a file that is copied up keeps its number, and gets the birth of another file. So births do not count.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use rustix::fs::{Mode, OFlags, openat};

use crate::common::NEEDS;
use crate::common::mount::{InMemory, Mount, scratch};
use crate::listing::Overlay;

/// The kernel asks for all names and attributes.
fn list(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        entry.unwrap().metadata().unwrap();
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new().append(true).open(path).unwrap()
}

/// Changes files of the lower directory while they are open, and a directory that is in use.
fn copy_up(place: &Path) {
    list(place);
    let mut writer = append(&place.join("written"));
    writer.write_all(b"first ").unwrap();
    list(place);
    writer.write_all(b"second").unwrap();
    assert_eq!(fs::read_to_string(place.join("written")).unwrap(), "below first second");
    writer.sync_all().unwrap();

    let (mut reader, mut text) = (File::open(place.join("read")).unwrap(), String::new());
    let number = reader.metadata().unwrap().ino();
    append(&place.join("read")).write_all(b"more").unwrap();
    list(place);
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "below more");
    assert_eq!(fs::metadata(place.join("read")).unwrap().ino(), number);

    let dir = File::open(place.join("dir")).unwrap();
    fs::write(place.join("dir/new"), "new").unwrap();
    list(place);
    for name in ["inner", "new"] {
        openat(&dir, name, OFlags::RDONLY, Mode::empty()).unwrap();
    }
}

/// A new overlay in a directory in memory, over three names.
fn overlay(memory: &InMemory) -> rustix::io::Result<Overlay> {
    let lower = memory.0.join("lower");
    fs::create_dir_all(lower.join("dir")).unwrap();
    ["written", "read", "dir/inner"].iter().for_each(|name| fs::write(lower.join(name), "below ").unwrap());
    Overlay::new(&lower)
}

#[test]
fn what_is_open_of_an_overlay_survives_that_it_is_copied_up() {
    let test = "what_is_open_of_an_overlay_survives_that_it_is_copied_up";
    if let Some(why) = lacking(&NEEDS) {
        return skip(test, &why);
    }
    // overlayfs refuses an overlay as its upper directory.
    let scratch = [scratch(), scratch()];
    let [itself, around] = scratch.each_ref().map(|dir| InMemory::new(dir.path(), 16 << 10));
    let (top, _inside) = match (overlay(&itself), overlay(&around)) {
        (Ok(top), Ok(inside)) => (top, inside),
        (Err(e), _) | (_, Err(e)) => return skip(test, &format!("no overlayfs: {e}")),
    };
    let mount = Mount::of(&top.0);
    copy_up(mount.place());
    let mount = Mount::of(&around.0);
    copy_up(&mount.place().join("merged"));
}

/// The kernel keeps targets as long as inodes, and no open compares links.
#[test]
fn a_link_in_the_place_of_a_removed_one_shows_its_own_target() {
    let test = "a_link_in_the_place_of_a_removed_one_shows_its_own_target";
    if let Some(why) = lacking(&NEEDS) {
        return skip(test, &why);
    }
    let scratch = scratch();
    let lower = scratch.path().join("lower");
    fs::create_dir(&lower).unwrap();
    let overlay = match Overlay::new(&lower) {
        Ok(overlay) => overlay,
        Err(e) => return skip(test, &format!("no overlayfs: {e}")),
    };
    let link = overlay.0.join("link");
    symlink("releases/100", &link).unwrap();
    let number = fs::symlink_metadata(&link).unwrap().ino();
    let mount = Mount::of(&overlay.0);
    let seen = || fs::read_link(mount.place().join("link"));
    assert_eq!(seen().unwrap(), PathBuf::from("releases/100"));
    // The next worker has no descriptor of the link, which would keep its number.
    mount.kill_worker();
    fs::remove_file(&link).unwrap();
    symlink("releases/9", &link).unwrap();
    if fs::symlink_metadata(&link).unwrap().ino() != number {
        return skip(test, "the disk did not use the number of the removed link again");
    }
    wait_for("the new link's target", || seen().is_ok_and(|target| target == Path::new("releases/9")));
}
