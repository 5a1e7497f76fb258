//! A swapoff that is interrupted, or whose process is killed, on the real kernel: the area stays swap, and nothing keeps the process' locks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "functions of tests, which fail by it")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eke_apply::drain::drain;
use eke_apply::journal::{self, Journal};
use eke_apply::session::{AppliedStep, Session};
use eke_apply::swapoff::Interrupt;
use eke_linux::{Root, read};
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::tree;
use eke_testkit::wait::wait_for;
use rustix::fs::{FlockOperation, flock};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

const OWNER: &str = "test";
/// Set in the program that has pages in swap.
const PROGRAM: &str = "EKE_TEST_SWAPPED";
/// Set in the process that drains: the device, and the file that it has locked.
const DRAINS: &str = "EKE_TEST_DRAINS";
/// The kernel looks for a signal after each process (try_to_unuse, mm/swapfile.c).
const PROGRAMS: usize = 16;
const SWAPPED: usize = 16 << 20;

/// Not a test: the program. Its pages do not compress, so loading them takes time.
#[test]
#[expect(unsafe_code, reason = "memory of its own for madvise(2)")]
fn helper_program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    // SAFETY: new memory, which is used only here.
    let pages = unsafe {
        let at = mmap_anonymous(
            std::ptr::null_mut(),
            SWAPPED,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
        .unwrap();
        std::slice::from_raw_parts_mut(at.cast::<u8>(), SWAPPED)
    };
    let mut state = 7u64;
    for chunk in pages.chunks_mut(16) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        chunk[..8].copy_from_slice(&state.to_le_bytes());
    }
    // SAFETY: it is mapped; pages that are swapped out keep their content.
    unsafe { madvise(pages.as_mut_ptr().cast(), SWAPPED, Advice::LinuxPageOut) }.unwrap();
    println!("program is ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
    std::hint::black_box(&pages);
}

/// Not a test: drains while it has a lock, until it is killed.
#[test]
fn helper_drains() {
    let Ok(words) = std::env::var(DRAINS) else { return };
    let (device, lock) = words.split_once(' ').unwrap();
    let lock = File::open(lock).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let _ = drain(&Root::host(), OWNER, device, &Interrupt::default());
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn helper(name: &str, variable: &str, value: &str) -> KilledOnDrop {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(variable, value);
    KilledOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
}

/// A swap device of this test's, removed with it, and the programs whose pages it has.
struct Swapped {
    device: String,
    programs: Vec<KilledOnDrop>,
}

impl Swapped {
    fn new() -> Self {
        let root = Root::host();
        let areas = read::swaps(&root).unwrap();
        let priority = areas.iter().map(|area| area.priority).max().unwrap_or(0) + 1;
        let spec = serde_json::json!({
            "algorithm": "", "disksize": Bytes((PROGRAMS * SWAPPED) as u64 + (64 << 20)), "swap_priority": priority
        });
        let spec: ZramSpec = serde_json::from_value(spec).unwrap();
        let planned = PlannedStep { step: Step::AddZram(spec), reason: Reason::new("a test") };
        let made = Session::open(&root, OWNER).unwrap().apply(&planned).unwrap();
        let AppliedStep::Made { device: Some(device), .. } = made else { panic!("{made:?}") };
        let programs = (0..PROGRAMS).map(|_| helper("helper_program", PROGRAM, "1")).collect();
        let mut swapped = Self { device, programs };
        for program in &mut swapped.programs {
            let mut lines = BufReader::new(program.0.stdout.take().unwrap()).lines().map_while(Result::ok);
            assert!(lines.any(|line| line.contains("program is ready")));
        }
        assert!(swapped.used() > Bytes((PROGRAMS * SWAPPED) as u64 / 2), "{:?}", swapped.used());
        swapped
    }

    fn used(&self) -> Bytes {
        let area = read::swap_at(&Root::host(), &format!("/dev/{}", self.device)).unwrap();
        area.map_or(Bytes(0), |area| area.used)
    }

    fn is_draining(&self) -> bool {
        let entries = journal::entries(&Root::host()).unwrap();
        entries.iter().any(|e| e.draining && e.made.as_deref() == Some(&self.device))
    }
}

impl Drop for Swapped {
    fn drop(&mut self) {
        self.programs.clear();
        let _ = Session::open(&Root::host(), OWNER).and_then(|mut session| session.undo_own());
    }
}

/// Pages that the kernel begins to load are fewer at once.
fn wait_for_loads(swapped: &Swapped) {
    let full = swapped.used();
    wait_for("the first pages", || swapped.used() < full || !swapped.is_draining());
    assert!(swapped.used() > Bytes(0), "it was too quick for this test");
}

#[test]
fn an_interrupt_leaves_the_area_and_the_journal_is_free_meanwhile() {
    if let Some(why) = lacking(&["/sys/class/zram-control"]) {
        return skip("an_interrupt_leaves_the_area_and_the_journal_is_free_meanwhile", &why);
    }
    let _machine = lock_machine();
    let (swapped, root, interrupt) = (Swapped::new(), Root::host(), Interrupt::default());
    let before = journal::entries(&root).unwrap();
    let (device, of_thread) = (swapped.device.clone(), interrupt.clone());
    let drains = std::thread::spawn(move || drain(&Root::host(), OWNER, &device, &of_thread));
    wait_for("the note", || swapped.is_draining());
    wait_for_loads(&swapped);
    drop(Journal::try_open(&root).unwrap());
    interrupt.set();
    assert_eq!(drains.join().unwrap().unwrap().as_deref(), Some("its swapoff was interrupted"));
    assert!(swapped.used() > Bytes(0));
    assert_eq!(journal::entries(&root).unwrap(), before);
    let (root, device) = (&root, &swapped.device);
    assert_eq!(drain(root, OWNER, device, &Interrupt::default()).unwrap(), None);
    assert!(!root.exists(format!("sys/block/{device}")));
}

#[test]
fn a_killed_process_ends_its_swapoff_and_its_locks() {
    if let Some(why) = lacking(&["/sys/class/zram-control"]) {
        return skip("a_killed_process_ends_its_swapoff_and_its_locks", &why);
    }
    let _machine = lock_machine();
    let swapped = Swapped::new();
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    tree::put(dir.path(), "lock", "");
    let file = File::open(&lock).unwrap();
    let drains = helper("helper_drains", DRAINS, &format!("{} {}", swapped.device, lock.display()));
    wait_for("the note", || swapped.is_draining());
    wait_for_loads(&swapped);
    let child = child_of(drains.0.id()).unwrap();
    drop(drains);
    assert!(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(), "the child has it");
    wait_for("the child's end", || !Path::new(&format!("/proc/{child}")).exists());
    assert!(swapped.used() > Bytes(0) && swapped.is_draining());
}

/// A process with this parent (proc_pid_stat(5)).
fn child_of(parent: u32) -> Option<u32> {
    let pids = Root::host().list("proc").unwrap().into_iter().filter_map(|name| name.parse().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        after_name.split(' ').nth(1) == Some(parent.to_string().as_str())
    };
    pids.filter(|pid| *pid != parent).find(is_child)
}
