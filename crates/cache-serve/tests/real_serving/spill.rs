//! Evicted blocks on a second disk: they come back, also after an unmount, and never older than their file. Real kernel, real program.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use eke_cache_mounts::settings::Memory;
use eke_cache_mounts::spill::{SpillSettings, SpillStats};
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::common::NEEDS;
use crate::common::content::{Content, stats};
use crate::common::mount::{InMemory, Mount, MountSpec, run, scratch, settings};
use crate::common::server::{Server, is_gone, kill};

const FILES: u64 = 40;
const SIZE: usize = 1 << 20;
const CONTENT: Content = Content { files: FILES, size: SIZE };
const BLOCKS: &str = "eke-cache.blocks";
const INDEX: &str = "eke-cache.index";

/// A backing directory on the disk of the temporary files, and a directory on a file system of its own.
struct Disks {
    backing: PathBuf,
    spill: PathBuf,
    _second: SecondDisk,
    scratch: TempDir,
}

/// A file system in a file. Drop unmounts it.
pub struct SecondDisk(PathBuf);

impl SecondDisk {
    pub fn new(image: &Path, place: &Path) -> Self {
        Self::with_mib(image, place, 256)
    }

    /// Of this size.
    pub fn with_mib(image: &Path, place: &Path, mib: u64) -> Self {
        File::create(image).unwrap().set_len(mib << 20).unwrap();
        fs::create_dir(place).unwrap();
        run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str().unwrap()]);
        Self::again(image, place)
    }

    /// As it was left.
    pub fn again(image: &Path, place: &Path) -> Self {
        run("mount", &["-o", "loop", image.to_str().unwrap(), place.to_str().unwrap()]);
        Self(place.to_owned())
    }
}

impl Drop for SecondDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Skips a test where it cannot run.
fn cannot_run(name: &str) -> bool {
    let why = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "losetup"]));
    why.iter().for_each(|why| skip(name, why));
    why.is_some()
}

impl Disks {
    fn new() -> Self {
        let scratch = scratch();
        let second = SecondDisk::new(&scratch.path().join("image"), &scratch.path().join("second"));
        let (backing, spill) = (scratch.path().join("backing"), second.0.join("spill"));
        fs::create_dir(&backing).unwrap();
        fs::create_dir(&spill).unwrap();
        fs::set_permissions(&spill, Permissions::from_mode(0o700)).unwrap();
        for n in 0..FILES {
            fs::write(backing.join(n.to_string()), CONTENT.of(n, 0)).unwrap();
            // What waits for its writeback could be stores through a mapping, and counts as changed at each open.
            File::open(backing.join(n.to_string())).unwrap().sync_all().unwrap();
        }
        Self { backing, spill, _second: second, scratch }
    }

    fn settings(&self) -> SpillSettings {
        SpillSettings { dir: self.spill.clone(), size: Some(Bytes::mib(128)), day: Some(Bytes::mib(512)) }
    }

    fn mount(&self) -> Mount {
        let spec = MountSpec { backing: Some(&self.backing), ..MountSpec::default() };
        Mount::start(&spec, |settings| {
            settings.memory = Memory::Bytes(Bytes::mib(12));
            settings.spill = Some(self.settings());
        })
    }

    /// Starts a mount that is refused.
    fn refused(&self, change: impl FnOnce(&mut SpillSettings)) -> Refusal {
        let place = tempfile::tempdir_in(self.scratch.path()).unwrap();
        let mut spill = self.settings();
        change(&mut spill);
        let mut settings = settings(&self.backing, place.path());
        settings.spill = Some(spill);
        match Server::start(&settings, &[], &[]) {
            Err(refusal) => refusal,
            Ok(server) => {
                let _ = unmount(place.path(), UnmountFlags::DETACH);
                panic!("mounted: {}", server.log())
            }
        }
    }
}

fn spill_of(mount: &Mount) -> SpillStats {
    stats(mount).spill
}

/// Reads each file twice, more than memory holds, so that blocks that were requested again are evicted.
fn overflow(mount: &Mount) {
    (0..FILES).for_each(|file| {
        (0..2).for_each(|_| assert!(CONTENT.read(mount, file) == CONTENT.of(file, 0), "{file}"))
    });
    wait_for("evicted blocks on the second disk", || spill_of(mount).written.0 > 4 << 20);
}

fn end(mut mount: Mount) {
    mount.umount();
    assert!(mount.exit_status().success());
}

/// A second disk with what a mount has left.
fn left() -> Disks {
    let disks = Disks::new();
    let mount = disks.mount();
    overflow(&mount);
    end(mount);
    assert!(disks.spill.join(INDEX).exists());
    disks
}

