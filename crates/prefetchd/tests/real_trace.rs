//! Tracing with BPF on the running kernel: the learned pages are those that programs on a small ext4 touch.
#![cfg(feature = "bpf")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

mod tracing;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use eke_linux::Root;
use eke_prefetch_model::learn::Exec;
use eke_prefetch_model::{Kind, LaunchEnd, Pages, Program, Span};
use eke_prefetchd::trace::{Observation, TraceMethod, available};
use eke_testkit::real::{SameDisks, skip};
use eke_testkit::wait::wait_for;
use tracing::{Disk, Session, touched};

/// The machine's disks, to compare at the end. `None`, with the reason printed, if this machine cannot run the test.
fn start(test: &str) -> Option<SameDisks> {
    let why = tracing::lacking().or_else(|| available(&Root::host()).err().map(|why| why.to_string()));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    Some(SameDisks::start())
}

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_on_request() {
    tracing::map_on_request();
}

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
        _ = Command::new("umount").arg(self.0.path().join("place")).status();
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

/// Below `root`, the kernel's description without this name, as of an older kernel.
fn older_btf(root: &Path, name: &str) {
    let place = root.join("sys/kernel/btf");
    std::fs::create_dir_all(&place).unwrap();
    let btf = String::from_utf8_lossy(&std::fs::read("/sys/kernel/btf/vmlinux").unwrap()).into_owned();
    std::fs::write(place.join("vmlinux"), btf.replace(name, "")).unwrap();
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
fn scripts_are_programs_of_their_own_whatever_their_names() {
    let Some(_machine) = start("scripts_are_programs_of_their_own_whatever_their_names") else { return };
    let disk = Disk::new();
    let name = disk.place().join(OsStr::from_bytes(b"a \n\xff script"));
    std::fs::write(&name, format!("#!/bin/sh\n[ -e '{}' ]\n", disk.path("data").display())).unwrap();
    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mut child = Command::new(&name).spawn().unwrap();
    let pid = child.id();
    let program = session.until("the script", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => exec.program.clone(),
        _ => None,
    });
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert_eq!(program.script.as_ref(), Some(&name));
    assert_eq!(program.exe, std::fs::canonicalize("/bin/sh").unwrap());
    let long = session.until("its end", |observation| match observation {
        Observation::Exit { pid: ended, at } if *ended == pid => Some(*at),
        _ => None,
    });
    assert!(!long.is_zero());
}

#[test]
fn an_argument_that_is_no_file_names_no_script() {
    let Some(_machine) = start("an_argument_that_is_no_file_names_no_script") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // The shell finds no such script, and fails.
    let mut child = Command::new("/bin/sh").args(["-u", "mail bob"]).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let program = session.until("the shell", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => exec.program.clone(),
        _ => None,
    });
    assert!(!eke_testkit::program::end_of(&mut child).success());
    assert_eq!(program, Program::of_exe(std::fs::canonicalize("/bin/sh").unwrap()));
}

