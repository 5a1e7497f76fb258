//! A mount that gains nothing stands aside.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use eke_cache_mounts::mounts::{self, ASIDE};
use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::Response;
use eke_linux::page_cache::is_resident;
use eke_linux::parse::mountinfo::parse;
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, lock_machine, no_program};
use eke_testkit::wait::{RaiseOnDrop, wait_for};
use rustix::fs::{Advice, fadvise};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use crate::common::NEEDS;
use crate::common::mount::run;
use crate::common::server::kill;
use crate::served::{Served, alone};
use crate::writers::Holder;

const FILES: usize = 40;
/// Its windows have so many milliseconds, or until the next second, and its pauses are a tenth.
pub const WINDOW: &str = "500";

/// A directory with files, inside a temporary one.
pub fn directory() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    (0..FILES).for_each(|n| fs::write(data.join(n.to_string()), format!("{n}\n").repeat(20_000)).unwrap());
    (dir, data)
}

pub fn serve(data: &Path) -> Served {
    Served::with(data, data, &["--window", WINDOW], |settings| settings.keep_mounted = false).unwrap()
}

/// Reads all files.
pub fn read_all(data: &Path) {
    for n in 0..FILES {
        assert_eq!(fs::read_to_string(data.join(n.to_string())).unwrap(), format!("{n}\n").repeat(20_000));
    }
}

/// Reads the files again and again, until it is so.
pub fn read_until(data: &Path, what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(200) {
            read_all(data);
        }
        is_so()
    });
}

/// True if a cache is mounted at the directory.
pub fn is_covered(data: &Path) -> bool {
    mounts::read().unwrap().iter().any(|mount| mount.point() == data)
}

fn aside() -> usize {
    fs::read_dir(ASIDE).map_or(0, Iterator::count)
}

#[test]
fn a_mount_that_gains_nothing_leaves_and_open_files_go_on() {
    const NAME: &str = "a_mount_that_gains_nothing_leaves_and_open_files_go_on";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let before = aside();
    let served = serve(&data);
    let mut open = File::open(data.join("7")).unwrap();
    read_until(&data, "it leaves", || served.status().aside.is_some());
    assert!(!is_covered(&data) && served.status().aside.unwrap().why.contains("fits"));
    open.seek(SeekFrom::Start(2)).unwrap();
    let mut rest = String::new();
    open.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.len(), 2 * 20_000 - 2);
    drop(open);
    // The store's memory is given back, and what is written now is seen at once by everybody.
    read_until(&data, "an empty store", || {
        let stats = served.status().worker;
        stats.is_some_and(|stats| stats.store.held < Bytes::mib(1) && stats.files.known < 10)
    });
    assert!(!is_covered(&data));
    fs::write(data.join("7"), "new").unwrap();
    assert_eq!(fs::read_to_string(data.join("7")).unwrap(), "new");
    // A second mount of the directory would serve the first one's files.
    assert!(Served::start(&data, &data, &[]).is_err(), "it is mounted twice");
    assert_eq!(served.umount(), Response::Done);
    wait_for("nothing is left", || aside() <= before);
    assert!(mounts::read().unwrap().iter().all(|mount| mount.dir != data));
}

#[test]
fn whoever_does_more_than_read_keeps_it_and_is_named() {
    const NAME: &str = "whoever_does_more_than_read_keeps_it_and_is_named";
    let missing = lacking(&NEEDS).or_else(|| no_program(&["flock", "unshare", "mkfifo"]));
    let Some(_alone) = alone(NAME, missing) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let elsewhere =
        "exec unshare -m --propagation slave sh -c 'exec 3>>\"$DIR/7\" && echo there && read end'";
    for (script, how) in [
        (elsewhere, "has a file open for writing"),
        ("exec 3>>\"$DIR/7\"", "has a file open for writing"),
        ("cd \"$DIR\"", "works there"),
        ("exec 3<\"$DIR\"", "has a directory open"),
        ("exec 3<\"$DIR/7\"; flock -s 3", "has a file locked"),
        ("mkfifo \"$DIR/pipe\"; exec 3<>\"$DIR/pipe\" 4<\"$DIR/pipe\" 3>&-", "has a pipe open"),
        ("cp /bin/sh \"$DIR/sh\"; exec \"$DIR/sh\" -c 'echo there; read end'", "runs a program"),
    ] {
        // Each refusal makes the next pause longer.
        let served = serve(&data);
        let holder = Holder::new(script, &data);
        let named = format!("({}) {how}", holder.0.id());
        read_until(&data, how, || served.status().not_moved.is_some_and(|why| why.contains(&named)));
        assert!(is_covered(&data), "{script}");
        drop((holder, served));
    }
    let _served = serve(&data);
    read_until(&data, "it leaves", || !is_covered(&data));
}

