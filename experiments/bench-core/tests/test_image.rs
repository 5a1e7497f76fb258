//! A stage on the real kernel.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use eke_bench_core::test_image::{Error, Parts, TestImage, TestImageSpec, Tree, ensure, sweep};
use eke_linux::Root;
use eke_testkit::real::{SameDisks, disks, lacking, no_program, skip};

/// Set for a copy of this test program that owns a stage until it is killed: its image.
const OWNER: &str = "EKE_STAGE_OWNER";
const TEXT: &[u8] = b"a document\n";

fn missing() -> Option<String> {
    lacking(&["/dev/fuse", "/dev/loop-control"])
        .or_else(|| no_program(&["losetup", "mke2fs", "mount", "chroot"]))
}

/// A tree of some programs and a document.
fn image(dir: &Path) -> PathBuf {
    let document = dir.join("text");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&document).unwrap();
    file.write_all(TEXT).unwrap();
    let programs = ["/bin/true", "ls", "cat", "touch"].map(PathBuf::from).to_vec();
    let mut parts = Parts { programs, ..Parts::default() };
    assert_eq!(parts.document(&document, "a document.pdf"), Path::new("/documents/a document.pdf"));
    let tree = Tree::of(&parts).unwrap();
    let (root, cache, now) = (Root::host(), dir.join("cache"), SystemTime::now());
    let image = ensure(&root, &tree, &cache, now).unwrap();
    assert_eq!(ensure(&root, &tree, &cache, now).unwrap(), image);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1, "nothing but the image stays");
    image
}

fn set(image: &Path, profile: Option<&str>, writable: bool) -> TestImage {
    let spec = TestImageSpec { image: image.to_owned(), profile: profile.map(str::to_owned), writable };
    TestImage::prepare(&Root::host(), spec).unwrap()
}

/// Runs a command in the tree; its output, and whether it succeeded.
fn run(stage: &TestImage, words: &[&str]) -> (String, bool) {
    let output = Command::new("chroot")
        .arg(stage.root_dir())
        .args(words)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap();
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

#[test]
fn programs_run_in_it_and_it_is_cold_when_asked() {
    if let Some(why) = missing() {
        return skip("programs_run_in_it_and_it_is_cold_when_asked", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let stage = set(&image(dir.path()), Some("nfs"), false);
    assert!(run(&stage, &["true"]).1);
    assert_eq!(run(&stage, &["ls", "/documents"]).0, "a document.pdf\n");
    let read = || stage.stats().unwrap().reads.bytes.0;
    let first = read();
    assert!(first > 1 << 20, "programs were read from the disk: {first}");
    assert_eq!(run(&stage, &["ls", "/documents"]).0, "a document.pdf\n");
    assert_eq!(read(), first, "warm: nothing is read");
    stage.cold().unwrap();
    assert_eq!(run(&stage, &["ls", "/documents"]).0, "a document.pdf\n");
    assert!(read() > first + (1 << 20), "cold: all is read again, {} after {first}", read());
    assert_eq!(run(&stage, &["cat", "/documents/a document.pdf"]).0.as_bytes(), TEXT);
    assert!(!run(&stage, &["touch", "/documents/new"]).1, "nobody writes to it");
    assert_eq!(stage.stats().unwrap().writes.requests, 0);
    stage.teardown().unwrap();
}

#[test]
fn it_stands_on_this_machines_own_disk_too() {
    if let Some(why) = missing() {
        return skip("it_stands_on_this_machines_own_disk_too", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let before = std::fs::read(&image).unwrap();
    let stage = set(&image, None, true);
    assert!(stage.stats().is_none());
    assert!(run(&stage, &["touch", "/documents/new"]).1);
    stage.cold().unwrap();
    assert_eq!(run(&stage, &["ls", "/documents"]).0, "a document.pdf\nnew\n");
    stage.teardown().unwrap();
    assert!(std::fs::read(&image).unwrap() == before, "a copy was written to");
    assert_eq!(std::fs::read_dir(image.parent().unwrap()).unwrap().count(), 1, "which is gone");
}

#[test]
fn a_stage_in_use_is_not_cold_and_says_so() {
    if let Some(why) = missing() {
        return skip("a_stage_in_use_is_not_cold_and_says_so", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let stage = set(&image(dir.path()), Some("sd"), false);
    let open = std::fs::File::open(stage.root_dir().join("documents/a document.pdf")).unwrap();
    let refused = stage.cold();
    assert!(matches!(&refused, Err(Error::Busy { path }) if *path == stage.root_dir()), "{refused:?}");
    assert!(run(&stage, &["true"]).1, "it still stands");
    drop(open);
    stage.cold().unwrap();
    drop(stage);
}

#[test]
fn what_cannot_be_leaves_nothing() {
    if let Some(why) = missing() {
        return skip("what_cannot_be_leaves_nothing", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let no_file_system = dir.path().join("zeros");
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&no_file_system)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    for (image, profile, message) in [
        (no_file_system.as_path(), Some("nfs"), "cannot mount /dev/loop"),
        (&no_file_system, None, "`mount -t ext4"),
        (&no_file_system, Some("tape"), "no disk is called \"tape\""),
        (Path::new("/nonexistent/image"), Some("nfs"), "cannot read /nonexistent/image"),
    ] {
        for writable in [false, image == no_file_system] {
            let spec =
                TestImageSpec { image: image.to_owned(), profile: profile.map(str::to_owned), writable };
            let error = TestImage::prepare(&Root::host(), spec).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Not a test of its own: what the next one kills.
#[test]
fn owner_of_a_stage_until_killed() {
    let Some(image) = std::env::var_os(OWNER) else { return };
    let _slow = set(Path::new(&image), Some("nfs"), false);
    let _own = set(Path::new(&image), None, true);
    println!("\nset");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

fn start_owner(image: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_of_a_stage_until_killed", "--nocapture"])
        .env(OWNER, image)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "set"));
    child
}

#[test]
fn what_a_killed_owner_left_is_swept() {
    if let Some(why) = missing() {
        return skip("what_a_killed_owner_left_is_swept", &why);
    }
    let _clean = SameDisks::start();
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path());
    let before = disks();
    let mut owner = start_owner(&image);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(disks().len() >= before.len() + 6, "mounts, devices and directories of both: {:?}", disks());
    let swept = sweep(&Root::host()).unwrap();
    assert_eq!(
        swept.iter().filter(|name| name.contains(&format!("-{}-", owner.id()))).count(),
        3,
        "{swept:?}"
    );
    assert_eq!(disks(), before);
    assert_eq!(std::fs::read_dir(image.parent().unwrap()).unwrap().count(), 2, "the copy is not in /run");
    let tree = Tree::of(&Parts::default()).unwrap();
    ensure(&Root::host(), &tree, image.parent().unwrap(), SystemTime::now()).unwrap();
    let left = std::fs::read_dir(image.parent().unwrap()).unwrap().map(|e| e.unwrap().path());
    assert!(
        left.into_iter().all(|path| path.extension().is_some_and(|e| e == "ext4")),
        "it goes with the next image"
    );
}
