//! The slow disk on the real kernel.

#[allow(dead_code, reason = "not every test uses all of it")]
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_slow_disk::{Error, Image, Profile, SlowDisk, SlowDiskSpec, sweep};
use eke_testkit::program::KilledOnDrop;
use eke_testkit::real::{SameDisks, disks, lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::io::Errno;

const SIZE: Bytes = Bytes::mib(32);
const PAGE: usize = 4096;
/// Set in a copy of this test program that owns a disk until it is killed.
const OWNER: &str = "EKE_SLOW_DISK_OWNER";

fn missing(programs: &[&str]) -> Option<String> {
    lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(programs))
}

/// A disk fast enough for a test, with every part of a slow one.
fn profile() -> Profile {
    Profile { rate: 400_000_000, iops: Some(5_000), depth: 4, ..Profile::plain() }
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn attach(image: Image) -> SlowDisk {
    SlowDisk::attach(&Root::host(), SlowDiskSpec::new(image, SIZE, profile())).unwrap()
}

/// A page-aligned buffer for O_DIRECT.
struct Page {
    bytes: Vec<u8>,
    start: usize,
}

impl Page {
    fn of(byte: u8) -> Self {
        let bytes = vec![byte; 2 * PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        Self { bytes, start }
    }
    fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + PAGE]
    }
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + PAGE]
    }
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn direct(device: &Path) -> File {
    let flag = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
    OpenOptions::new().read(true).write(true).custom_flags(flag).open(device).unwrap()
}

fn read_page(file: &File, index: u64) -> std::io::Result<u8> {
    let mut page = Page::of(0xff);
    file.read_exact_at(page.as_mut(), index * PAGE as u64)?;
    let first = page.as_slice()[0];
    assert!(page.as_slice().iter().all(|b| *b == first));
    Ok(first)
}

fn write_page(file: &File, index: u64, byte: u8) -> std::io::Result<()> {
    file.write_all_at(Page::of(byte).as_slice(), index * PAGE as u64)
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_system_on_it_keeps_its_files() {
    if let Some(why) = missing(&["losetup", "mkfs.ext4", "mount"]) {
        return skip("a_file_system_on_it_keeps_its_files", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let target = dir.path().join("a mount");
    std::fs::create_dir(&target).unwrap();
    let words: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();

    let disk = attach(Image::File(image.clone()));
    let (device, mount_at) = (disk.device().display().to_string(), target.display().to_string());
    run("mkfs.ext4", &["-q", &device]);
    run("mount", &[&device, &mount_at]);
    let file = OpenOptions::new().write(true).create_new(true).open(target.join("words"));
    file.unwrap().write_all(&words).unwrap();
    let stats = disk.stats();
    disk.detach().unwrap();
    assert!(stats.writes.requests > 0 && stats.reads.requests > 0 && stats.errors == 0, "{stats:?}");

    let disk = attach(Image::File(image.clone()));
    run("mount", &[&disk.device().display().to_string(), &mount_at]);
    let mut read = Vec::new();
    File::open(target.join("words")).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == words, "detach unmounted the file system cleanly");
    let stats = disk.stats();
    assert!(stats.reads.bytes.0 >= 3_000_000, "no page cache of the image is in between: {stats:?}");
    drop(disk);
    assert_eq!(image.metadata().unwrap().len(), SIZE.0, "the image stays");
}

#[test]
fn errors_appear_where_they_are_injected_and_end_when_healed() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("errors_surface_where_they_are_asked_for_and_go_when_healed", &why);
    }
    let _clean = SameDisks::start();
    let disk = attach(Image::Memory);
    let file = direct(disk.device());
    write_page(&file, 3, 7).unwrap();
    disk.fail(2 * PAGE as u64..4 * PAGE as u64, Errno::IO);
    for (index, fails) in [(1, false), (2, true), (3, true), (4, false)] {
        assert_eq!(read_page(&file, index).is_err(), fails, "read {index}");
        assert_eq!(write_page(&file, index, 9).is_err(), fails, "write {index}");
    }
    let error = read_page(&file, 2).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()));
    disk.heal();
    assert_eq!(read_page(&file, 3).unwrap(), 7, "a failed write wrote nothing");
    disk.fail_by_chance(1.0, 1, Errno::IO);
    assert!(read_page(&file, 0).is_err() && file.sync_all().is_err());
    assert!(disk.stats().errors >= 6, "{:?}", disk.stats());
    drop(file);
    disk.detach().unwrap();
}

