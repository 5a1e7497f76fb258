//! The programs of launches, and many starts at once.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use eke_prefetch_model::learn::Exec;
use eke_prefetch_model::{LaunchEnd, Program};
use eke_prefetchd::trace::{Observation, TraceMethod};
use eke_testkit::real::skip;

use crate::tracing::{self, Disk, Session, touched};
use crate::{pages, start};

#[test]
fn scripts_are_programs_of_their_own_whatever_their_names() {
    let Some(_machine) = start("scripts_are_programs_of_their_own_whatever_their_names") else { return };
    let disk = Disk::new();
    let name = disk.place().join(OsStr::from_bytes(b"a \n\xff script"));
    std::fs::write(&name, format!("#!/bin/sh\n[ -e '{}' ]\n", disk.path("data").display())).unwrap();
    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mut child = Command::new(&name).spawn().unwrap();
    let pid = child.id();
    let program = session.until("the script", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => exec.program.clone(),
        _ => None,
    });
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert_eq!(program.script.as_ref(), Some(&name));
    assert_eq!(program.exe, std::fs::canonicalize("/bin/sh").unwrap());
    let long = session.until("its end", |observation| match observation {
        Observation::Exit { pid: ended, at } if *ended == pid => Some(*at),
        _ => None,
    });
    assert!(!long.is_zero());
}

/// As flatpak and bubblewrap show an application its files.
#[test]
fn a_script_that_another_namespace_shows_elsewhere_is_the_hosts_file() {
    const TEST: &str = "a_script_that_another_namespace_shows_elsewhere_is_the_hosts_file";
    let Some(_machine) = start(TEST) else { return };
    if let Some(why) = eke_testkit::real::no_program(&["unshare"]) {
        return skip(TEST, &why);
    }
    let disk = Disk::new();
    std::fs::create_dir(disk.path("app")).unwrap();
    std::fs::write(disk.path("app/tool"), "read go\n").unwrap();
    let show = format!("mount --bind '{}' /opt && exec sh /opt/tool", disk.path("app").display());
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mut child =
        Command::new("unshare").args(["--mount", "sh", "-c", &show]).stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let is_tool = |program: &Program| program.script.as_ref() == Some(&disk.path("app/tool"));
    session.until("the host's file", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => exec.program.clone().filter(is_tool),
        _ => None,
    });
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(eke_testkit::program::end_of(&mut child).success());
}

#[test]
fn an_argument_that_is_no_file_names_no_script() {
    let Some(_machine) = start("an_argument_that_is_no_file_names_no_script") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // The shell finds no such script, and fails.
    let mut child = Command::new("/bin/sh").args(["-u", "mail bob"]).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let program = session.until("the shell", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => exec.program.clone(),
        _ => None,
    });
    assert!(!eke_testkit::program::end_of(&mut child).success());
    assert_eq!(program, Program::of_exe(std::fs::canonicalize("/bin/sh").unwrap()));
}

#[test]
fn a_set_uid_program_is_learned_for_the_user_that_started_it() {
    let test = "a_set_uid_program_is_learned_for_the_user_that_started_it";
    let Some(_machine) = start(test) else { return };
    if let Some(why) = eke_testkit::real::no_program(&["setpriv"]) {
        return skip(test, &why);
    }
    const NOBODY: u32 = 65_534;
    let disk = Disk::new();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(disk.place().parent().unwrap(), 0o755);
    mode(&disk.path("start"), 0o4755);
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let mut child = Command::new("setpriv")
        .args([&format!("--reuid={NOBODY}"), "--clear-groups", "--"])
        .arg(disk.path("start"))
        .args(["-c", "sleep 1; dd if=data of=/dev/null bs=4096 count=2"])
        .current_dir(disk.place())
        .env("PATH", format!("{}:/usr/bin:/bin", disk.place().with_file_name("tools").display()))
        .spawn()
        .unwrap();
    let (pid, exe) = (child.id(), disk.path("start"));
    let (uid, id) = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, id)
            if exec.pid == pid && exec.program.as_ref().is_some_and(|p| p.exe == exe) =>
        {
            Some((exec.uid, (*id)?))
        }
        _ => None,
    });
    assert_eq!(uid, NOBODY);
    let launch = session.finished(pid, id);
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert_eq!(touched(&launch, &disk.path("data")).unwrap().pages, pages(&[(0, 2)]));
}

#[test]
fn a_program_that_forks_at_once_and_exits_is_learned() {
    let Some(_machine) = start("a_program_that_forks_at_once_and_exits_is_learned") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // As a daemon: when its exec is seen, the first process is gone. The shell itself reads, not a program that it starts.
    let script = "( sleep 1; read line < data; read line < many/\"a file of a long name 7\" ) & exit 0";
    let mut child = Command::new(disk.path("start"));
    let mut child =
        child.args(["-c", script]).current_dir(disk.place()).stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    assert!(eke_testkit::program::end_of(&mut child).success());
    let id = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, begun) if exec.pid == pid => *begun,
        _ => None,
    });
    let launch = session.launch_of("the launch", id);
    assert_eq!(launch.ended, LaunchEnd::Exited);
    assert!(touched(&launch, &disk.path("data")).is_some(), "{launch:?}");
    assert!(touched(&launch, &disk.path("many/a file of a long name 7")).is_some(), "{launch:?}");
}

