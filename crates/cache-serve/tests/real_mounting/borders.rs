//! Restrictions of mounts inside the directory hold through the cache, too. With another user.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;

use eke_testkit::real::lacking;
use eke_testkit::wait::wait_for;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use rustix::process::{chdir, chroot, getcwd};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::served::{Served, alone};

const NEEDS: [&str; 2] = ["/dev/fuse", "/usr/bin/id"];
/// Neither root nor nobody; without a name.
const SOMEBODY: u32 = 12345;

/// A directory with other mounts inside. Drop unmounts them.
struct Environment {
    dir: tempfile::TempDir,
    mounts: Vec<PathBuf>,
}

impl Environment {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("backing"), dir.path().join("place")] {
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir, mounts: Vec::new() }
    }

    fn backing(&self, name: &str) -> PathBuf {
        self.dir.path().join("backing").join(name)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.dir.path().join("place").join(name)
    }

    /// A directory with the files that [`allowed`] tries; on a tmpfs if it must have mount flags.
    fn fill(&mut self, name: &str, tmpfs: Option<MountFlags>) {
        let dir = self.backing(name);
        fs::create_dir(&dir).unwrap();
        if tmpfs.is_some() {
            mount("none", &dir, "tmpfs", MountFlags::empty(), None).unwrap();
            self.mounts.push(dir.clone());
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        fs::copy("/usr/bin/id", dir.join("id")).unwrap();
        fs::set_permissions(dir.join("id"), Permissions::from_mode(0o4755)).unwrap();
        mknodat(CWD, dir.join("null"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3))
            .unwrap();
        fs::set_permissions(dir.join("null"), Permissions::from_mode(0o666)).unwrap();
        fs::write(dir.join("file"), "text").unwrap();
        symlink("file", dir.join("link")).unwrap();
        let _ = tmpfs.map(|flags| remount(&dir, flags));
    }

    /// A directory below this one; made if it is missing.
    fn make(&self, name: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Shows a directory at a place below the backing directory, too.
    fn bind(&mut self, from: &Path, name: &str) {
        mount_bind(from, self.backing(name)).unwrap();
        self.mounts.push(self.backing(name));
    }

    fn serve(&self) -> Served {
        Served::start(&self.backing(""), &self.place(""), &[]).unwrap()
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        for dir in self.mounts.iter().rev() {
            let _ = unmount(dir, UnmountFlags::DETACH);
        }
    }
}

fn remount(dir: &Path, flags: MountFlags) {
    mount_remount(dir, MountFlags::BIND | flags, c"").unwrap();
}

/// May another user become root by a set-user-ID program here, write to a device, run a program, and follow a link?
fn allowed(dir: &Path) -> [bool; 4] {
    let ran = Command::new(dir.join("id")).arg("-u").uid(SOMEBODY).gid(SOMEBODY).output();
    let shell = |script: &str| {
        Command::new("sh").args(["-c", script, "sh"]).arg(dir).uid(SOMEBODY).gid(SOMEBODY).output().unwrap()
    };
    [
        ran.as_ref().is_ok_and(|out| out.stdout == b"0\n"),
        shell("echo x >\"$1/null\"").status.success(),
        ran.is_ok_and(|out| out.status.success()),
        shell("cat \"$1/link\"").status.success(),
    ]
}

#[test]
fn a_mount_inside_gives_no_rights_that_it_forbids() {
    let Some(_alone) = alone("a_mount_inside_gives_no_rights_that_it_forbids", lacking(&NEEDS)) else {
        return;
    };
    let mut environment = Environment::new();
    let flags = [
        ("nosuid", MountFlags::NOSUID),
        ("nodev", MountFlags::NODEV),
        ("noexec", MountFlags::NOEXEC),
        ("nosymfollow", MountFlags::NOSYMFOLLOW),
    ];
    environment.fill("plain", None);
    environment.fill("loose", Some(MountFlags::empty()));
    flags.into_iter().for_each(|(name, flags)| environment.fill(name, Some(flags)));
    // The directory's own file system: only the mount differs.
    fs::create_dir(environment.backing("bound")).unwrap();
    mount_bind(environment.backing("plain"), environment.backing("bound")).unwrap();
    environment.mounts.push(environment.backing("bound"));
    remount(&environment.backing("bound"), MountFlags::NOSUID | MountFlags::NODEV);

    let mount = environment.serve();
    for name in ["plain", "loose"] {
        assert_eq!(allowed(&environment.place(name)), [true; 4], "{name}");
    }
    for (nth, name) in ["nosuid", "nodev", "noexec", "nosymfollow", "bound"].into_iter().enumerate() {
        assert!(!allowed(&environment.backing(name))[nth % 4], "{name}: a test that cannot fail");
        assert_eq!(allowed(&environment.place(name)), [false; 4], "{name}");
        assert_eq!(fs::metadata(environment.place(name)).unwrap_err().kind(), io::ErrorKind::CrossesDevices);
    }
    let listed: Vec<_> = mount.stats().not_served.into_iter().map(|n| (n.place, n.why)).collect();
    let name = |name: &str| environment.backing(name);
    let places = ["bound", "nodev", "noexec", "nosuid", "nosymfollow"].map(name);
    assert_eq!(listed.iter().map(|(place, _)| place.clone()).collect::<Vec<_>>(), places);
    assert_eq!(listed[0].1, "it is nosuid, nodev, and this cache's mount is not");
}

#[test]
fn a_file_system_inside_can_be_unmounted_soon_after_it_was_used() {
    let test = "a_file_system_inside_can_be_unmounted_soon_after_it_was_used";
    let Some(_alone) = alone(test, lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    environment.fill("stick", Some(MountFlags::empty()));
    let _mount = environment.serve();
    assert_eq!(fs::read_to_string(environment.place("stick/file")).unwrap(), "text");
    assert!(fs::read_dir(environment.place("stick")).unwrap().count() > 0);
    let stick = environment.mounts.pop().unwrap();
    wait_for("its unmounting", || unmount(&stick, UnmountFlags::empty()).map_err(|e| e.to_string()));
}

/// Names of mounts that are not served are listed, and the names beside them work, with readdir and with readdirplus.
#[test]
fn what_is_not_served_is_listed() {
    let Some(_alone) = alone("what_is_not_served_is_listed", lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    fs::write(environment.backing("file"), "").unwrap();
    for name in ["one", "two"] {
        environment.fill(name, Some(MountFlags::NOSUID));
    }
    let _mount = environment.serve();
    for _ in 0..3 {
        let mut kinds: Vec<_> = fs::read_dir(environment.place(""))
            .unwrap()
            .map(|e| e.map(|e| (e.file_name(), e.file_type().unwrap().is_dir())).unwrap())
            .collect();
        kinds.sort();
        assert_eq!(kinds, [("file".into(), false), ("one".into(), true), ("two".into(), true)]);
        let listed =
            Command::new("ls").arg("-l").arg(environment.place("")).env("LC_ALL", "C").output().unwrap();
        let errors = String::from_utf8_lossy(&listed.stderr);
        assert_eq!(errors.matches("Invalid cross-device link").count(), 2, "{errors}");
    }
}

/// Flags may change and mounts may be added while the directory is served.
#[test]
fn a_mount_that_becomes_stricter_is_no_longer_served() {
    let Some(_alone) = alone("a_mount_that_becomes_stricter_is_no_longer_served", lacking(&NEEDS)) else {
        return;
    };
    let mut environment = Environment::new();
    environment.fill("inner", Some(MountFlags::empty()));
    let _mount = environment.serve();
    assert_eq!(allowed(&environment.place("inner")), [true; 4]);
    remount(&environment.backing("inner"), MountFlags::NOSUID);
    // The kernel caches names for a second.
    wait_for("the stricter mount to be left out", || allowed(&environment.place("inner")) == [false; 4]);
    remount(&environment.backing("inner"), MountFlags::empty());
    wait_for("the mount to be served again", || allowed(&environment.place("inner")) == [true; 4]);
    // The same inode under the same name, on a stricter mount.
    fs::create_dir(environment.backing("bound")).unwrap();
    fs::copy(environment.backing("inner/id"), environment.backing("bound/id")).unwrap();
    fs::set_permissions(environment.backing("bound/id"), Permissions::from_mode(0o4755)).unwrap();
    assert!(allowed(&environment.place("bound"))[0]);
    mount_bind(environment.backing("bound"), environment.backing("bound")).unwrap();
    environment.mounts.push(environment.backing("bound"));
    remount(&environment.backing("bound"), MountFlags::NOSUID);
    wait_for("the stricter bind mount to be left out", || !allowed(&environment.place("bound"))[2]);
}

/// The content of the kernel's own file systems depends on the process that opens a file, which would be the cache's worker.
#[test]
fn the_kernels_own_file_systems_are_not_served() {
    let Some(_alone) = alone("the_kernels_own_file_systems_are_not_served", lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    fs::create_dir(environment.backing("proc")).unwrap();
    mount("proc", environment.backing("proc"), "proc", MountFlags::empty(), None).unwrap();
    environment.mounts.push(environment.backing("proc"));
    let _mount = environment.serve();
    // Other users may not see which program a process of root runs.
    let program =
        Command::new("readlink").arg(environment.place("proc/1/exe")).uid(SOMEBODY).gid(SOMEBODY).output();
    assert_eq!(String::from_utf8_lossy(&program.unwrap().stdout), "");
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = Served::start(Path::new("/proc/sys"), elsewhere.path(), &[]).err().unwrap();
    assert!(refused.what.contains("a file system of the kernel itself"), "{refused}");
    if mount("none", environment.backing("proc"), "devtmpfs", MountFlags::empty(), None).is_ok() {
        environment.mounts.push(environment.backing("proc"));
        let refused = Served::start(&environment.backing("proc"), elsewhere.path(), &[]).err().unwrap();
        assert!(refused.what.contains("devtmpfs"), "{refused}");
    }
}

/// The mount gets the flags of the directory's own mount.
#[test]
fn the_flags_of_the_directory_itself_are_the_mounts() {
    let Some(_alone) = alone("the_flags_of_the_directory_itself_are_the_mounts", lacking(&NEEDS)) else {
        return;
    };
    let mut environment = Environment::new();
    for (nth, flag) in [MountFlags::NOSUID, MountFlags::NODEV, MountFlags::NOEXEC, MountFlags::NOSYMFOLLOW]
        .into_iter()
        .enumerate()
    {
        let name = format!("own{nth}");
        environment.fill(&name, Some(flag));
        let backing = environment.backing(&name);
        let expected = allowed(&backing);
        let _mount = Served::start(&backing, &backing, &[]).unwrap();
        assert_eq!(allowed(&backing), expected);
        assert!(!expected[nth]);
    }
}

/// Flags that the directory's own mount gets later are copied, too.
#[test]
fn the_flags_of_the_directory_itself_are_followed() {
    let Some(_alone) = alone("the_flags_of_the_directory_itself_are_followed", lacking(&NEEDS)) else {
        return;
    };
    let mut environment = Environment::new();
    environment.fill("own", Some(MountFlags::empty()));
    let _mount = Served::start(&environment.backing("own"), &environment.place(""), &[]).unwrap();
    assert_eq!(allowed(&environment.place("")), [true; 4]);
    remount(&environment.backing("own"), MountFlags::NOSUID | MountFlags::NODEV);
    wait_for("the flags to be followed", || allowed(&environment.place("")) == [false, false, true, true]);
    // From now on mounts inside that are as strict are served.
    fs::create_dir(environment.backing("own/inner")).unwrap();
    mount("none", environment.backing("own/inner"), "tmpfs", MountFlags::NOSUID, None).unwrap();
    environment.mounts.push(environment.backing("own/inner"));
    fs::metadata(environment.place("inner")).unwrap();
}

/// The end of a program's way to the top that works at `inside` in a chroot of `root`, and begins after `meanwhile`.
fn climbs_to(root: &Path, inside: &str, meanwhile: impl FnOnce()) -> io::Result<String> {
    let ((has_entered, enters), (go, goes)) = (channel(), channel());
    std::thread::scope(move |scope| {
        let climb = move || -> io::Result<String> {
            own_root()?;
            chroot(root)?;
            chdir(Path::new("/").join(inside))?;
            has_entered.send(()).unwrap();
            goes.recv().unwrap();
            (0..8).try_for_each(|_| chdir(".."))?;
            Ok(getcwd(Vec::new())?.into_string().unwrap())
        };
        let program = scope.spawn(climb);
        if enters.recv().is_ok() {
            meanwhile();
            go.send(()).unwrap();
        }
        program.join().unwrap()
    })
}

/// The calling thread gets a root and a working directory of its own.
#[expect(unsafe_code, reason = "unshare(2) of descriptors is unsafe in rustix")]
fn own_root() -> io::Result<()> {
    // SAFETY: descriptors stay shared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FS) }?)
}

fn crosses(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::CrossesDevices)
}

/// All names below, as far as they are served.
fn list(dir: &Path) {
    drop(Command::new("ls").arg("-lR").arg(dir).output().unwrap());
}

/// The kernel knows a directory at one place. Found at another one, it would be moved there, with all programs that work in it, and a
/// chroot would be no bound any more.
#[test]
fn a_directory_at_two_places_leads_nobody_to_the_other_one() {
    let test = "a_directory_at_two_places_leads_nobody_to_the_other_one";
    let Some(_alone) = alone(test, lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    let shared = environment.make("shared");
    for name in ["shared/sub", "backing/u1/pub", "backing/u2/pub", "backing/u3/own", "backing/own/sub"] {
        environment.make(name);
    }
    environment.bind(&shared, "u1/pub");
    let own = environment.backing("own");
    environment.bind(&own, "u3/own");
    let second = environment.backing("u2/pub");
    environment.mounts.push(second.clone());
    let mount = environment.serve();
    let place = |name: &str| environment.place(name);
    assert!(crosses(&place("u3/own")) && place("own/sub").is_dir());

    // The second view is made when somebody works in the first one.
    let climbed = climbs_to(&place("u1"), "pub/sub", || {
        mount_bind(&shared, &second).unwrap();
        wait_for("the second view to be left out", || crosses(&place("u2/pub")));
        list(&place(""));
    });
    assert_eq!(climbed.unwrap(), "/");
    let listed: Vec<_> = mount.stats().not_served.into_iter().map(|n| (n.place, n.why)).collect();
    let why = |first: &str| {
        format!("it shows a directory that is served at {}, too", environment.backing(first).display())
    };
    assert_eq!(listed, [(second.clone(), why("u1/pub")), (environment.backing("u3/own"), why("own"))]);

    // Without the first view the other one is the only one, but somebody still works in the first.
    let climbed = climbs_to(&place("u1"), "pub/sub", || {
        unmount(environment.backing("u1/pub"), UnmountFlags::DETACH).unwrap();
        wait_for("the first view's end", || !place("u1/pub/sub").exists());
        list(&place(""));
        assert!(crosses(&place("u2/pub")));
    });
    assert!(climbed.as_ref().is_ok_and(|at| at == "/") || climbed.is_err(), "{climbed:?}");
    wait_for("the other view to be served", || place("u2/pub/sub").is_dir());
}

/// The kernel keeps names that nobody uses: that is no place.
#[test]
fn what_is_mounted_at_another_place_is_served_there() {
    let test = "what_is_mounted_at_another_place_is_served_there";
    let Some(_alone) = alone(test, lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    let (shared, stick) = (environment.make("shared"), environment.make("stick"));
    mount("none", &stick, "tmpfs", MountFlags::empty(), None).unwrap();
    environment.mounts.push(stick.clone());
    for name in ["shared/in", "stick/in", "backing/a", "backing/b"] {
        environment.make(name);
    }
    let served = environment.serve();
    for disk in [&shared, &stick] {
        for name in ["a", "b"] {
            environment.bind(disk, name);
            let path = environment.place(name).join("in");
            wait_for("the directory at its new place", || path.is_dir());
            list(&environment.place(name));
            assert!(served.stats().not_served.is_empty());
            unmount(environment.backing(name), UnmountFlags::DETACH).unwrap();
        }
    }
}

/// What is known of other names stays known.
#[test]
fn a_mount_that_comes_and_goes_is_seen_and_nothing_else_is_forgotten() {
    let test = "a_mount_that_comes_and_goes_is_seen_and_nothing_else_is_forgotten";
    let Some(_alone) = alone(test, lacking(&NEEDS)) else { return };
    let mut environment = Environment::new();
    let point = environment.make("backing/in/point");
    let served = environment.serve();
    assert!(served.stats().watch.names, "names are not held");
    for _ in 0..2 {
        assert!(environment.place("in/point").is_dir() && !environment.place("in/point/file").exists());
        mount("none", &point, "tmpfs", MountFlags::empty(), None).unwrap();
        environment.mounts.push(point.clone());
        fs::write(point.join("file"), "").unwrap();
        wait_for("the mount", || environment.place("in/point/file").exists());
        assert!(served.stats().watch.names);
        unmount(&point, UnmountFlags::DETACH).unwrap();
        wait_for("its end", || !environment.place("in/point/file").exists());
        assert!(served.stats().watch.names);
    }
}
