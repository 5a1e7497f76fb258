//! Bad input: full and broken disks, files that shrink while they are read, strange names, huge files, many files, corrupted memory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use eke_cache_mounts::settings::{Compress, PassthroughMode};
use eke_cache_store::{Key, Store, StoreSpec};
use eke_cachefs::backing;
use eke_cachefs::tier::{Options, Reporting, Tier};
use eke_linux::Root;
use eke_model::units::{Bytes, Nanos};
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use eke_testkit::wait::{RaiseOnDrop, wait_for};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::mount::{InMemory, Mount, MountSpec, run, scratch};
use crate::common::{NEEDS, pattern, tree};
use crate::spill::SecondDisk;

const BLOCK: usize = 65_536;

fn errno<T>(result: std::io::Result<T>) -> Option<Errno> {
    result.err().and_then(|e| Errno::from_io_error(&e))
}

/// Writes until it fails. Returns how much it wrote, and the error.
fn fill(file: &File) -> (u64, Errno) {
    let mut size = 0;
    loop {
        match file.write_at(&pattern(3, size, 100_000), size) {
            Ok(written) => size += written as u64,
            Err(e) => return (size, Errno::from_io_error(&e).unwrap()),
        }
    }
}

#[test]
fn a_full_backing_disk_refuses_a_write_and_keeps_the_rest() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_full_backing_disk_refuses_a_write_and_keeps_the_rest", &why);
    }
    let dir = scratch();
    let disk = InMemory::new(dir.path(), 3000);
    let mount = Mount::of(&disk.0);
    let (mounted, backing) = (mount.place().join("file"), mount.backing().join("file"));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&mounted).unwrap();
    let (size, error) = fill(&file);
    assert_eq!(error, Errno::NOSPC);
    assert!(size > 2_000_000, "{size}");
    for path in [&mounted, &backing] {
        assert!(fs::read(path).unwrap() == pattern(3, 0, size as usize), "{}", path.display());
    }
    assert_eq!(
        errno(File::create(mount.place().join("other")).unwrap().write_at(b"x", 0)),
        Some(Errno::NOSPC)
    );
    file.set_len(100_000).unwrap();
    file.write_all_at(&pattern(4, 0, 200_000), 0).unwrap();
    for path in [&mounted, &backing] {
        assert!(fs::read(path).unwrap() == pattern(4, 0, 200_000), "it has room again: {}", path.display());
    }
}

#[test]
fn a_file_that_may_only_grow_takes_appends_and_nothing_else() {
    let test = "a_file_that_may_only_grow_takes_appends_and_nothing_else";
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "chattr"])) {
        return skip(test, &why);
    }
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    let _disk = SecondDisk::new(&scratch.path().join("image"), &disk);
    fs::write(disk.join("log"), "first").unwrap();
    if !Command::new("chattr").args(["+a", "log"]).current_dir(&disk).status().unwrap().success() {
        return skip(test, "this root may not set the attribute");
    }
    let mount = Mount::of(&disk);
    for dir in [mount.backing(), mount.place()] {
        let log = dir.join("log");
        let other_ways = [
            OpenOptions::new().write(true).open(&log),
            OpenOptions::new().read(true).write(true).open(&log),
            OpenOptions::new().write(true).truncate(true).open(&log),
        ];
        assert_eq!(other_ways.map(errno), [Some(Errno::PERM); 3], "{}", log.display());
        let mut appending = OpenOptions::new().append(true).open(&log).unwrap();
        appending.write_all(b", next").unwrap();
        assert_eq!(errno(appending.set_len(0)), Some(Errno::PERM));
    }
    assert_eq!(fs::read_to_string(disk.join("log")).unwrap(), "first, next, next");
}

