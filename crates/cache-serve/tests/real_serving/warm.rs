//! Files that are read into the store before anybody requests them: named by a user, or hot before the last unmount.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use eke_cache_mounts::connection::Connection;
use eke_cache_mounts::line::{parse, send};
use eke_cache_mounts::settings::{Memory, Settings};
use eke_cache_mounts::status::{RefusalKind, RememberState, Request, Response, WarmProgress, WorkerStats};
use eke_cache_mounts::{SocketDirs, ask, mounts, socket};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::Signal;

use crate::common::mount::{Mount, MountSpec};
use crate::common::server::kill;
use crate::common::{LONG, NEEDS, pattern};

const SIZE: usize = 300 << 10;

fn content(seed: u8) -> Vec<u8> {
    pattern(seed, 0, SIZE)
}

/// Two directories with three files each, and what is no file.
fn fill(backing: &Path) {
    for dir in ["a", "b/deep"] {
        let dir = backing.join(dir);
        fs::create_dir_all(&dir).unwrap();
        (0..3u8).for_each(|n| fs::write(dir.join(format!("file {n}\n")), content(n)).unwrap());
    }
    symlink("/etc", backing.join("a/link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, backing.join("a/fifo"), rustix::fs::Mode::RUSR).unwrap();
}

fn shown(mount: &Mount) -> mounts::Mount {
    let all = mounts::read().unwrap();
    mounts::at(&all, mount.place()).unwrap().clone()
}

fn stats(mount: &Mount) -> WorkerStats {
    let answer = ask(&SocketDirs::host(), &shown(mount), Request::Status, LONG).unwrap();
    let Some(Response::Status(status)) = answer else { panic!("{answer:?}") };
    status.worker.unwrap_or_default()
}

/// Connects, and requests a path. Returns the connection.
fn request(mount: &Mount, path: &str) -> Connection {
    let shown = shown(mount);
    let connection = socket::connect(&SocketDirs::host(), shown.device, shown.uid).unwrap().unwrap();
    send(&connection, &Request::Warm { path: path.into() }, LONG).unwrap();
    connection
}

/// The answer at the end. Reports before it may arrive in one piece with it.
fn answer(connection: &Connection) -> Response {
    rustix::io::ioctl_fionbio(connection, false).unwrap();
    set_socket_timeout(connection, Timeout::Recv, Some(LONG)).unwrap();
    let mut answers = BufReader::new(connection).lines().map(|line| parse(line.unwrap().as_bytes()).unwrap());
    let end = answers.find(|answer| !matches!(answer, Response::Warming(_)));
    end.unwrap()
}

fn warm(mount: &Mount, path: &str) -> WarmProgress {
    match answer(&request(mount, path)) {
        Response::Warmed(progress) => progress,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_warmed_tree_is_read_from_memory() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_warmed_tree_is_read_from_memory", &why);
    }
    let spec = MountSpec { fill: Some(fill), ..MountSpec::default() };
    let mount = Mount::start(&spec, |_| {});
    let part = warm(&mount, "a/file 1\n");
    assert_eq!((part.files, part.files_done, part.bytes), (1, 1, Bytes(SIZE as u64)));
    let all = warm(&mount, "");
    let bytes = Bytes(6 * SIZE as u64);
    assert_eq!((all.surveyed, all.files, all.files_done, all.bytes), (true, 6, 6, bytes));
    assert_eq!((all.passed, all.kept, all.failed, all.full), (bytes, bytes, 0, false));
    assert_eq!(all.read, Bytes(5 * SIZE as u64), "one was there");
    assert!(all.taken.0 > 0 && all.taken < all.read, "{all:?}");
    for (dir, n) in [("a", 0), ("b/deep", 2)] {
        assert_eq!(fs::read(mount.place().join(dir).join(format!("file {n}\n"))).unwrap(), content(n));
    }
    let stats = stats(&mount);
    assert_eq!((stats.store.misses, stats.tier.from_backing), (0, Bytes(0)), "{stats:?}");
}

#[test]
fn a_path_that_leads_out_is_not_followed() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_path_that_leads_out_is_not_followed", &why);
    }
    let spec = MountSpec { fill: Some(fill), ..MountSpec::default() };
    let mount = Mount::start(&spec, |_| {});
    for path in ["../etc", "/etc", "a/link", "a/link/passwd", "a/../../x", "none", "a/fifo"] {
        let progress = warm(&mount, path);
        assert_eq!((progress.files, progress.read), (0, Bytes(0)), "{path}");
        assert_eq!(progress.failed, u64::from(!["a/link", "a/fifo"].contains(&path)), "{path}: {progress:?}");
        assert_eq!(progress.first_error.is_some(), progress.failed > 0);
    }
}

