//! Which programs run, for whom, and who logs in.

use super::*;

#[test]
fn a_program_whose_exit_was_lost_does_not_run_for_ever() {
    let machine = Machine::new();
    let mut process = machine.process();
    let now = Still.now();
    for pid in [10, 11] {
        machine.begins(pid);
        process.handle(exec(pid), now);
    }
    machine.ends(10);
    process.handle(Observation::Lost, now);
    process.end_gone_if_lost(now);
    assert!(process.running.runs(USER, program().id()), "one of the two runs");
    machine.ends(11);
    process.end_gone_if_lost(now);
    assert!(process.running.runs(USER, program().id()), "nothing was lost");
    process.handle(Observation::Lost, now);
    process.end_gone_if_lost(Now { mono: now.mono + PACE, ..now });
    assert!(!process.running.runs(USER, program().id()));
    process.handle(exec(12), now);
    assert!(process.running.runs(USER, program().id()), "it starts again");
}

#[test]
fn what_runs_for_the_greeter_starts_for_the_person() {
    const GREETER: u32 = 120;
    let (machine, now) = (Machine::new(), Still.now());
    let mut process = machine.process();
    process.handle(exec_by(GREETER, 10), now);
    assert!(state_of(&mut process, GREETER).runs && !state_of(&mut process, USER).runs);
    process.handle(exec_by(USER, 11), now);
    assert_eq!(process.state.launches, 2);
    assert!(state_of(&mut process, USER).runs);
    process.handle(exec_by(USER, 12), now);
    assert_eq!(process.state.launches, 2, "it runs for the person");
}

#[test]
fn a_program_that_is_learned_while_it_runs_does_not_start_again() {
    let (machine, now) = (Machine::of(&[]), Still.now());
    let mut process = machine.process();
    process.handle(exec(10), now);
    process.handle(Observation::Launch(finished(launch(program()))), now);
    process.handle(exec(11), now);
    assert_eq!(process.state.launches, 0, "it hands over to the first process, or is a part of it");
    assert!(state_of(&mut process, USER).runs, "so it is not recorded");
    [10, 11].iter().for_each(|pid| exit(&mut process, *pid));
    assert!(!state_of(&mut process, USER).runs);
    process.handle(exec(12), now);
    assert_eq!(process.state.launches, 1);
}

#[test]
fn a_log_in_after_a_restart_within_a_session_is_one() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    for pid in [10, 11] {
        let status = "Name:\tx\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n";
        put(&format!("proc/{pid}/status"), status);
    }
    let mut process = machine.process();
    process.find_running();
    assert!(!state_of(&mut process, USER).in_session);
    [10, 11].iter().for_each(|pid| exit(&mut process, *pid));
    process.handle(exec(12), Still.now());
    assert!(state_of(&mut process, USER).in_session);
}

#[test]
fn an_audit_session_shows_a_log_in_beside_lingering_processes_and_a_job_of_cron() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    let begins = |uid: u32, lingers: bool, class: &str| {
        put("proc/10/status", &format!("Name:\tx\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"));
        put("run/systemd/sessions/5", &format!("UID=1000\nCLASS={class}\nTYPE=x11\nREMOTE=0\n"));
        let mut process = machine.process();
        if lingers {
            process.find_running();
        }
        let exec = Exec { session: Some(5), ..exec_of(USER, 11) };
        process.handle(Observation::Exec(exec, None), Still.now());
        state_of(&mut process, USER).in_session
    };
    assert!(begins(USER, true, "user") && !begins(USER, true, "background"));
    assert!(begins(0, false, "user") && !begins(0, false, "background"), "its first process");
    std::fs::remove_dir_all(machine.root.path("run/systemd/sessions")).unwrap();
    let mut process = machine.process();
    process.handle(Observation::Exec(Exec { session: Some(5), ..exec_of(USER, 11) }, None), Still.now());
    assert!(state_of(&mut process, USER).in_session, "without logind processes show it");
}

/// systemd and logind manage this machine, and process 11 is in this group.
fn put_group(machine: &Machine, group: &str) {
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("run/systemd/system/.keep", "");
    put("run/systemd/sessions/3", "UID=1001\nCLASS=user\nTYPE=wayland\nREMOTE=0\n");
    put("run/systemd/sessions/5", "UID=1000\nCLASS=background\nTYPE=unspecified\nREMOTE=0\n");
    put("proc/11/cgroup", &format!("0::{group}\n"));
}

const SERVICE: &str = "/system.slice/backup.service";
const SESSION: &str = "/user.slice/user-1000.slice/session-2.scope";

#[test]
fn a_service_with_a_persons_number_is_no_log_in() {
    let machine = Machine::new();
    for (group, is_one) in [(SERVICE, false), (SESSION, true)] {
        put_group(&machine, group);
        let mut process = machine.process();
        process.handle(exec(11), Still.now());
        assert_eq!(state_of(&mut process, USER).in_session, is_one, "{group}");
    }
}

