//! A process that is too large for its memory, on the real kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::process::{Child, Command, Stdio};

use common::{Public, build_agent, eke, machine};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_swap::live::act;
use eke_swap::live::proactive::{Form, Outcome, Request};
use eke_testkit::real::{MachineLock, lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;

/// Drop kills the process, waits for it, and runs `down`.
struct Ends(Vec<Child>);

impl Drop for Ends {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
        eke(&["down"]);
    }
}

const STRESSOR: &str = r#"{"size": 268435456, "ratio": 3.0, "seed": 7}"#;

fn boxed() -> common::Ran {
    eke(&["box", "--json", "--memory", "160M", "--", env!("CARGO_BIN_EXE_eke"), "stressor", STRESSOR])
}

/// Copies of the memory stressor under another name, since eke does not sample eke. Three of them outweigh all other processes.
fn twins(public: &Public) -> Vec<Child> {
    let program = public.path().with_file_name("twin");
    std::fs::copy(public.path(), &program).unwrap();
    let twin = |seed: u32| {
        let spec = format!(r#"{{"size": 268435456, "ratio": 3.0, "seed": {seed}, "passes": null}}"#);
        Command::new(&program)
            .args(["stressor", &spec])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children = (1..4).map(twin).collect::<Vec<_>>();
    for child in &children {
        wait_for("the twin's pages", || resident_kib(child.id()) >= 250 << 10);
    }
    children
}

/// The agent reads its configuration while it runs, and a pipe of the shell has it once.
#[test]
fn up_takes_no_configuration_that_the_agent_cannot_read_again() {
    let sh = "printf '[guard]\\nenabled = \"off\"\\n' | \"$0\" --config /dev/stdin up";
    let ran = eke_testkit::program::ran(Command::new("sh").args(["-c", sh, env!("CARGO_BIN_EXE_eke")]));
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(ran.stderr.contains("/dev/stdin is no file that lasts"), "{}", ran.shown());
}

/// unlink(2) of a missing file says EROFS there.
#[test]
fn with_a_read_only_var_everything_can_be_undone() {
    let Some((_lock, before)) = alone("with_a_read_only_var_everything_can_be_undone") else { return };
    let _ends = with_512_mib();
    let sh =
        "mount --make-rprivate / && mount --bind /var /var && mount -o remount,ro,bind /var && \"$0\" down";
    let ran =
        Command::new("unshare").args(["-m", "sh", "-c", sh, env!("CARGO_BIN_EXE_eke")]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(machine(), before);
}

/// What holds a lock for a script would hold it as long as the agent runs.
#[test]
fn the_agent_keeps_no_descriptor_of_the_shell() {
    let Some((_lock, _)) = alone("the_agent_keeps_no_descriptor_of_the_shell") else { return };
    let _ends = Ends(Vec::new());
    let held = tempfile::NamedTempFile::new().unwrap();
    let sh = "exec 9>\"$1\"; \"$0\" up --size 64M";
    let up =
        Command::new("sh").args(["-c", sh, env!("CARGO_BIN_EXE_eke")]).arg(held.path()).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let agents = Root::host().list("proc").unwrap().into_iter().filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "eke-agent")
    });
    let files: Vec<_> = agents
        .flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten())
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .collect();
    assert!(!files.is_empty() && !files.iter().any(|file| file == held.path()), "{files:?}");
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the twin lives");
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The machine for this test alone, and its settings. `None`: it has no zram.
fn alone(test: &str) -> Option<(MachineLock, String)> {
    if let Some(why) = lacking(&["/sys/class/zram-control"]) {
        skip(test, &why);
        return None;
    }
    build_agent();
    let lock = lock_machine();
    Some((lock, machine()))
}