#[test]
fn more_than_fits_ends_early_and_keeps_what_was_read() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("more_than_fits_ends_early_and_keeps_what_was_read", &why);
    }
    fn large(backing: &Path) {
        // Text that a codec cannot reduce to nearly nothing.
        let mut words = 1_u64;
        let mut text = Vec::new();
        while text.len() < 40 << 20 {
            words = words.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            write!(text, "{:04x} and ", words >> 48).unwrap();
        }
        text.chunks(1 << 20).enumerate().for_each(|(n, part)| {
            fs::write(backing.join(format!("{n:03}")), part).unwrap();
        });
    }
    let spec = MountSpec { fill: Some(large), ..MountSpec::default() };
    let mount = Mount::start(&spec, |settings| settings.memory = Memory::Bytes(Bytes::mib(12)));
    let progress = warm(&mount, "");
    assert!(progress.full && progress.files_done < progress.files, "{progress:?}");
    assert!(progress.kept > Bytes::mib(8), "{progress:?}");
    let stats = stats(&mount);
    assert!(stats.store.raw.0 * 10 > progress.kept.0 * 9, "{stats:?}, {progress:?}");
}

#[test]
fn what_does_not_compress_is_reported() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("what_does_not_compress_is_reported", &why);
    }
    fn random(backing: &Path) {
        let mut bytes = vec![0; 8 << 20];
        rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).unwrap();
        fs::write(backing.join("random"), bytes).unwrap();
    }
    let spec = MountSpec { fill: Some(random), ..MountSpec::default() };
    let mount = Mount::start(&spec, |_| {});
    let progress = warm(&mount, "random");
    assert!(progress.incompressible > Bytes::mib(7), "{progress:?}");
    assert!(!progress.full && progress.files_done == 1);
}

/// To read a tebibyte of zeros takes minutes, and its blocks would take all of the store.
#[test]
fn holes_are_passed_over() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("holes_are_passed_over", &why);
    }
    const SIZE: u64 = 1 << 40;
    fn sparse(backing: &Path) {
        let file = fs::File::create(backing.join("image")).unwrap();
        file.write_all_at(&pattern(1, 0, 1 << 20), 3 << 30).unwrap();
        file.set_len(SIZE).unwrap();
    }
    let spec = MountSpec { fill: Some(sparse), ..MountSpec::default() };
    let mount = Mount::start(&spec, |_| {});
    let progress = warm(&mount, "image");
    assert_eq!((progress.kept.0, progress.passed.0), (SIZE, SIZE), "{progress:?}");
    assert!(progress.read < Bytes::mib(8) && progress.files_done == 1, "{progress:?}");
}

#[test]
fn the_end_of_a_connection_or_of_a_worker_ends_a_request() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("the_end_of_a_connection_or_of_a_worker_ends_a_request", &why);
    }
    fn many(backing: &Path) {
        (0..64u8).for_each(|n| fs::write(backing.join(n.to_string()), pattern(n, 0, 4 << 20)).unwrap());
    }
    let spec = MountSpec { fill: Some(many), ..MountSpec::default() };
    let mount = Mount::start(&spec, |_| {});
    drop(request(&mount, ""));
    // The next one begins when that has ended, long before its 256 MiB.
    let one = warm(&mount, "63");
    assert_eq!(one.files_done, 1);
    let read = stats(&mount).store.raw;
    assert!(read < Bytes::mib(250), "{read}");
    let waiting = request(&mount, "");
    kill(mount.server.worker(), Signal::KILL);
    match answer(&waiting) {
        Response::Refused(refusal) => {
            // It may have died before it was asked.
            assert!(refusal.kind == RefusalKind::Failed && refusal.what.contains("worker"), "{refusal}");
        }
        // It had ended before.
        Response::Warmed(progress) => assert!(progress.files_done > 0),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(mount.place().join("7")).unwrap(), pattern(7, 0, 4 << 20));
}