#[test]
fn a_thousand_children_are_starts_of_their_own() {
    let Some(_machine) = start("a_thousand_children_are_starts_of_their_own") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let script = "i=0; while [ $i -lt 1000 ]; do (exec /bin/true) & i=$((i+1)); done; wait; dd if=data of=/dev/null bs=4096 count=1";
    let launch = session.launch(script);
    let is_child = |exec: &&Exec| exec.program.as_ref().is_some_and(|program| program.exe.ends_with("true"));
    let children: Vec<&Exec> = session.execs().filter(is_child).collect();
    assert!(children.iter().all(|exec| exec.launch.is_none()));
    assert_eq!(launch.ended == LaunchEnd::Lost, session.has_lost());
    if !session.has_lost() {
        assert!(children.len() >= 1000);
        assert_eq!(launch.ended, LaunchEnd::Exited);
        assert_eq!(touched(&launch, &disk.path("data")).unwrap().pages, pages(&[(0, 1)]));
        assert!(touched(&launch, Path::new("/usr/bin/true")).is_none(), "{launch:?}");
    }
    assert_eq!(session.learning(), 0);
}

/// Another program may be at its path, and it has no path at a later start.
#[test]
fn a_deleted_executable_is_no_program() {
    let Some(_machine) = start("a_deleted_executable_is_no_program") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let gone = disk.path("gone");
    assert!(Command::new("cp").arg(disk.path("start")).arg(&gone).status().unwrap().success());
    let script = "exec 5<gone; rm gone; exec /proc/self/fd/5 -c :";
    let shell =
        |script| Command::new(disk.path("start")).args(["-c", script]).current_dir(disk.place()).spawn();
    let mut child = shell(script).unwrap();
    let pid = child.id();
    session.until("its end", |observation| match observation {
        Observation::Exit { pid: ended, .. } if *ended == pid => Some(()),
        _ => None,
    });
    assert!(eke_testkit::program::end_of(&mut child).success());
    let programs: Vec<_> =
        session.execs().filter(|exec| exec.pid == pid).map(|exec| exec.program.clone()).collect();
    assert_eq!(programs, [Some(Program::of_exe(disk.path("start"))), None]);
}

#[test]
fn pages_that_overflow_their_buffer_drop_no_exec_and_no_exit() {
    let Some(_machine) = start("pages_that_overflow_their_buffer_drop_no_exec_and_no_exit") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    // Each read of a page is an event, and nobody takes the events meanwhile.
    let mut child = tracing::shell(
        &disk.place(),
        &format!("dd if='{}' of=/dev/null bs=4096 count=40000; true", disk.huge().display()),
    );
    let pid = child.id();
    session.until("the exec", |observation| match observation {
        Observation::Exec(exec, begun) if exec.pid == pid => *begun,
        _ => None,
    });
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(eke_testkit::program::end_of(&mut child).success());
    session.until("the shell's end", |observation| match observation {
        Observation::Exit { pid: ended, .. } if *ended == pid => Some(()),
        _ => None,
    });
    let is_dd = |exec: &&Exec| exec.program.as_ref().is_some_and(|program| program.exe.ends_with("dd"));
    assert_eq!(session.execs().filter(is_dd).count(), 1);
    session.until("the loss", |observation| matches!(observation, Observation::Lost).then_some(()));
}

#[test]
fn a_burst_of_execs_is_traced_or_counted_as_lost() {
    let Some(_machine) = start("a_burst_of_execs_is_traced_or_counted_as_lost") else { return };
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let script = "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done";
    let mut shell = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
    let pid = shell.id();
    while shell.try_wait().unwrap().is_none() {
        session.poll();
    }
    session.until("its end", |observation| {
        matches!(observation, Observation::Exit { pid: ended, .. } if *ended == pid).then_some(())
    });
    let groups: Vec<u32> = session.execs().filter(|exec| exec.parent == pid).map(|exec| exec.group).collect();
    let own = rustix::process::getpgrp().as_raw_nonzero().get().unsigned_abs();
    assert!(groups.iter().all(|group| *group == own), "all are of the group {own}");
    let seen = groups.len();
    assert!(seen == 2000 || session.has_lost(), "{seen} seen, and no loss was reported");
    assert_eq!(session.learning(), 0);
}

/// By number of audit, as a log-in sets it (pam_loginuid). A process without one may set it once.
#[test]
fn an_exec_has_its_audit_session_and_its_executable() {
    use std::os::unix::fs::MetadataExt;
    let test = "an_exec_has_its_audit_session_and_its_executable";
    let Some(_machine) = start(test) else { return };
    if std::fs::read_to_string("/proc/self/sessionid").ok().as_deref() != Some("4294967295") {
        return skip(test, "this process has a session already, or the kernel has no audit");
    }
    let disk = Disk::new();
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let program = disk.path("start");
    let script = "echo 1000 > /proc/self/loginuid && cat /proc/self/sessionid && exec \"$0\" -c true";
    let mut child =
        Command::new("sh").args(["-c", script]).arg(&program).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let exec = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, _)
            if exec.pid == pid && exec.program.as_ref().is_some_and(|of| of.exe == program) =>
        {
            Some(exec.clone())
        }
        _ => None,
    });
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert_eq!(exec.session, said.trim().parse().ok());
    assert_eq!(exec.ino, Some(std::fs::metadata(&program).unwrap().ino()));
    let first = session.execs().find(|exec| exec.pid == pid).map(|exec| exec.session);
    assert_eq!(first, Some(None), "sh had none");
}
