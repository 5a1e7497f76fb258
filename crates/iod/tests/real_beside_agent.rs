//! From `eke up --govern-io` to a knob: the agent starts `eke-io`, which governs the test's own disk. When the agent is killed, `eke-io` restores the
//! knobs and ends. The directory that stands for `/` has only that disk.

#[allow(dead_code, reason = "not every test uses all of it")]
mod common;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use common::{load, missing, name, slow_disk};
use eke_apply::{journal, state};
use eke_linux::Root;
use eke_model::applied::{Applied, Bounds};
use eke_model::snapshot::IoState;
use eke_model::units::Bytes;
use eke_slow_disk::Profile;
use eke_testkit::program::{KilledOnDrop, build_beside};
use eke_testkit::real::{SameDisks, skip};
use eke_testkit::wait::{RaiseOnDrop, wait_for};

const KNOBS: [&str; 3] = ["max_sectors_kb", "wbt_lat_usec", "nr_requests"];

#[expect(clippy::unwrap_used, reason = "test code")]
fn start_agent(root: &Path) -> KilledOnDrop {
    let program = agent_beside(Path::new(env!("CARGO_BIN_EXE_eke-io")));
    let mut command = Command::new(program);
    command.arg("--root").arg(root).stdin(Stdio::null()).stderr(Stdio::null());
    KilledOnDrop(command.spawn().unwrap())
}

/// The agent's program, which cargo does not build for this crate's tests.
fn agent_beside(program: &Path) -> PathBuf {
    build_beside(program, env!("CARGO").as_ref(), &["-p", "eke-agent"]);
    program.with_file_name("eke-agent")
}

/// A directory that stands for `/`: this machine's `/proc`, one of its disks, and the state that `eke up --govern-io` leaves.
#[expect(clippy::unwrap_used, reason = "test code")]
fn environment(device: &str) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    symlink("/proc", at("proc")).unwrap();
    for parent in ["sys/block", "sys/kernel", "run/eke"] {
        std::fs::create_dir_all(at(parent)).unwrap();
    }
    // Without its backing file: the governor leaves a loop device to that of the disk below.
    let disk = at("sys/block").join(device);
    std::fs::create_dir(&disk).unwrap();
    for entry in Path::new("/sys/block").join(device).read_dir().unwrap().flatten() {
        if entry.file_name() != "loop" {
            symlink(entry.path(), disk.join(entry.file_name())).unwrap();
        }
    }
    symlink("/sys/kernel/btf", at("sys/kernel/btf")).unwrap();
    let root = Root::at(dir.path());
    let bounds = Bounds { govern_io: true, ..Bounds::default() };
    state::save(&root, state::APPLIED, &Applied { unix_s: 1, bounds, ..Applied::default() }).unwrap();
    (dir, root)
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn settings(root: &Root, device: &str) -> Vec<String> {
    KNOBS.map(|f| root.read(format!("sys/block/{device}/queue/{f}")).unwrap()).to_vec()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// A zombie, which its parent has not reaped yet, is not alive.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn the_agent_starts_it_and_its_death_ends_it_with_all_restored() {
    if let Some(why) = missing(&["losetup", "dd"]) {
        return skip("the_agent_starts_it_and_its_death_ends_it_with_all_restored", &why);
    }
    let _clean = SameDisks::start();
    // a disk on which a large write delays readers for long
    let disk =
        slow_disk(Profile { rate: 15_000_000, iops: Some(2_000), ..Profile::plain() }, Bytes::mib(256));
    let device = name(disk.device());
    let (dir, root) = environment(&device);
    let before = settings(&root, &device);
    let mut agent = start_agent(dir.path());
    let done = AtomicBool::new(false);
    let governs = || state::load::<IoState>(&root, state::IO).filter(|io| io.changes > 0);
    let (changed, is_beside, entries, at_work) = std::thread::scope(|scope| {
        let _end = RaiseOnDrop(&done);
        let loading = scope.spawn(|| load(disk.device(), &done));
        wait_for("a knob that is set, or an end", || {
            governs().is_some() || !matches!(agent.0.try_wait(), Ok(None)) || loading.is_finished()
        });
        let is_beside = governs().is_some_and(|io| parent_of(io.pid) == Some(agent.0.id()));
        let seen = (governs(), is_beside, journal::entries(&root), settings(&root, &device));
        // under load, the slowest case
        drop(agent);
        seen
    });
    let io = changed.expect("the agent, its child or the load ended before a knob was changed");
    assert!(io.disks.iter().all(|d| d.name == device), "only the test's disk: {:?}", io.disks);
    assert!(is_beside, "the agent started it: {io:?}");
    assert_ne!(at_work, before, "{io:?}");
    assert_eq!(entries.unwrap().len(), 1);
    wait_for("the governor to end", || !is_alive(io.pid));
    assert_eq!(settings(&root, &device), before);
    assert!(journal::entries(&root).unwrap().is_empty());
    disk.detach().unwrap();
}