#[test]
fn a_job_of_a_person_is_no_habit_and_does_not_take_the_prediction_over() {
    let machine = Machine::new();
    for (group, session, is_habit) in
        [(SERVICE, None, false), (SESSION, Some(5), false), (SESSION, Some(3), true), (SESSION, None, true)]
    {
        put_group(&machine, group);
        let mut process = machine.process();
        process.predictor.observe(&UserEvent { at_s: 0.0, user: 1001, event: Event::Session });
        process.running.found(Executed { pid: 1, uid: USER, program: None, is_event: false, log_in: None });
        let exec = Exec { session, ..exec_of(USER, 11) };
        process.handle(Observation::Exec(exec, None), Still.now());
        exit(&mut process, 11);
        let chances = process.predictor.chances(1.0, 600.0);
        let predicted = (process.predictor.user(), chances.len());
        assert_eq!(predicted, if is_habit { (USER, 1) } else { (1001, 0) }, "{group} {session:?}");
        assert_eq!(process.state.launches, 1, "it is a start");
    }
}

#[test]
fn the_session_of_the_users_systemd_comes_before_the_shells_and_a_job_has_none() {
    let machine = Machine::new();
    for (session, class, kind) in [(4, "manager", "unspecified"), (3, "user", "wayland")] {
        let text = format!("UID=1000\nCLASS={class}\nTYPE={kind}\nREMOTE=0\n");
        eke_testkit::tree::put(&machine.root.path(""), &format!("run/systemd/sessions/{session}"), &text);
    }
    let mut process = machine.process();
    let mut begins = |pid: u32, session: u32| {
        let exec = Exec { session: Some(session), ..exec_of(USER, pid) };
        process.handle(Observation::Exec(exec, None), Still.now());
        state_of(&mut process, USER).in_session
    };
    assert!(!begins(10, 5), "logind does not list a job of cron, although it is the first process");
    assert!(!begins(11, 4));
    assert!(begins(12, 3));
}

#[test]
fn a_log_in_is_known_from_its_begin_and_from_young_processes_at_the_start() {
    let machine = Machine::new();
    let status = |uid: u32| format!("Name:\tx\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    let ticks = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec * 100;
    let stat = format!("10 (x) S 1 10 {} {ticks} 0 0", "0 ".repeat(16).trim_end());
    put("proc/10/stat", &stat);
    put("proc/10/status", &status(USER));
    put("proc/11/status", &status(1001));
    let mut process = machine.process();
    process.find_running();
    let in_session = |process: &mut Process<'_>, user| state_of(process, user).in_session;
    assert!(in_session(&mut process, USER), "all its processes are young");
    assert!(!in_session(&mut process, 1001) && !in_session(&mut process, 0));
    process.handle(exec_by(1002, 20), Still.now());
    assert!(in_session(&mut process, 1002));
}

#[test]
fn the_predicted_user_is_a_person() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("etc/subuid", "anna:100000:65536\n");
    put("etc/passwd", "anna:x:1000:1000::/home/anna:/bin/sh\n");
    let (mut process, now) = (machine.process(), Still.now());
    let mut predicted = |uid: u32| {
        process.handle(exec_by(uid, uid + 1), now);
        process.handle(Observation::Exit { pid: uid + 1, at: Duration::ZERO }, now);
        process.predictor.user()
    };
    assert_eq!([0, 33].map(&mut predicted), [0, 0], "no person was seen");
    assert_eq!([100_033, 0, 33, 65_534].map(&mut predicted), [USER; 4]);
    assert_eq!([1001, 0].map(&mut predicted), [1001; 2]);
}

#[test]
fn a_running_script_is_found_under_its_own_name() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("usr/bin/meld", "");
    put("proc/10/status", "Name:\tpython3\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n");
    put("proc/10/cmdline", "python3\0/usr/bin/meld\0");
    std::os::unix::fs::symlink("/usr/bin/python3", machine.root.path("proc/10/exe")).unwrap();
    let python = Program::of_exe("/usr/bin/python3");
    let meld = Program { script: Some("/usr/bin/meld".into()), ..python.clone() };
    [&python, &meld].into_iter().for_each(|program| machine.learn(&launch(program.clone())));
    let mut process = machine.process();
    process.find_running();
    assert!(process.running.runs(USER, meld.id()) && !process.running.runs(USER, python.id()));
}

#[test]
fn of_a_process_within_exec_only_the_status_is_read_at_the_start() {
    let machine = Machine::new();
    let runs = |code_pages: u32| {
        let status =
            format!("Name:\tgedit\nState:\tS (sleeping)\nPPid:\t1\nUid:\t{USER}\t{USER}\t{USER}\t{USER}\n");
        eke_testkit::tree::put(&machine.root.path(""), "proc/7/status", &status);
        let statm = format!("9 9 9 {code_pages} 0 1 0\n");
        eke_testkit::tree::put(&machine.root.path(""), "proc/7/statm", &statm);
        let mut process = machine.process();
        process.find_running();
        (process.running.runs(USER, program().id()), process.running.without(&BTreeSet::new()))
    };
    std::fs::create_dir_all(machine.root.path("proc/7")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/gedit", machine.root.path("proc/7/exe")).unwrap();
    assert_eq!(runs(6), (true, vec![7]));
    assert_eq!(runs(0), (false, vec![7]));
}