#[test]
fn a_power_cut_loses_only_unflushed_data() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("a_power_cut_loses_what_was_not_flushed_and_nothing_else", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let image = Image::File(dir.path().join("image"));
    let disk = attach(image.clone());
    let file = direct(disk.device());
    write_page(&file, 1, 1).unwrap();
    write_page(&file, 2, 2).unwrap();
    file.sync_all().unwrap();
    write_page(&file, 2, 22).unwrap();
    write_page(&file, 3, 33).unwrap();
    assert_eq!(read_page(&file, 2).unwrap(), 22, "the disk itself sees its cache");
    assert_eq!(disk.power_cut().unwrap(), Bytes(2 * PAGE as u64));
    assert!(read_page(&file, 1).is_err() && write_page(&file, 1, 9).is_err() && file.sync_all().is_err());
    drop(file);
    assert_eq!(disk.stats().lost, Bytes(2 * PAGE as u64));
    disk.detach().unwrap();

    let disk = attach(image);
    let file = direct(disk.device());
    let pages: Vec<u8> = (0..5).map(|index| read_page(&file, index).unwrap()).collect();
    assert_eq!(pages, [0, 1, 2, 0, 0]);
    drop(file);
    disk.detach().unwrap();
}

#[test]
fn two_disks_live_beside_each_other_and_leave_nothing() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("two_disks_live_beside_each_other_and_leave_nothing", &why);
    }
    let _clean = SameDisks::start();
    let (one, two) = (attach(Image::Memory), attach(Image::Memory));
    assert_ne!(one.device(), two.device());
    write_page(&direct(one.device()), 0, 5).unwrap();
    assert_eq!(read_page(&direct(two.device()), 0).unwrap(), 0);
    assert!(sweep(&Root::host()).unwrap().is_empty(), "their owner lives");
    assert_eq!(read_page(&direct(one.device()), 0).unwrap(), 5);
    assert_eq!(one.stats().writes.bytes, Bytes(PAGE as u64));
    one.detach().unwrap();
    drop(two);
}

#[test]
fn a_device_held_open_is_reported_and_goes_with_its_last_user() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("a_device_that_is_held_open_says_so_and_goes_with_its_last_user", &why);
    }
    let _clean = SameDisks::start();
    let disk = attach(Image::Memory);
    let device = disk.device().to_owned();
    let file = direct(&device);
    let refused = disk.detach();
    assert!(matches!(&refused, Err(Error::InUse { device: d, .. }) if *d == device), "{refused:?}");
    assert!(read_page(&file, 0).is_err(), "its server is gone");
}

/// A process with its own mount namespace and copies of mounts, like `ip netns exec`, a service or a container. It
/// keeps none of other tests' disks, because another experiment would wait for it.
#[expect(clippy::unwrap_used, reason = "test code")]
fn namespace(device: &Path) -> KilledOnDrop {
    let script = "grep -e ' /run/eke/' -e '^/dev/loop' /proc/mounts | grep -v -e \"-$1-\" -e \"^$2 \" | cut -d ' ' -f 2 | \
                  xargs -r -n 1 umount -l; echo made; exec sleep 600";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(std::process::id().to_string()).arg(device);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut made = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut made).unwrap();
    KilledOnDrop(child)
}

#[test]
fn a_copy_of_its_mount_in_another_namespace_does_no_harm() {
    if let Some(why) = missing(&["losetup", "unshare"]) {
        return skip("a_copy_of_its_mount_in_another_namespace_holds_up_nothing", &why);
    }
    let _clean = SameDisks::start();
    let disk = attach(Image::Memory);
    let _namespace = namespace(disk.device());
    disk.detach().unwrap();
}

#[test]
fn a_copy_of_a_mount_is_reported_with_its_process() {
    if let Some(why) = missing(&["losetup", "unshare", "mkfs.ext4", "mount"]) {
        return skip("a_copy_of_a_mount_from_it_is_said_with_who_has_it", &why);
    }
    let _clean = SameDisks::start();
    let target = tempfile::tempdir().unwrap();
    let disk = attach(Image::Memory);
    let device = disk.device().display().to_string();
    run("mkfs.ext4", &["-q", &device]);
    run("mount", &[&device, &target.path().display().to_string()]);
    let namespace = namespace(disk.device());
    let refused = disk.detach().unwrap_err().to_string();
    assert!(refused.starts_with(&format!("{device} is in use: process ")), "{refused}");
    assert!(refused.contains("mount namespace that was created while it was mounted here"), "{refused}");
    drop(namespace);
    // The device is released with its last user.
    let file = format!("/sys/block/{}/loop/backing_file", device.trim_start_matches("/dev/"));
    wait_for("the loop device to be free", || !Path::new(&file).exists());
}

