//! `eke prefetch export` and `import`: the built program, two stores for two machines, and files of this one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Ran, eke, is_root};
use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Program, Span, Stamp, Touched, UsedBy};
use eke_prefetch_store::{Access, ProgramStore};
use eke_testkit::real::skip;
use eke_testkit::tree::put;
use tempfile::TempDir;

const KEYGEN: &str = "/usr/bin/ssh-keygen";

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// The file at `path` as eke learns it: by its real path.
fn touched(path: &str) -> Touched {
    let path = std::fs::canonicalize(path).unwrap();
    let of = path.metadata().unwrap();
    let (kind, size, mtime_ns) = if of.is_dir() {
        (Kind::Directory, 0, 0)
    } else {
        (Kind::File, of.size(), of.mtime() * 1_000_000_000 + of.mtime_nsec())
    };
    let pages = (kind == Kind::File).then(|| Span::new(0, 2).unwrap());
    Touched {
        path,
        kind,
        stamp: Stamp { dev: of.dev(), ino: of.ino(), size, mtime_ns },
        pages: pages.into_iter().collect(),
        stale: eke_prefetch_model::Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    }
}

fn learn(store: &Path, program: Program, files: Vec<Touched>) {
    let set = FileSet { files };
    let launch = Launch {
        program,
        uid: 1000,
        began_ns: 0,
        took: Duration::from_millis(1234),
        ended: LaunchEnd::Quiet,
        cold_bytes: set.bytes(),
        set: set.clone(),
    };
    let mut keep = ProgramStore::open(store, "boot", now_s()).unwrap().store;
    keep.add_launch(&launch, &set, now_s()).unwrap();
}

struct Lab {
    dir: TempDir,
}

impl Lab {
    /// The first machine knows `sh`, a user's script, an argument in place of one, and a program of another version than this machine's.
    fn new() -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        let private = touched("/etc/passwd");
        let device = Touched { path: "/dev/sda1".into(), kind: Kind::Device, ..private.clone() };
        let sh = touched("/bin/sh");
        let program = Program::of_exe(&sh.path);
        learn(&lab.store("first"), program, vec![device, touched("/usr/lib"), sh.clone(), private]);
        let script =
            Program { script: Some("/home/ann/diary.py".into()), ..Program::of_exe("/usr/bin/python3") };
        learn(&lab.store("first"), script, vec![sh.clone()]);
        // An earlier eke took an argument for a script; whoever ran it was in /usr.
        let text = Program { script: Some("/usr/mail bob".into()), ..Program::of_exe(&sh.path) };
        learn(&lab.store("first"), text, vec![sh.clone()]);
        let mut old = touched("/usr/bin/env");
        old.stamp.mtime_ns -= 1;
        learn(&lab.store("first"), Program::of_exe(&old.path), vec![old]);
        lab
    }

    fn store(&self, machine: &str) -> PathBuf {
        self.dir.path().join(machine)
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, machine: &str, words: &[&str]) -> Ran {
        let store = self.path(machine);
        eke(&[&["prefetch", "--store", &store], words].concat())
    }

    fn known(&self, machine: &str) -> Vec<String> {
        let Ok(keep) = ProgramStore::existing(&self.store(machine), Access::Read) else { return Vec::new() };
        keep.records(now_s()).unwrap().iter().map(|record| record.program.to_string()).collect()
    }

    fn key(&self, name: &str) -> String {
        let key = self.path(name);
        let made =
            Command::new(KEYGEN).args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key]).status();
        assert!(made.unwrap().success());
        key
    }

    /// A list of allowed signers with this key.
    fn signers(&self, key: &str) -> String {
        let public = std::fs::read_to_string(format!("{key}.pub")).unwrap();
        let list = self.path("signers");
        put(self.dir.path(), "signers", &format!("admin@lab {public}"));
        list
    }
}

#[test]
fn what_one_machine_learned_is_known_on_the_next_and_nothing_of_its_users_is() {
    if !is_root() {
        return skip(
            "what_one_machine_learned_is_known_on_the_next_and_nothing_of_its_users_is",
            "needs root",
        );
    }
    if !Path::new(KEYGEN).exists() {
        return skip(
            "what_one_machine_learned_is_known_on_the_next_and_nothing_of_its_users_is",
            "needs ssh-keygen",
        );
    }
    let lab = Lab::new();
    let (key, file) = (lab.key("key"), lab.path("lab.launches"));
    let exported = lab.run("first", &["export", "--output", &file, "--sign", &key]);
    assert!(exported.status == Some(0), "{exported:?}");
    assert!(exported.stdout.contains("of 2 programs; 2 others are no package's"), "{exported:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    for private in ["ann", "passwd", "sda1", "uid", "mail bob"] {
        assert!(!text.contains(private), "{private}: {text}");
    }
    let signers = lab.signers(&key);
    let imported = lab.run("second", &["import", &file, "--signers", &signers]);
    assert_eq!(imported.status, Some(0), "{imported:?}");
    assert_eq!(
        imported.stdout,
        "1 programs are known now (signed by admin@lab); 0 were known already, 1 are missing here or of another version\n"
    );
    let sh = touched("/bin/sh");
    assert_eq!(lab.known("second"), [sh.path.to_str().unwrap()]);
    let keep = ProgramStore::existing(&lab.store("second"), Access::Read).unwrap();
    let known = keep.program(Program::of_exe(&sh.path).id(), now_s()).unwrap().unwrap();
    let of_sh = known.set.files.iter().find(|file| file.path == sh.path).unwrap();
    assert_eq!((of_sh.stamp.ino, of_sh.pages.clone()), (sh.stamp.ino, sh.pages));
    assert_eq!(known.record.coldest.0, Duration::from_millis(1234));
    let again = lab.run("second", &["import", &file, "--signers", &signers]);
    assert!(
        again.stdout.starts_with("0 programs are known now (signed by admin@lab); 1 were known already"),
        "{again:?}"
    );
}