/// The kernel refuses to map it for writing by the attribute of the inode that is opened, which is FUSE's.
#[test]
fn a_file_that_may_only_grow_is_not_changed_through_a_mapping() {
    let test = "a_file_that_may_only_grow_is_not_changed_through_a_mapping";
    if let Some(why) = lacking(&NEEDS).or_else(|| no_program(&["mkfs.ext4", "mount", "chattr"])) {
        return skip(test, &why);
    }
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    let _disk = SecondDisk::new(&scratch.path().join("image"), &disk);
    fs::write(disk.join("empty"), "").unwrap();
    fs::write(disk.join("text"), "text").unwrap();
    fs::write(disk.join("later"), "later").unwrap();
    let only_grow = |names: &[&str]| {
        Command::new("chattr").arg("+a").args(names).current_dir(&disk).status().unwrap().success()
    };
    if !only_grow(&["empty", "text"]) {
        return skip(test, "this root may not set the attribute");
    }
    let spec = MountSpec { backing: Some(&disk), ..MountSpec::default() };
    let read_and_append = |path: PathBuf| OpenOptions::new().append(true).read(true).open(path);
    for mode in [PassthroughMode::Auto, PassthroughMode::Always] {
        let mount = Mount::start(&spec, |settings| settings.passthrough = mode);
        for name in ["empty", "text"] {
            let _before = File::open(mount.place().join(name)).unwrap();
            assert_eq!(
                errno(read_and_append(mount.place().join(name))),
                Some(Errno::PERM),
                "{name}, {mode:?}"
            );
            // Without the right to read there is no mapping.
            let log = OpenOptions::new().append(true).open(mount.place().join(name)).unwrap();
            assert!(!maps_for_writing(&log));
        }
    }
    // It gets the attribute while it is open with passthrough.
    let mount = Mount::start(&spec, |settings| settings.passthrough = PassthroughMode::Always);
    let before = File::open(mount.place().join("later")).unwrap();
    assert!(only_grow(&["later"]));
    assert_eq!(errno(read_and_append(mount.place().join("later"))), Some(Errno::PERM));
    drop(before);
    assert!(
        Command::new("chattr")
            .args(["-a", "empty", "text", "later"])
            .current_dir(&disk)
            .status()
            .unwrap()
            .success()
    );
}

/// True if the file can be mapped to store in it.
#[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
fn maps_for_writing(file: &File) -> bool {
    let (rights, none) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
    // SAFETY: the kernel chooses the place, and nobody uses the page before it is unmapped.
    unsafe {
        let Ok(page) = mmap(none, 4096, rights, MapFlags::SHARED, file, 0) else { return false };
        munmap(page, 4096).unwrap();
    }
    true
}

/// A read-only ext4 with one file, on a disk that can fail; the file is in no cache. Returns the open mount point, too.
fn on_a_disk_that_can_fail(dir: &Path, len: usize) -> (SlowDisk, File) {
    let profile = Profile { rate: 400_000_000, latency: Nanos(0), ..Profile::plain() };
    let spec = SlowDiskSpec::new(Image::Memory, Bytes::mib(64), profile);
    let disk = SlowDisk::attach(&Root::host(), spec).unwrap();
    let (device, at) = (disk.device().to_str().unwrap(), dir.to_str().unwrap());
    run("mkfs.ext4", &["-q", device]);
    run("mount", &[device, at]);
    fs::write(dir.join("file"), pattern(5, 0, len)).unwrap();
    run("umount", &[at]);
    run("mount", &["-o", "ro,noload", device, at]);
    (disk, File::open(dir).unwrap())
}

#[test]
fn a_read_error_of_the_backing_disk_is_reported_and_not_cached() {
    let missing =
        lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(&["losetup", "mkfs.ext4"]));
    if let Some(why) = missing {
        return skip("a_read_error_of_the_backing_disk_is_reported_and_not_cached", &why);
    }
    let _clean = SameDisks::start();
    let (dir, len) = (scratch(), 4 << 20);
    let (disk, open_dir) = on_a_disk_that_can_fail(dir.path(), len);
    let mount = Mount::of(dir.path());
    let file = File::open(mount.place().join("file")).unwrap();
    let mut block = vec![0; BLOCK];
    file.read_exact_at(&mut block, 0).unwrap();
    assert!(block == pattern(5, 0, BLOCK));

    disk.fail(0..disk.spec().size.0, Errno::IO);
    let end = (len - BLOCK) as u64;
    assert_eq!(errno(file.read_exact_at(&mut block, end)), Some(Errno::IO));
    file.read_exact_at(&mut block, 0).unwrap();
    assert!(block == pattern(5, 0, BLOCK), "a stored block is served");
    assert!(disk.stats().errors > 0, "{:?}", disk.stats());

    disk.heal();
    let all = fs::read(mount.place().join("file")).unwrap();
    assert!(all == pattern(5, 0, len), "{}", tree::summary(&all));
    drop((file, mount, open_dir));
    disk.detach().unwrap();
}

