//! Lists of names: while they change, and of a damaged disk. Real kernel, real program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use eke_testkit::real::{lacking, no_program, skip};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::common::NEEDS;
use crate::common::mount::{InMemory, Mount, run, scratch};
use crate::spill::SecondDisk;

const NAMES: usize = 3000;

/// An overlay, where positions are numbers in a list that each open has. Drop unmounts it.
pub struct Overlay(pub PathBuf);

impl Overlay {
    /// Over `lower`, and in the same directory.
    pub fn new(lower: &Path) -> rustix::io::Result<Self> {
        let [upper, work, merged] = ["upper", "work", "merged"].map(|name| lower.with_file_name(name));
        [&upper, &work, &merged].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let [lower, upper, work] = [lower, &upper, &work].map(|dir| dir.to_str().unwrap().to_owned());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let options = std::ffi::CString::new(options).unwrap();
        mount("overlay", &merged, "overlay", MountFlags::empty(), &*options)?;
        Ok(Self(merged))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn name(number: usize) -> String {
    format!("a name of usual length {number:04}")
}

#[test]
fn a_pass_lists_every_name_that_stays() {
    let test = "a_pass_lists_every_name_that_stays";
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&["mount"])) {
        return skip(test, &why);
    }
    let scratch = scratch();
    // overlayfs refuses an overlay as its upper directory.
    let memory = InMemory::new(scratch.path(), 64 << 10);
    let lower = memory.0.join("lower");
    fs::create_dir_all(lower.join("dir")).unwrap();
    (0..NAMES).for_each(|number| fs::write(lower.join("dir").join(name(number)), "").unwrap());
    let overlay = match Overlay::new(&lower) {
        Ok(overlay) => overlay,
        Err(e) => return skip(test, &format!("no overlayfs: {e}")),
    };
    let dir = overlay.0.join("dir");
    let mount = Mount::of(&overlay.0);
    let place = mount.place().join("dir");

    let mut pass = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name());
    let first: Vec<_> = pass.by_ref().take(10).collect();
    let (go, stay): (Vec<_>, Vec<_>) = (0..NAMES).map(name).partition(|name| name.ends_with(['1', '2', '3']));
    go.iter().for_each(|name| fs::remove_file(dir.join(name)).unwrap());
    let listed: BTreeSet<_> = first.into_iter().chain(pass).collect();
    let missing: Vec<_> =
        stay.iter().filter(|name| !listed.contains(name.as_ref() as &std::ffi::OsStr)).collect();
    assert!(missing.is_empty(), "{} of {} names, as {:?}", missing.len(), stay.len(), missing[0]);

    fs::write(dir.join("new"), "").unwrap();
    assert!(fs::read_dir(&place).unwrap().any(|entry| entry.unwrap().file_name() == "new"), "a new pass");
}

#[test]
fn a_name_whose_inode_is_damaged_stays_listed() {
    let why = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "debugfs"]));
    if let Some(why) = why {
        return skip("a_name_whose_inode_is_damaged_stays_listed", &why);
    }
    let scratch = scratch();
    let [image, disk] = ["image", "disk"].map(|name| scratch.path().join(name));
    let whole = SecondDisk::new(&image, &disk);
    fs::create_dir(disk.join("dir")).unwrap();
    ["before", "damaged", "other"]
        .iter()
        .for_each(|name| fs::write(disk.join("dir").join(name), name).unwrap());
    drop(whole);
    run("debugfs", &["-w", "-R", "clri /dir/damaged", image.to_str().unwrap()]);
    let _damaged = SecondDisk::again(&image, &disk);
    let mount = Mount::of(&disk.join("dir"));
    let listed: BTreeSet<_> =
        fs::read_dir(mount.place()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(listed, ["before", "damaged", "other"].map(Into::into).into());
    let error = |dir: &Path| fs::metadata(dir.join("damaged")).unwrap_err().raw_os_error();
    assert_eq!(error(mount.place()), error(mount.backing()));
    assert_eq!(fs::read_to_string(mount.place().join("other")).unwrap(), "other");
}