#[test]
fn a_set_uid_program_is_learned_for_the_user_that_started_it() {
    let test = "a_set_uid_program_is_learned_for_the_user_that_started_it";
    let Some(_machine) = start(test) else { return };
    if let Some(why) = eke_testkit::real::no_program(&["setpriv"]) {
        return skip(test, &why);
    }
    const NOBODY: u32 = 65_534;
    let disk = Disk::new();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(disk.place().parent().unwrap(), 0o755);
    mode(&disk.path("start"), 0o4755);
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mut child = Command::new("setpriv")
        .args([&format!("--reuid={NOBODY}"), "--clear-groups", "--"])
        .arg(disk.path("start"))
        .args(["-c", "sleep 1; dd if=data of=/dev/null bs=4096 count=2"])
        .current_dir(disk.place())
        .env("PATH", format!("{}:/usr/bin:/bin", disk.place().with_file_name("tools").display()))
        .spawn()
        .unwrap();
    let (pid, exe) = (child.id(), disk.path("start"));
    let (uid, id) = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, id)
            if exec.pid == pid && exec.program.as_ref().is_some_and(|p| p.exe == exe) =>
        {
            Some((exec.uid, (*id)?))
        }
        _ => None,
    });
    assert_eq!(uid, NOBODY);
    let launch = session.finished(pid, id);
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert_eq!(touched(&launch, &disk.path("data")).unwrap().pages, pages(&[(0, 2)]));
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
fn a_program_that_forks_at_once_and_exits_is_learned() {
    let Some(_machine) = start("a_program_that_forks_at_once_and_exits_is_learned") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // As a daemon: when its exec is seen, the first process is gone. The shell itself reads, not a program that it starts.
    let script = "( sleep 1; read line < data; read line < many/\"a file of a long name 7\" ) & exit 0";
    let mut child = Command::new(disk.path("start"));
    let mut child =
        child.args(["-c", script]).current_dir(disk.place()).stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    assert!(eke_testkit::program::end_of(&mut child).success());
    let id = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, begun) if exec.pid == pid => *begun,
        _ => None,
    });
    let launch = session.launch_of("the launch", id);
    assert_eq!(launch.ended, LaunchEnd::Exited);
    assert!(touched(&launch, &disk.path("data")).is_some(), "{launch:?}");
    assert!(touched(&launch, &disk.path("many/a file of a long name 7")).is_some(), "{launch:?}");
}

