//! What is stored, and what is forgotten.

use super::*;

#[test]
fn what_the_store_has_pruned_is_forgotten_everywhere() {
    let of = |n: usize| launch(Program::of_exe(format!("/usr/bin/x{n}")));
    let all: Vec<Launch> = (0..eke_prefetch_store::MOST_PROGRAMS).map(of).collect();
    let machine = Machine::of(&[]);
    let mut store = ProgramStore::open(&machine.options.store, "", 1).unwrap().store;
    all.iter().for_each(|launch| _ = store.add_launch(launch, &launch.set, 1).unwrap());
    drop(store);
    let (mut process, now) = (machine.process(), Still.now());
    process.learned(finished(launch(program())), now);
    let knows =
        |process: &Process<'_>, launch: &Launch| process.library.state_of(launch.program.id()).is_some();
    assert_eq!(process.library.len(), all.len() + 1);
    process.flush(now);
    assert_eq!(process.library.len(), all.len());
    assert!(knows(&process, &launch(program())), "it was just learned");
    assert_eq!(all.iter().filter(|launch| !knows(&process, launch)).count(), 1);
}

#[test]
fn arguments_that_an_earlier_eke_took_for_scripts_are_forgotten() {
    let machine = Machine::new();
    let script = |path: &str| Program { script: Some(path.into()), ..Program::of_exe("/bin/bash") };
    let here = machine.root.path("home/u/x.sh");
    std::fs::create_dir_all(here.parent().unwrap()).unwrap();
    std::fs::write(here, "").unwrap();
    let kept = ["/home/u/x.sh", "/not mounted/x.sh", "vi"];
    let arguments: Vec<String> = (0..40).map(|n| format!("/home/u/mail {n}")).collect();
    let all = kept.iter().copied().chain(arguments.iter().map(String::as_str));
    all.for_each(|path| machine.learn(&launch(script(path))));
    let mut process = machine.process();
    look_up_all(&mut process);
    let knows = |path: &str| process.library.state_of(script(path).id()).is_some();
    assert!(kept.iter().all(|path| knows(path)) && !arguments.iter().any(|path| knows(path)));
    assert!(
        process
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Trouble { what } if what.contains("16 learned programs")))
    );
}

#[test]
fn starts_of_brief_programs_are_written_once_an_hour_or_with_others() {
    let mut machine = Machine::of(&[]);
    machine.options.settings.at_exec = true;
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&launch(vim.clone()));
    machine.learn(&Launch { took: Duration::from_millis(50), ..launch(program()) });
    let mut process = machine.process();
    process.running.found(Executed { pid: 1, uid: USER, program: None, is_event: false, log_in: None });
    let reader = reader(&machine);
    let mut start = |pid: u32, program: &Program, after_s: u64| {
        let exec = Exec { program: Some(program.clone()), ..exec_of(USER, pid) };
        process.handle(Observation::Exec(exec, None), Still.now());
        exit(&mut process, pid);
        process.flush(Now { mono: Still.now().mono + Duration::from_secs(after_s), ..Still.now() });
        (reader.data_version().unwrap(), reader.events().unwrap().len())
    };
    // The first choice for it is a decision, which is written.
    let first = start(10, &program(), 10);
    assert_eq!(start(11, &program(), 20), first);
    assert_eq!(start(12, &vim, 30).1, first.1 + 4);
    let written = start(13, &program(), 3_000);
    assert_eq!(written.1, first.1 + 4);
    assert_eq!(start(14, &program(), 3_640).1, first.1 + 8);
}

