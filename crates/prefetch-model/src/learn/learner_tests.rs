//! Tests of the learner with recorded sequences of events.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::file_set::{FileSet, Kind, Stamp};
use crate::learn::{GivenPaths, Inode, Owners, PageUse, TracedFile, unite};
use crate::pages::{Pages, Span};
use crate::program::Program;

const FILE: Inode = Inode { dev: 1, ino: 10, generation: 0 };

fn at(ms: u64) -> Now {
    Now { mono: Duration::from_millis(ms), real_ns: i64::try_from(ms).unwrap() * 1_000_000 }
}

fn exec(pid: u32, name: &str) -> Exec {
    let program = Some(Program::of_exe(format!("/usr/bin/{name}")));
    Exec {
        pid,
        parent: 1,
        uid: 1000,
        group: 1,
        session: None,
        ino: None,
        at: Duration::ZERO,
        launch: None,
        program,
    }
}

fn file(launch: LaunchId, inode: Inode, kind: Kind) -> TraceEvent {
    let found =
        TracedFile { path: format!("/f{}", inode.ino).into(), kind, stamp: Stamp::default(), owner: 0 };
    TraceEvent::File { launch, pid: 5, inode, found: Some(found) }
}

fn pages(launch: LaunchId, inode: Inode, first: u64, end: u64, how: PageUse) -> TraceEvent {
    TraceEvent::Pages { launch, pid: 5, inode, span: Span { first, end }, how }
}

/// A learner that records process 5 since time 0.
fn learning(settings: Settings) -> (Learner, LaunchId) {
    let mut learner = Learner::new(settings);
    let id = learner.begin(&exec(5, "a"), ProgramState::default(), at(0)).unwrap();
    (learner, id)
}

#[test]
fn a_launch_is_over_when_it_is_quiet() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&file(id, FILE, Kind::File), at(10));
    for ms in [20, 900, 1800] {
        learner.add(&pages(id, FILE, ms, ms + 20, PageUse::Read), at(ms));
        learner.add(&pages(id, FILE, ms, ms + 32, PageUse::Added), at(ms));
    }
    learner.add(&pages(id, FILE, 20, 21, PageUse::Fault), at(3500));
    assert_eq!(learner.over(at(3799)), []);
    let over = learner.over(at(3800));
    let launch = &over[0].launch;
    assert_eq!((launch.ended, launch.took), (LaunchEnd::Quiet, Duration::from_millis(1800)));
    assert_eq!((launch.uid, launch.cold_bytes, over[0].should_store), (1000, 60 * 4096, true));
    assert_eq!(launch.set.files[0].pages.count(), 60);
    assert_eq!(learner.recording(), 0);
}

#[test]
fn files_of_other_users_are_not_learned() {
    let (mut learner, id) = learning(Settings::default());
    for (ino, owner) in [(20, 0), (21, 1000), (22, 1001), (23, 33)] {
        let inode = Inode { ino, ..FILE };
        let found =
            TracedFile { path: format!("/f{ino}").into(), kind: Kind::File, stamp: Stamp::default(), owner };
        learner.add(&TraceEvent::File { launch: id, pid: 5, inode, found: Some(found) }, at(1));
        learner.add(&pages(id, inode, 0, 9, PageUse::Read), at(2));
    }
    let set = learner.over(at(9000)).remove(0).launch.set;
    let names: Vec<_> = set.files.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(names, ["/f20", "/f21"], "root's and the starter's");
}

#[test]
fn inodes_of_one_number_are_files_by_generation_and_path() {
    let (mut learner, id) = learning(Settings::default());
    for (generation, path, page) in [(7, "/sub1/a", 1), (8, "/sub2/b", 2), (0, "/sub2/b", 3)] {
        let inode = Inode { generation, ..FILE };
        let found = TracedFile { path: path.into(), kind: Kind::File, stamp: Stamp::default(), owner: 0 };
        learner.add(&TraceEvent::File { launch: id, pid: 5, inode, found: Some(found) }, at(1));
        learner.add(&pages(id, inode, page, page + 1, PageUse::Read), at(2));
    }
    let set = learner.over(at(9000)).remove(0).launch.set;
    let found: Vec<_> =
        set.files.iter().map(|file| (file.path.to_str().unwrap(), file.pages.count())).collect();
    assert_eq!(found, [("/sub1/a", 1), ("/sub2/b", 2)], "a mapping has no generation");
}

