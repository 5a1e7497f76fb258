//! A directory where programs write is not covered.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eke_cache_mounts::mounts;
use eke_cache_mounts::status::{RefusalKind, Response};
use eke_testkit::real::{lacking, lock_machine, no_program};

use crate::aside::Exported;
use crate::common::NEEDS;
use crate::served::{Served, alone};

/// In each round a program opens a file so much later: from before the scan to after the mount.
const STEP: Duration = Duration::from_millis(1);
const ROUNDS: u32 = 60;

/// A directory for data, inside a temporary one.
fn environment() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    (dir, data)
}

/// A shell that has files open. Drop ends it.
pub struct Holder(pub Child);

impl Holder {
    pub fn new(script: &str, dir: &Path) -> Self {
        let script = format!("{script}; echo there; read end");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).env("DIR", dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self(shell)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn refused(data: &Path) -> Option<String> {
    let refusal = Served::start(data, data, &[]).err()?;
    assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal}");
    assert_eq!(mounts::at(&mounts::read().unwrap(), data), None);
    Some(refusal.what)
}

#[test]
fn a_directory_with_an_open_database_is_not_covered() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["sqlite3"]));
    let Some(_alone) = alone("a_directory_with_an_open_database_is_not_covered", missing) else { return };
    let (_dir, data) = environment();
    let mut sqlite = Command::new("sqlite3");
    let sqlite = sqlite.arg(data.join("base")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut sqlite = sqlite.spawn().unwrap();
    let mut input = sqlite.stdin.take().unwrap();
    writeln!(input, "create table t (n); insert into t values (7); select n from t;").unwrap();
    let mut answer = String::new();
    BufReader::new(sqlite.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert_eq!(answer, "7\n");
    let why = refused(&data).expect("it was covered");
    let file = format!("sqlite3 ({}) has {:?} open for writing", sqlite.id(), data.join("base"));
    assert!(why.contains(&file), "{why}");
    // At a second place nothing is covered.
    let (_other, place) = environment();
    assert_eq!(Served::start(&data, &place, &[]).unwrap().umount(), Response::Done);
    let forced = Served::start(&data, &data, &["--force"]).unwrap();
    assert!(forced.warns_of(&file), "{:?}", forced.server.ready.notes);
    assert_eq!(forced.umount(), Response::Done);
    drop(input);
    sqlite.wait().unwrap();
    assert_eq!(refused(&data), None);
}

#[test]
fn a_lock_a_pipe_and_another_mount_of_the_directory_count_and_reading_does_not() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["flock", "unshare", "mkfifo"]));
    let Some(_alone) =
        alone("a_lock_a_pipe_and_another_mount_of_the_directory_count_and_reading_does_not", missing)
    else {
        return;
    };
    let (dir, data) = environment();
    fs::write(data.join("file"), "text").unwrap();
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let bound = "exec unshare -m --propagation private sh -c 'mount --bind \"$DIR\" \"$DIR/../elsewhere\" && \
        exec 3>>\"$DIR/../elsewhere/file\" && echo there && read end'";
    for (script, expected) in [
        ("exec 3<\"$DIR/file\"; cd \"$DIR/..\"", None),
        ("exec 3>\"$DIR/../beside\"", None),
        ("exec 3>\"$DIR/gone\"; rm \"$DIR/gone\"", None),
        ("exec 3<\"$DIR/file\"; flock -s 3", Some("locked")),
        ("exec 3>>\"$DIR/file\"", Some("open for writing")),
        ("mkfifo \"$DIR/pipe\"; exec 3<>\"$DIR/pipe\" 4<\"$DIR/pipe\" 3>&-", Some("pipe\" open")),
        (bound, Some("open for writing")),
    ] {
        let holder = Holder::new(script, &data);
        let why = refused(&data);
        assert_eq!(why.is_some(), expected.is_some(), "{script}: {why:?}");
        let named =
            |why: String| why.contains(&format!("({})", holder.0.id())) && why.contains(expected.unwrap());
        assert!(why.is_none_or(named), "{script}");
    }
}