#[test]
fn what_nobody_trusted_signed_changes_nothing() {
    if !is_root() {
        return skip("what_nobody_trusted_signed_changes_nothing", "needs root");
    }
    if !Path::new(KEYGEN).exists() {
        return skip("what_nobody_trusted_signed_changes_nothing", "needs ssh-keygen");
    }
    let lab = Lab::new();
    let (key, stranger, file) = (lab.key("key"), lab.key("stranger"), lab.path("lab.launches"));
    assert_eq!(lab.run("first", &["export", "--output", &file, "--sign", &key]).status, Some(0));
    let signers = lab.signers(&stranger);
    let refused = lab.run("second", &["import", &file, "--signers", &signers]);
    assert!(refused.status == Some(1) && refused.stderr.contains("signed it; ssh-keygen:"), "{refused:?}");
    // The right signer, another text
    let signers = lab.signers(&key);
    let text = std::fs::read_to_string(&file).unwrap();
    put(lab.dir.path(), "lab.launches", &text.replacen("1234", "1235", 1));
    let refused = lab.run("second", &["import", &file, "--signers", &signers]);
    assert!(refused.status == Some(1) && refused.stderr.contains("signed it; ssh-keygen:"), "{refused:?}");
    let plain = lab.path("plain");
    assert_eq!(lab.run("first", &["export", "--output", &plain]).status, Some(0));
    let refused = lab.run("second", &["import", &plain, "--signers", &signers]);
    assert!(refused.status == Some(1) && refused.stderr.contains("is not signed"), "{refused:?}");
    // The file's first half, and the whole document with half a signature
    let (half, body) = (text.len() / 4, text.find("-----BEGIN").unwrap());
    for end in [half, body + 100] {
        put(lab.dir.path(), "cut", &text[..end]);
        let refused = lab.run("second", &["import", &lab.path("cut"), "--signers", &signers]);
        assert!(refused.status == Some(1) && refused.stderr.contains("is cut short"), "{refused:?}");
        assert!(!refused.stderr.contains("--unsigned"), "{refused:?}");
    }
    put(lab.dir.path(), "cut", &text[..half]);
    let refused = lab.run("second", &["import", &lab.path("cut"), "--unsigned"]);
    assert!(refused.status == Some(1) && refused.stderr.contains("is cut short"), "{refused:?}");
    let hostile = lab.path("hostile");
    put(
        lab.dir.path(),
        "hostile",
        "{\"form\":\"eke launches 1\",\"programs\":[{\"exe\":\"/home/ann/x\",\"took_ms\":1,\"files\":[]}]}",
    );
    let refused = lab.run("second", &["import", &hostile, "--unsigned"]);
    assert!(refused.status == Some(1) && refused.stderr.contains("no program of a package"), "{refused:?}");
    assert_eq!(lab.known("second"), [""; 0]);
    let taken = lab.run("second", &["import", &plain, "--unsigned"]);
    assert!(taken.stdout.starts_with("1 programs are known now (not signed)"), "{taken:?}");
    let taken = lab.run("third", &["import", &file, "--unsigned"]);
    assert!(
        taken.stdout.starts_with("1 programs are known now (its signature was not checked)"),
        "{taken:?}"
    );
    let twice = lab.run("first", &["export", "--output", &plain]);
    assert!(twice.status == Some(1) && twice.stderr.contains("no file is replaced"), "{twice:?}");
}

#[test]
fn a_fifo_without_a_writer_is_refused() {
    if !is_root() {
        return skip("a_fifo_without_a_writer_is_refused", "needs root");
    }
    let lab = Lab { dir: tempfile::tempdir().unwrap() };
    let fifo = lab.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let refused = lab.run("second", &["import", &fifo, "--unsigned"]);
    assert!(refused.status == Some(1) && refused.stderr.contains("it is not a regular file"), "{refused:?}");
}