#[test]
fn a_file_that_the_launch_was_given_is_no_habit_yet() {
    let (mut learner, id) = learning(Settings::default());
    learner.give(id, GivenPaths::new(&[b"a", b"/f20", b"/usr/bin/a"], None, None));
    for (ino, path) in [(20, "/f20"), (21, "/f21"), (22, "/usr/bin/a")] {
        let (inode, stamp) = (Inode { ino, ..FILE }, Stamp::default());
        let found = TracedFile { path: path.into(), kind: Kind::File, stamp, owner: 0 };
        learner.add(&TraceEvent::File { launch: id, pid: 5, inode, found: Some(found) }, at(1));
        learner.add(&pages(id, inode, 0, 9, PageUse::Read), at(2));
    }
    let first = learner.over(at(9000)).remove(0).launch;
    let weights = |set: &FileSet| set.files.iter().map(|file| file.weight).collect::<Vec<_>>();
    assert_eq!(weights(&first.set), [0.5, 1.0, 1.0], "the program is its own");
    assert_eq!(weights(&unite(Some(&first.set), 1, &first)), [0.75, 1.0, 1.0], "it was given again");
}

#[test]
fn of_a_launch_that_walks_through_what_it_was_given_the_metadata_is_left_out() {
    let has_metadata = |given: GivenPaths, runs: u64| {
        let (mut learner, id) = learning(Settings::default());
        learner.give(id, given);
        let device = Inode { dev: 8, ino: 0, generation: 0 };
        learner.add(&file(id, FILE, Kind::File), at(1));
        learner.add(&pages(id, FILE, 0, 9, PageUse::Read), at(2));
        learner.add(&file(id, device, Kind::Device), at(1));
        (0..runs).for_each(|n| learner.add(&pages(id, device, 40 * n, 40 * n + 32, PageUse::Added), at(1)));
        let set = learner.over(at(9000)).remove(0).launch.set;
        set.files.iter().any(|file| file.kind == Kind::Device)
    };
    let (home, tree) = (Some(Path::new("/home/u")), Some(Path::new("/home/u/a")));
    let named = || GivenPaths::new(&[b"find", b"/home/u/a"], None, None);
    let within = || GivenPaths::default().within(tree, home);
    assert!(!has_metadata(named(), 65) && !has_metadata(within(), 65));
    assert!(has_metadata(named(), 64) && has_metadata(within(), 64), "its own");
    assert!(has_metadata(GivenPaths::default(), 400), "it walks through the same directories each time");
}

#[test]
fn what_a_launch_finds_on_a_walk_through_the_home_is_no_habit_yet() {
    let walk = |uid: u32, documents: u64| {
        let mut learner = Learner::new(Settings::default());
        let exec = Exec { uid, ..exec(5, "a") };
        let id = learner.begin(&exec, ProgramState::default(), at(0)).unwrap();
        let home = Some(Path::new("/home/u"));
        learner.give(id, GivenPaths::default().within(home, home));
        let device = Inode { dev: 8, ino: 0, generation: 0 };
        learner.add(&file(id, device, Kind::Device), at(1));
        let runs = 4 * documents + 16;
        (0..runs).for_each(|n| learner.add(&pages(id, device, 40 * n, 40 * n + 32, PageUse::Added), at(1)));
        let mails = (0..documents).map(|n| (n, format!("/home/u/mail/{n}")));
        for (n, path) in
            mails.chain([(9000, "/home/u/.config/x".to_owned()), (9001, "/usr/bin/a".to_owned())])
        {
            let (inode, stamp) = (Inode { ino: 20 + n, ..FILE }, Stamp::default());
            let found = TracedFile { path: path.into(), kind: Kind::File, stamp, owner: 0 };
            learner.add(&TraceEvent::File { launch: id, pid: 5, inode, found: Some(found) }, at(1));
            learner.add(&pages(id, inode, 0, 9, PageUse::Read), at(2));
        }
        let set = learner.over(at(9000)).remove(0).launch.set;
        let given = set.files.iter().filter(|file| file.weight == 0.5);
        assert!(given.clone().all(|file| file.path.starts_with("/home/u/mail")));
        (given.count(), set.files.iter().any(|file| file.kind == Kind::Device))
    };
    assert_eq!(walk(1000, 65), (65, false));
    assert_eq!(walk(1000, 64), (0, true), "a program may have as many of its own");
    assert_eq!((walk(0, 65), walk(114, 65)), ((65, false), (0, true)), "root's, and a service's data");
}

