//! A tier that is slow, full or empty, beside none: reads wait as long as the origin's measured time says, then the tier is left alone.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eke_cache_mounts::shared::SharedSettings;
use eke_linux::Root;
use eke_model::units::{Bytes, Nanos};
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use crate::common::content::{Content, stats};
use crate::common::mount::{Mount, run, scratch};
use crate::engine::Engine;
use crate::node::{CONTENT, FILES, Origin, cannot_run, node, settings, shared};
use crate::serves::connected;

/// Of two blocks each, half of which are read in each part of a test.
const FILES_EACH: u64 = 120;
const ALL: Content = Content { files: 2 * FILES_EACH, size: 70_000 };

/// Longer than a reader waits, and shorter than a connection that is given up.
const SLOW: Duration = Duration::from_millis(150);

/// Shorter than a reader waits, but not next to nothing beside the disk.
const QUICK: Duration = Duration::from_micros(300);

/// A file system on a slow disk, with files that changed long ago. Fields drop in this order: the disk before its directory, and then the machine's
/// disks are compared.
struct SlowOrigin {
    mounted: Mounted,
    _disk: SlowDisk,
    _dir: TempDir,
    _machine: SameDisks,
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

impl SlowOrigin {
    /// Each read takes at least two milliseconds.
    fn new() -> Self {
        let (machine, dir) = (SameDisks::start(), scratch());
        let profile = Profile { latency: Nanos::micros(2000), depth: 16, ..Profile::plain() };
        let spec = SlowDiskSpec::new(Image::Memory, Bytes::mib(64), profile);
        let disk = SlowDisk::attach(&Root::host(), spec).unwrap();
        let (device, at) = (disk.device().to_str().unwrap(), dir.path().join("origin"));
        fs::create_dir(&at).unwrap();
        run("mkfs.ext4", &["-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", device]);
        let mount = |options: &str| {
            run("mount", &["-o", options, device, at.to_str().unwrap()]);
            Mounted(at.clone())
        };
        let mounted = mount("noatime");
        (0..ALL.files).for_each(|n| fs::write(at.join(n.to_string()), ALL.of(n, 0)).unwrap());
        run("umount", &[at.to_str().unwrap()]);
        drop(mounted);
        // The kernel lets nobody set these times.
        let lines = (0..ALL.files).map(|n| format!("set_inode_field /{n} ctime 20200101000000\n"));
        let script = dir.path().join("script");
        fs::write(&script, lines.collect::<String>()).unwrap();
        run("debugfs", &["-w", "-f", script.to_str().unwrap(), device]);
        Self { mounted: mount("noatime"), _disk: disk, _dir: dir, _machine: machine }
    }

    fn dir(&self) -> &Path {
        &self.mounted.0
    }
}

/// Passes on what an engine answers, as late as it is told to.
struct Late {
    port: u16,
    by_us: Arc<AtomicU64>,
}

impl Late {
    /// Its threads end with the test's process.
    fn start(engine: &Engine) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, to, by_us) =
            (listener.local_addr().unwrap().port(), engine.port, Arc::<AtomicU64>::default());
        let by = Arc::clone(&by_us);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(from_client, to_server, &AtomicU64::new(0)));
                let by = Arc::clone(&by);
                std::thread::spawn(move || pass(server, client, &by));
            }
        });
        Self { port, by_us }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, by_us: &AtomicU64) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        std::thread::sleep(Duration::from_micros(by_us.load(Ordering::SeqCst)));
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Reads some files and compares them.
fn check(mount: &Mount, files: std::ops::Range<u64>) {
    files.for_each(|file| assert!(ALL.read(mount, file) == ALL.of(file, 0), "file {file}"));
}

/// Blocks that were asked for in vain, and those not asked for.
fn vain(mount: &Mount) -> [u64; 2] {
    let s = shared(mount);
    [s.late + s.failed, s.paused]
}

/// Skips a test that cannot have a slow disk or an engine.
fn has_no_disk(name: &str) -> bool {
    let why =
        lacking(&["/dev/loop-control"]).or_else(|| no_program(&["losetup", "mkfs.ext4", "debugfs", "mount"]));
    why.iter().for_each(|why| skip(name, why));
    why.is_some() || cannot_run(name)
}