/// Reads at random offsets until `stop`. Every byte must be 0 or what was written. Returns the number of reads.
fn read_at_random(file: &File, seed: u8, size: u64, all: &AtomicU64, stop: &AtomicBool) -> u64 {
    let mut bytes = vec![0; 150_000];
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        let at = reads * 7919 * 4096 % size;
        let read = file.read_at(&mut bytes, at).unwrap();
        let whole = pattern(seed, at, read);
        let wrong = bytes[..read].iter().zip(&whole).position(|(seen, whole)| *seen != 0 && seen != whole);
        assert_eq!(wrong, None, "in {read} bytes at {at}");
        reads += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    reads
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_shows_its_bytes_or_zeros() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_file_that_is_truncated_while_it_is_read_shows_its_bytes_or_zeros", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let size = 2_000_000;
    let whole = pattern(6, 0, size as usize);
    let backing = OpenOptions::new().write(true).create_new(true).open(mount.backing().join("file")).unwrap();
    backing.write_all_at(&whole, 0).unwrap();
    let (all, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let open = || File::open(mount.place().join("file")).unwrap();
    let reads = std::thread::scope(|scope| {
        let end = RaiseOnDrop(&stop);
        let readers = [(); 3].map(|()| scope.spawn(|| read_at_random(&open(), 6, size, &all, &stop)));
        for round in 0..60u64 {
            backing.set_len(round * 61_131 % size).unwrap();
            // One read of each reader may have begun before the truncation.
            let before = all.load(Ordering::Relaxed);
            wait_for("a read of the truncated file", || all.load(Ordering::Relaxed) > before + 3);
            backing.set_len(size).unwrap();
            backing.write_all_at(&whole[..(round * 40_009 % size) as usize], 0).unwrap();
        }
        drop(end);
        readers.map(|r| r.join().unwrap())
    });
    assert!(reads.iter().all(|n| *n > 0), "{reads:?}");
    assert!(fs::read(mount.place().join("file")).unwrap() == fs::read(mount.backing().join("file")).unwrap());
}

#[test]
fn names_may_be_any_bytes() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("names_may_be_any_bytes", &why);
    }
    let mount = Mount::new();
    let longest = vec![0xff; 255];
    let names = [&b"\xff\xfe"[..], b"\n", b" ", b"-rf", b"\x01\\\"'$", &longest];
    let names: BTreeSet<OsString> = names.map(|n| OsString::from_vec(n.to_vec())).into();
    for (index, name) in names.iter().enumerate() {
        let root = if index % 2 == 0 { mount.place() } else { mount.backing() };
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join(name), pattern(7, index as u64, 100)).unwrap();
    }
    let list =
        |dir: &Path| fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect::<BTreeSet<_>>();
    assert_eq!(list(mount.place()), names);
    for (index, name) in names.iter().enumerate() {
        let inside = mount.place().join(name).join(name);
        assert!(fs::read(&inside).unwrap() == pattern(7, index as u64, 100), "{name:?}");
        fs::rename(&inside, mount.place().join(name).join("plain")).unwrap();
        assert_eq!(list(&mount.backing().join(name)), [OsString::from("plain")].into());
    }
    let longer = mount.place().join(OsString::from_vec(vec![b'x'; 256]));
    assert_eq!(errno(File::create(longer)), Some(Errno::NAMETOOLONG));
}

