//! The program: two at once, a signal, a crash, a restart. Applied changes stay in place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{Process, connect, spawn};
use eke_agent::socket;
use eke_apply::session::Session;
use eke_apply::{journal, state};
use eke_model::applied::Applied;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::program::{end_of, output, text_of};
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, getpriority_process, kill_process};

fn with_a_plan() -> Arc<FakeKernel> {
    let machine = FakeKernel::new();
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(Step::set("vm.swappiness", 180), Reason::new("a test"));
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
    state::save(
        &machine.root(),
        state::APPLIED,
        &Applied { unix_s: 1, plans: vec![plan], ..Applied::default() },
    )
    .unwrap();
    machine
}

fn is_as_applied(machine: &Arc<FakeKernel>) -> bool {
    machine.root().read("proc/sys/vm/swappiness").unwrap() == "180\n"
        && journal::entries(&machine.root()).unwrap().len() == 1
}

fn signal(process: &Process, signal: Signal) {
    kill_process(Pid::from_child(&process.0), signal).unwrap();
}

fn events(machine: &Arc<FakeKernel>) -> Vec<String> {
    let snapshot = connect(&machine.dir().join(socket::FILE)).status();
    snapshot.events.into_iter().map(|e| e.text).collect()
}

fn log_of(process: &mut Process) -> String {
    text_of(process.0.stderr.take().unwrap())
}

#[test]
fn sigterm_ends_it_with_0_and_leaves_everything_in_place() {
    let machine = with_a_plan();
    let mut agent = spawn(machine.dir());
    signal(&agent, Signal::TERM);
    assert_eq!(end_of(&mut agent.0).code(), Some(0));
    assert!(is_as_applied(&machine));
    assert!(!machine.root().exists(socket::FILE));
    let log = log_of(&mut agent);
    assert!(log.contains("everything that is applied stays in place"), "{log}");
}

#[test]
fn a_second_agent_names_the_first_and_exits_with_1() {
    let machine = with_a_plan();
    let first = spawn(machine.dir());
    let mut second = spawn(machine.dir());
    assert_eq!(end_of(&mut second.0).code(), Some(1));
    let log = log_of(&mut second);
    assert!(log.contains(&format!("an agent runs already (process {})", first.0.id())), "{log}");
    assert!(!events(&machine).is_empty(), "the first still answers");
}

#[test]
fn after_kill_9_the_next_agent_adopts() {
    let machine = with_a_plan();
    let mut agent = spawn(machine.dir());
    signal(&agent, Signal::KILL);
    end_of(&mut agent.0);
    assert!(is_as_applied(&machine) && machine.root().exists(socket::FILE));
    let next = spawn(machine.dir());
    assert_eq!(events(&machine)[0], "Adopted the applied plan; changes in force: 1.");
    assert!(is_as_applied(&machine));
    signal(&next, Signal::INT);
    wait_for("the socket to go", || !machine.root().exists(socket::FILE));
    assert!(is_as_applied(&machine));
}

/// The unit's way: nothing waits for the plan, because this process applies it.
#[test]
fn with_up_the_stored_plan_is_applied_first() {
    let (machine, programs) = (FakeKernel::new(), tempfile::tempdir().unwrap());
    let agent = programs.path().join("eke-agent");
    // cp(1), because a child of another test could inherit this process's descriptor for writing.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_eke-agent")).arg(&agent).status().unwrap().success());
    let start = |status: i32| {
        let eke = programs.path().join("eke");
        let script =
            format!("#!/bin/sh\necho \"$@\" >{}\nexit {status}\n", programs.path().join("words").display());
        eke_testkit::tree::put(programs.path(), "eke", &script);
        std::fs::set_permissions(eke, Permissions::from_mode(0o755)).unwrap();
        common::spawn_command(Command::new(&agent).arg("--up"), machine.dir(), Stdio::piped())
    };
    let mut failed = start(1);
    assert_eq!(end_of(&mut failed.0).code(), Some(1));
    let words = std::fs::read_to_string(programs.path().join("words")).unwrap();
    assert!(words.starts_with("up --boot --agent none --root /"), "{words}");
    for done in [0, 5] {
        let mut agent = start(done);
        assert_eq!(events(&machine).len(), 1, "it answers after status {done}");
        signal(&agent, Signal::TERM);
        assert_eq!(end_of(&mut agent.0).code(), Some(0));
    }
    let mut by_hand = spawn(machine.dir());
    let mut service = start(0);
    assert_eq!(end_of(&mut by_hand.0).code(), Some(0), "the service takes over");
    wait_for("the service's socket", || machine.root().exists(socket::FILE));
    assert_eq!(events(&machine).len(), 1);
    signal(&service, Signal::TERM);
    assert_eq!(end_of(&mut service.0).code(), Some(0));
}

