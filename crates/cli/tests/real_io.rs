//! `eke io compare` and `eke bench io`, killed: the next start, or `eke down`, undoes their changes. The tests use their own journal and disks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Ran, build_io, command};
use eke_apply::journal;
use eke_linux::Root;
use eke_testkit::real::{SameDisks, disks, lacking, no_program, skip};
use eke_testkit::wait::wait_at_most;
use rustix::process::{Pid, Signal, kill_process_group};

/// An experiment measures for minutes before its first change.
const LONG: Duration = Duration::from_secs(600);

fn lacks(programs: &[&str]) -> Option<String> {
    lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(programs))
}

/// A directory that stands for `/`, with this machine's `/sys` and `/proc` and a journal of its own.
struct Environment(tempfile::TempDir);

impl Environment {
    fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["sys", "proc"] {
            symlink(Path::new("/").join(name), dir.path().join(name)).unwrap();
        }
        Self(dir)
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn eke(&self, words: &[&str]) -> Command {
        let mut command = command(&["--root", self.0.path().to_str().unwrap()]);
        command.args(words);
        command
    }

    fn ran(&self, words: &[&str]) -> Ran {
        eke_testkit::program::ran(&mut self.eke(words))
    }

    fn changes(&self) -> usize {
        journal::entries(&self.root()).unwrap().len()
    }
}

fn queue(device: &str, file: &str) -> String {
    Root::host().read(format!("sys/block/{device}/queue/{file}")).unwrap_or_default().trim().to_owned()
}

fn until(what: &str, child: &mut Child, mut holds: impl FnMut() -> bool) {
    wait_at_most(LONG, what, || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended ({ended:?}) before {what}");
        holds()
    });
}

/// A loop device over a file; drop removes it.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Self {
        std::fs::File::create_new(file).unwrap().set_len(8 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Self(String::from_utf8_lossy(&made.stdout).trim().trim_start_matches("/dev/").to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.0)]).output();
    }
}

/// Kills a comparison while its first value is set.
fn killed_comparison(environment: &Environment, device: &str) {
    let before = queue(device, "nr_requests");
    let words = ["io", "compare", "nr_requests", "8", "16", "--device", device, "--", "sleep", "600"];
    let mut compare = environment.eke(&words);
    let mut compare = compare.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut load = None;
    until("the first value was in force under its load", &mut compare, || {
        load = child_of(compare_pid(environment), "sleep");
        queue(device, "nr_requests") == "8" && load.is_some()
    });
    compare.kill().unwrap();
    compare.wait().unwrap();
    kill_process_group(load.unwrap(), Signal::KILL).unwrap();
    assert_eq!(
        (queue(device, "nr_requests").as_str(), environment.changes()),
        ("8", 1),
        "nobody restored it"
    );
    assert_ne!(before, "8");
}

/// The process that made the change in the journal.
fn compare_pid(environment: &Environment) -> Option<u32> {
    let entries = journal::entries(&environment.root()).ok()?;
    entries.first()?.intent.made_by.map(|owner| owner.pid)
}

fn child_of(parent: Option<u32>, name: &str) -> Option<Pid> {
    let parent = parent?.to_string();
    let is_it = |stat: &str| {
        let (head, tail) = stat.rsplit_once(") ").unwrap_or_default();
        head.ends_with(&format!("({name}")) && tail.split(' ').nth(1) == Some(&parent)
    };
    let pids = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found =
        pids.find(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| is_it(&stat)));
    found.and_then(Pid::from_raw)
}