#[test]
fn a_sparse_file_of_1_tib_is_served() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_sparse_file_of_1_tib_is_served", &why);
    }
    let mount = Mount::new();
    let (tib, gib) = (1 << 40, 1 << 30);
    let backing = File::create_new(mount.backing().join("file")).unwrap();
    if let Some(error) = errno(backing.set_len(tib)) {
        return skip("a_sparse_file_of_1_tib_is_served", &format!("the backing file system answers {error}"));
    }
    let mounted = OpenOptions::new().read(true).write(true).open(mount.place().join("file")).unwrap();
    assert_eq!(mounted.metadata().unwrap().len(), tib);
    for at in [0, 500 * gib + 5, tib - 100_000] {
        let mut bytes = vec![1; 100_000];
        mounted.read_exact_at(&mut bytes, at).unwrap();
        assert!(bytes.iter().all(|b| *b == 0), "{at}");
    }
    for at in [700 * gib + 1, tib - 50_000] {
        mounted.write_all_at(&pattern(8, at, 50_000), at).unwrap();
        let mut bytes = vec![0; 60_000];
        let read = mounted.read_at(&mut bytes[..50_000], at).unwrap();
        assert!(bytes[..read] == pattern(8, at, read) && read > 0, "{at}");
    }
    let found = |file: &File| rustix::fs::seek(file, SeekFrom::Data(gib)).unwrap();
    assert_eq!(found(&mounted), gib, "a mapping may have data anywhere");
    assert_eq!(mounted.metadata().unwrap().len(), tib);
    assert!(mounted.metadata().unwrap().blocks() * 512 < 1_000_000, "it stays sparse");
    drop(mounted);
    let mounted = File::open(mount.place().join("file")).unwrap();
    let backing = File::open(mount.backing().join("file")).unwrap();
    wait_for("its data to begin where it does", || found(&mounted) == found(&backing));
    let mounted = OpenOptions::new().write(true).open(mount.place().join("file")).unwrap();
    mounted.set_len(10).unwrap();
    assert_eq!(fs::read(mount.place().join("file")).unwrap(), [0; 10]);
}

/// Allows this process to open so many files, if it may.
fn may_open(files: u64) -> bool {
    let now = getrlimit(Resource::Nofile);
    let enough = now.current.is_none_or(|c| c >= files);
    let maximum = now.maximum.map(|m| m.max(files));
    enough || setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum }).is_ok()
}

#[test]
fn ten_thousand_files_are_open_at_once() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("ten_thousand_files_are_open_at_once", &why);
    }
    let files = 10_000;
    if !may_open(files + 500) {
        return skip("ten_thousand_files_are_open_at_once", "this process may not open so many");
    }
    let mount = Mount::new();
    let name = |number: u64| format!("{:02}/{number}", number % 100);
    for directory in 0..100 {
        fs::create_dir(mount.backing().join(format!("{directory:02}"))).unwrap();
    }
    for number in 0..files {
        fs::write(mount.backing().join(name(number)), number.to_le_bytes()).unwrap();
    }
    let mut options = OpenOptions::new();
    let open = |number| options.read(true).write(true).open(mount.place().join(name(number)));
    let opened: Vec<File> = (0..files).map(open).collect::<Result<_, _>>().unwrap();
    for (number, file) in (0..).zip(&opened) {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), number);
        file.write_all_at(b"seen", 8).unwrap();
    }
    // An open file stays that file, whatever its name leads to.
    for number in (0..files).step_by(100) {
        fs::remove_file(mount.place().join(name(number))).unwrap();
        let mut bytes = [0; 12];
        opened[number as usize].read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!((&bytes[..8], &bytes[8..]), (&number.to_le_bytes()[..], &b"seen"[..]));
    }
    drop(opened);
    assert_eq!(fs::read(mount.backing().join(name(9_999))).unwrap()[8..], *b"seen");
}

#[test]
fn a_block_that_is_corrupted_in_memory_is_read_again() {
    let spec = StoreSpec { block_size: BLOCK, ..StoreSpec::for_cpus(Bytes::mib(16), 1) };
    let store = Arc::new(Store::new(spec).unwrap());
    let tier =
        Tier::new(Arc::clone(&store), Compress::Sync, Options { recent_blocks: 0, ..Options::default() });
    let file = tempfile::tempfile().unwrap();
    let len = 5 * BLOCK;
    file.write_all_at(&pattern(9, 0, len), 0).unwrap();
    let is = file.metadata().unwrap();
    let (backing, id) = (backing::File::new(OwnedFd::from(file)), tier.id(is.dev(), is.ino()));
    let mut context = tier.context();
    tier.opened(id, backing.stamp().unwrap(), || Reporting::Unwatched);
    for (round, corrupted) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        if round == 2 {
            assert!(store.damage(Key::new(id, 3)), "it is in the store");
        }
        let seen = tier.read(&mut context, id, &backing, 0, len).unwrap();
        assert!(seen == pattern(9, 0, len), "round {round}: {}", tree::summary(seen));
        assert_eq!(store.stats().corrupted, corrupted, "round {round}");
    }
}