/// Compressed swap of that size, until the end.
fn with_512_mib() -> Ends {
    let ends = Ends(Vec::new());
    let up = eke(&["up", "--size", "512M", "--backend", "zram"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    ends
}

/// A group with swapped pages and a limit that leaves no room for them: swapping off would trigger the OOM killer.
#[test]
fn down_without_room_in_a_group_is_done_in_part_and_can_be_said_again() {
    let Some((_lock, before)) = alone("down_without_room") else { return };
    let mut ends = with_512_mib();
    let spec = STRESSOR.replace('}', r#", "passes": null}"#);
    let mut boxed =
        common::command(&["box", "--memory", "160M", "--", env!("CARGO_BIN_EXE_eke"), "stressor", &spec]);
    ends.0.push(boxed.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("the box to swap", || swapped_kib() > 64 << 10);
    // `down` removes boxes of dead owners only; this owner is alive
    let blocked = eke(&["down"]);
    assert_eq!(blocked.status, Some(5), "{}", blocked.shown());
    assert!(
        blocked.stdout.contains("left below its limit of") && blocked.stdout.contains("Done in part"),
        "{}",
        blocked.shown()
    );
    assert!(ends.0[0].try_wait().unwrap().is_none(), "the box was killed: {}", blocked.shown());
    // The machine needs the agent and its guard just now.
    let up = eke(&["up"]);
    assert!(up.status == Some(0) && up.stderr.contains("stays swap"), "{}", up.shown());
    assert!(
        up.stdout.contains("set up by eke: it is kept") && up.stdout.contains("Applied."),
        "{}",
        up.shown()
    );
    assert_eq!(eke(&["status"]).status, Some(0), "an agent runs");
    drop(ends.0[0].stdin.take());
    ends.0[0].wait().unwrap();
    wait_for("the pages to go", || swapped_kib() < 8 << 10);
    let again = eke(&["down"]);
    assert_eq!(again.status, Some(0), "{}", again.shown());
    assert_eq!(machine(), before);
}

/// What the agent does with `proactive = true`, without its waits for a calm machine.
#[test]
fn idle_memory_is_swapped_out_on_request() {
    let Some((_lock, before)) = alone("idle_memory") else { return };
    let mut ends = with_512_mib();
    ends.0 = twins(&Public::new());
    for twin in &ends.0 {
        rustix::process::kill_process(rustix::process::Pid::from_child(twin), rustix::process::Signal::STOP)
            .unwrap();
    }
    let ask = |form| act::reclaim(&Root::host(), Request { bytes: Bytes::mib(8), form });
    let form = match ask(Form::Anonymous) {
        Outcome::UnknownForm => Form::MostlyAnonymous,
        _ => Form::Anonymous,
    };
    match ask(form) {
        Outcome::UnknownForm | Outcome::Absent => {
            skip("idle_memory", "the kernel is older than Linux 6.9, or without cgroup v2 than 6.17")
        }
        _ => wait_for("idle pages in the compressed swap", || {
            let outcome = ask(form);
            assert!([Outcome::Reclaimed, Outcome::Fewer].contains(&outcome), "{outcome:?}");
            swapped_kib() > 64 << 10
        }),
    }
    ends.0.iter_mut().for_each(|twin| twin.kill().unwrap());
    drop(ends);
    assert_eq!(machine(), before);
}

fn swapped_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/swaps").expect("/proc/swaps");
    text.lines().skip(1).filter_map(|l| l.split_whitespace().nth(3)?.parse::<u64>().ok()).sum()
}

#[test]
fn killed_before_finishes_after_and_the_ratio_is_as_predicted() {
    let Some((_lock, before)) = alone("killed_before_finishes_after") else { return };
    let without = boxed();
    assert_eq!(without.json()["oom_killed"], true, "{}", without.shown());

    let public = Public::new();
    let mut ends = Ends(twins(&public));
    let up = eke(&["up", "--json"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    let predicted = up.json()["plan"]["decision"]["plan"]["prediction"]["ratio"].as_f64().unwrap();
    for child in &mut ends.0 {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    let with = boxed();
    assert_eq!(with.status, Some(0), "{}", with.shown());
    let report = with.json();
    let real =
        report["most_swapped"].as_f64().unwrap() / report["charged_for_most_swapped"].as_f64().unwrap();
    eprintln!("predicted {predicted:.2}, real {real:.2}");
    assert!(
        (real / predicted - 1.0).abs() < 0.15,
        "predicted {predicted:.2}, real {real:.2}: {}",
        with.shown()
    );
    drop(ends);
    assert_eq!(machine(), before);
}