#[test]
fn evicted_blocks_come_back_and_outlive_an_unmount() {
    if cannot_run("evicted_blocks_come_back_and_outlive_an_unmount") {
        return;
    }
    let disks = Disks::new();
    let mount = disks.mount();
    overflow(&mount);
    CONTENT.check(&mount, &[]);
    let before = spill_of(&mount);
    assert!(
        before.on && before.hits > 0 && before.from_spill.0 > 0 && before.cost_ns.is_some(),
        "{before:?}"
    );
    assert!(before.limit == Bytes::mib(128) && before.day_limit == Bytes::mib(512), "{before:?}");
    assert!(stats(&mount).files.tables >= before.memory, "its memory counts");
    end(mount);
    let mode = |name| disks.spill.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(BLOCKS), mode(INDEX)), (0o600, 0o600));

    let mount = disks.mount();
    let restored = spill_of(&mount);
    assert!(restored.restored > 32 && restored.blocks == restored.restored, "{restored:?}");
    assert_eq!(restored.day_written.0, before.day_written.0.max(restored.day_written.0), "a day goes on");
    assert!(!disks.spill.join(INDEX).exists(), "it would be old after a crash");
    CONTENT.check(&mount, &[]);
    let after = stats(&mount);
    assert!(after.spill.hits > 32 && after.spill.errors + after.spill.corrupted == 0, "{:?}", after.spill);
    let all = Bytes(FILES * SIZE as u64);
    assert!(after.tier.from_backing.0 + after.spill.from_spill.0 / 2 < all.0, "{:?}", after);
    end(mount);
}

#[test]
fn changed_files_are_not_served_from_before() {
    if cannot_run("changed_files_are_not_served_from_before") {
        return;
    }
    let disks = left();
    // While nothing is mounted: in place, of the same length.
    let write = |dir: &Path, file: u64, version| {
        let file_of = OpenOptions::new().write(true).open(dir.join(file.to_string())).unwrap();
        file_of.write_all_at(&CONTENT.of(file, version), 0).unwrap();
    };
    write(&disks.backing, 0, 1);
    fs::remove_file(disks.backing.join("1")).unwrap();
    fs::write(disks.backing.join("1"), CONTENT.of(1, 1)).unwrap();
    let mount = disks.mount();
    assert!(spill_of(&mount).restored > 32);
    CONTENT.check(&mount, &[(0, 1), (1, 1)]);
    // Through the mount, below it, and a part only.
    write(mount.place(), 2, 2);
    write(&disks.backing, 3, 3);
    let cut = OpenOptions::new().write(true).open(mount.place().join("4")).unwrap();
    cut.set_len(100_000).unwrap();
    cut.write_all_at(&CONTENT.of(4, 0)[100_000..], 100_000).unwrap();
    drop(cut);
    let changed = [(0, 1), (1, 1), (2, 2), (3, 3)];
    (0..3).for_each(|_| CONTENT.check(&mount, &changed));
    assert!(spill_of(&mount).drops > 0);
    end(mount);
    let mount = disks.mount();
    CONTENT.check(&mount, &changed);
    end(mount);
}

#[test]
fn damaged_blocks_are_noticed_and_read_from_the_file() {
    if cannot_run("damaged_blocks_are_noticed_and_read_from_the_file") {
        return;
    }
    let disks = left();
    let blocks = OpenOptions::new().read(true).write(true).open(disks.spill.join(BLOCKS)).unwrap();
    let index = fs::read(disks.spill.join(INDEX)).unwrap();
    for at in (1 << 20..blocks.metadata().unwrap().len()).step_by(200_011) {
        let mut byte = [0];
        blocks.read_exact_at(&mut byte, at).unwrap();
        blocks.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }
    let mount = disks.mount();
    CONTENT.check(&mount, &[]);
    assert!(spill_of(&mount).corrupted > 0, "{:?}", spill_of(&mount));
    end(mount);
    blocks.set_len(2 << 20).unwrap();
    let mount = disks.mount();
    CONTENT.check(&mount, &[]);
    assert!(spill_of(&mount).errors > 0, "{:?}", spill_of(&mount));
    end(mount);
    // Of a mount before: its segments were overwritten.
    fs::write(disks.spill.join(INDEX), &index).unwrap();
    let mount = disks.mount();
    CONTENT.check(&mount, &[]);
    end(mount);
    fs::write(disks.spill.join(INDEX), &index[..index.len() - 1]).unwrap();
    let mount = disks.mount();
    assert_eq!((spill_of(&mount).restored, spill_of(&mount).blocks), (0, 0));
    CONTENT.check(&mount, &[]);
}