/// A node that asks this engine.
fn asking(origin: &SlowOrigin, late: &Late, bandwidth: Bytes) -> Mount {
    let settings = settings(&format!("redis://127.0.0.1:{}", late.port));
    let mount = node(origin.dir(), &[], Some(SharedSettings { bandwidth, ..settings }));
    wait_for("all connections", || shared(&mount).connected == 6);
    mount
}

#[test]
fn an_engine_without_the_blocks_is_left_alone_after_a_few_reads() {
    if has_no_disk("an_engine_without_the_blocks_is_left_alone_after_a_few_reads") {
        return;
    }
    let (origin, engine) = (SlowOrigin::new(), Engine::start(&[]));
    let late = Late::start(&engine);
    late.by_us.store(QUICK.as_micros() as u64, Ordering::SeqCst);
    // It offers none either.
    let mount = asking(&origin, &late, Bytes(1));
    let asked = || shared(&mount).misses + vain(&mount)[0];
    check(&mount, 0..FILES_EACH);
    let first = asked();
    check(&mount, FILES_EACH..ALL.files);
    let second = asked() - first;
    assert!(first > 0 && second < FILES_EACH / 4, "{first} blocks, then {second}: {:?}", shared(&mount));
    assert_eq!((engine.keys(), shared(&mount).hits), (0, 0));
}

#[test]
fn a_slow_tier_is_left_alone_after_a_few_reads_and_a_quick_one_is_used() {
    if has_no_disk("a_slow_tier_is_left_alone_after_a_few_reads_and_a_quick_one_is_used") {
        return;
    }
    let (origin, engine) = (SlowOrigin::new(), Engine::start(&[]));
    let late = Late::start(&engine);
    let tier = || asking(&origin, &late, Bytes::mib(500));
    let one = tier();
    check(&one, 0..ALL.files);
    wait_for("blocks in the engine", || engine.keys() >= ALL.files);
    let quick = tier();
    check(&quick, 0..ALL.files);
    assert!(shared(&quick).hits > 0, "without --patient: {:?}", shared(&quick));
    let slow = tier();
    late.by_us.store(SLOW.as_micros() as u64, Ordering::SeqCst);
    let asked_before = engine.calls("mget");
    check(&slow, 0..FILES_EACH);
    let first = vain(&slow);
    assert!(
        first[0] >= 3 && first[1] > 0 && shared(&slow).open > 0,
        "the breaker opens: {:?}",
        shared(&slow)
    );
    check(&slow, FILES_EACH..ALL.files);
    let second = vain(&slow);
    let asked = second[0] - first[0];
    assert!(asked < FILES_EACH / 4, "{asked} asked in vain: {:?}", shared(&slow));
    assert_eq!(shared(&slow).hits, 0);
    let asked = engine.calls("mget") - asked_before;
    assert!(asked > 0 && asked <= second[0], "{asked} asks of {} blocks", second[0]);
    // Beside no tier: the same bytes from the origin.
    let without = node(origin.dir(), &[], None);
    check(&without, 0..ALL.files);
    let [with, without] = [&slow, &without].map(|mount| stats(mount).tier.from_backing.0);
    assert!(with <= without + without / 10, "{with} bytes from the origin, {without} without a tier");
    late.by_us.store(0, Ordering::SeqCst);
}

#[test]
fn an_engine_that_is_full_refuses_blocks_and_no_read_notices() {
    if cannot_run("an_engine_that_is_full_refuses_blocks_and_no_read_notices") {
        return;
    }
    let (origin, engine) =
        (Origin::new(), Engine::start(&["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let one = connected(&origin, &url);
    CONTENT.check(&one, &[]);
    let all = FILES * 5;
    wait_for("all blocks to be stored or refused", || {
        let s = shared(&one);
        s.offered + s.not_offered >= all && s.engine_refused + engine.keys() >= s.offered
    });
    let got = shared(&one);
    assert!(got.engine_refused > 0 && engine.keys() < all, "{} stored: {got:?}", engine.keys());
    // After three refusals in a row a thread offers nothing for a while.
    assert!(
        engine.calls("set") < got.offered,
        "{} of {} reached the engine",
        engine.calls("set"),
        got.offered
    );
    wait_for("the warning", || {
        let s = shared(&one);
        s.engine_keeps_all && s.why.is_some_and(|why| why.contains("OOM"))
    });
    let two = connected(&origin, &url);
    CONTENT.check(&two, &[]);
    let got = shared(&two);
    assert!(got.misses > 0 && got.hits <= engine.keys() && got.refused == 0, "{got:?}");
}
