//! Where a mount is made while others change its path, and what is released when it is gone.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use eke_cache_mounts::settings::PassthroughMode;
use eke_cache_mounts::status::Response;
use eke_cache_mounts::{mounts, unmount};
use eke_testkit::real::{lacking, no_program, skip};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::NEEDS;
use crate::common::mount::settings;
use crate::common::server::Server;
use crate::served::{Served, alone};

const ROUNDS: usize = 30;

/// A tmpfs. Drop unmounts it, if it is still mounted.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn new(at: PathBuf) -> Self {
        rustix::mount::mount("none", &at, "tmpfs", MountFlags::empty(), None).unwrap();
        Self(at)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Exchanges two names all the time during `test`, as a user may do in a directory of their own.
fn exchanging<T>(one: &Path, other: &Path, test: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
            }
        });
        let _stop = Stop(&stop);
        test()
    })
}

/// A user who owns a part of the path replaces it by a link to a victim and back, all the time.
#[test]
fn a_link_put_into_the_path_leads_no_mount_elsewhere() {
    let Some(_alone) = alone("a_link_put_into_the_path_leads_no_mount_elsewhere", lacking(&NEEDS)) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let [victim, theirs, link] = ["victim", "theirs", "link"].map(|name| dir.path().join(name));
    for (dir, text) in [(&victim, "root's"), (&theirs, "a user's")] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("file"), text).unwrap();
    }
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let mut served = 0;
    exchanging(&theirs, &link, || {
        for _ in 0..ROUNDS {
            let mount = Served::start(&theirs, &theirs, &[]);
            let shown = mounts::read().unwrap();
            assert_eq!(mounts::at(&shown, &victim), None, "the victim is covered");
            assert_eq!(std::fs::read_to_string(victim.join("file")).unwrap(), "root's");
            if let Ok(mount) = mount {
                assert!([&theirs, &link].contains(&&mount.place()), "{:?}", mount.place());
                assert_eq!(mount.umount(), Response::Done);
                served += 1;
            }
        }
    });
    assert!(served > 0, "it was never mounted, so the test shows nothing");
}

/// When the mount is removed, its parent directory has another name, and the old name leads to another mount.
#[test]
fn a_renamed_directory_makes_no_other_mount_go() {
    let Some(_alone) = alone("a_renamed_directory_makes_no_other_mount_go", lacking(&NEEDS)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["theirs/here", "victim/here"] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    let _victim = Tmpfs::new(path("victim/here"));
    for by_supervisor in [true, false] {
        let mount = Served::start(&path("theirs/here"), &path("theirs/here"), &[]).unwrap();
        std::fs::rename(path("theirs"), path("moved")).unwrap();
        std::os::unix::fs::symlink(path("victim"), path("theirs")).unwrap();
        if by_supervisor {
            assert_eq!(mount.umount(), Response::Done);
        } else {
            unmount(&mount.shown, false).unwrap();
        }
        let left: Vec<_> = places(dir.path());
        std::fs::remove_file(path("theirs")).unwrap();
        std::fs::rename(path("moved"), path("theirs")).unwrap();
        assert_eq!(left, [path("victim/here")]);
    }
}

/// The mount points inside a directory.
fn places(backing: &Path) -> Vec<PathBuf> {
    let text = std::fs::read("/proc/self/mountinfo").unwrap();
    let all = eke_linux::parse::mountinfo::parse(&text).into_iter().map(|m| m.place);
    all.filter(|place| place.starts_with(backing)).collect()
}

/// When the unmount is reported, neither worker nor supervisor nor guard keeps the backing file system busy.
#[test]
fn the_backing_file_system_is_free_when_the_unmount_is_reported() {
    let Some(_alone) = alone("the_backing_file_system_is_free_when_the_unmount_is_reported", lacking(&NEEDS))
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let backing = dir.path().join("backing");
    std::fs::create_dir(&backing).unwrap();
    for round in 0..5 {
        let _tmpfs = Tmpfs::new(backing.clone());
        std::fs::write(backing.join("file"), vec![7; 3 << 20]).unwrap();
        let mount = Served::start(&backing, &backing, &[]).unwrap();
        assert_eq!(std::fs::read(backing.join("file")).unwrap().len(), 3 << 20);
        let answer = mount.umount();
        let free = rustix::mount::unmount(&backing, UnmountFlags::empty());
        assert_eq!((answer, free), (Response::Done, Ok(())), "round {round}");
    }
}

/// A process with its own mount namespace has a copy of the mount, so the backing directory is not free: the answer names the process.
#[test]
fn a_process_with_a_copy_of_the_mount_is_named() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["unshare"]));
    let Some(_alone) = alone("a_process_with_a_copy_of_the_mount_is_named", missing) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mount = Served::start(dir.path(), dir.path(), &[]).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "--propagation", "private", "sh", "-c", "echo there; read end"]);
    let mut other = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let answer = mount.umount();
    assert_eq!(places(dir.path()), Vec::<PathBuf>::new());
    drop(other.stdin.take());
    other.wait().unwrap();
    let Response::Refused(refusal) = answer else { panic!("{answer:?}") };
    assert!(refusal.what.contains(&format!("sh ({})", other.id())), "{refusal}");
}