#[test]
fn what_the_kernel_leads_others_to_keeps_it_too() {
    const NAME: &str = "what_the_kernel_leads_others_to_keeps_it_too";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let bound = data.with_file_name("bound");
    fs::create_dir(&bound).unwrap();
    for (of, why) in [("--bind", "it is mounted at"), ("--types=tmpfs", "is mounted inside")] {
        let served = serve(&data);
        let (what, place) =
            if of == "--bind" { (&data, bound.clone()) } else { (&data, data.join("inside")) };
        let _ = fs::create_dir(&place);
        run("mount", &[of, what.to_str().unwrap(), place.to_str().unwrap()]);
        read_until(&data, why, || served.status().not_moved.is_some_and(|text| text.contains(why)));
        run("umount", &[place.to_str().unwrap()]);
        assert!(is_covered(&data), "{why}");
    }
    let served = serve(&data);
    let exported = Exported::new(&data);
    let why = "the kernel's NFS server exports ";
    read_until(&data, why, || served.status().not_moved.is_some_and(|text| text.contains(why)));
    assert!(is_covered(&data));
    drop((exported, served));
    let served = serve(&data);
    let socket = UnixListener::bind(data.join("socket")).unwrap();
    let why = "a program has the socket ";
    read_until(&data, why, || served.status().not_moved.is_some_and(|text| text.contains(why)));
    assert!(is_covered(&data) && UnixStream::connect(data.join("socket")).is_ok());
    drop((socket, served));
    let _served = serve(&data);
    read_until(&data, "it leaves", || !is_covered(&data));
}

/// A directory on a mount of its own that propagates to others. Drop unmounts it.
pub struct Propagating(PathBuf);

impl Propagating {
    pub fn new(dir: &Path) -> Self {
        let path = dir.to_str().unwrap();
        run("mount", &["--bind", path, path]);
        run("mount", &["--make-shared", path]);
        Self(dir.to_owned())
    }
}