#[test]
fn short_programs_do_not_use_up_the_start_of_another_one() {
    let started = |short_ms: u64, group: u32| {
        let mut learner = Learner::new(Settings::default());
        for n in 0..16 {
            let begun = at(u64::from(n) * 300);
            learner.begin(&exec(100 + n, &format!("short{n}")), ProgramState::default(), begun);
            let exit = TraceEvent::Exit { pid: 100 + n, at: Duration::ZERO, launch: None };
            let ended = Now { mono: begun.mono + Duration::from_millis(short_ms), ..begun };
            learner.add(&exit, ended);
            learner.over(ended);
        }
        learner.begin(&Exec { group, ..exec(5, "browser") }, ProgramState::default(), at(4800))
    };
    assert!(started(10, 1).is_some());
    assert_eq!(started(600, 1), None, "longer ones count");
    assert!(started(600, 2).is_some(), "they are a build, and it is started beside that");
}

#[test]
fn it_is_over_when_all_its_processes_are_gone() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&TraceEvent::Fork { pid: 6, parent: 5, launch: id }, at(1));
    let exit = |pid| TraceEvent::Exit { pid, at: Duration::ZERO, launch: None };
    learner.add(&exit(5), at(2));
    assert_eq!(learner.over(at(3)), []);
    learner.add(&exit(6), at(4));
    assert_eq!(learner.over(at(5))[0].launch.ended, LaunchEnd::Exited);
}

#[test]
fn it_is_over_after_the_time_for_it() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&file(id, FILE, Kind::File), at(0));
    for page in 0..40 {
        learner.add(&pages(id, FILE, page, page + 1, PageUse::Fault), at(page * 1000));
    }
    assert_eq!(learner.over(at(29_999)), []);
    assert_eq!(learner.over(at(30_000))[0].launch.ended, LaunchEnd::Limit);
}

#[test]
fn what_was_lost_is_said() {
    let (mut learner, _) = learning(Settings::default());
    learner.add(&TraceEvent::Lost(3), at(1));
    assert_eq!(learner.over(at(60_000))[0].launch.ended, LaunchEnd::Lost);
}

#[test]
fn there_is_an_end_to_files_and_pages() {
    let settings = Settings { files: 10, bytes: 100 * 4096, ..Settings::default() };
    let (mut learner, id) = learning(settings.clone());
    for ino in 0..50 {
        learner.add(&file(id, Inode { ino, ..FILE }, Kind::File), at(1));
        learner.add(&pages(id, Inode { ino, ..FILE }, 0, 1, PageUse::Read), at(1));
    }
    let launch = learner.over(at(60_000)).remove(0).launch;
    assert_eq!((launch.set.files.len(), launch.ended), (10, LaunchEnd::Lost));

    let (mut learner, id) = learning(settings);
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 90, PageUse::Read), at(1));
    learner.add(&pages(id, FILE, 1000, 12_000_000, PageUse::Mapped), at(1));
    let launch = learner.over(at(60_000)).remove(0).launch;
    assert_eq!((launch.set.bytes(), launch.ended), (90 * 4096, LaunchEnd::Lost));
}

#[test]
fn a_page_that_was_added_and_used_counts_once() {
    let (mut learner, id) = learning(Settings { bytes: 100 * 4096, ..Settings::default() });
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 60, PageUse::Added), at(1));
    learner.add(&pages(id, FILE, 0, 90, PageUse::Read), at(1));
    learner.add(&pages(id, FILE, 60, 100, PageUse::Added), at(1));
    let launch = learner.over(at(9_000)).remove(0).launch;
    assert_eq!((launch.set.bytes(), launch.ended), (90 * 4096, LaunchEnd::Quiet));
    assert_eq!(launch.cold_bytes, 90 * 4096);

    let (mut learner, id) = learning(Settings { bytes: 100 * 4096, ..Settings::default() });
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 60, PageUse::Added), at(1));
    learner.add(&pages(id, FILE, 50, 101, PageUse::Read), at(1));
    assert_eq!(learner.over(at(9_000))[0].launch.ended, LaunchEnd::Lost);
}

#[test]
fn used_pages_and_added_metadata_count() {
    let (mut learner, id) = learning(Settings::default());
    let (device, directory, ahead) =
        (Inode { dev: 8, ino: 0, generation: 0 }, Inode { ino: 2, ..FILE }, Inode { ino: 3, ..FILE });
    learner.add(&file(id, directory, Kind::Directory), at(1));
    learner.add(&pages(id, directory, 0, 1, PageUse::Added), at(1));
    learner.add(&file(id, device, Kind::Device), at(1));
    learner.add(&pages(id, device, 7, 9, PageUse::Added), at(1));
    learner.add(&file(id, ahead, Kind::File), at(1));
    learner.add(&pages(id, ahead, 0, 8, PageUse::Added), at(1));
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 32, PageUse::Added), at(1));
    learner.add(&pages(id, FILE, 4, 5, PageUse::Fault), at(1));
    let launch = learner.over(at(60_000)).remove(0).launch;
    let found: Vec<_> =
        launch.set.files.iter().map(|f| (f.path.to_str().unwrap(), f.pages.count())).collect();
    assert_eq!(found, [("/f2", 0), ("/f0", 2), ("/f10", 1)]);
    assert_eq!(launch.cold_bytes, 3 * 4096);
}

