//! A mount whose processes die, as programs see it. Real kernel, real program.
#![expect(clippy::unwrap_used, reason = "test code")]

#[path = "../common/mod.rs"]
mod common;
mod load;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use eke_cache_mounts::mounts;
use eke_cache_mounts::settings::{Compress, Memory};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use common::NEEDS;
use common::mount::{InMemory, Mount, MountSpec};
use common::server::{Stopped, is_gone, kill};
use load::{Load, content, fill};

/// How many workers are killed; `EKE_KILLS` if there is more time.
fn kills() -> usize {
    std::env::var("EKE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// With the files of [`fill`].
fn mount() -> Mount {
    start(&MountSpec::default())
}

/// The same over the backing directory itself.
fn mount_over_itself(args: &[&str]) -> Mount {
    start(&MountSpec { over_itself: true, args, ..MountSpec::default() })
}

fn start(spec: &MountSpec<'_>) -> Mount {
    Mount::start(&MountSpec { fill: Some(fill), ..*spec }, |settings| {
        settings.memory = Memory::Bytes(Bytes::mib(32));
        settings.compress = Compress::Async;
        settings.others = false;
        settings.watch = true;
    })
}

/// Is the backing directory visible at the mount point?
fn shows_backing_dir(mount: &Mount) -> bool {
    std::fs::read(mount.place().join("small/3")).is_ok_and(|bytes| bytes == content(3, 800))
}

#[test]
fn no_program_notices_that_workers_are_killed() {
    let name = "no_program_notices_that_workers_are_killed";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mut mount = mount();
    let load = Load::default();
    load.run(mount.place(), mount.backing(), |load| {
        for _ in 0..kills() {
            let since = load.done();
            wait_for("all users of the mount to go on", || load.all_went_on(&since));
            let worker = mount.server.worker();
            kill(worker, Signal::KILL);
            wait_for("another worker", || mount.server.worker() != worker);
        }
        let since = load.done();
        wait_for("all users of the mount to go on", || load.all_went_on(&since));
    });
    mount.umount();
    assert!(mount.exit_status().success(), "{}", mount.server.log());
    // Not each death is in the log: its lines are bounded.
    let log = mount.server.log();
    let deaths: Vec<&str> = log.lines().filter(|line| line.contains("the worker died")).collect();
    assert!((1..=kills()).contains(&deaths.len()), "{log}");
    assert!(deaths.iter().all(|line| line.contains("SIGKILL")), "{log}");
}

/// Free blocks of a file system, in bytes.
fn free_bytes(place: &Path) -> u64 {
    let fs = rustix::fs::statvfs(place).unwrap();
    fs.f_bfree * fs.f_frsize
}

#[test]
fn files_removed_after_a_death_leave_the_disk() {
    let name = "files_removed_after_a_death_leave_the_disk";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let scratch = common::mount::scratch();
    // With less free, a new file does not use passthrough.
    let disk = InMemory::of("tmpfs", scratch.path(), "size=2g");
    let mount = Mount::of(&disk.0);
    let before = free_bytes(&disk.0);
    let write = |name: &str| {
        let path = mount.place().join(name);
        let file = File::options().write(true).create_new(true).open(&path).unwrap();
        file.write_all_at(&vec![1; 8 << 20], 0).unwrap();
        (path, file)
    };
    // One is closed when the worker dies, and one is being written.
    let (cold, closed) = write("cold");
    drop(closed);
    let (written, open) = write("written");
    mount.kill_worker();
    drop(open);
    std::fs::remove_file(&cold).unwrap();
    std::fs::remove_file(&written).unwrap();
    wait_for("the disk space of removed files", || {
        // What the dead worker registered is closed at an open of any file.
        drop(File::options().write(true).create(true).truncate(true).open(mount.place().join("any")));
        free_bytes(&disk.0) + (1 << 20) >= before
    });
}

/// The sets of capabilities in `/proc/PID/status`.
const SETS: [&str; 5] = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];

/// A value in `/proc/PID/status`.
fn status_of(pid: u32, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).unwrap();
    status.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned()
}

#[test]
fn a_worker_has_no_capabilities_and_groups_but_those_it_needs() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_worker_has_no_capabilities_and_groups_but_those_it_needs", &why);
    }
    let mut mount = mount();
    kill(mount.server.worker(), Signal::KILL);
    let kept = eke_cachefs::rights::KEPT.bits();
    assert_eq!(kept.count_ones(), 11);
    let bits = |pid, key: &str| u64::from_str_radix(&status_of(pid, key), 16).unwrap();
    let supervisors = eke_cachefs::rights::SUPERVISORS.bits();
    for key in SETS {
        assert_eq!(bits(mount.server.supervisor(), key) & !supervisors, 0, "the supervisor's {key}");
    }
    // A worker that has just come up may not have dropped them yet.
    wait_for("a worker with few capabilities", || {
        let more = SETS.map(|key| bits(mount.server.worker(), key));
        more.iter().all(|set| set & !kept == 0) && status_of(mount.server.worker(), "Groups:").is_empty()
    });
    mount.umount();
    assert!(mount.exit_status().success(), "{}", mount.server.log());
}

/// The mount covers the directory: a new worker must need no file of it.
#[test]
fn a_directory_served_over_itself_survives_too() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_directory_served_over_itself_survives_too", &why);
    }
    let mut mount = mount_over_itself(&[]);
    let file = File::options().read(true).write(true).open(mount.place().join("small/3")).unwrap();
    kill(mount.server.worker(), Signal::KILL);
    file.write_all_at(b"new", 0).unwrap();
    drop(file);
    mount.umount();
    assert!(mount.exit_status().success());
    assert!(std::fs::read(mount.backing().join("small/3")).unwrap().starts_with(b"new"));
}