impl Drop for Propagating {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// A shell in a mount namespace of its own, of this propagation, after a command.
pub fn in_namespace(propagation: &str, command: &str, data: &Path) -> Holder {
    let script =
        format!("exec unshare -m --propagation {propagation} sh -c '{command} && echo there && read end'");
    Holder::new(&script, data)
}

/// The points of the mounts of `eke-cache` that a process sees.
fn seen_by(pid: u32) -> Vec<PathBuf> {
    let seen = mounts::parse(&fs::read(format!("/proc/{pid}/mountinfo")).unwrap());
    seen.iter().map(|mount| mount.point().to_owned()).collect()
}

#[test]
fn it_leaves_with_the_mounts_that_follow_it_and_stays_while_others_would_not() {
    const NAME: &str = "it_leaves_with_the_mounts_that_follow_it_and_stays_while_others_would_not";
    let missing = lacking(&NEEDS).or_else(|| no_program(&["unshare"]));
    let Some(_alone) = alone(NAME, missing) else { return };
    let _machine = lock_machine();
    let (dir, data) = directory();
    let _propagating = Propagating::new(dir.path());
    let bind = "mkdir -p \"$DIR/../bound\" && mount --bind \"$DIR\" \"$DIR/../bound\"";
    for (propagation, command, why) in [
        ("private", "true", "data, too"),
        ("slave", bind, "bound, too"),
        ("slave", "mount -o remount,bind,ro \"$DIR/..\"", "has other flags than the directory"),
        ("slave", "mount -o remount,bind,ro \"$DIR\"", "has other flags than the directory"),
    ] {
        let served = serve(&data);
        let holder = in_namespace(propagation, command, &data);
        let of = format!("in the mount namespace of sh ({}), ", holder.0.id());
        read_until(&data, why, || served.status().not_moved.is_some_and(|text| text.contains(why)));
        // Seen before the move, not after it.
        assert!(served.status().not_moved.unwrap().starts_with(&of) && is_covered(&data), "{command}");
        drop((holder, served));
    }
    let strict = in_namespace("slave", STRICT, &data);
    let served = serve(&data);
    let holder = in_namespace("slave", "true", &data);
    assert!(seen_by(holder.0.id()).contains(&data));
    assert_eq!([strict.0.id(), holder.0.id()].map(|pid| is_read_only_in(pid, &data)), [true, false]);
    read_until(&data, "it leaves", || !is_covered(&data));
    assert!(!seen_by(holder.0.id()).contains(&data));
    drop((holder, strict, served));
}

/// What systemd does for `ProtectSystem=strict` in a service's namespace.
pub const STRICT: &str = "mount -o remount,bind,ro \"$DIR/..\"";

/// Is the mount read-only in the namespace of a process?
pub fn is_read_only_in(pid: u32, data: &Path) -> bool {
    let seen = parse(&fs::read(format!("/proc/{pid}/mountinfo")).unwrap());
    let ours = seen.iter().find(|m| m.place == data && m.kind.contains("eke-cache")).unwrap();
    ours.flags.split(',').any(|flag| flag == "ro")
}

#[test]
fn an_attempt_that_hangs_is_given_up() {
    const NAME: &str = "an_attempt_that_hangs_is_given_up";
    let missing = lacking(&NEEDS).or_else(|| lacking(&["/proc/thread-self/children"]));
    let Some(_alone) = alone(NAME, missing) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let served = serve(&data);
    let holder = Holder::new("exec 3>>\"$DIR/7\"", &data);
    let (supervisor, worker) = (served.server.supervisor(), served.server.worker());
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = RaiseOnDrop(&ended);
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                let children = fs::read_to_string(&children).unwrap_or_default();
                let attempt =
                    children.split_whitespace().find_map(|pid| pid.parse().ok().filter(|pid| *pid != worker));
                attempt.into_iter().for_each(|pid| kill(pid, Signal::STOP));
            }
        });
        read_until(&data, "the end of a stopped attempt", || {
            served.status().not_moved.is_some_and(|why| why.contains("it takes too long"))
        });
    });
    drop(holder);
    read_until(&data, "it leaves", || !is_covered(&data));
}

#[test]
fn one_that_is_not_watched_stays() {
    const NAME: &str = "one_that_is_not_watched_stays";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let ((_dir, data), (_other_dir, other)) = (directory(), directory());
    let (watched, args) = (serve(&data), ["--window", WINDOW]);
    let change = |settings: &mut Settings| (settings.keep_mounted, settings.watch) = (false, false);
    let not_watched = Served::with(&other, &other, &args, change).unwrap();
    // As long again as the other one needed.
    read_until(&data, "it leaves", || {
        read_all(&other);
        watched.status().aside.is_some_and(|aside| aside.since_s > 4)
    });
    assert!(is_covered(&other) && not_watched.status().not_moved.is_none());
}

/// A directory in the table of exportfs(8). Drop restores the table.
pub struct Exported(Option<Vec<u8>>);

impl Exported {
    const TABLE: &str = "/var/lib/nfs/etab";

    pub fn new(dir: &Path) -> Self {
        let before = fs::read(Self::TABLE).ok();
        fs::create_dir_all(Path::new(Self::TABLE).parent().unwrap()).unwrap();
        let line = format!("{}\t*(rw,sync,nocrossmnt,fsid=7)\n", dir.display());
        fs::write(Self::TABLE, [before.as_deref().unwrap_or_default(), line.as_bytes()].concat()).unwrap();
        Self(before)
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        match &self.0 {
            Some(before) => fs::write(Self::TABLE, before).unwrap(),
            None => fs::remove_file(Self::TABLE).unwrap(),
        }
        // If it is empty, it was made here.
        let _ = fs::remove_dir(Path::new(Self::TABLE).parent().unwrap());
    }
}