/// A mount that remembers in `state`.
fn remembering(backing: &Path, state: &Path, change: fn(&mut Settings)) -> Mount {
    let args = ["--state", state.to_str().unwrap()];
    let spec = MountSpec { backing: Some(backing), args: &args, over_itself: true, ..MountSpec::default() };
    Mount::start(&spec, |settings| {
        settings.remember = true;
        change(settings);
    })
}

/// The list's file.
fn list_in(state: &Path) -> std::path::PathBuf {
    let mut found = fs::read_dir(state.join("eke/caches")).unwrap().map(|entry| entry.unwrap().path());
    let list = found.next().unwrap();
    assert!(found.next().is_none());
    list
}

fn when_read_again(mount: &Mount) -> WorkerStats {
    let mut last = WorkerStats::default();
    wait_for("what was hot to be read again", || {
        last = stats(mount);
        matches!(last.remember.state, RememberState::Done | RememberState::Full)
    });
    last
}

#[test]
fn what_was_hot_is_read_again_after_an_unmount() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("what_was_hot_is_read_again_after_an_unmount", &why);
    }
    let dirs = tempfile::tempdir().unwrap();
    let (backing, state) = (dirs.path().join("backing"), dirs.path().join("state"));
    [&backing, &state].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
    fill(&backing);
    let first = remembering(&backing, &state, |_| {});
    assert_eq!(when_read_again(&first).remember.listed, Bytes(0));
    for n in 0..3u8 {
        assert_eq!(fs::read(backing.join("a").join(format!("file {n}\n"))).unwrap(), content(n));
    }
    drop(first);
    let list = list_in(&state);
    let text = fs::read_to_string(&list).unwrap();
    assert!(text.contains(" a/file\\0401\\012\n") && !text.contains("deep"), "{text}");
    assert_eq!(fs::metadata(&list).unwrap().mode() & 0o777, 0o600);
    // One is gone, one has changed.
    fs::remove_file(backing.join("a/file 0\n")).unwrap();
    fs::write(backing.join("a/file 1\n"), content(9)).unwrap();
    let second = remembering(&backing, &state, |_| {});
    let again = when_read_again(&second);
    assert_eq!(again.remember.done, again.remember.listed);
    assert_eq!(again.remember.listed, Bytes(2 * SIZE as u64));
    assert_eq!(again.store.raw, Bytes(2 * SIZE as u64));
    assert_eq!(fs::read(backing.join("a/file 1\n")).unwrap(), content(9));
    assert_eq!(fs::read(backing.join("a/file 2\n")).unwrap(), content(2));
    assert_eq!(stats(&second).store.misses, 0);
    // A worker that dies has its list read again by the next one.
    second.kill_worker();
    assert!(when_read_again(&second).store.raw > Bytes(0));
    drop(second);
    assert!(!fs::read_to_string(&list).unwrap().contains("file\\0400"));
}

#[test]
fn a_list_that_makes_no_sense_or_was_not_requested_does_no_harm() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_list_that_makes_no_sense_or_was_not_requested_does_no_harm", &why);
    }
    let dirs = tempfile::tempdir().unwrap();
    let (backing, state) = (dirs.path().join("backing"), dirs.path().join("state"));
    [&backing, &state].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
    fill(&backing);
    let read = |mount: &Mount| assert_eq!(fs::read(mount.place().join("a/file 1\n")).unwrap(), content(1));
    let first = remembering(&backing, &state, |_| {});
    read(&first);
    drop(first);
    let list = list_in(&state);
    let good = fs::read(&list).unwrap();
    let off = remembering(&backing, &state, |settings| settings.remember = false);
    assert_eq!(stats(&off).remember.why.as_deref(), Some("not requested"));
    assert_eq!(stats(&off).remember.state, RememberState::Off);
    read(&off);
    drop(off);
    assert_eq!(fs::read(&list).unwrap(), good);
    let mut bad = good.clone();
    bad.extend(b"3 0-9999999999 ../../etc/shadow\n2 0-1 b\xff\x00\n\n\n3 0-999999 a/file\\0402\\012\n");
    fs::write(&list, &bad).unwrap();
    let second = remembering(&backing, &state, |_| {});
    assert_eq!(when_read_again(&second).store.raw, Bytes(2 * SIZE as u64));
    read(&second);
}