#[test]
fn wrong_words_and_wrong_settings_are_2() {
    let machine = FakeKernel::new();
    let run = |words: &[&str]| output(Command::new(env!("CARGO_BIN_EXE_eke-agent")).args(words));
    assert_eq!(run(&["--frobnicate"]).status.code(), Some(2));
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    let mut full = Command::new(env!("CARGO_BIN_EXE_eke-agent"));
    full.arg("--help").stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_eq!(end_of(&mut full.stderr(Stdio::null()).spawn().unwrap()).code(), Some(1));
    let mut no_text = Command::new(env!("CARGO_BIN_EXE_eke-agent"));
    let no_text = output(no_text.arg(std::ffi::OsStr::from_bytes(b"\xff")));
    let said = String::from_utf8(no_text.stderr).unwrap();
    assert!(no_text.status.code() == Some(2) && said.contains("is not UTF-8"), "{said}");
    machine.put("etc/eke/eke.toml", "[swap]\npool_percent = 99\n");
    let output = run(&["--root", &machine.dir().display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("eke.toml:2: ") && log.contains("from 10 to 90"), "{log}");
}

/// Without a service manager, the agent's standard error is a file in memory that nothing else rotates.
#[test]
fn an_own_log_that_is_too_long_is_emptied_and_its_end_kept() {
    let machine = FakeKernel::new();
    let path = machine.dir().join("run/eke/agent.log");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    log.write_all(&vec![b'x'; 3 << 20]).unwrap();
    let mut agent = common::spawn_logging(machine.dir(), log.into());
    signal(&agent, Signal::TERM);
    assert_eq!(end_of(&mut agent.0).code(), Some(0));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.len() < 1 << 20 && text.contains("everything that is applied stays"),
        "{} bytes",
        text.len()
    );
    let kept = std::fs::metadata(path.with_extension("log.1")).unwrap().len();
    assert_eq!(kept, 1 << 20);
}

/// `eke up` starts it from a shell whose limits somebody set. Hard ones are lifted only with CAP_SYS_RESOURCE, so these are not.
#[test]
fn limits_of_a_shell_do_not_bind_it() {
    let machine = FakeKernel::new();
    let mut shell = Command::new("/bin/sh");
    let script = "ulimit -S -n 12; ulimit -S -f 0; ulimit -S -t 5; exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_eke-agent")]);
    let agent = common::spawn_command(&mut shell, machine.dir(), Stdio::null());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", agent.0.id())).unwrap();
    let of = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("Max open files")[0], "1024", "{limits}");
    for name in ["Max file size", "Max cpu time"] {
        assert_eq!(of(name)[0], of(name)[1], "{limits}");
    }
    assert!(connect(&machine.dir().join(socket::FILE)).status().agent.is_some());
}

/// The `LimitFSIZE=`, `LimitNOFILE=`, `Nice=` and `OOMScoreAdjust=` of a unit are an administrator's. Process 1 of a PID namespace stands for systemd.
#[test]
fn limits_and_priority_of_a_unit_stay() {
    let name = "limits_and_priority_of_a_unit_stay";
    if !rustix::process::geteuid().is_root() {
        return skip(name, "a PID namespace needs root");
    }
    let machine = FakeKernel::new();
    // `nice` adds to the priority that the tests were started with.
    let niced = (getpriority_process(None).unwrap() + 5).min(19);
    machine.put("proc/self/oom_score_adj", "-500\n");
    let mut init = Command::new("unshare");
    let script = "ulimit -S -n 100; ulimit -S -f 4096; INVOCATION_ID=1 \"$0\" \"$@\" & wait";
    init.args(["--pid", "--fork", "--kill-child", "nice", "-n", "5", "/bin/sh", "-c", script]);
    init.arg(env!("CARGO_BIN_EXE_eke-agent")).arg("--root").arg(machine.dir());
    let _init = Process(init.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let agent =
        wait_for("the agent to listen", || UnixStream::connect(machine.dir().join(socket::FILE)).ok());
    let pid = socket_peercred(&agent).unwrap().pid;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(soft("Max open files").as_deref(), Some("100"), "{limits}");
    assert_ne!(soft("Max file size").as_deref(), Some("unlimited"), "{limits}");
    assert_eq!(getpriority_process(Some(pid)).unwrap(), niced);
    assert_eq!(machine.root().read("proc/self/oom_score_adj").unwrap(), "-500\n");
}
