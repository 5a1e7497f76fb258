//! The pages and files of a launch.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use eke_linux::Root;
use eke_prefetch_model::{Kind, LaunchEnd};
use eke_prefetchd::trace::{TraceMethod, available};
use eke_testkit::real::skip;

use crate::tracing::{self, Disk, Session, touched};
use crate::{older_btf, pages, start};

#[test]
fn read_pages_are_traced_exactly() {
    let Some(_machine) = start("read_pages_are_traced_exactly") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let cold = session.launch(
        "dd if=data of=/dev/null bs=4096 skip=5 count=3; dd if=data of=/dev/null bs=10000 count=1 skip=60",
    );
    let data = touched(&cold, &disk.path("data")).unwrap();
    assert_eq!(data.pages, pages(&[(5, 8), (146, 149)]));
    assert_eq!((data.kind, data.stamp.size), (Kind::File, 256 * 4096));
    assert!(cold.cold_bytes >= 6 * 4096, "{}", cold.cold_bytes);
    assert_eq!(cold.program.exe, disk.path("start"));
    assert_eq!(cold.ended, LaunchEnd::Exited);

    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(disk.path("data")).unwrap();
    let mtime_ns = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
    assert_eq!(
        (data.stamp.dev, data.stamp.ino, data.stamp.mtime_ns),
        (metadata.dev(), metadata.ino(), mtime_ns)
    );

    let warm = session.launch("dd if=data of=/dev/null bs=4096 skip=5 count=3");
    assert_eq!(touched(&warm, &disk.path("data")).unwrap().pages, pages(&[(5, 8)]));
    assert!(warm.cold_bytes < cold.cold_bytes, "{} {}", warm.cold_bytes, cold.cold_bytes);
}

/// A mounted btrfs, unmounted on drop.
struct Btrfs(tempfile::TempDir);

impl Btrfs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (image, place) = (dir.path().join("image"), dir.path().join("place"));
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        std::fs::create_dir(&place).unwrap();
        let run = |command: &mut Command| {
            assert!(eke_testkit::program::output(command).status.success(), "{command:?}")
        };
        run(Command::new("mkfs.btrfs").arg("-q").arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).args([&image, &place]));
        Self(dir)
    }

    /// A file, the first one of a new subvolume.
    fn file(&self, subvolume: &str, name: &str, bytes: usize) -> std::path::PathBuf {
        let dir = self.0.path().join("place").join(subvolume);
        let made =
            eke_testkit::program::output(Command::new("btrfs").args(["-q", "subvolume", "create"]).arg(&dir));
        assert!(made.status.success());
        std::fs::write(dir.join(name), vec![7; bytes]).unwrap();
        // A generation is the number of a transaction.
        rustix::fs::syncfs(std::fs::File::open(&dir).unwrap()).unwrap();
        dir.join(name)
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0.path().join("place")).status();
    }
}

#[test]
fn files_of_two_subvolumes_with_one_inode_number_are_two() {
    use std::os::unix::fs::MetadataExt;
    let test = "files_of_two_subvolumes_with_one_inode_number_are_two";
    let no_btrfs = eke_testkit::real::no_program(&["mkfs.btrfs", "btrfs"]);
    if let Some(why) = no_btrfs {
        return skip(test, &why);
    }
    let Some(_machine) = start(test) else { return };
    let (disk, btrfs) = (Disk::new(), Btrfs::new());
    let (first, second) = (btrfs.file("a", "first", 3 * 4096), btrfs.file("b", "second", 5 * 4096));
    let ino = |path: &Path| std::fs::metadata(path).unwrap().ino();
    assert_eq!(ino(&first), ino(&second));
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch(&format!("cat {} {}", first.display(), second.display()));
    let found = |path: &Path| touched(&launch, path).map(|file| file.pages.clone());
    assert_eq!(found(&first), Some(pages(&[(0, 3)])));
    assert_eq!(found(&second), Some(pages(&[(0, 5)])));
}