#[test]
fn what_waits_of_a_forgotten_program_is_not_written() {
    let machine = Machine::of(&[]);
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&launch(vim.clone()));
    let brief = Launch { took: Duration::from_millis(50), ..launch(program()) };
    machine.learn(&brief);
    let (mut process, now) = (machine.process(), Still.now());
    process.running.found(Executed { pid: 1, uid: USER, program: None, is_event: false, log_in: None });
    process.handle(exec(10), now);
    exit(&mut process, 10);
    process.handle(exec(11), now);
    process.handle(Observation::Exec(Exec { program: Some(vim.clone()), ..exec_of(USER, 12) }, None), now);
    let mut reader = reader(&machine);
    assert!(reader.forget_program(program().id()).unwrap());
    process.library.write_soon();
    process.flush(now);
    exit(&mut process, 11);
    process.library.write_soon();
    process.flush(now);
    let events: Vec<Event> = reader.events().unwrap().iter().map(|event| event.event).collect();
    assert_eq!(events, [Event::Start(vim.id())]);
}

#[test]
fn an_idle_machine_writes_no_state_again() {
    let machine = Machine::new();
    let mut process = machine.process();
    let reader = reader(&machine);
    let now = Still.now();
    let mut store = |after_s: u64| {
        process.do_regular_tasks(Now { mono: now.mono + Duration::from_secs(after_s), ..now });
        reader.data_version().unwrap()
    };
    let stored = store(300);
    assert_eq!([store(600), store(900)], [stored, stored], "nothing has happened");
    process.handle(exec(10), now);
    process.store_predictor();
    assert_ne!(reader.data_version().unwrap(), stored, "a program has started");
}

#[test]
fn of_a_predictor_that_has_no_room_the_longest_unused_programs_go() {
    let machine = Machine::new();
    let mut process = machine.process();
    for n in 1..=400 {
        let (at_s, event) = (n as f64 * 100.0, Event::Start(ProgramId(n)));
        process.predictor.observe(&UserEvent { at_s, user: USER, event });
        process.predictor.observe(&UserEvent {
            at_s: at_s + 1.0,
            user: USER,
            event: Event::Stop(ProgramId(n)),
        });
    }
    let whole = process.predictor.to_state().unwrap().len();
    let others = (1 << 20) - whole / 2;
    reader(&machine).put_state("others", 1, &vec![0; others]).unwrap();
    process.store_predictor();
    assert!(process.library.take_notices().is_empty());
    let stored = reader(&machine).state(PREDICTOR.0, PREDICTOR.1).unwrap().unwrap();
    let mut kept = Eke::from_state(&stored).unwrap();
    let programs: Vec<u64> = kept.chances(50_000.0, 600.0).iter().map(|chance| chance.program.0).collect();
    assert!(stored.len() <= whole / 2 && !programs.is_empty(), "{} of {whole}", stored.len());
    assert!(programs.contains(&400) && !programs.contains(&1), "{programs:?}");
}

#[test]
fn names_from_an_encrypted_disk_are_stored_on_an_encrypted_one_only() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("sys/dev/block/8:1/uevent", "DEVNAME=sda1\n");
    put("sys/dev/block/253:0/uevent", "DEVNAME=dm-0\n");
    put("sys/class/block/dm-0/dm/uuid", "CRYPT-LUKS2-1-home\n");
    let mounts = |root: &str| {
        format!("22 1 {root} / / rw - xfs /dev/root rw\n30 22 253:0 / /home rw - xfs /dev/mapper/home rw\n")
    };
    let of = |exe: &str| {
        let mut launch = launch(Program::of_exe(exe));
        let usual = launch.set.files[0].clone();
        launch.set.files.push(Touched { path: "/home/u/letter to bob".into(), ..usual.clone() });
        launch.set.files.push(Touched { path: "/usr/lib/x".into(), ..usual });
        finished(launch)
    };
    let files = |finished: &Finished| finished.launch.set.files.len();
    put("proc/self/mountinfo", &mounts("8:1"));
    let learned = |exe: &str| storable(of(exe), &Mounts::read(&machine.root), Path::new("/var/lib/eke"));
    let kept = learned("/usr/bin/gedit").unwrap();
    assert_eq!((files(&kept), kept.cold.len()), (2, 2));
    assert!(kept.launch.set.files.iter().all(|file| !file.path.starts_with("/home")));
    assert_eq!(learned("/home/u/bin/tool"), None, "nor is a program's own name");
    put("proc/self/mountinfo", &mounts("253:0"));
    assert_eq!(files(&learned("/home/u/bin/tool").unwrap()), 3, "the store is encrypted, too");
    put("proc/self/mountinfo", &mounts("8:1"));
    let mut process = machine.process();
    process.learned(of("/home/u/bin/tool"), Still.now());
    assert!(process.library.state_of(Program::of_exe("/home/u/bin/tool").id()).is_none());
    process.learned(of("/usr/bin/okular"), Still.now());
    let okular = process.library.program(Program::of_exe("/usr/bin/okular").id(), Still.now()).unwrap();
    assert!(okular.set.files.iter().all(|file| !file.path.starts_with("/home")), "{okular:?}");
}