#[test]
fn what_a_killed_comparison_set_goes_back_at_the_next_start_and_by_down() {
    if let Some(why) = lacks(&["losetup", "dd"]) {
        return skip("what_a_killed_comparison_set_goes_back", &why);
    }
    let _clean = SameDisks::start();
    let images = tempfile::tempdir().unwrap();
    let disk = Loop::over(&images.path().join("image"));
    let environment = Environment::make();
    let before = queue(&disk.0, "nr_requests");

    killed_comparison(&environment, &disk.0);
    let read = format!("dd if=/dev/{} of=/dev/null bs=4k count=8 iflag=direct status=none", disk.0);
    let words = ["io", "compare", "nr_requests", "default", "16", "--device", &disk.0, "--pairs", "1"];
    let ran = environment.ran(&[&words[..], &["--json", "--", "sh", "-c", &read]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert_eq!((queue(&disk.0, "nr_requests"), environment.changes()), (before.clone(), 0));

    killed_comparison(&environment, &disk.0);
    let ran = environment.ran(&["down"]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert_eq!((queue(&disk.0, "nr_requests"), environment.changes()), (before, 0));
}

#[test]
fn a_value_that_the_kernel_raises_leaves_no_change() {
    if let Some(why) = lacks(&["losetup"]) {
        return skip("a_value_that_the_kernel_raises_leaves_no_change", &why);
    }
    let _clean = SameDisks::start();
    let images = tempfile::tempdir().unwrap();
    let disk = Loop::over(&images.path().join("image"));
    let environment = Environment::make();
    let before = queue(&disk.0, "nr_requests");
    let ran =
        environment.ran(&["io", "compare", "nr_requests", "0", "64", "--device", &disk.0, "--", "true"]);
    assert!(ran.status != Some(0) && ran.stderr.contains("it reads \"4\""), "{}", ran.shown());
    assert!(!ran.stderr.contains("somebody else"), "{}", ran.shown());
    assert_eq!((queue(&disk.0, "nr_requests"), environment.changes()), (before, 0));
}

#[test]
fn a_sweep_is_a_page_with_curves() {
    if let Some(why) = lacks(&["losetup", "dd"]) {
        return skip("a_sweep_is_a_page_with_curves", &why);
    }
    let _clean = SameDisks::start();
    let images = tempfile::tempdir().unwrap();
    let disk = Loop::over(&images.path().join("image"));
    let (environment, html) = (Environment::make(), images.path().join("sweep.html"));
    let read = format!("dd if=/dev/{} of=/dev/null bs=4k count=500 iflag=direct status=none", disk.0);
    let html_at = html.to_str().unwrap();
    let words =
        ["io", "sweep", "nr_requests", "8,16,64", "--device", &disk.0, "--rounds", "1", "--html", html_at];
    let all = [&words[..], &["--", "sh", "-c", &read]].concat();
    let ran = environment.ran(&all);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(ran.stdout.ends_with(&format!("Written: {html_at}\n")), "{}", ran.stdout);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("<h1>eke io sweep</h1>") && page.contains("class=\"curve"), "{page}");
    assert!(page.contains(&format!("--device</span> <span>{}", disk.0)), "the command that makes it again");
    let again = environment.ran(&all);
    assert!(again.status != Some(0) && again.stderr.contains("--force"), "{}", again.shown());
    assert_eq!(again.stdout, "", "nothing was measured for nothing");
}

/// The loop device of the slow disk of this process.
fn disk_of(pid: u32) -> Option<String> {
    let is_its = |line: &String| line.starts_with("loop") && line.contains(&format!("/slowdisk0-{pid}-"));
    Some(disks().into_iter().find(is_its)?.split(' ').next()?.to_owned())
}

#[test]
fn what_a_killed_experiment_left_goes_with_the_next() {
    if let Some(why) = lacks(&["losetup", "dd", "setpriv", "mkfs.ext4"]) {
        return skip("what_a_killed_experiment_left_goes_with_the_next", &why);
    }
    build_io();
    let _clean = SameDisks::start();
    let environment = Environment::make();
    let short = ["bench", "io", "--json", "--writers", "stream", "--repeats", "1", "--disk", "scsi2008"];
    let killed = [&short[..], &["--variants", "mq-deadline", "--warm-up", "600"]].concat();
    let mut experiment = environment.eke(&killed);
    let mut experiment = experiment.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (mut device, pid) = (None, experiment.id());
    until("its scheduler was set and its writer wrote", &mut experiment, || {
        device = disk_of(pid);
        let Some(device) = device.as_deref() else { return false };
        queue(device, "scheduler").contains("[mq-deadline]") && {
            let under_way = Root::host().read(format!("sys/block/{device}/inflight")).unwrap_or_default();
            under_way.split_whitespace().nth(1).is_some_and(|writes| writes != "0")
        }
    });
    let device = device.unwrap();
    experiment.kill().unwrap();
    experiment.wait().unwrap();
    // The scheduler, and perhaps the two limits of dirty memory.
    assert!((1..=3).contains(&environment.changes()), "nobody restored them");
    assert_eq!(disk_of(pid).as_ref(), Some(&device), "nobody took the disk away");

    let next = [&short[..], &["--variants", "default", "--warm-up", "1", "--seconds", "2"]].concat();
    let ran = environment.ran(&next);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(!ran.stdout.contains("is left out"), "{}", ran.stdout);
    let left: Vec<String> = disks().into_iter().filter(|line| line.contains(&format!("-{pid}-"))).collect();
    assert_eq!((left, environment.changes()), (Vec::new(), 0));
    assert!(queue(&device, "scheduler").contains("[none]"), "{}", queue(&device, "scheduler"));
}