#[test]
fn without_use_events_added_pages_count() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 32, PageUse::Added), at(1));
    let launch = learner.over(at(60_000)).remove(0).launch;
    assert_eq!(launch.set.files[0].pages, Pages::from_iter(Span::new(0, 32)));
    assert_eq!(launch.ended, LaunchEnd::Lost, "what was there before was not seen");
}

/// Before Linux 6.12 the tracer reports what is mapped at the begin, and what is requested by madvise(2), and no other use.
#[test]
fn where_uses_are_not_reported_added_pages_count_beside_the_few_that_are() {
    let (mut learner, id) = learning(Settings { sees_uses: false, ..Settings::default() });
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 100, 104, PageUse::Mapped), at(1));
    learner.add(&pages(id, FILE, 0, 32, PageUse::Added), at(2));
    let finished = learner.over(at(9_000)).remove(0);
    let launch = finished.launch;
    assert_eq!(
        launch.set.files[0].pages,
        [(0, 32), (100, 104)].map(|(a, b)| Span { first: a, end: b }).into_iter().collect()
    );
    assert_eq!((launch.cold_bytes, launch.ended), (32 * 4096, LaunchEnd::WithoutUses));
    assert_eq!(finished.cold[0].pages.count(), 32);
}

#[test]
fn where_uses_are_not_reported_the_end_of_its_processes_is() {
    let end = |exits: bool| {
        let (mut learner, id) = learning(Settings { sees_uses: false, ..Settings::default() });
        learner.add(&file(id, FILE, Kind::File), at(0));
        for page in 0..40 {
            learner.add(&pages(id, FILE, page, page + 1, PageUse::Added), at(page * 1000));
        }
        if exits {
            learner.add(&TraceEvent::Exit { pid: 5, at: Duration::ZERO, launch: None }, at(2));
        }
        let finished = learner.over(at(40_000)).remove(0);
        (finished.has_ended, finished.launch.ended)
    };
    assert_eq!(end(true), (true, LaunchEnd::WithoutUses));
    assert_eq!(end(false), (false, LaunchEnd::Lost), "it was cut at the time limit");
}

#[test]
fn what_a_launch_uses_after_it_started_another_program_is_counted() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&file(id, FILE, Kind::File), at(1));
    learner.add(&pages(id, FILE, 0, 9, PageUse::Fault), at(2));
    learner.add(&TraceEvent::Fork { pid: 6, parent: 5, launch: id }, at(3));
    let child = Exec { parent: 5, launch: Some(id), ..exec(6, "b") };
    learner.begin(&child, ProgramState { runs: true, ..ProgramState::default() }, at(4));
    learner.add(&pages(id, FILE, 5, 13, PageUse::Fault), at(5));
    let finished = learner.over(at(60_000)).remove(0);
    assert_eq!((finished.started.len(), finished.bytes_after_start), (1, 4 * 4096));
}

#[test]
fn what_is_read_ahead_is_no_use_after_it_started_another_program() {
    let after = |sees_uses| {
        let (mut learner, id) = learning(Settings { sees_uses, ..Settings::default() });
        learner.add(&file(id, FILE, Kind::File), at(1));
        learner.add(&pages(id, FILE, 0, 2, PageUse::Added), at(2));
        let child = Exec { parent: 5, launch: Some(id), ..exec(6, "b") };
        learner.add(&TraceEvent::Fork { pid: 6, parent: 5, launch: id }, at(3));
        learner.begin(&child, ProgramState { runs: true, ..ProgramState::default() }, at(4));
        learner.add(&pages(id, FILE, 0, 64, PageUse::Added), at(5));
        learner.add(&pages(id, FILE, 0, 3, PageUse::Fault), at(6));
        learner.over(at(60_000)).remove(0).bytes_after_start / 4096
    };
    assert_eq!((after(true), after(false)), (3, 62));
}

