//! The built `eke-prefetch` on the running kernel: it stores what it traces and reads what it stores, and any end leaves a usable store.
#![expect(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a failing test panics")]

#[allow(dead_code, reason = "the tests of fetching use all of it")]
#[path = "real_fetch/slow_ext4.rs"]
mod slow_ext4;

mod daemon;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daemon::{PATIENCE, PROGRAM, Running, copy_program, is_of};
use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_prefetch_disk::{backing, identity};
use eke_prefetch_model::choose::{ChoiceOutcome, Occasion};
use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Pages, Program, Span, Stamp, Touched, UsedBy};
use eke_prefetch_store::{Access, Decision, ProgramStore};
use eke_prefetchd::file::resident::missing_bytes;
use eke_slow_disk::Profile;
use eke_testkit::program::output;
use eke_testkit::real::{MachineLock, lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;
use serde_json::Value;
use slow_ext4::SlowExt4;

const DATA: u64 = 3 << 20;
/// A user id that nothing else on this machine uses.
const SOMEBODY: u32 = 54_321;
/// Reads after the tracer has attached, and stays for a moment: polls of `/proc` see only longer processes.
const READS: &str = "sleep 0.5; : \"$(<data)\"; sleep 3";

/// Each daemon sees all programs of the machine, and would read for another test's.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test program with its data, on a disk slow enough for prefetch. Fields drop in this order.
struct Fixture {
    disk: SlowExt4,
    kept: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Fixture {
    /// `None`, with the reason printed, if this machine cannot run it.
    fn new(test: &str) -> Option<Self> {
        if let Some(why) = no_program(&["bash"]) {
            skip(test, &why);
            return None;
        }
        let alone = alone();
        let slow = Profile { rate: 10_000_000, iops: Some(200), ..Profile::plain() };
        let (disk, kept) = (SlowExt4::create(test, slow)?, tempfile::tempdir().unwrap());
        let fixture = Self { disk, kept, _alone: alone };
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fixture.disk.top().parent().unwrap(), readable).unwrap();
        copy_program(Path::new("/bin/bash"), &fixture.program());
        std::fs::write(fixture.data(), vec![7_u8; DATA as usize]).unwrap();
        Some(fixture)
    }

    fn program(&self) -> PathBuf {
        self.disk.top().join("shell with a name")
    }

    fn data(&self) -> PathBuf {
        self.disk.top().join("data")
    }

    fn store(&self) -> PathBuf {
        self.kept.path().join("store")
    }

    /// Runs the program with a script, as a user of its own: learned launches are limited per user, and other programs use up root's.
    fn launch(&self, script: &str) {
        let top = self.disk.top();
        let mut command = Command::new(self.program());
        command.args(["-c", script]).current_dir(&top).stdin(Stdio::null()).uid(SOMEBODY).gid(SOMEBODY);
        assert!(command.status().unwrap().success());
    }

    /// Launches the cold program until so many bytes are learned. On a busy machine it may read nothing for so long that its launch ends: then it is
    /// launched again, and eke unites both.
    fn learn(&self, running: &Running, least: u64) -> Value {
        let is_over =
            |event: &Value| ["learned", "not_kept"].iter().any(|kind| is_of(event, kind, &self.program()));
        let launch = || {
            self.disk.cool();
            self.launch(READS);
            running.wait("the launch's end", is_over)
        };
        let learned = (0..5).map(|_| launch()).find(|ended| ended["cold_bytes"].as_u64() >= Some(least));
        learned.unwrap_or_else(|| panic!("five launches, and it read less in each"))
    }

    /// What is read at the exec of the cold program, in one of three starts: for one that follows another too soon, or on a busy machine, nothing is.
    fn at_exec(&self, running: &Running, script: &str) -> Value {
        let runs =
            |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.program());
        let start = || {
            self.disk.cool();
            std::thread::sleep(Duration::from_secs(1));
            self.launch(script);
            let read = running.reported(|event| is_of(event, "at_exec", &self.program()), PATIENCE / 4);
            wait_for("the child's end", || !eke_linux::read::pids(&Root::host()).into_iter().any(runs));
            read.ok()
        };
        (0..3).find_map(|_| start()).unwrap_or_else(|| {
            let explained = output(self.command("explain").arg("--json").arg(self.program()));
            panic!("nothing was read in three starts: {explained:?}")
        })
    }

    /// Stores a measurement of the disk, so that no process measures it.
    fn store_measured(&self, request_s: f64, byte_s: f64) {
        let (root, device) = (Root::host(), self.disk.device());
        let mounts = mountinfo::parse(&root.read_bytes("proc/self/mountinfo").unwrap());
        let mount = mounts.iter().find(|mount| mount.source == device).unwrap();
        let disk = identity(&root, &backing(&root, mount, &mounts)).unwrap();
        let disk = serde_json::to_string(&disk).unwrap();
        let measured = format!(
            r#"{{"request_s":{request_s},"near_request_s":{request_s},"depth_gain":4.0,"byte_s":{byte_s},"reads":60,"bytes":6000000,"took_s":0.1}}"#
        );
        let state = format!(r#"[{{"disk":{disk},"measured":{measured}}}]"#);
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let mut store = ProgramStore::open(&self.store(), boot.trim(), 1).unwrap().store;
        store.put_state("disks", 2, state.as_bytes()).unwrap();
    }

    fn command(&self, verb: &str) -> Command {
        daemon::command(&self.store(), verb)
    }

    /// `eke-prefetch ahead` of the program.
    fn ahead(&self) -> (Output, Option<Value>) {
        let output = output(self.command("ahead").arg(self.program()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut event = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let event = event.find(|event: &Value| event["event"] == "ahead");
        (output, event)
    }
}

fn cannot_run(test: &str) -> bool {
    let why = lacking(&[]).or_else(|| no_program(&["bash"]));
    why.iter().for_each(|why| skip(test, why));
    why.is_some()
}

fn missing_of(path: &Path) -> u64 {
    missing_bytes_of(path, DATA)
}

fn missing_bytes_of(path: &Path, bytes: u64) -> u64 {
    missing_bytes(Root::host().page_size(), std::fs::File::open(path).unwrap(), 0, bytes, bytes).unwrap()
}

#[test]
fn what_is_learned_is_read_again_also_after_a_kill() {
    let Some(fixture) = Fixture::new("what_is_learned_is_read_again_also_after_a_kill") else { return };
    let (running, ready) = Running::ready(&fixture.store(), &[]);
    let sees_reads = ready["source"].as_str().unwrap().starts_with("BPF");
    let least = if sees_reads { DATA } else { 64 << 10 };
    let learned = fixture.learn(&running, least);
    // kill -9: reported launches are stored.
    drop(running);

    let at_least = if sees_reads { DATA } else { 256 << 10 };
    let read_all = || {
        fixture.disk.cool();
        let (output, event) = fixture.ahead();
        let event = event.unwrap_or_else(|| panic!("{output:?}"));
        let enough = event["bytes"].as_u64().unwrap() >= at_least;
        let all = enough && (!sees_reads || missing_of(&fixture.data()) == 0);
        if all { Ok(()) } else { Err(event) }
    };
    // Three times here and below, because another program may drop the machine's page cache in between.
    let failed: Vec<Value> = (0..3).map_while(|_| read_all().err()).collect();
    assert!(failed.len() < 3, "{failed:?} of {learned}");
    // Not 0: each run measures the disks of system files too, and may find them worth reading.
    let again: Vec<Value> = (0..3).map(|_| fixture.ahead().1.unwrap()).collect();
    assert!(again.iter().any(|e| e["bytes"].as_u64().unwrap() < at_least), "{again:?}");

    let (running, ready) = Running::ready(&fixture.store(), &[]);
    assert!(ready["programs"].as_u64().unwrap() >= 1, "{ready}");
    running.end();
}

#[test]
fn what_is_missing_at_an_exec_is_read() {
    let Some(fixture) = Fixture::new("what_is_missing_at_an_exec_is_read") else { return };
    let (running, ready) = Running::ready(&fixture.store(), &["--no-ahead"]);
    if !ready["source"].as_str().unwrap().starts_with("BPF") {
        skip("what_is_missing_at_an_exec_is_read", "without BPF the exec may be seen too late");
        return;
    }
    fixture.learn(&running, DATA);
    // The program does not read its data this time, and the start must be long enough after the last. It stays the shell: a launch that becomes
    // `sleep` is over before its data is read.
    let read = fixture.at_exec(&running, "sleep 4; true");
    assert!(read["bytes"].as_u64().unwrap() >= DATA, "{read}");
    running.wait("learned", |event| is_of(event, "learned", &fixture.program()));
    running.end();
    let mut explain = fixture.command("explain");
    let explained = output(explain.args(["--missing", "--json"]).arg(fixture.program()));
    let missing: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert!(missing["read"].as_u64().unwrap() >= DATA, "{missing}");
    assert!(missing["missing"].as_u64().unwrap() < DATA, "its data was not read twice: {missing}");
    let explained = output(fixture.command("explain").arg("--json").arg(fixture.program()));
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let is_read = |decision: &Value| decision["occasion"] == "exec" && decision["chosen"] == true;
    assert!(explained["decisions"].as_array().unwrap().iter().any(is_read), "{explained}");
}

/// On a busy machine BPF may report too late, and is not used: then another process tries it again.
fn running_with_bpf(fixture: &Fixture) -> Option<Running> {
    (0..5).find_map(|_| {
        let (running, ready) = Running::ready(&fixture.store(), &["--no-ahead"]);
        ready["source"].as_str().unwrap().starts_with("BPF").then_some(running)
    })
}

/// Each start reads another file, and none of them is read for a later start.
#[test]
fn what_a_launch_was_given_is_not_read_for_the_next_one() {
    let test = "what_a_launch_was_given_is_not_read_for_the_next_one";
    let Some(fixture) = Fixture::new(test) else { return };
    let bytes = 32 << 20;
    let given: Vec<PathBuf> = (0..6).map(|n| fixture.disk.top().join(format!("given{n}"))).collect();
    given.iter().for_each(|path| std::fs::write(path, vec![7_u8; bytes as usize]).unwrap());
    let cat = fixture.disk.top().join("cat");
    copy_program(Path::new("/bin/cat"), &cat);
    fixture.store_measured(0.005, 1e-7);
    let mut recorded = 0;
    // A busy machine may record only some of the starts.
    for file in &given {
        // A process of its own for each: a program that starts again within seconds is not read for.
        let Some(running) = running_with_bpf(&fixture) else {
            return skip(test, "without BPF the exec may be seen too late");
        };
        fixture.disk.cool();
        let mut command = Command::new(&cat);
        command.arg(file).stdout(Stdio::null()).uid(SOMEBODY).gid(SOMEBODY);
        assert!(command.status().unwrap().success());
        let in_memory = |path: &PathBuf| bytes - missing_bytes_of(path, bytes);
        let others: u64 = given.iter().filter(|other| *other != file).map(in_memory).sum();
        assert!(others < 4 << 20, "{}: {others} bytes of other files are in memory", file.display());
        let ended = running.reported(|event| is_of(event, "learned", &cat), PATIENCE / 4);
        recorded += u32::from(ended.is_ok_and(|ended| ended["bytes"].as_u64() >= Some(bytes)));
        running.end();
        if recorded == 3 {
            break;
        }
    }
    assert_eq!(recorded, 3, "of six starts");
    let store = ProgramStore::existing(&fixture.store(), Access::Read).unwrap();
    let mut decisions = store.decisions(Some(Program::of_exe(cat).id()), 99).unwrap();
    decisions.retain(|decision| decision.occasion == Occasion::Exec);
    let is_large =
        |of: &Decision| matches!(of.outcome, ChoiceOutcome::Chosen { bytes, .. } if bytes > 4 << 20);
    assert!(!decisions.iter().any(is_large), "{decisions:?}");
}

/// A daemon: the first process forks and exits, and its child goes on.
#[test]
fn reading_at_exec_goes_on_for_the_child_of_a_program_that_exits() {
    let test = "reading_at_exec_goes_on_for_the_child_of_a_program_that_exits";
    let Some(fixture) = Fixture::new(test) else { return };
    let (running, ready) = Running::ready(&fixture.store(), &["--no-ahead"]);
    if !ready["source"].as_str().unwrap().starts_with("BPF") {
        skip(test, "without BPF the exec may be seen too late");
        return;
    }
    // It takes longer to read than the first process lives.
    let bytes = 8 * DATA;
    std::fs::write(fixture.data(), vec![7_u8; bytes as usize]).unwrap();
    fixture.learn(&running, bytes);
    let read = fixture.at_exec(&running, "( sleep 4; true ) & exit 0");
    assert!(read["bytes"].as_u64().unwrap() >= bytes, "{read}");
    running.end();
}

/// As on a disk with a burst: it was measured as fast, and launches wait for it.
#[test]
fn a_disk_that_is_slower_than_measured_is_corrected_by_launches() {
    let Some(fixture) = Fixture::new("a_disk_that_is_slower_than_measured_is_corrected_by_launches") else {
        return;
    };
    let device = fixture.disk.device();
    let name = device.file_name().unwrap().to_str().unwrap();
    fixture.store_measured(0.0001, 2e-9);
    let (running, _) = Running::ready(&fixture.store(), &["--no-ahead"]);
    let is_corrected = |event: &Value| {
        let why = event["why"].as_str().unwrap_or_default();
        event["event"] == "disk" && event["disk"] == name && why.contains("launches waited")
    };
    // A launch that was not kept on a busy machine is repeated.
    let launch = || {
        fixture.disk.cool();
        // In large reads, by a program of its own.
        fixture.launch("sleep 0.5; cat data > /dev/null; sleep 3");
        running.reported(is_corrected, Duration::ZERO).is_ok()
    };
    if !(0..12).any(|_| launch()) {
        running.wait("the corrected disk", is_corrected);
    }
    running.end();
}

#[test]
fn a_broken_store_is_set_aside_and_reported() {
    let Some(fixture) = Fixture::new("a_broken_store_is_set_aside_and_reported") else { return };
    std::fs::create_dir(fixture.store()).unwrap();
    std::fs::write(fixture.store().join("prefetch.db"), b"SQLite format 3\0 and then nothing").unwrap();
    let running = Running::start(&fixture.store(), &[]);
    let trouble = running.wait("trouble", |event| event["event"] == "trouble");
    assert!(trouble["what"].as_str().unwrap().contains("was broken"), "{trouble}");
    running.end();
    let left: Vec<_> = std::fs::read_dir(fixture.store()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().any(|name| name.to_string_lossy().contains("broken")), "{left:?}");
}

/// A launch of one page, as an earlier eke stored it.
fn stored(program: Program) -> Launch {
    let file = Touched {
        path: program.exe.clone(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    Launch {
        program,
        uid: 0,
        began_ns: 0,
        took: Duration::ZERO,
        ended: LaunchEnd::Quiet,
        set: FileSet { files: vec![file] },
        cold_bytes: 4096,
    }
}

#[test]
fn what_an_earlier_eke_named_after_env_is_forgotten_and_the_rest_stays() {
    let test = "what_an_earlier_eke_named_after_env_is_forgotten_and_the_rest_stays";
    if cannot_run(test) {
        return;
    }
    let (_alone, kept) = (alone(), tempfile::tempdir().unwrap());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut store = ProgramStore::open(kept.path(), boot.trim(), 1).unwrap().store;
    let other = Program::of_exe("/usr/bin/okular");
    for program in
        [Program { script: Some("okular".into()), ..Program::of_exe("/usr/bin/env") }, other.clone()]
    {
        let launch = stored(program);
        store.add_launch(&launch, &launch.set, 1).unwrap();
    }
    drop(store);
    let running = Running::start(kept.path(), &[]);
    let trouble = running.wait("trouble", |event| event["event"] == "trouble");
    assert!(trouble["what"].as_str().unwrap().contains("under the name of env"), "{trouble}");
    running.end();
    let records = ProgramStore::existing(kept.path(), Access::Read).unwrap().records(1).unwrap();
    assert_eq!(records.into_iter().map(|record| record.program).collect::<Vec<_>>(), [other]);
    let (running, _) = Running::ready(kept.path(), &[]);
    assert!(running.reported(|event| event["event"] == "trouble", Duration::ZERO).is_err(), "once");
    running.end();
}

/// A full tmpfs with a store, and the copy below `/run/eke` that is used instead of it: other tests look there.
struct FullDisk(tempfile::TempDir, #[expect(dead_code, reason = "held for its lock")] MachineLock);

impl FullDisk {
    fn create(launch: &Launch) -> Result<Self, String> {
        let disk = Self(tempfile::tempdir().unwrap(), lock_machine());
        let mut mount = Command::new("mount");
        let mounted = output(mount.args(["-t", "tmpfs", "-o", "size=6M", "eke-test"]).arg(disk.0.path()));
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).into_owned());
        }
        let mut store = ProgramStore::open(disk.0.path(), "boot", 1).unwrap().store;
        store.add_launch(launch, &launch.set, 1).unwrap();
        drop(store);
        let mut fill = std::fs::File::create(disk.0.path().join("fill")).unwrap();
        while std::io::Write::write(&mut fill, &[0; 4096]).is_ok() {}
        Ok(disk)
    }

    fn copy(&self) -> PathBuf {
        Path::new("/run/eke/prefetch").join(self.0.path().strip_prefix("/").unwrap())
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.copy());
        // The directories above it, as far as nothing else is there
        let _ = self.copy().ancestors().skip(1).take(2).try_for_each(std::fs::remove_dir);
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_what_was_learned_is_used() {
    let test = "on_a_full_disk_what_was_learned_is_used";
    if cannot_run(test) {
        return;
    }
    let _alone = alone();
    let disk = match FullDisk::create(&stored(Program::of_exe("/usr/bin/okular"))) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let (running, ready) = Running::ready(disk.0.path(), &[]);
    assert_eq!(ready["programs"], 1, "{ready}");
    running.wait("the copy", |event| {
        event["what"].as_str().is_some_and(|what| what.contains("goes on with a copy"))
    });
    assert_eq!(ready["store"], disk.copy().join("prefetch.db").to_str().unwrap());
    let listed = output(daemon::command(disk.0.path(), "list").arg("--json"));
    let (out, told) = (String::from_utf8_lossy(&listed.stdout), String::from_utf8_lossy(&listed.stderr));
    assert!(listed.status.success() && out.contains("okular"), "{listed:?}");
    assert!(told.contains("prefetch uses this copy"), "{told}");
    running.end();
}

#[test]
fn a_store_has_one_process_and_that_ends_with_its_parent() {
    let Some(fixture) = Fixture::new("a_store_has_one_process_and_that_ends_with_its_parent") else { return };
    let (running, _) = Running::ready(&fixture.store(), &["--end-with", &std::process::id().to_string()]);
    let second = output(fixture.command("run").arg("--now-only"));
    let text = String::from_utf8_lossy(&second.stderr);
    let holder = format!("process {} learns into", running.child.id());
    assert!(second.status.code() == Some(1) && text.contains(&holder), "{text}");
    let orphan = output(fixture.command("run").args(["--now-only", "--end-with", "1"]));
    let text = String::from_utf8_lossy(&orphan.stderr);
    assert!(orphan.status.code() == Some(1) && text.contains("process 1 is not the parent"), "{text}");
    running.end();
}

#[test]
fn missing_permission_and_wrong_arguments_are_reported() {
    let run = |command: &mut Command| {
        let output = output(command);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(Command::new(PROGRAM).arg("fly"));
    assert!(
        code == Some(2) && text.starts_with("eke-prefetch: \"fly\" is not a verb: run, ahead, source, list,"),
        "{text}"
    );
    let (code, text) = run(Command::new(PROGRAM).arg("ahead"));
    assert!(code == Some(2) && text.contains("ahead needs a program"), "{text}");
    if cannot_run("missing_permission_and_wrong_arguments_are_reported") {
        return;
    }
    let kept = tempfile::tempdir().unwrap();
    let (code, text) = run(Command::new(PROGRAM).args(["ahead", "--store"]).arg(kept.path()).arg("/nowhere"));
    assert!(code == Some(1) && text.contains("nothing was learned yet"), "{text}");
    let own = tempfile::tempdir().unwrap();
    let program = own.path().join("eke-prefetch");
    copy_program(Path::new(PROGRAM), &program);
    std::fs::set_permissions(own.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, text) = run(Command::new(program).arg("run").uid(65534).gid(65534));
    assert!(code == Some(4) && text.contains("only root may see what programs read"), "{text}");
}