#[test]
fn a_thousand_children_are_starts_of_their_own() {
    let Some(_machine) = start("a_thousand_children_are_starts_of_their_own") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let script = "i=0; while [ $i -lt 1000 ]; do (exec /bin/true) & i=$((i+1)); done; wait; dd if=data of=/dev/null bs=4096 count=1";
    let launch = session.launch(script);
    let is_child = |exec: &&Exec| exec.program.as_ref().is_some_and(|program| program.exe.ends_with("true"));
    let children: Vec<&Exec> = session.execs().filter(is_child).collect();
    assert!(children.iter().all(|exec| exec.launch.is_none()));
    assert_eq!(launch.ended == LaunchEnd::Lost, session.has_lost());
    if !session.has_lost() {
        assert!(children.len() >= 1000);
        assert_eq!(launch.ended, LaunchEnd::Exited);
        assert_eq!(touched(&launch, &disk.path("data")).unwrap().pages, pages(&[(0, 1)]));
        assert!(touched(&launch, Path::new("/usr/bin/true")).is_none(), "{launch:?}");
    }
    assert_eq!(session.learning(), 0);
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

/// Another program may be at its path, and it has no path at a later start.
#[test]
fn a_deleted_executable_is_no_program() {
    let Some(_machine) = start("a_deleted_executable_is_no_program") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let gone = disk.path("gone");
    assert!(Command::new("cp").arg(disk.path("start")).arg(&gone).status().unwrap().success());
    let script = "exec 5<gone; rm gone; exec /proc/self/fd/5 -c :";
    let shell =
        |script| Command::new(disk.path("start")).args(["-c", script]).current_dir(disk.place()).spawn();
    let mut child = shell(script).unwrap();
    let pid = child.id();
    session.until("its end", |observation| match observation {
        Observation::Exit { pid: ended, .. } if *ended == pid => Some(()),
        _ => None,
    });
    assert!(eke_testkit::program::end_of(&mut child).success());
    let programs: Vec<_> =
        session.execs().filter(|exec| exec.pid == pid).map(|exec| exec.program.clone()).collect();
    assert_eq!(programs, [Some(Program::of_exe(disk.path("start"))), None]);
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

#[test]
fn pages_that_overflow_their_buffer_drop_no_exec_and_no_exit() {
    let Some(_machine) = start("pages_that_overflow_their_buffer_drop_no_exec_and_no_exit") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // Each read of a page is an event, and nobody takes the events meanwhile.
    let mut child = tracing::shell(
        &disk.place(),
        &format!("dd if='{}' of=/dev/null bs=4096 count=40000; true", disk.huge().display()),
    );
    let pid = child.id();
    session.until("the exec", |observation| match observation {
        Observation::Exec(exec, begun) if exec.pid == pid => *begun,
        _ => None,
    });
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(eke_testkit::program::end_of(&mut child).success());
    session.until("the shell's end", |observation| match observation {
        Observation::Exit { pid: ended, .. } if *ended == pid => Some(()),
        _ => None,
    });
    let is_dd = |exec: &&Exec| exec.program.as_ref().is_some_and(|program| program.exe.ends_with("dd"));
    assert_eq!(session.execs().filter(is_dd).count(), 1);
    session.until("the loss", |observation| matches!(observation, Observation::Lost).then_some(()));
}

#[test]
fn a_burst_of_execs_is_traced_or_counted_as_lost() {
    let Some(_machine) = start("a_burst_of_execs_is_traced_or_counted_as_lost") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let script = "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done";
    let mut shell = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
    let pid = shell.id();
    while shell.try_wait().unwrap().is_none() {
        session.poll();
    }
    session.until("its end", |observation| {
        matches!(observation, Observation::Exit { pid: ended, .. } if *ended == pid).then_some(())
    });
    let groups: Vec<u32> = session.execs().filter(|exec| exec.parent == pid).map(|exec| exec.group).collect();
    let own = rustix::process::getpgrp().as_raw_nonzero().get().unsigned_abs();
    assert!(groups.iter().all(|group| *group == own), "all are of the group {own}");
    let seen = groups.len();
    assert!(seen == 2000 || session.has_lost(), "{seen} seen, and no loss was reported");
    assert_eq!(session.learning(), 0);
}

/// This process's BPF programs and links, from its own descriptors, because other processes may trace too.
fn attached() -> (BTreeSet<u32>, usize) {
    let entries = std::fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let infos: Vec<String> = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect();
    let program =
        |info: &String| info.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().parse().ok();
    let links = infos.iter().filter(|info| info.contains("link_type:")).count();
    (infos.iter().filter_map(program).collect(), links)
}

#[test]
fn nothing_stays_attached() {
    let Some(_machine) = start("nothing_stays_attached") else { return };
    let disk = Disk::new();
    // Of a test of this process that only asks what the kernel can trace.
    wait_for("programs of other tests to go", || attached().0.is_empty());
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let (programs, links) = attached();
    assert!(
        programs.len() >= 4 && links == 3,
        "only exec, exit and fork while nothing is learned: {programs:?} {links}"
    );
    let mut child = tracing::shell(&disk.place(), "exit 0");
    wait_for("a launch that is learned", || {
        session.poll();
        session.learning() > 0
    });
    assert_eq!(attached().1, programs.len(), "all of them while something is learned");
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    session.until("the launch", |observation| matches!(observation, Observation::Launch(_)).then_some(()));
    assert_eq!(attached().1, 3);
    drop(session);
    assert_eq!(attached().1, 0);
    // the kernel frees programs when no CPU uses them any more
    let loaded = || libbpf_rs::query::ProgInfoIter::default();
    wait_for("the programs to go", || !loaded().any(|program| programs.contains(&program.id)));
}

#[test]
fn without_btf_the_reason_is_reported() {
    let empty = tempfile::tempdir().unwrap();
    let why = available(&Root::at(empty.path())).unwrap_err().to_string();
    assert!(why.contains("sys/kernel/btf/vmlinux"), "{why}");
}

#[test]
fn older_kernels_trace_less_and_report_it() {
    let Some(_machine) = start("older_kernels_trace_less_and_report_it") else { return };
    let older = tempfile::tempdir().unwrap();
    older_btf(older.path(), "btf_trace_mm_filemap_get_pages");
    let limits = available(&Root::at(older.path())).unwrap();
    assert!(limits.len() == 1 && limits[0].contains("reads of what is in memory"), "{limits:?}");
    assert!(!limits[0].contains("page faults"), "{limits:?}");

    older_btf(older.path(), "btf_trace_sched_process_exec");
    let why = available(&Root::at(older.path())).unwrap_err().to_string();
    assert!(why.contains("sched_process_exec"), "{why}");
}
