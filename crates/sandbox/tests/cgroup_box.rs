//! The box on the real kernel.

mod common;

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use common::{ScratchSwap, groups, stressor};
use eke_apply::cgroup;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_sandbox::cgroup_box::{self, BoxReport, BoxSpec, Error, Output, Swap};
use eke_sandbox::stressor::{StressorReport, StressorSpec};
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::RaiseOnDrop;

const ZRAM: &str = "/sys/class/zram-control/hot_add";

fn no_groups() -> Option<String> {
    let place = cgroup::GroupParent::find(&Root::host());
    lacking(&[]).or_else(|| place.err().map(|e| e.to_string()))
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn run(spec: &BoxSpec) -> BoxReport {
    let report = cgroup_box::run(&Root::host(), spec, &AtomicBool::new(false)).unwrap();
    assert!(
        !groups().iter().any(|g| g.starts_with(&format!("box-{}-", std::process::id()))),
        "groups are left: {:?}",
        groups()
    );
    report
}

fn stressor_in(memory_mib: u64, spec: &StressorSpec) -> BoxSpec {
    BoxSpec { output: Output::Capture, ..BoxSpec::new(Bytes::mib(memory_mib), stressor(spec)) }
}

fn shell(script: &str) -> BoxSpec {
    BoxSpec { output: Output::Capture, ..BoxSpec::new(Bytes::mib(64), ["sh", "-c", script]) }
}

#[test]
fn exit_status_signal_and_output_are_the_commands() {
    if let Some(why) = no_groups() {
        return skip("exit_status_signal_and_output_are_the_commands", &why);
    }
    let _machine = lock_machine();
    let report = run(&shell("echo hello; exit 7"));
    assert_eq!((report.exit_code, report.signal, report.exit_code()), (Some(7), None, 7));
    assert_eq!(report.stdout.as_deref(), Some("hello\n"));
    assert!(report.peak > Bytes(0) && report.seconds > 0.0, "{report:?}");
    let report = run(&shell("kill -TERM $$"));
    assert_eq!((report.signal, report.oom_killed, report.exit_code()), (Some(15), false, 143));
    let report = run(&shell("kill -KILL $$"));
    assert!(!report.oom_killed, "nobody was short of memory");
    assert!(serde_json::to_string(&report).unwrap().contains("\"exit_code\":null"));
}

#[test]
fn a_missing_command_is_an_error_and_leaves_nothing() {
    if let Some(why) = no_groups() {
        return skip("a_missing_command_is_an_error_and_leaves_nothing", &why);
    }
    let _machine = lock_machine();
    let error = cgroup_box::run(
        &Root::host(),
        &BoxSpec::new(Bytes::mib(64), ["/no/such/program"]),
        &AtomicBool::new(false),
    );
    assert!(
        matches!(&error, Err(Error::Start { command, .. }) if command == "/no/such/program"),
        "{error:?}"
    );
    assert!(!groups().iter().any(|g| g.contains(&format!("-{}-", std::process::id()))));
}

#[test]
fn children_that_outlive_the_command_are_killed_with_the_box() {
    if let Some(why) = no_groups() {
        return skip("children_that_outlive_the_command_are_killed_with_the_box", &why);
    }
    let _machine = lock_machine();
    let report = run(&shell("setsid sleep 1000 & echo $!"));
    // until init reaps it, it is a zombie, which has no command line
    let command = std::fs::read(format!("/proc/{}/cmdline", report.stdout.unwrap().trim()));
    assert!(command.map_or(true, |text| text.is_empty()));
}

#[test]
fn a_stressor_too_large_for_its_box_is_killed_and_counted() {
    if let Some(why) = no_groups() {
        return skip("a_stressor_too_large_for_its_box_is_killed_and_counted", &why);
    }
    let _machine = lock_machine();
    let big = StressorSpec { size: Bytes::mib(128), ..StressorSpec::default() };
    let report = run(&BoxSpec { swap: Swap::Forbidden, ..stressor_in(64, &big) });
    assert!(report.oom_killed && report.oom_kills == 1 && !report.over_budget, "{report:?}");
    assert_eq!((report.signal, report.exit_code), (Some(9), None));
    assert!(report.peak <= Bytes::mib(64) && report.peak > Bytes::mib(60), "{report:?}");
    assert_eq!(report.most_swapped, Bytes(0));
}

#[test]
fn with_compressed_swap_it_finishes_and_its_pages_are_whole() {
    if let Some(why) = no_groups().or_else(|| lacking(&[ZRAM])) {
        return skip("with_compressed_swap_it_finishes_and_its_pages_are_whole", &why);
    }
    let _machine = lock_machine();
    let swap = ScratchSwap::zram(Bytes::mib(512));
    let report = run(&stressor_in(160, &StressorSpec { passes: Some(2), ..StressorSpec::default() }));
    drop(swap);
    eprintln!("{}", serde_json::to_string_pretty(&report).unwrap());
    assert_eq!((report.exit_code, report.oom_kills), (Some(0), 0), "{report:?}");
    let stressor: StressorReport = serde_json::from_str(report.stdout.as_deref().unwrap()).unwrap();
    assert_eq!((stressor.corrupted_pages, stressor.passes, stressor.size), (0, 2, Bytes::mib(256)));
    let ratio = report.ratio().unwrap();
    assert!((2.6..3.3).contains(&ratio), "the pages are 3 to 1, the pool is {ratio} to 1: {report:?}");
    assert!(report.peak <= Bytes::mib(200), "{report:?}");
    assert!(
        report.swap.pages_in > 10_000 && report.swap.pages_out > 20_000 && report.major_faults > 10_000,
        "{report:?}"
    );
    if std::path::Path::new("/proc/pressure").exists() {
        assert!(report.pressure.unwrap().some_us > 0, "{report:?}");
    }
}

#[test]
fn a_box_over_budget_is_killed_although_the_kernel_would_let_it_run() {
    if let Some(why) = no_groups().or_else(|| lacking(&[ZRAM])) {
        return skip("a_box_over_budget_is_killed_although_the_kernel_would_let_it_run", &why);
    }
    let _machine = lock_machine();
    let swap = ScratchSwap::zram(Bytes::mib(512));
    let spec = StressorSpec { ratio: 1.0, passes: Some(100), ..StressorSpec::default() };
    let report = run(&stressor_in(160, &spec));
    drop(swap);
    eprintln!("{}", serde_json::to_string_pretty(&report).unwrap());
    assert!(report.over_budget && report.oom_killed && report.oom_kills >= 1, "{report:?}");
    assert_eq!((report.exit_code, report.stdout.as_deref()), (None, Some("")), "before its passes are done");
}

#[test]
fn a_signal_to_the_supervisor_ends_the_box() {
    if let Some(why) = no_groups() {
        return skip("a_signal_to_the_supervisor_ends_the_box", &why);
    }
    let _machine = lock_machine();
    let stop = AtomicBool::new(false);
    let report = std::thread::scope(|threads| {
        let end = RaiseOnDrop(&stop);
        let running = threads.spawn(|| cgroup_box::run(&Root::host(), &shell("sleep 1000"), &stop));
        common::wait_for_box(std::process::id(), 1);
        drop(end);
        running.join().unwrap().unwrap()
    });
    assert!(report.interrupted && !report.oom_killed && report.exit_code.is_none(), "{report:?}");
}

/// The supervisor that the next test kills: this test program again.
#[test]
fn supervisor_to_be_killed() {
    if std::env::var_os("EKE_BOX_TO_BE_KILLED").is_some() {
        let _ =
            cgroup_box::run(&Root::host(), &shell("setsid sleep 1000 & sleep 1000"), &AtomicBool::new(false));
    }
}

#[test]
fn after_kill_9_of_the_supervisor_a_sweep_leaves_nothing() {
    if let Some(why) = no_groups() {
        return skip("after_kill_9_of_the_supervisor_a_sweep_leaves_nothing", &why);
    }
    let _machine = lock_machine();
    let arguments: [OsString; 2] = ["--exact".into(), "supervisor_to_be_killed".into()];
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .env("EKE_BOX_TO_BE_KILLED", "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let found = common::wait_for_box(supervisor.id(), 2);
    assert!(cgroup::sweep(&Root::host()).unwrap().is_empty(), "its owner lives");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(groups().contains(&found), "SIGKILL cannot be caught");
    let swept = cgroup::sweep(&Root::host()).unwrap();
    assert!(swept.contains(&found), "{swept:?}");
    assert!(!groups().contains(&found));
}
