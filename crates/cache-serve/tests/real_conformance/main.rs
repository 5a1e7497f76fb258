//! Test programs for file systems, on the mount and on the backing file system: a test that passes there passes on the mount.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

#[path = "../common/mod.rs"]
mod common;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_testkit::real::{lacking, skip};

use common::NEEDS;
use common::mount::Mount;
use tools::End;

/// Tests of pjdfstest that cannot pass on a mount, with the reason. Remove an entry that passes.
const KNOWN: [(&str, &str); 1] = [(
    "link::link_count_max",
    "pathconf(_PC_LINK_MAX) depends on the file system's name, and has no limit for FUSE",
)];

/// The optional features of Linux's usual file systems; `pjdfstest -l` lists all.
const FEATURES: [&str; 5] =
    ["posix_fallocate", "rename_ctime", "stat_st_birthtime", "utime_now", "utimensat"];

fn pjdfstest_settings(nap_seconds: f64) -> String {
    let features: String = FEATURES.iter().map(|f| format!("{f} = {{}}\n")).collect();
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let groups = fs::read_to_string("/etc/group").unwrap();
    let entry = |user: &str| {
        let group = tools::field(&users, user, 3).and_then(|gid| tools::with_field(&groups, 2, &gid));
        format!("[\"{user}\", \"{}\"]", group.unwrap())
    };
    format!(
        "[features]\n{features}[settings]\nnaptime = {nap_seconds:?}\nallow_remount = false\n[dummy_auth]\nentries = [{}, {}]\n",
        entry("nobody"),
        entry("daemon")
    )
}

/// pjdfstest with its settings and a directory on another file system.
struct Pjdfstest {
    program: PathBuf,
    settings: PathBuf,
    other: tempfile::TempDir,
}

impl Pjdfstest {
    fn new(program: PathBuf, settings: PathBuf) -> Self {
        let other = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(other.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, settings, other }
    }

    /// Runs all tests, or those whose names begin with one of `tests`, with `nap_seconds` between steps whose times are compared.
    fn run(&self, dir: &Path, nap_seconds: f64, tests: &[String]) -> BTreeMap<String, End> {
        fs::write(&self.settings, pjdfstest_settings(nap_seconds)).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.settings).arg("-p").arg(dir).arg("-s").arg(self.other.path());
        let output = command.args(tests).output().unwrap();
        let ends = tools::ends(&String::from_utf8_lossy(&output.stdout));
        let least = if tests.is_empty() { 300 } else { tests.len() };
        assert!(ends.len() >= least, "{} of its tests on {}: {output:?}", ends.len(), dir.display());
        ends
    }
}

fn count(ends: &BTreeMap<String, End>) -> String {
    let of = |what: fn(&End) -> bool| ends.values().filter(|end| what(end)).count();
    let passed = of(|e| matches!(e, End::Passed));
    let skipped = of(|e| matches!(e, End::Skipped(_)));
    let failed = of(|e| matches!(e, End::Failed(_)));
    format!("{passed} passed, {failed} failed, {skipped} not for this file system")
}

#[test]
fn pjdfstest_passes_as_on_the_backing_file_system() {
    let program = match lacking(&NEEDS).map_or_else(|| tools::find("pjdfstest"), Err) {
        Ok(program) => program,
        Err(why) => return skip("pjdfstest_passes_as_on_the_backing_file_system", &why),
    };
    let mount = Mount::new();
    let pjdfstest = Pjdfstest::new(program, mount.beside("settings").join("pjdfstest.toml"));
    let backing = pjdfstest.run(&mount.beside("plain"), 0.01, &[]);
    let mut mounted = pjdfstest.run(mount.place(), 0.01, &[]);
    eprintln!("pjdfstest on the backing file system: {}", count(&backing));
    eprintln!("pjdfstest on the mount: {}", count(&mounted));
    // The kernel's file times advance with its clock tick, late on a virtual machine whose host is busy: with a longer nap, a defect fails again.
    let again = unexpected(&backing, &mounted);
    if !again.is_empty() {
        eprintln!("once more with a longer nap: {again:?}");
        mounted.extend(pjdfstest.run(mount.place(), 1.0, &again.into_keys().collect::<Vec<_>>()));
    }
    let failed = unexpected(&backing, &mounted);
    assert!(failed.is_empty(), "they pass on the backing file system and not on the mount: {failed:?}");
    for (name, why) in KNOWN {
        assert_ne!(mounted[name], End::Passed, "{name} passes: {why}");
    }
    assert_eq!(fs::read_dir(mount.backing()).unwrap().count(), 0, "it leaves nothing behind");
}