/// A mapping outlives its descriptor.
#[test]
fn a_file_that_is_mapped_for_writing_counts() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["python3"]));
    let Some(_alone) = alone("a_file_that_is_mapped_for_writing_counts", missing) else { return };
    let (_dir, data) = environment();
    fs::write(data.join("file"), "text").unwrap();
    let script = "exec python3 -c 'import ctypes,os,sys\nf=os.open(os.environ[\"DIR\"]+\"/file\",os.O_RDWR)\n\
        l=ctypes.CDLL(None)\nl.mmap.restype=ctypes.c_void_p\nl.mmap.argtypes=[ctypes.c_void_p]+[ctypes.c_long]*5\n\
        m=l.mmap(None,4,3,1,f,0)\nos.close(f)\nprint(\"there\",flush=True)\nsys.stdin.read()'";
    let _holder = Holder::new(script, &data);
    assert!(refused(&data).is_some_and(|why| why.contains("mapped for writing")), "it was covered");
}

#[test]
fn a_shell_in_the_directory_is_reported() {
    let missing = lacking(&NEEDS).or_else(|| no_program(&["unshare"]));
    let Some(_alone) = alone("a_shell_in_the_directory_is_reported", missing) else { return };
    let (dir, data) = environment();
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let bound = |what: &str| {
        format!(
            "exec unshare -m --propagation private sh -c 'mount --bind \"$DIR\" \"$DIR/../elsewhere\" && \
            {what} && echo there && read end'"
        )
    };
    for (script, how) in [
        ("cd \"$DIR\"", "works there"),
        (&bound("cd \"$DIR/../elsewhere\""), "works there"),
        (&bound("exec 3<\"$DIR/../elsewhere\""), "elsewhere\" open"),
    ] {
        let holder = Holder::new(script, &data);
        let mount = Served::start(&data, &data, &[]).unwrap();
        let is_named =
            |note: &String| note.contains(&format!("sh ({}) ", holder.0.id())) && note.contains(how);
        assert!(mount.server.ready.notes.iter().any(is_named), "{script}: {:?}", mount.server.ready.notes);
        drop(holder);
        assert_eq!(mount.umount(), Response::Done);
    }
}

#[test]
fn what_an_nfs_server_exports_is_covered_by_force_alone() {
    const NAME: &str = "what_an_nfs_server_exports_is_covered_by_force_alone";
    let Some(_alone) = alone(NAME, lacking(&NEEDS)) else { return };
    let _machine = lock_machine();
    let ((_dir, data), (_other, place)) = (environment(), environment());
    let exported = Exported::new(&place);
    let named = format!("the kernel's NFS server exports {place:?}");
    for dir in [&place, &data] {
        let refusal = Served::start(dir, &place, &[]).err().unwrap();
        assert!(refusal.kind == RefusalKind::Busy && refusal.what.contains(&named), "{refusal}");
        let forced = Served::start(dir, &place, &["--force"]).unwrap();
        assert!(forced.warns_of(&named), "{:?}", forced.server.ready.notes);
        assert_eq!(forced.umount(), Response::Done);
    }
    // Its clients go on in the directory, past the mount.
    assert_eq!(Served::start(&place, &data, &[]).unwrap().umount(), Response::Done);
    drop(exported);
    assert_eq!(refused(&place), None);
}

/// A program opens a file between the scan and the mount: then there is no mount, or the file is the mount's.
#[test]
fn a_file_that_is_opened_during_the_mount_is_noticed() {
    let Some(_alone) = alone("a_file_that_is_opened_during_the_mount_is_noticed", lacking(&NEEDS)) else {
        return;
    };
    let (_dir, data) = environment();
    fs::write(data.join("file"), "text").unwrap();
    let backing = fs::metadata(&data).unwrap().dev();
    for round in 0..ROUNDS {
        let (mount, file) = std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                std::thread::sleep(STEP * round);
                File::options().append(true).open(data.join("file"))
            });
            (Served::start(&data, &data, &[]), opener.join().unwrap())
        });
        let dev = file.as_ref().ok().map(|file| file.metadata().unwrap().dev());
        assert!(
            mount.is_err() || dev != Some(backing),
            "round {round}: the backing file is open, and covered"
        );
        drop(file);
        drop(mount);
    }
}
