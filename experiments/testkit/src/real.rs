//! Tests of the real kernel: one lock for all, and skipping with a reason.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_linux::Root;
use rustix::fs::{FlockOperation, flock};

/// The lock on the machine for one test: swap, zram and cgroups belong to the whole machine. Drop releases it.
#[derive(Debug)]
pub struct MachineLock(#[expect(dead_code, reason = "held for its lock")] File);

/// After so long, the waiting test says for whom it waits. It is less than the silence after which `scripts/limited` ends a test: the one that has the lock
/// hangs, and not this one.
const LONG: Duration = Duration::from_secs(600);
/// After so many times as long it fails.
const TIMES: u32 = 4;

/// Waits for the lock.
///
/// # Panics
/// If the lock file cannot be created: then no test of the real kernel can be trusted. And if another test has the lock for much longer than any takes.
#[expect(clippy::panic, reason = "test code")]
pub fn lock_machine() -> MachineLock {
    let path = std::env::temp_dir().join("eke-tests.lock");
    let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
        Ok(file) => file,
        Err(e) => panic!("cannot open {}: {e}", path.display()),
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return MachineLock(file);
    }
    let inode = file.metadata().map_or(0, |of| of.ino());
    let (send, locked) = channel();
    std::thread::spawn(move || {
        let _ = flock(&file, FlockOperation::LockExclusive);
        let _ = send.send(file);
    });
    for waited in 1..=TIMES {
        match locked.recv_timeout(LONG) {
            Ok(file) => return MachineLock(file),
            Err(_) => {
                eprintln!("waits for {:?} for {}, which has {}", LONG * waited, holder(inode), path.display())
            }
        }
    }
    panic!("{} has {} for too long", holder(inode), path.display())
}

/// The process that locked a file first, in the kernel's list of locks (proc_locks(5)).
fn holder(inode: u64) -> String {
    let root = Root::host();
    let locks = root.read("proc/locks").unwrap_or_default();
    let of_file = |line: &&str| {
        line.contains(" FLOCK ") && !line.contains("->") && line.contains(&format!(":{inode} "))
    };
    let pid = locks.lines().find(of_file).and_then(|line| line.split_whitespace().nth(4));
    let pid = pid.unwrap_or("none");
    format!(
        "process {pid} ({})",
        root.read(format!("proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ").trim()
    )
}

/// Why a test of the real kernel cannot run here; `None` if it can. `EKE_TESTS=require` forbids skipping.
///
/// # Panics
/// If `EKE_TESTS=require` and a requirement is missing.
pub fn lacking(needs: &[&str]) -> Option<String> {
    unless_required(if rustix::process::geteuid().is_root() {
        needs.iter().find(|p| !Path::new(p).exists()).map(|p| format!("no {p} on this machine"))
    } else {
        Some("not root".to_owned())
    })
}

/// The same for installed programs.
///
/// # Panics
/// If `EKE_TESTS=require` and one is not installed.
pub fn no_program(programs: &[&str]) -> Option<String> {
    let is_installed =
        |p: &str| ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|d| Path::new(d).join(p).exists());
    unless_required(programs.iter().find(|p| !is_installed(p)).map(|p| format!("no {p} on this machine")))
}

#[expect(clippy::panic, reason = "test code")]
fn unless_required(why: Option<String>) -> Option<String> {
    if let (Some(why), Ok("require")) = (&why, std::env::var("EKE_TESTS").as_deref()) {
        panic!("a required test cannot run: {why}");
    }
    why
}

/// Prints why a test is skipped, in the form that `make test` counts.
pub fn skip(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
}

/// The mounts, loop devices and directories of slow disks and test images.
pub fn disks() -> Vec<String> {
    let root = Root::host();
    let list = |dir: &str| root.list(dir).unwrap_or_default().into_iter();
    let mounts = root.read("proc/mounts").unwrap_or_default();
    let is_ours = |l: &&str| l.contains("/run/eke/") || l.contains("slow") || l.starts_with("/dev/loop");
    let mounts = mounts.lines().filter(is_ours).map(str::to_owned);
    let loops = list("sys/block").filter_map(|name| {
        Some(format!("{name} {}", root.read(format!("sys/block/{name}/loop/backing_file")).ok()?))
    });
    let dirs = list("run/eke").filter(|n| n.starts_with("stage") || n.starts_with("slowdisk"));
    mounts.chain(loops).chain(dirs).collect()
}

/// The lock on the machine for one test. Drop asserts that [`disks`] are unchanged.
#[derive(Debug)]
pub struct SameDisks {
    before: Vec<String>,
    #[expect(dead_code, reason = "held for its lock")]
    machine: MachineLock,
}

impl SameDisks {
    /// Waits for the lock.
    pub fn start() -> Self {
        let machine = lock_machine();
        Self { before: disks(), machine }
    }
}

impl Drop for SameDisks {
    fn drop(&mut self) {
        let after = disks();
        if !std::thread::panicking() {
            assert_eq!(after, self.before);
        }
    }
}