#[test]
fn a_file_to_be_left_out_is() {
    let (mut learner, id) = learning(Settings::default());
    learner.add(&TraceEvent::File { launch: id, pid: 5, inode: FILE, found: None }, at(1));
    learner.add(&pages(id, FILE, 0, 32, PageUse::Read), at(1));
    let finished = learner.over(at(60_000)).remove(0);
    assert_eq!((finished.launch.set.files.len(), finished.should_store), (0, false));
}

#[test]
fn no_launch_begins_within_a_launch_of_the_same_program() {
    let (mut learner, id) = learning(Settings::default());
    let inside = Exec { launch: Some(id), ..exec(6, "a") };
    assert_eq!(learner.lineage(&inside), Lineage::Part(id));
    assert_eq!(learner.begin(&inside, ProgramState::default(), at(1)), None);
    assert_eq!(learner.lineage(&Exec { parent: 5, ..exec(7, "a") }), Lineage::Part(id));
    assert_eq!(learner.lineage(&Exec { parent: 5, ..exec(7, "c") }), Lineage::Leaves(id));
    assert_eq!(learner.lineage(&exec(5, "c")), Lineage::Leaves(id));
    assert_eq!(learner.lineage(&exec(8, "c")), Lineage::Apart);
    let running = ProgramState { runs: true, ..ProgramState::default() };
    assert_eq!(learner.begin(&exec(10, "e"), running, at(1)), None);
    let nameless = Exec { program: None, ..exec(9, "") };
    assert_eq!(learner.begin(&nameless, ProgramState::default(), at(1)), None);
}

#[test]
fn few_are_learned_at_once_and_a_storm_costs_nothing() {
    let mut learner = Learner::new(Settings::default());
    let begun = (0..10_000u32)
        .filter(|n| {
            learner
                .begin(&exec(100 + n, &format!("p{n}")), ProgramState::default(), at(6 * u64::from(*n)))
                .is_some()
        })
        .count();
    assert_eq!((begun, learner.recording()), (4, 4));
    let mut beside = |pid| {
        let exec = Exec { group: pid, ..exec(pid, &format!("beside{pid}")) };
        learner.begin(&exec, ProgramState::default(), at(60_000)).is_some()
    };
    assert_eq!([51, 52, 53].map(&mut beside), [true, true, false], "the user has room beside this group");
    let other = Exec { uid: 0, ..exec(50, "other") };
    assert!(
        learner.begin(&other, ProgramState::default(), at(60_000)).is_some(),
        "there is room for another user"
    );
    let mut over = 0;
    for n in 0..10_000u32 {
        let now = at(100_000 + 6 * u64::from(n));
        over += learner.over(now).len();
        _ = learner.begin(&exec(20_000 + n, &format!("q{n}")), ProgramState::default(), now);
        assert!(learner.recording() <= 8);
    }
    assert!((8..60).contains(&over), "{over}");
}

#[test]
fn a_log_in_is_learned_whole_and_takes_no_room_from_others() {
    let mut learner = Learner::new(Settings::default());
    let in_session = ProgramState { in_session: true, ..ProgramState::default() };
    let begins = |learner: &mut Learner, pids: std::ops::Range<u32>, known, ms| {
        pids.filter(|pid| learner.begin(&exec(*pid, &format!("p{pid}")), known, at(ms)).is_some()).count()
    };
    assert_eq!(begins(&mut learner, 100..200, in_session, 0), 48);
    assert_eq!(begins(&mut learner, 200..300, ProgramState::default(), 1), 4, "as without it");
    for pid in 100..200 {
        learner.add(&TraceEvent::Exit { pid, at: Duration::ZERO, launch: None }, at(5_000));
    }
    learner.over(at(5_000));
    let more = begins(&mut learner, 300..400, in_session, 6_000);
    assert!((16..24).contains(&more), "64 in a row: {more}");
}

/// An own container has 65,536 of them.
#[test]
fn a_user_with_many_numbers_has_the_room_of_one() {
    let owners = Owners::new("1000:100000:65536", "");
    let mut learner = Learner::new(Settings { owners, ..Settings::default() });
    let mut begin = |pid: u32, uid: u32| {
        let exec = Exec { uid, group: pid, ..exec(pid, &format!("p{pid}")) };
        learner.begin(&exec, ProgramState::default(), at(0)).is_some()
    };
    let begun = (0..20).filter(|n| begin(100 + n, if *n == 0 { 1000 } else { 100_000 + n })).count();
    assert_eq!(begun, 6);
    assert!(begin(200, 1001), "there is room for another user");
    let over = learner.over(at(60_000));
    let users: Vec<u32> = over.iter().map(|finished| finished.launch.uid).collect();
    assert_eq!(users, [1000, 1000, 1000, 1000, 1000, 1000, 1001]);
}