#[test]
fn the_end_of_a_file_is_the_end_of_its_pages() {
    let Some(_machine) = start("the_end_of_a_file_is_the_end_of_its_pages") else { return };
    let disk = Disk::new();
    std::fs::write(disk.path("short"), [7; 5000]).unwrap();
    disk.remount();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch("dd if=short of=/dev/null bs=1M; dd if=data of=/dev/null bs=1M skip=0");
    assert_eq!(launch.ended, LaunchEnd::Exited);
    assert_eq!(touched(&launch, &disk.path("short")).unwrap().pages, pages(&[(0, 2)]));
    assert_eq!(touched(&launch, &disk.path("data")).unwrap().pages, pages(&[(0, 256)]));
}

#[test]
fn mapped_pages_are_traced_with_those_around() {
    let Some(_machine) = start("mapped_pages_are_traced_with_those_around") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "data", "3,100,200", 0));
    let found = &touched(&launch, &disk.path("data")).unwrap().pages;
    assert!([3, 100, 200].iter().all(|page| found.has(*page)), "{found:?}");
    // 64 KiB around each (fault_around_bytes), aligned to addresses and not to the file
    let around = pages(&[(0, 19), (85, 116), (185, 216)]);
    assert!(found.without(&around).is_empty(), "{found:?}");
}

/// From Linux 6.18 large folios are mapped whole, without a tracepoint.
#[test]
fn all_mapped_pages_are_traced_whether_they_are_resident_or_not() {
    let Some(_machine) = start("all_mapped_pages_are_traced_whether_they_are_resident_or_not") else {
        return;
    };
    let disk = Disk::new();
    let long = disk.path("long");
    std::fs::write(&long, vec![7; 12 << 20]).unwrap();
    disk.remount();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mapped_file = tempfile::NamedTempFile::new().unwrap();
    let script = |pages: &str| {
        format!("EKE_MAPPED='{}' {}", mapped_file.path().display(), tracing::mapper(&disk, "long", pages, 0))
    };
    let mut check = |script: &str| {
        let launch = session.launch(script);
        let mapped = std::fs::read_to_string(mapped_file.path()).unwrap();
        let mapped: Vec<u64> = mapped.lines().map(|page| page.parse().unwrap()).collect();
        let mapped = pages(&mapped.iter().map(|page| (*page, page + 1)).collect::<Vec<_>>());
        let found = &touched(&launch, &long).unwrap().pages;
        assert!(mapped.has(700), "{mapped:?}");
        assert!(mapped.without(found).is_empty(), "{mapped:?} are mapped, {found:?} found");
    };
    check(&script("700,701,702,703,2900"));
    // The kernel reads ahead in growing folios.
    std::fs::read(&long).unwrap();
    check(&script("700,1100,1700,2300,2500"));
}

/// LibreOffice requests libraries of which it touches half, and waits for all of them.
#[test]
fn requested_pages_are_traced_even_if_untouched() {
    let test = "requested_pages_are_traced_even_if_untouched";
    let Some(_machine) = start(test) else { return };
    if let Some(limit) = available(&Root::host()).unwrap().iter().find(|what| what.contains("madvise(2)")) {
        return skip(test, limit);
    }
    let before_5_15 = tempfile::tempdir().unwrap();
    older_btf(before_5_15.path(), "BPF_FUNC_task_pt_regs");
    std::os::unix::fs::symlink("/proc", before_5_15.path().join("proc")).unwrap();
    for root in [Root::host(), Root::at(before_5_15.path())] {
        let disk = Disk::new();
        let mut session = Session::on(&root, TraceMethod::Bpf, disk.place());
        let script = format!("EKE_REQUEST=100,132 {}", tracing::mapper(&disk, "data", "3", 0));
        let launch = session.launch(&script);
        let found = &touched(&launch, &disk.path("data")).unwrap().pages;
        let requested = pages(&[(100, 132)]);
        assert!(requested.without(found).is_empty() && found.has(3), "{root:?}: {found:?}");
        assert!(found.without(&requested).without(&pages(&[(0, 19)])).is_empty(), "{root:?}: {found:?}");
    }
}

#[test]
fn only_touched_pages_of_a_huge_file_are_traced() {
    let Some(_machine) = start("only_touched_pages_of_a_huge_file_are_traced") else { return };
    let disk = Disk::new();
    let huge = disk.huge();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "huge", "0,13000000", 0));
    let found = &touched(&launch, &huge).unwrap().pages;
    assert!(found.has(0) && found.has(13_000_000) && found.count() <= 48, "{found:?}");
}