#[test]
fn without_a_supervisor_the_backing_directory_is_visible() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("without_a_supervisor_the_backing_directory_is_visible", &why);
    }
    let mut mount = mount_over_itself(&[]);
    let worker = mount.server.worker();
    kill(mount.server.supervisor(), Signal::KILL);
    wait_for("the mount's end", || !mount.is_mounted());
    assert!(shows_backing_dir(&mount));
    wait_for("the worker's end", || is_gone(worker));
    assert!(!mount.exit_status().success());
}

/// Nothing unmounts then, but nothing may hang either.
#[test]
fn a_mount_without_any_process_answers() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_mount_without_any_process_answers", &why);
    }
    let mount = mount();
    let open = File::open(mount.place().join("large0")).unwrap();
    let (worker, guard) = (mount.server.worker(), mount.server.guard());
    kill(worker, Signal::STOP);
    kill(guard, Signal::KILL);
    kill(mount.server.supervisor(), Signal::KILL);
    kill(worker, Signal::KILL);
    let errno = |e: std::io::Error| e.raw_os_error();
    wait_for("both to be gone", || is_gone(worker) && is_gone(mount.server.supervisor()));
    wait_for("the end of the connection", || {
        let seen = std::fs::metadata(mount.place()).err().and_then(errno);
        seen == Some(Errno::NOTCONN.raw_os_error())
    });
    assert!(open.read_at(&mut [0; 8], 1 << 20).is_err());
    assert!(mount.is_mounted());
}

/// Only the guard is left to do it.
#[test]
fn the_guard_unmounts_when_both_others_are_killed() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("the_guard_unmounts_when_both_others_are_killed", &why);
    }
    let mut mount = mount_over_itself(&[]);
    let (worker, guard) = (mount.server.worker(), mount.server.guard());
    kill(worker, Signal::STOP);
    kill(mount.server.supervisor(), Signal::KILL);
    kill(worker, Signal::KILL);
    wait_for("the mount's end", || !mount.is_mounted());
    assert!(shows_backing_dir(&mount) && !mount.exit_status().success());
    wait_for("the guard's end", || is_gone(guard));
}

/// The kernel gives the numbers of a mount that is gone to the next one, so in its list both look the same.
#[test]
fn a_late_guard_leaves_the_next_mount_alone() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_late_guard_leaves_the_next_mount_alone", &why);
    }
    // Another mount of this machine may have got the numbers, and keep them.
    for _ in 0..20 {
        let first = mount_over_itself(&[]);
        let shown = numbers(first.place());
        let guard = first.server.guard();
        let stopped = Stopped::new(guard);
        end_mount(&first);
        let next = MountSpec { backing: Some(first.backing()), over_itself: true, ..MountSpec::default() };
        let next = Mount::start(&next, |settings| settings.watch = true);
        let are_same = numbers(next.place()) == shown;
        drop(stopped);
        wait_for("the guard's end", || is_gone(guard));
        assert!(next.is_mounted() && next.server.worker_now().is_some());
        if are_same {
            return;
        }
    }
    panic!("no mount of 20 got the numbers of the one before");
}

fn numbers(place: &Path) -> Option<mounts::Mount> {
    mounts::read().unwrap().into_iter().find(|mount| mount.place == place)
}

/// Kills the supervisor, and unmounts in place of the stopped guard.
fn end_mount(mount: &Mount) {
    kill(mount.server.supervisor(), Signal::KILL);
    wait_for("the mount's end", || {
        // The worker may have done it.
        let _ = unmount(mount.place(), UnmountFlags::DETACH);
        !mount.is_mounted()
    });
}

fn ends_with_an_unmount(mut mount: Mount, disturb: impl Fn(&Mount)) {
    disturb(&mount);
    assert!(!mount.exit_status().success(), "{}", mount.server.log());
    assert!(!mount.is_mounted() && shows_backing_dir(&mount), "{}", mount.server.log());
}

#[test]
fn after_repeated_faults_no_worker_is_started() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("after_repeated_faults_no_worker_is_started", &why);
    }
    ends_with_an_unmount(mount_over_itself(&[]), |mount| {
        for _ in 0..5 {
            let worker = mount.server.worker();
            kill(worker, Signal::ABORT);
            wait_for("its death", || is_gone(worker));
        }
    });
}

#[test]
fn a_kernel_that_cannot_resend_loses_the_mount_and_nothing_else() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_kernel_that_cannot_resend_loses_the_mount_and_nothing_else", &why);
    }
    let mount = mount_over_itself(&["--no-resend"]);
    ends_with_an_unmount(mount, |mount| kill(mount.server.worker(), Signal::KILL));
}

#[test]
fn a_signal_to_end_unmounts_and_open_files_go_on() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_signal_to_end_unmounts_and_open_files_go_on", &why);
    }
    let mut mount = mount();
    let open = File::open(mount.place().join("large1")).unwrap();
    kill(mount.server.supervisor(), Signal::TERM);
    wait_for("the mount's end", || !mount.is_mounted());
    let mut bytes = [0; 4096];
    open.read_exact_at(&mut bytes, 1 << 20).unwrap();
    assert_eq!(bytes, content(1, (1 << 20) + 4096)[1 << 20..]);
    let myself = format!("({})", std::process::id());
    wait_for("the log to name this process", || mount.server.log().contains(&myself));
    drop(open);
    assert!(mount.exit_status().success(), "{}", mount.server.log());
    assert!(!Path::new(mount.place()).join("large1").exists());
}