#[test]
fn names_that_may_be_encrypted_are_not_stored_and_a_store_that_may_be_is_no_reason_to() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    let learned = |automatic: &str, store: &str| {
        let mounts = format!(
            "22 1 8:1 / / rw - xfs /dev/sda1 rw\n29 22 0:50 / {automatic} rw - autofs systemd-1 rw\n\
             30 22 8:2 / /home rw - ext4 /dev/sda2 rw\n"
        );
        put("proc/self/mountinfo", &mounts);
        put("home/u/tool", "");
        let tool = finished(launch(Program::of_exe("/home/u/tool")));
        storable(tool, &Mounts::read(&machine.root), Path::new(store)).is_some()
    };
    assert!(learned("/net", "/var/lib/eke"));
    assert!(!learned("/home", "/var/lib/eke") && !learned("/home", "/home/eke"));
}

/// SQLite can open no store beside this: its log's index is a directory.
fn hinder(machine: &Machine) -> std::path::PathBuf {
    let index = machine.options.store.join("prefetch.db-shm");
    std::fs::create_dir(&index).unwrap();
    index
}

#[test]
fn a_store_that_cannot_be_written_is_used_as_a_copy_until_it_can() {
    let machine = Machine::new();
    let index = hinder(&machine);
    let mut process = machine.process();
    assert_eq!(process.library.len(), 1);
    let copy = process.library.path().unwrap().to_owned();
    assert!(copy.starts_with(machine.root.path("run/eke/prefetch")), "{}", copy.display());
    let told = troubles(&mut process);
    assert!(told.contains("goes on with a copy") && told.contains("every 3 minutes"), "{told}");
    let finished = finished(launch(Program::of_exe("/usr/bin/vim")));
    process.library.add_launch(&finished, 0, false, at(1001)).unwrap();
    process.flush(at(2000));
    assert_eq!(process.library.path(), Some(copy.as_path()), "it cannot be written yet");
    std::fs::remove_dir(index).unwrap();
    process.flush(at(2001));
    assert_eq!(process.library.path(), Some(copy.as_path()), "it was tried a second ago");
    process.flush(at(2200));
    assert_eq!(process.library.path(), Some(machine.options.store.join("prefetch.db").as_path()));
    assert!(troubles(&mut process).contains("eke has moved back"));
    assert!(process.lock.is_some() && !copy.exists());
    drop(process);
    assert_eq!(reader(&machine).records(1).unwrap().len(), 2);
}

#[test]
fn a_store_into_which_another_process_learns_by_now_stays_its() {
    let machine = Machine::new();
    let index = hinder(&machine);
    let mut process = machine.process();
    std::fs::remove_dir(index).unwrap();
    let other = lock(&machine.root, &machine.options, &mut None).unwrap();
    process.flush(at(2000));
    assert!(process.library.path().unwrap().starts_with(machine.root.path("run/eke/prefetch")));
    drop(other);
}