#[test]
fn directories_are_traced_as_pages_of_the_device() {
    let Some(_machine) = start("directories_are_traced_as_pages_of_the_device") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    session.launch("ls many");
    disk.remount();
    let cold = session.launch("ls -l many");
    let device =
        cold.set.files.iter().find(|file| file.path.as_os_str().as_bytes().starts_with(b"/dev/loop"));
    let device = device.unwrap_or_else(|| panic!("no device: {cold:?}"));
    // 400 entries of 40 bytes are some blocks, 400 inodes of 256 bytes are 25 pages
    assert!(device.kind == Kind::Device && device.pages.count() >= 25, "{device:?}");
    let warm = session.launch("ls -l many");
    assert!(!warm.set.files.iter().any(|file| file.path == device.path), "{warm:?}");
}

/// Reading the learned pages before a cold launch leaves almost nothing to read.
#[test]
fn the_learned_pages_are_those_that_a_cold_launch_needs() {
    let Some(_machine) = start("the_learned_pages_are_those_that_a_cold_launch_needs") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let script =
        "ls -l many; dd if=data of=/dev/null bs=4096 skip=40 count=60; cat 'many/a file of a long name 7'";
    session.launch(script);
    disk.remount();
    let cold = session.launch(script);
    disk.remount();
    for file in &cold.set.files {
        match file.kind {
            Kind::Device => tracing::read_pages(&disk.device(), &file.pages),
            Kind::File if file.path.starts_with(disk.place()) => tracing::read_pages(&file.path, &file.pages),
            _ => {}
        }
    }
    let again = session.launch(script);
    assert!(cold.cold_bytes >= 80 * 4096, "{cold:?}");
    assert!(again.cold_bytes * 20 <= cold.cold_bytes, "{} after {}", again.cold_bytes, cold.cold_bytes);
}

#[test]
fn files_of_other_users_are_not_learned() {
    let Some(_machine) = start("files_of_other_users_are_not_learned") else { return };
    let disk = Disk::new();
    let others = disk.path("another's");
    std::fs::write(&others, [1; 9000]).unwrap();
    std::os::unix::fs::chown(&others, Some(1234), None).unwrap();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch("dd if=\"another's\" of=/dev/null; dd if=data of=/dev/null bs=4096 count=1");
    assert!(touched(&launch, &disk.path("data")).is_some(), "{launch:?}");
    assert!(touched(&launch, &others).is_none(), "{launch:?}");
}

#[test]
fn deleted_files_and_pseudo_files_are_left_out() {
    let Some(_machine) = start("deleted_files_and_pseudo_files_are_left_out") else { return };
    let disk = Disk::new();
    std::fs::write(disk.path("gone"), [1; 9000]).unwrap();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let launch = session.launch("exec 5<gone; rm gone; dd of=/dev/null <&5; dd if=/proc/version of=/dev/null; ls /sys /dev /proc/self");
    let unreal = |path: &[u8]| {
        [&b"/proc"[..], b"/sys", disk.path("gone").as_os_str().as_bytes()]
            .iter()
            .any(|root| path.starts_with(root))
    };
    let found: Vec<_> =
        launch.set.files.iter().filter(|file| unreal(file.path.as_os_str().as_bytes())).collect();
    assert!(found.is_empty(), "{found:?}");
    let has_libc = launch.set.files.iter().any(|file| file.path.ends_with("libc.so.6"));
    assert!(has_libc, "the others are there: {launch:?}");
}

#[test]
fn of_hard_links_the_one_in_use_is_reported() {
    let Some(_machine) = start("of_hard_links_the_one_in_use_is_reported") else { return };
    let disk = Disk::new();
    let links: Vec<_> = ["link 1", "link 2", "link 3"].iter().map(|name| disk.path(name)).collect();
    links.iter().for_each(|link| std::fs::hard_link(disk.path("data"), link).unwrap());
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    for link in &links {
        links.iter().for_each(|link| _ = std::fs::metadata(link));
        let launch = session.launch(&format!("dd if='{}' of=/dev/null bs=4096 count=2", link.display()));
        assert!(touched(&launch, link).is_some(), "{link:?} {launch:?}");
    }
}