#[test]
fn what_was_warmed_is_in_the_page_cache_when_it_leaves() {
    const NAME: &str = "what_was_warmed_is_in_the_page_cache_when_it_leaves";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let [warmed, other] = ["warmed", "other"].map(|name| data.join(name));
    for file in [&warmed, &other] {
        fs::write(file, "as text\n".repeat(100_000)).unwrap();
        drop_pages(file);
    }
    let served = serve(&data);
    assert!(matches!(served.warm("warmed"), Response::Warmed(_)));
    read_until(&data, "it leaves", || served.status().aside.is_some());
    let is_resident = |path| is_resident(File::open(path).unwrap(), 0).unwrap();
    assert!(is_resident(&warmed) && !is_resident(&other));
}

/// Drops a file's pages from the page cache.
pub fn drop_pages(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// Files that were read, before it leaves.
const MANY: usize = 25_000;
/// All that its processes may have then, each page once.
const LITTLE: Bytes = Bytes::mib(4);

/// The anonymous memory of a process, with its share of what others have, too.
fn anonymous(pid: u32) -> Bytes {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:")).unwrap();
    Bytes(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

/// What outlives a worker, in the supervisor's memfds.
fn ledger(supervisor: u32) -> Bytes {
    let files = fs::read_dir(format!("/proc/{supervisor}/fd")).unwrap().map(|file| file.unwrap().path());
    let is_memory = |file: &PathBuf| {
        fs::read_link(file).is_ok_and(|of| of.starts_with("/memfd:eke-cache-ledger (deleted)"))
    };
    let blocks = files.filter(is_memory).map(|file| fs::metadata(file).unwrap().blocks());
    Bytes(blocks.sum::<u64>() * 512)
}

#[test]
fn aside_it_needs_little_memory_whatever_was_read_before() {
    const NAME: &str = "aside_it_needs_little_memory_whatever_was_read_before";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let many: Vec<_> = (0..MANY).map(|n| data.join(format!("many {n}"))).collect();
    many.iter().for_each(|file| fs::write(file, "few bytes").unwrap());
    let served = serve(&data);
    let server = &served.server;
    many.iter().for_each(|file| assert_eq!(fs::read(file).unwrap().len(), 9));
    let first = server.worker();
    read_until(&data, "it leaves", || served.status().aside.is_some());
    let worker = wait_for("a small worker", || server.worker_now().filter(|pid| *pid != first));
    wait_for("its stats", || served.status().worker);
    let ledger = ledger(server.supervisor());
    let [supervisor, guard, worker] = [server.supervisor(), server.guard(), worker].map(anonymous);
    let all = supervisor.0 + guard.0 + worker.0 + ledger.0;
    assert!(
        all < LITTLE.0,
        "supervisor {supervisor}, guard {guard}, worker {worker}, ledger {ledger}: {all} bytes"
    );
}

#[test]
fn what_dies_while_it_is_aside_leaves_the_directory_as_it_is() {
    const NAME: &str = "what_dies_while_it_is_aside_leaves_the_directory_as_it_is";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let (_dir, data) = directory();
    let served = serve(&data);
    let first = served.server.worker_now();
    read_until(&data, "it leaves", || served.status().aside.is_some());
    let worker =
        wait_for("a worker without tables", || served.server.worker_now().filter(|pid| Some(*pid) != first));
    kill(worker, Signal::KILL);
    wait_for("the next worker", || served.server.worker_now().is_some_and(|pid| pid != worker));
    let stats = wait_for("its stats", || served.status().worker);
    assert!(served.status().aside.is_some() && stats.store.held < Bytes::mib(1));
    read_all(&data);
    kill(served.server.supervisor(), Signal::KILL);
    wait_for("the guard unmounts it", || mounts::read().unwrap().iter().all(|mount| mount.dir != data));
    read_all(&data);
}