/// Root of a container without CAP_SYS_RESOURCE cannot lift its limit.
#[test]
fn a_mount_that_could_open_no_files_is_refused() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["prlimit", "setpriv"]));
    let Some(_alone) = alone("a_mount_that_could_open_no_files_is_refused", missing) else { return };
    let dir = tempfile::tempdir().unwrap();
    let limits = ["--nofile=64:64", "setpriv", "--bounding-set=-sys_resource"];
    let limits = if rustix::process::geteuid().is_root() { &limits[..] } else { &limits[..1] };
    let refused = Server::start(&settings(dir.path(), dir.path()), &[], limits).err().unwrap();
    assert!(refused.what.contains("may open 64 files") && refused.what.contains("ulimit -n"), "{refused}");
    assert_eq!(places(dir.path()), Vec::<PathBuf>::new());
}

/// Mounts overlayfs over a read-only directory.
fn overlay(lower: &Path, at: &Path) -> std::io::Result<Tmpfs> {
    let empty = at.with_extension("empty");
    std::fs::create_dir_all(&empty)?;
    std::fs::create_dir_all(at)?;
    let text = format!("lowerdir={}:{}", lower.display(), empty.display());
    let data = std::ffi::CString::new(text).unwrap();
    rustix::mount::mount("overlay", at, "overlay", MountFlags::empty(), data.as_c_str())?;
    Ok(Tmpfs(at.to_owned()))
}

/// Containers in containers.
#[test]
fn an_overlay_over_an_overlay_can_be_mounted_on_a_mount_that_never_uses_passthrough() {
    let name = "an_overlay_over_an_overlay_can_be_mounted_on_a_mount_that_never_uses_passthrough";
    let Some(_alone) = alone(name, lacking(&NEEDS)) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let [dir, place] = ["dir", "place"].map(|name| {
        std::fs::create_dir(scratch.path().join(name)).unwrap();
        scratch.path().join(name)
    });
    if let Err(e) = overlay(&dir, &scratch.path().join("plain")) {
        return skip(name, &format!("no overlayfs: {e}"));
    }
    std::fs::write(dir.join("file"), "text").unwrap();
    let served =
        Served::with(&dir, &place, &[], |settings| settings.passthrough = PassthroughMode::Never).unwrap();
    let first = overlay(&served.place(), &scratch.path().join("first")).unwrap();
    let second = overlay(&first.0, &scratch.path().join("second")).unwrap();
    assert_eq!(std::fs::read_to_string(second.0.join("file")).unwrap(), "text");
    drop((second, first));
}