/// The tests that pass on the backing file system and not on the mount, without the known ones.
fn unexpected(
    backing: &BTreeMap<String, End>,
    mounted: &BTreeMap<String, End>,
) -> BTreeMap<String, Option<End>> {
    let known = |name: &str| KNOWN.iter().any(|(k, _)| *k == name);
    let passed = backing.iter().filter(|(name, end)| **end == End::Passed && !known(name));
    let ends = passed.map(|(name, _)| (name.clone(), mounted.get(name).cloned()));
    ends.filter(|(_, end)| *end != Some(End::Passed)).collect()
}

/// Settings of fsx 0.3.
struct Exercise {
    name: &'static str,
    file_bytes: u32,
    most_bytes: u32,
    align: u32,
    /// fsync(2) and its like are slow on a disk.
    syncs: bool,
    operations: u32,
    seeds: &'static [u32],
}

const EXERCISES: [Exercise; 4] = [
    Exercise {
        name: "small",
        file_bytes: 262_144,
        most_bytes: 65_536,
        align: 1,
        syncs: false,
        operations: 10_000,
        seeds: &[1, 2, 3],
    },
    Exercise {
        name: "large",
        file_bytes: 4 << 20,
        most_bytes: 300_000,
        align: 1,
        syncs: false,
        operations: 3_000,
        seeds: &[4, 5],
    },
    Exercise {
        name: "pages",
        file_bytes: 1 << 20,
        most_bytes: 131_072,
        align: 4096,
        syncs: false,
        operations: 5_000,
        seeds: &[6],
    },
    Exercise {
        name: "synced",
        file_bytes: 262_144,
        most_bytes: 65_536,
        align: 1,
        syncs: true,
        operations: 1_500,
        seeds: &[7],
    },
];

impl Exercise {
    fn settings(&self) -> String {
        let sync = u8::from(self.syncs);
        // fsx would reserve 0 bytes if it must align them.
        let reserve = if self.align == 1 { 2 } else { 0 };
        format!(
            "flen = {}\nnomsyncafterwrite = {}\n[opsize]\nmax = {}\nalign = {}\n[weights]\n\
             close_open = 1\ninvalidate = {sync}\nmapread = 10\nmapwrite = 10\nread = 10\nwrite = 10\ntruncate = 5\n\
             fsync = {sync}\nfdatasync = {sync}\nposix_fallocate = {reserve}\npunch_hole = 3\nsendfile = 3\nposix_fadvise = 2\n\
             copy_file_range = 3\n",
            self.file_bytes, !self.syncs, self.most_bytes, self.align
        )
    }

    fn run(&self, program: &Path, scratch: &Path, dir: &Path, seed: u32) {
        let settings = scratch.join(self.name);
        fs::write(&settings, self.settings()).unwrap();
        let mut command = Command::new(program);
        command.arg("-f").arg(&settings).args(["-N", &self.operations.to_string(), "-S", &seed.to_string()]);
        let output = command.arg("-P").arg(scratch).arg(dir.join("fsx")).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(
            output.status.success(),
            "fsx {} with seed {seed} in {}: {printed}",
            self.name,
            dir.display()
        );
    }
}

/// The same operations of fsx on the mount and on a plain directory; the files must be the same at the end.
#[test]
fn fsx_passes_as_on_the_backing_file_system() {
    let program = match lacking(&NEEDS).map_or_else(|| tools::find("fsx"), Err) {
        Ok(program) => program,
        Err(why) => return skip("fsx_passes_as_on_the_backing_file_system", &why),
    };
    let mount = Mount::new();
    let (plain, scratch): (PathBuf, PathBuf) = (mount.beside("plain"), mount.beside("scratch"));
    let mut operations = 0;
    for exercise in &EXERCISES {
        for seed in exercise.seeds {
            exercise.run(&program, &scratch, &plain, *seed);
            exercise.run(&program, &scratch, mount.place(), *seed);
            let [mounted, backing, plain] =
                [mount.place(), mount.backing(), &plain].map(|d| fs::read(d.join("fsx")).unwrap());
            assert!(mounted == backing && backing == plain, "{} with seed {seed}", exercise.name);
            operations += exercise.operations;
        }
    }
    eprintln!("fsx on the mount: {operations} operations as on a plain directory");
}

#[test]
fn the_output_of_pjdfstest_is_parsed() {
    let output = "chmod::eloop                              ok\nopen::x   FAILED\n\tassertion `left == right` failed\n  left: 1\n\
                  mkfifo::y    skipped\n\tno such thing\nrename::z    ok\n\nSummary: 1 failed, 1 skipped, 2 passed\n";
    let ends = tools::ends(output);
    let (failed, skipped) = ("assertion `left == right` failed left: 1".into(), "no such thing".into());
    let expected = [
        ("chmod::eloop", End::Passed),
        ("mkfifo::y", End::Skipped(skipped)),
        ("open::x", End::Failed(failed)),
        ("rename::z", End::Passed),
    ];
    assert_eq!(ends, expected.map(|(name, end)| (name.to_owned(), end)).into());
}