#[test]
fn an_image_that_cannot_be_leaves_nothing() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("an_image_that_cannot_be_leaves_nothing", &why);
    }
    let _clean = SameDisks::start();
    let image = Image::File("/nonexistent/image".into());
    let refused = SlowDisk::attach(&Root::host(), SlowDiskSpec::new(image, SIZE, profile()));
    assert!(refused.unwrap_err().to_string().contains("/nonexistent/image"));
}

#[test]
fn an_image_on_a_tmpfs_may_not_hold_swap() {
    if let Some(why) = missing(&["losetup"]).or_else(|| lacking(&["/dev/shm"])) {
        return skip("an_image_on_a_tmpfs_may_not_hold_swap", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let disk = attach(Image::File(dir.path().join("image")));
    assert!(!disk.may_hold_swap());
    disk.detach().unwrap();
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn of_queue(disk: &SlowDisk, file: &str) -> String {
    let name = disk.device().file_name().unwrap().to_string_lossy().into_owned();
    std::fs::read_to_string(format!("/sys/block/{name}/{file}")).unwrap().trim().to_owned()
}

/// The most reads that the disk has at once, of 64 threads that read.
#[expect(clippy::unwrap_used, reason = "test code")]
fn most_in_flight(disk: &SlowDisk) -> u64 {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = (0..64u64).map(|i| {
            scope.spawn(move || {
                let file = direct(disk.device());
                for j in 0..5 {
                    read_page(&file, (i * 7919 + j * 104_729) % 8192).unwrap();
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                let reads = of_queue(disk, "inflight").split_whitespace().next().map(str::to_owned);
                most = most.max(reads.unwrap().parse::<u64>().unwrap());
            }
            most
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap()
    })
}

#[test]
fn a_drive_takes_32_requests_and_the_scheduler_has_the_others() {
    if let Some(why) = missing(&["losetup"]) {
        return skip("a_drive_takes_32_requests_and_the_scheduler_has_the_others", &why);
    }
    let _clean = SameDisks::start();
    let attach = |name: &str| {
        let profile = Profile::named(name).unwrap();
        SlowDisk::attach(&Root::host(), SlowDiskSpec::new(Image::Memory, SIZE, profile)).unwrap()
    };
    let disk = attach("sata+ncq+mq-deadline+readahead=512");
    assert!(of_queue(&disk, "queue/scheduler").contains("[mq-deadline]"));
    assert_eq!(of_queue(&disk, "queue/read_ahead_kb"), "512");
    assert_eq!(most_in_flight(&disk), 32);
    let file = direct(disk.device());
    write_page(&file, 3, 7).unwrap();
    assert_eq!(read_page(&file, 3).unwrap(), 7);
    file.sync_all().unwrap();
    drop(file);
    let stats = disk.stats();
    assert_eq!((stats.reads.requests, stats.writes.requests, stats.errors), (64 * 5 + 1, 1, 0), "{stats:?}");
    let device = disk.device().to_owned();
    disk.detach().unwrap();

    let disk = attach("sata");
    assert_eq!(disk.device(), device, "the same device as before");
    assert!(of_queue(&disk, "queue/scheduler").contains("[none]"));
    assert_eq!(most_in_flight(&disk), 64, "nothing is left of the other disk's settings");
    disk.detach().unwrap();
}

/// Not a test of its own: the next test kills it.
#[test]
fn owner_of_a_disk_until_killed() {
    let Some(image) = std::env::var_os(OWNER) else { return };
    let disk = attach(Image::File(image.into()));
    println!("\nattached {}", disk.device().display());
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn start_owner(image: &Path) -> (Child, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_of_a_disk_until_killed", "--nocapture"])
        .env(OWNER, image)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let device = lines.filter_map(|l| l.strip_prefix("attached ").map(PathBuf::from)).next();
    (child, device.unwrap())
}

#[test]
fn leftovers_of_a_killed_owner_are_swept() {
    if let Some(why) = missing(&["losetup", "mkfs.ext4", "mount"]) {
        return skip("what_a_killed_owner_left_is_swept", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let before = disks();
    let (mut owner, device) = start_owner(&dir.path().join("image"));
    let target = dir.path().join("mount");
    std::fs::create_dir(&target).unwrap();
    run("mkfs.ext4", &["-q", &device.display().to_string()]);
    run("mount", &[&device.display().to_string(), &target.display().to_string()]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(disks().len() >= before.len() + 4, "a mount on it, its own, the device, the directory");
    let swept = sweep(&Root::host()).unwrap();
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert!(swept[0].contains(&format!("-{}-", owner.id())), "{swept:?}");
    assert_eq!(disks(), before);
    assert!(sweep(&Root::host()).unwrap().is_empty());
}