#[test]
fn after_a_kill_nothing_of_before_is_used() {
    if cannot_run("after_a_kill_nothing_of_before_is_used") {
        return;
    }
    let disks = left();
    let mount = disks.mount();
    assert!(spill_of(&mount).restored > 0);
    CONTENT.check(&mount, &[]);
    mount.kill_worker();
    let young = spill_of(&mount);
    assert_eq!((young.on, young.restored, young.blocks), (true, 0, 0), "{young:?}");
    assert!(young.day_written.0 > 0, "the day goes on");
    overflow(&mount);
    CONTENT.check(&mount, &[]);
    kill(mount.server.supervisor(), Signal::KILL);
    wait_for("the guard to unmount", || !mount.is_mounted());
    wait_for("the worker to exit", || mount.server.worker_now().is_none_or(is_gone));
    drop(mount);
    assert!(!disks.spill.join(INDEX).exists());
    let mount = disks.mount();
    assert_eq!(spill_of(&mount).restored, 0);
    CONTENT.check(&mount, &[]);
}

/// Their device numbers differ.
#[test]
fn another_subvolume_of_the_same_btrfs_is_refused() {
    let name = "another_subvolume_of_the_same_btrfs_is_refused";
    if cannot_run(name) {
        return;
    }
    if let Some(why) = no_program(&["mkfs.btrfs", "btrfs"]) {
        return skip(name, &why);
    }
    let scratch = scratch();
    let (image, place) = (scratch.path().join("image"), scratch.path().join("second"));
    File::create(&image).unwrap().set_len(256 << 20).unwrap();
    fs::create_dir(&place).unwrap();
    run("mkfs.btrfs", &["-q", image.to_str().unwrap()]);
    let second = SecondDisk::again(&image, &place);
    let [backing, spill] = ["backing", "spill"].map(|name| place.join(name));
    for dir in [&backing, &spill] {
        run("btrfs", &["subvolume", "create", dir.to_str().unwrap()]);
    }
    fs::set_permissions(&spill, Permissions::from_mode(0o700)).unwrap();
    let disks = Disks { backing, spill, _second: second, scratch };
    let refusal = disks.refused(|_| {});
    assert!(refusal.what.contains("on the file system of the backing directory"), "{refusal:?}");
}

#[test]
fn a_directory_that_is_unfit_is_refused() {
    if cannot_run("a_directory_that_is_unfit_is_refused") {
        return;
    }
    let disks = Disks::new();
    let says = |change: &dyn Fn(&mut SpillSettings), kind, what: &str| {
        let refusal = disks.refused(change);
        assert!(refusal.kind == kind && refusal.what.contains(what), "{refusal:?}");
    };
    let (beside, inside) = (disks.scratch.path().join("beside"), disks.backing.join("inside"));
    [&beside, &inside].iter().for_each(|dir| fs::create_dir(dir).unwrap());
    says(&|s| s.dir = beside.clone(), RefusalKind::Usage, "on the file system of the backing directory");
    says(&|s| s.dir = inside.clone(), RefusalKind::Usage, "serve its own blocks");
    says(&|s| s.dir = disks.backing.clone(), RefusalKind::Usage, "serve its own blocks");
    says(&|s| s.dir = beside.join("none"), RefusalKind::Usage, "cannot open");
    let memory = InMemory::new(&beside, 1024);
    says(&|s| s.dir = memory.0.clone(), RefusalKind::Usage, "is in memory");
    let link = disks.scratch.path().join("link");
    symlink(&disks.spill, &link).unwrap();
    says(&|s| s.dir = link.clone(), RefusalKind::Failed, "symbolic link");
    let mode = |mode| fs::set_permissions(&disks.spill, Permissions::from_mode(mode)).unwrap();
    mode(0o720);
    says(&|_| {}, RefusalKind::NotPermitted, "others can put files into it");
    mode(0o700);
    std::os::unix::fs::chown(&disks.spill, Some(1234), None).unwrap();
    says(&|_| {}, RefusalKind::NotPermitted, "belongs to user 1234");
    std::os::unix::fs::chown(&disks.spill, Some(0), None).unwrap();
    symlink("/etc/passwd", disks.spill.join(BLOCKS)).unwrap();
    says(&|_| {}, RefusalKind::Failed, "cannot keep evicted blocks in");
    fs::remove_file(disks.spill.join(BLOCKS)).unwrap();
    fs::write(disks.spill.join(BLOCKS), "").unwrap();
    fs::set_permissions(disks.spill.join(BLOCKS), Permissions::from_mode(0o644)).unwrap();
    says(&|_| {}, RefusalKind::Failed, "cannot keep evicted blocks in");
    fs::remove_file(disks.spill.join(BLOCKS)).unwrap();
    let mount = disks.mount();
    says(&|_| {}, RefusalKind::Busy, "another cache keeps its blocks there");
    end(mount);
    end(disks.mount());
}
