//! Plans and their application on the real kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Public, build_agent, eke, machine};
use eke_testkit::real::{MachineLock, lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;

const ZRAM: &[&str] = &["/sys/class/zram-control"];

/// The machine for one test, which shares it with no other. Drop runs `down`.
struct Arranged {
    before: String,
    _lock: MachineLock,
}

impl Arranged {
    /// `None`: the machine lacks something, which was printed.
    fn new(test: &str) -> Option<Self> {
        Self::needing(test, &[])
    }

    /// Needs these files, too.
    fn needing(test: &str, files: &[&str]) -> Option<Self> {
        if let Some(why) = lacking(&[ZRAM, files].concat()) {
            skip(test, &why);
            return None;
        }
        build_agent();
        let lock = lock_machine();
        Some(Self { before: machine(), _lock: lock })
    }

    #[track_caller]
    fn is_as_before(&self) {
        assert_eq!(machine(), self.before);
    }
}

impl Drop for Arranged {
    fn drop(&mut self) {
        eke(&["down"]);
    }
}

fn agent_pid() -> u32 {
    eke(&["status", "--json"]).json()["agent"]["pid"].as_u64().unwrap() as u32
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn zram_is_on() -> bool {
    std::fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram")
}

#[test]
fn plan_leaves_everything_as_it_was() {
    let Some(arranged) = Arranged::new("plan_leaves_everything_as_it_was") else { return };
    let plan = eke(&["plan", "--json"]);
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    arranged.is_as_before();
    assert_eq!(plan.json()["measured"]["estimated"], false);
    assert!(plan.json()["decision"]["plan"]["steps"].is_array());
}

/// The user nobody has no process of its own to sample.
#[test]
fn a_user_who_may_read_no_memory_gets_a_plan_of_estimates() {
    if let Some(why) = lacking(ZRAM) {
        return skip("a_user_who_may_read_no_memory", &why);
    }
    let plan = Public::new().as_nobody(&["plan", "--json"]);
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    let plan = plan.json();
    let (measured, decision) = (&plan["measured"], &plan["decision"]);
    assert!(measured["estimated"] == true && measured["pages"]["sampled"].as_u64() > Some(256), "{measured}");
    assert!(decision["plan"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{decision}");
    let stands_in =
        |u: &serde_json::Value| u["why"].as_str().is_some_and(|why| why.contains("stand in for them"));
    let others_run = measured["pages"]["processes"].as_u64() > Some(0);
    assert!(others_run || measured["unmeasured"].as_array().unwrap().iter().any(stands_in), "{measured}");
}

#[test]
fn up_and_down_and_each_of_them_twice() {
    let Some(arranged) = Arranged::new("up_and_down") else { return };
    assert!(eke(&["down"]).stdout.contains("Nothing to undo"));
    let up = eke(&["up", "--size", "64M"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    assert!(up.stdout.contains("chosen") && zram_is_on());
    let status = eke(&["status", "--json"]);
    assert_eq!(status.status, Some(0), "{}", status.shown());
    assert!(status.json()["agent"]["pid"].as_u64().unwrap() > 1 && status.json()["applied"] == true);
    let again = eke(&["up"]);
    assert!(again.stdout.contains("is up already") && again.status == Some(0), "{}", again.shown());
    assert!(eke(&["down", "--print"]).stdout.contains("hot_remove"));
    assert!(zram_is_on(), "--print changes nothing");
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    arranged.is_as_before();
    assert_eq!(eke(&["status"]).status, Some(3));
}

#[test]
fn the_printed_undo_removes_the_swap() {
    let Some(arranged) = Arranged::new("the_printed_undo") else { return };
    let up = eke(&["up", "--size", "64M", "--agent", "none"]);
    assert!(up.status == Some(0) && zram_is_on(), "{}", up.shown());
    let script = eke(&["down", "--print"]).stdout;
    let ran = common::ran(Command::new("sh").args(["-c", &script]));
    assert!(!zram_is_on(), "{script}\n{}", ran.shown());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

#[test]
fn a_killed_agent_is_no_obstacle() {
    let Some(arranged) = Arranged::new("a_killed_agent") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let pid = agent_pid();
    signal(pid, "-KILL");
    wait_for("the agent to be gone", || eke(&["status"]).status == Some(3));
    assert!(zram_is_on());
    let again = eke(&["up"]);
    assert_eq!(again.status, Some(0), "{}", again.shown());
    assert_eq!(eke(&["status"]).status, Some(0), "a new agent adopts");
    signal(agent_pid(), "-KILL");
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// `swapoff -a` takes eke's swap, too.
#[test]
fn up_swaps_on_again_what_somebody_else_swapped_off() {
    let Some(arranged) = Arranged::new("up_swaps_on_again") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let swaps = || std::fs::read_to_string("/proc/swaps").unwrap();
    let on = swaps();
    let device = on.split_whitespace().find(|word| word.starts_with("/dev/zram")).unwrap();
    assert!(Command::new("swapoff").arg(device).status().unwrap().success());
    let reported =
        |e: &serde_json::Value| e["text"].as_str().unwrap().contains("was swapped off by somebody");
    wait_for("the agent to report it", || {
        let status = eke(&["status", "--json"]).json();
        status["events"].as_array().unwrap().iter().any(reported)
    });
    assert!(eke(&["status"]).stdout.contains("but no compressed swap is on"));
    let again = eke(&["up"]);
    assert!(again.status == Some(0) && again.stdout.contains("is swapped on again"), "{}", again.shown());
    assert_eq!(swaps(), on);
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// As a program does it that sets up a device of the same name.
#[test]
fn up_says_what_to_do_when_somebody_else_reset_its_swap() {
    let Some(arranged) = Arranged::new("up_says_what_to_do") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    let device = swaps.split_whitespace().find(|word| word.starts_with("/dev/zram")).unwrap();
    let reset = format!("/sys/block/{}/reset", device.trim_start_matches("/dev/"));
    let by_hand = format!("swapoff {device} && echo 1 >{reset}");
    assert!(Command::new("sh").args(["-c", &by_hand]).status().unwrap().success());
    let reported = |e: &serde_json::Value| e["text"].as_str().unwrap().contains("was removed by somebody");
    wait_for("the agent to report it", || {
        let status = eke(&["status", "--json"]).json();
        status["events"].as_array().unwrap().iter().any(reported)
    });
    let again = eke(&["up"]);
    assert!(again.status == Some(5) && again.stderr.contains("`eke down` and then"), "{}", again.shown());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
    let anew = eke(&["up", "--size", "64M", "--agent", "none"]);
    assert!(anew.status == Some(0) && zram_is_on(), "{}", anew.shown());
}

#[test]
fn a_down_while_up_measures_is_the_last_word() {
    let Some(arranged) = Arranged::new("a_down_while_up_measures") else { return };
    let mut up = common::command(&["up", "--size", "64M"]);
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the measurement", || machine() != arranged.before);
    // It may find the lock taken.
    eke(&["down"]);
    let up: common::Ran = eke_testkit::program::output_of(up).into();
    assert!(up.status == Some(1) && up.stderr.contains("`eke down` was run meanwhile"), "{}", up.shown());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// As a package does it: the program is replaced while it runs, the unit is restarted, and its first command is
/// `eke up --boot`.
#[test]
fn an_upgrade_leaves_swap_on_and_the_journal_as_it_was() {
    let Some(arranged) = Arranged::new("an_upgrade_leaves_swap_on") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let journal = || std::fs::read_to_string("/run/eke/journal.jsonl").unwrap();
    let (written, pid) = (journal(), eke(&["status", "--json"]).json()["agent"]["pid"].as_u64().unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-agent");
    let new = program.with_extension("dpkg-new");
    std::fs::copy(&program, &new).unwrap();
    std::fs::rename(&new, &program).unwrap();
    signal(pid as u32, "-TERM");
    wait_for("the agent to be gone", || eke(&["status"]).status == Some(3));
    assert!(zram_is_on() && journal() == written);
    let again = eke(&["up", "--boot"]);
    assert!(again.status == Some(0) && again.stdout.contains("is up already"), "{}", again.shown());
    let status = eke(&["status", "--json"]).json();
    assert_ne!(status["agent"]["pid"].as_u64().unwrap(), pid);
    let adopted = |e: &serde_json::Value| e["text"].as_str().unwrap().starts_with("Adopted the applied plan");
    assert!(status["events"].as_array().unwrap().iter().any(adopted), "{status}");
    assert!(zram_is_on() && journal() == written);
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    arranged.is_as_before();
}

/// A process that SIGKILL does not end, as in an uninterruptible sleep. Drop releases it.
struct Frozen(std::path::PathBuf);

impl Frozen {
    fn new(pid: u32) -> Self {
        let group = Path::new(FREEZER).join(format!("eke-test-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let frozen = Self(group);
        frozen.write("cgroup.procs", &pid.to_string());
        frozen.write("freezer.state", "FROZEN");
        wait_for("it to be frozen", || {
            std::fs::read_to_string(frozen.0.join("freezer.state")).unwrap().starts_with("FROZEN")
        });
        frozen
    }

    fn write(&self, file: &str, value: &str) {
        std::fs::OpenOptions::new()
            .write(true)
            .open(self.0.join(file))
            .unwrap()
            .write_all(value.as_bytes())
            .unwrap();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.write("freezer.state", "THAWED");
        let until = Instant::now() + Duration::from_secs(10);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The freezer of cgroup v1, which also blocks signals.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

#[test]
fn an_agent_that_the_kernel_does_not_let_go_keeps_nothing_from_being_undone() {
    let freezer = ["/sys/fs/cgroup/freezer/cgroup.procs"];
    let Some(arranged) = Arranged::needing("an_agent_that_the_kernel_does_not_let_go", &freezer) else {
        return;
    };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let pid = agent_pid();
    let frozen = Frozen::new(pid);
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(5), "{}", down.shown());
    assert!(down.stdout.contains(&format!("the agent (process {pid}) hangs")), "{}", down.shown());
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    assert!(!swaps.contains("zram"), "{swaps}{}", down.shown());
    drop(frozen);
    wait_for("the agent to be gone", || !Path::new(&format!("/proc/{pid}/cwd")).exists());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

#[test]
fn sigterm_to_the_agent_leaves_what_is_applied() {
    let Some(arranged) = Arranged::new("sigterm") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    signal(agent_pid(), "-TERM");
    wait_for("the agent to be gone", || eke(&["status"]).status == Some(3));
    assert!(zram_is_on());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

#[test]
fn run_shows_it_live_and_ctrl_c_puts_everything_back() {
    let Some(arranged) = Arranged::new("run_ctrl_c") else { return };
    let child = common::command(&["run", "--size", "64M"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("zram swap", zram_is_on);
    wait_for("the agent", || eke(&["status"]).status == Some(0));
    signal(child.id(), "-INT");
    let ran: common::Ran = eke_testkit::program::output_of(child).into();
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(
        ran.stdout.contains("Ctrl-C restores everything")
            && ran.stdout.contains("Everything is as it was before eke."),
        "{}",
        ran.shown()
    );
    arranged.is_as_before();
}

#[test]
fn a_hanging_agent_is_no_obstacle() {
    let Some(arranged) = Arranged::new("a_hanging_agent") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    signal(agent_pid(), "-STOP");
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    arranged.is_as_before();
}

/// As in a container: a read of `hot_add` would make a device of the host that could not be removed.
#[test]
fn a_read_only_sys_gets_estimates_and_no_device() {
    let Some(arranged) = Arranged::new("a_read_only_sys") else { return };
    let script = format!(
        "mount --bind /sys /sys && mount -o remount,bind,ro /sys && {} plan --json",
        env!("CARGO_BIN_EXE_eke")
    );
    let plan = common::ran(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    if !plan.stderr.is_empty() && plan.stdout.is_empty() {
        return skip("a_read_only_sys", plan.stderr.trim());
    }
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    assert_eq!(plan.json()["measured"]["estimated"], true);
    arranged.is_as_before();
}

#[test]
fn two_ups_at_once_apply_one_plan() {
    let Some(arranged) = Arranged::new("two_ups_at_once") else { return };
    let up = || {
        common::command(&["up", "--size", "64M"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [up(), up()].map(|child| common::Ran::from(eke_testkit::program::output_of(child)));
    assert!(both.iter().any(|r| r.status == Some(0)), "{both:?}");
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    assert_eq!(swaps.matches("/dev/zram").count(), 1, "{both:?}");
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// The leftovers of a killed `up` are no plan: the next `up` undoes them and applies a whole plan.
#[test]
fn half_a_plan_is_not_up() {
    let Some(arranged) = Arranged::new("half_a_plan") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    signal(agent_pid(), "-KILL");
    std::fs::remove_file("/run/eke/applied.json").unwrap();
    let again = eke(&["up", "--size", "32M"]);
    assert_eq!(again.status, Some(0), "{}", again.shown());
    assert!(again.stdout.contains("Applied."), "{}", again.shown());
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    assert_eq!(swaps.matches("/dev/zram").count(), 1, "{swaps}");
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// A service restarted after `down` must not apply again.
#[test]
fn after_down_the_boot_service_applies_nothing() {
    let Some(arranged) = Arranged::new("after_down_the_boot_service") else { return };
    assert_eq!(eke(&["down"]).status, Some(0));
    let boot = eke(&["up", "--boot", "--agent", "none"]);
    assert_eq!(boot.status, Some(0), "{}", boot.shown());
    arranged.is_as_before();
    let up = eke(&["up", "--size", "32M", "--agent", "none"]);
    assert!(up.status == Some(0) && zram_is_on(), "{}", up.shown());
}

#[test]
fn the_boot_service_says_that_its_numbers_are_stored_ones() {
    let Some(arranged) = Arranged::new("the_boot_service_says") else { return };
    let up = eke(&["up", "--size", "32M", "--agent", "none"]);
    assert!(up.status == Some(0) && !up.stdout.contains("stored numbers"), "{}", up.shown());
    assert_eq!(eke(&["down"]).status, Some(0));
    std::fs::remove_file("/run/eke/down").unwrap();
    let boot = eke(&["up", "--boot", "--size", "32M", "--agent", "none"]);
    assert!(boot.stdout.contains("These are stored numbers of"), "{}", boot.shown());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

/// Without a measurement, the first boot of an image or each one of a netbooted client: the desktop waits for it.
#[test]
fn the_boot_service_measures_the_usual_algorithms_alone() {
    let Some(arranged) = Arranged::new("the_boot_service_measures") else { return };
    let measured = Path::new("/var/lib/eke/measured.json");
    for kept in [measured, Path::new("/run/eke/down")] {
        let _ = std::fs::remove_file(kept);
    }
    let boot = eke(&["--json", "up", "--boot", "--size", "32M", "--agent", "none"]);
    assert_eq!(boot.status, Some(0), "{}", boot.shown());
    let rows = boot.json()["plan"]["measured"]["algorithms"].as_array().unwrap().clone();
    let usual = |row: &serde_json::Value| ["lzo-rle", "lz4", "zstd"].contains(&row["name"].as_str().unwrap());
    assert!(!rows.is_empty() && rows.iter().all(usual), "{rows:#?}");
    assert!(rows.iter().all(|row| row["params"].is_null() && row["dictionary"].is_null()), "{rows:#?}");
    assert!(zram_is_on() && measured.exists());
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

#[test]
fn a_reader_that_is_gone_does_not_stop_it_half_way() {
    let Some(arranged) = Arranged::new("a_reader_that_is_gone") else { return };
    let mut child = common::command(&["run", "--size", "64M"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(eke_testkit::program::end_of(&mut child).code().is_some(), "it ended by itself");
    arranged.is_as_before();
}

/// `kill -9` of `eke run` at many moments: while it measures, applies, watches.
#[test]
fn kill_9_at_any_moment_and_down_puts_everything_back() {
    let Some(arranged) = Arranged::new("kill_9") else { return };
    for after_ms in [30, 150, 400, 700, 900, 1100, 1300, 1600, 2200, 3000] {
        let mut child = common::command(&["run", "--size", "64M"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(after_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let down = eke(&["down"]);
        assert_eq!(down.status, Some(0), "{}", down.shown());
        assert_eq!(machine(), arranged.before, "killed after {after_ms} ms");
    }
}

/// As after an upgrade: the file that the agent executes is gone, and another one has its name.
#[test]
fn up_replaces_an_agent_of_an_older_version() {
    let Some(arranged) = Arranged::new("up_replaces_an_agent") else { return };
    let dir = tempfile::tempdir().unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_eke"));
    // Copied by another process: a child of another test could inherit the file open for writing (ETXTBSY).
    let copy = |name: &str| {
        let copied = Command::new("cp").arg(built.with_file_name(name)).arg(dir.path()).status();
        assert!(copied.unwrap().success());
    };
    ["eke", "eke-agent"].into_iter().for_each(copy);
    let config = dir.path().join("eke.toml");
    eke_testkit::tree::put(dir.path(), "eke.toml", "[prefetch]\nenabled = \"off\"\n");
    let copied = |args: &[&str]| common::ran(Command::new(dir.path().join("eke")).args(args));
    let up = copied(&["up", "--size", "64M", "--config", config.to_str().unwrap()]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    let first = agent_pid();
    assert!(!copied(&["status"]).stderr.contains("older version"));
    std::fs::remove_file(dir.path().join("eke-agent")).unwrap();
    copy("eke-agent");
    let status = copied(&["status"]);
    assert!(status.stderr.contains("the agent is of an older version"), "{}", status.shown());
    let again = copied(&["up"]);
    assert!(again.status == Some(0) && again.stdout.contains("is up already"), "{}", again.shown());
    let second = agent_pid();
    assert_ne!(first, second);
    let words = std::fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
    assert!(words.contains(config.to_str().unwrap()), "{words:?}");
    assert!(!copied(&["status"]).stderr.contains("older version"));
    assert_eq!(eke(&["down"]).status, Some(0));
    arranged.is_as_before();
}

#[test]
fn two_agents_at_once_are_one_too_many() {
    let Some(_arranged) = Arranged::new("two_agents") else { return };
    assert_eq!(eke(&["up", "--size", "64M"]).status, Some(0));
    let agent = std::path::Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-agent");
    let second = common::ran(&mut Command::new(agent));
    assert_eq!(second.status, Some(1), "{}", second.shown());
    let pid = eke(&["status", "--json"]).json()["agent"]["pid"].to_string();
    assert!(second.stderr.contains(&pid), "{}", second.stderr);
}
