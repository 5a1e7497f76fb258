//! The store in a temporary directory.

mod file;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use eke_prefetch_model::choose::{ChoiceOutcome, Limit, Occasion};
use eke_prefetch_model::file_set::{FileSet, Kind, Stamp, Touched, UsedBy};
use eke_prefetch_model::launch::{Launch, LaunchEnd};
use eke_prefetch_model::missing::{Missing, MissingFile};
use eke_prefetch_model::pages::{Pages, Span};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::user_event::{Event, UserEvent};
use eke_testkit::tree::in_memory;

const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;

fn open(dir: &Path) -> OpenedStore {
    ProgramStore::open(dir, "boot", NOW).unwrap()
}

fn store() -> (TempDir, ProgramStore) {
    let dir = in_memory();
    let store = open(dir.path()).store;
    (dir, store)
}

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

fn file(path: impl AsRef<OsStr>, ino: u64) -> Touched {
    Touched {
        path: PathBuf::from(path.as_ref()),
        kind: Kind::File,
        stamp: Stamp { dev: 0xfd01, ino, size: 90_000, mtime_ns: -5 },
        pages: pages(&[(0, 4), (9, 20)]),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    }
}

fn launch(exe: &str, files: Vec<Touched>) -> Launch {
    Launch {
        program: Program::of_exe(exe),
        uid: 1000,
        began_ns: NOW * 1_000_000_000,
        took: Duration::from_millis(1500),
        ended: LaunchEnd::Quiet,
        set: FileSet { files },
        cold_bytes: 4096,
    }
}

fn learn(store: &mut ProgramStore, exe: &str, files: Vec<Touched>) -> LeftOut {
    let launch = launch(exe, files);
    store.add_launch(&launch, &launch.set, NOW).unwrap()
}

fn set_of(store: &ProgramStore, exe: &str) -> Option<FileSet> {
    store.program(Program::of_exe(exe).id(), NOW).unwrap().map(|known| known.set)
}

#[test]
fn a_learned_program_is_loaded_as_it_was() {
    let (dir, mut store) = store();
    let hostile = OsStr::from_bytes(b"/home/x/\xff\n\x1b[2J' OR 1 --");
    let files = vec![
        Touched { weight: 0.25, ..file(hostile, u64::MAX) },
        Touched { kind: Kind::Directory, pages: Pages::default(), ..file("/usr/lib", 3) },
        Touched {
            kind: Kind::Device,
            stamp: Stamp { dev: 7 << 40, ..Stamp::default() },
            pages: pages(&[(1 << 40, (1 << 40) + 1)]),
            ..file("/dev/sda2", 0)
        },
        file("/usr/lib/libc.so.6", 4),
    ];
    let mut script = launch("/usr/bin/python3", files);
    script.program.script = Some(PathBuf::from(OsStr::from_bytes(b"/home/x/\xfe.py")));
    store.add_launch(&script, &script.set, NOW).unwrap();
    drop(store);
    let opened = open(dir.path());
    assert_eq!(opened.set_aside, None);
    let known = opened.store.program(script.program.id(), NOW).unwrap().unwrap();
    assert_eq!(known.set, script.set);
    assert_eq!(known.record.program, script.program);
    assert_eq!((known.record.launches, known.record.learned, known.record.weight), (1, 1, 1.0));
    assert_eq!((known.record.took, known.record.last_seen_s), (script.took, NOW));
    assert_eq!(opened.store.program(ProgramId(1), NOW).unwrap(), None);
}

#[test]
fn whose_launches_use_a_file_is_kept() {
    let (dir, mut store) = store();
    let files = [UsedBy::One(1000), UsedBy::Several, UsedBy::Unknown, UsedBy::One(0)];
    let files = files.iter().enumerate().map(|(n, used_by)| Touched {
        used_by: *used_by,
        weight: 0.5 + 0.1 * n as f32,
        ..file(format!("/usr/lib/{n}"), n as u64)
    });
    let files: Vec<Touched> = files.collect();
    learn(&mut store, "/bin/a", files.clone());
    let by_root = Launch { uid: 0, ..launch("/bin/a", files.clone()) };
    store.add_launch(&by_root, &by_root.set, NOW).unwrap();
    drop(store);
    let mut store = open(dir.path()).store;
    let known = store.program(Program::of_exe("/bin/a").id(), NOW).unwrap().unwrap();
    assert_eq!((known.set.files, known.users), (files, vec![1000, 0]));
    assert!(store.forget_program(Program::of_exe("/bin/a").id()).unwrap());
    learn(&mut store, "/bin/b", vec![]);
    let rows: i64 = store.connection.query_row("SELECT count(*) FROM account", (), |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn the_executable_of_a_program_is_known_by_its_inode() {
    let (_dir, mut store) = store();
    learn(&mut store, "/bin/a", vec![file("/bin/a", 7)]);
    let of = |store: &ProgramStore, exe: &str| store.users_and_executable(&Program::of_exe(exe)).unwrap();
    assert_eq!(of(&store, "/bin/a"), (vec![1000], Some(7)));
    learn(&mut store, "/bin/a", vec![file("/bin/a", 8)]);
    assert_eq!((of(&store, "/bin/a").1, of(&store, "/bin/b")), (Some(8), (vec![], None)));
}

#[test]
fn launches_are_counted_and_the_coldest_is_remembered() {
    let (_dir, mut store) = store();
    let cold = Launch { cold_bytes: 9000, took: Duration::from_secs(9), ..launch("/bin/a", vec![]) };
    let warm = Launch { cold_bytes: 0, took: Duration::from_secs(1), ..cold.clone() };
    for launch in [&cold, &warm] {
        store.add_launch(launch, &launch.set, NOW).unwrap();
    }
    let seen = |exe: &str| UnlearnedLaunch { id: Program::of_exe(exe).id(), at_s: NOW + 7 };
    store.count_launches(&[seen("/bin/a"), seen("/bin/unknown"), seen("/bin/a")], NOW).unwrap();
    let records = store.records(NOW).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].launches, records[0].learned, records[0].last_seen_s), (4, 2, NOW + 7));
    assert_eq!((records[0].took, records[0].cold_bytes), (Duration::from_secs(1), 0));
    assert_eq!(records[0].coldest, (Duration::from_secs(9), 9000));
    assert_eq!(records[0].weight, 4.0);
}

#[test]
fn what_is_missing_is_kept_for_few_programs_and_forgotten_with_them() {
    let (_dir, mut store) = store();
    let program = |n: u32| Program::of_exe(format!("/bin/{n}"));
    let missing = |at_s| Missing {
        at_s,
        took_ms: 9,
        read_bytes: 1,
        bytes: 4096,
        known_bytes: 0,
        in_files: 1,
        files: vec![MissingFile {
            path: OsStr::from_bytes(b"/home/x/\xff").into(),
            kind: Kind::File,
            bytes: 4096,
            known_bytes: 0,
            pages: pages(&[(3, 4)]),
        }],
    };
    for n in 0..20 {
        store.put_missing(program(n).id(), missing(i64::from(n))).unwrap();
    }
    store.put_missing(program(19).id(), missing(99)).unwrap();
    let of = |store: &ProgramStore, n| store.missing(program(n).id()).unwrap();
    assert_eq!((of(&store, 3), of(&store, 4), of(&store, 19)), (None, Some(missing(4)), Some(missing(99))));
    store.forget_program(program(19).id()).unwrap();
    assert_eq!((of(&store, 18), of(&store, 19)), (Some(missing(18)), None));
}

#[test]
fn a_replaced_file_is_void_for_all_until_it_is_learned_again() {
    let (_dir, mut store) = store();
    let (old, new) = (file("/lib/libc.so.6", 4), file("/lib/libc.so.6", 5));
    let own = file("/bin/b", 9);
    learn(&mut store, "/bin/a", vec![old.clone()]);
    learn(&mut store, "/bin/b", vec![old.clone(), own.clone()]);
    learn(&mut store, "/bin/a", vec![new.clone()]);
    assert_eq!(set_of(&store, "/bin/a").unwrap().files, std::slice::from_ref(&new));
    assert_eq!(set_of(&store, "/bin/b").unwrap().files, std::slice::from_ref(&own));
    let replaced =
        |store: &ProgramStore, exe| store.program(Program::of_exe(exe).id(), NOW).unwrap().unwrap().replaced;
    assert_eq!((replaced(&store, "/bin/a"), replaced(&store, "/bin/b")), (0, 1));
    // a set united from an older one does not bring the old file back ...
    let launch = launch("/bin/b", vec![own.clone()]);
    let united = FileSet { files: vec![old, own.clone()] };
    store.add_launch(&launch, &united, NOW).unwrap();
    assert_eq!(set_of(&store, "/bin/b").unwrap().files, std::slice::from_ref(&own));
    assert_eq!(set_of(&store, "/bin/a").unwrap().files, std::slice::from_ref(&new));
    // ... and the file of this launch counts
    learn(&mut store, "/bin/b", vec![new.clone(), own.clone()]);
    assert_eq!(set_of(&store, "/bin/b").unwrap().files, [new, own]);
    assert_eq!(replaced(&store, "/bin/b"), 0);
}

#[test]
fn a_forgotten_file_is_gone_also_if_its_number_could_be_given_again() {
    let (_dir, mut store) = store();
    learn(&mut store, "/bin/a", vec![file("/x", 1), file("/y", 2)]);
    assert!(store.forget_file(Path::new("/y")).unwrap());
    assert!(!store.forget_file(Path::new("/y")).unwrap());
    learn(&mut store, "/bin/b", vec![file("/z", 3)]);
    assert_eq!(set_of(&store, "/bin/a").unwrap().files, [file("/x", 1)]);
}

#[test]
fn device_numbers_are_of_one_boot() {
    let (dir, mut store) = store();
    learn(&mut store, "/bin/a", vec![file("/x", 1)]);
    drop(store);
    let mut next = ProgramStore::open(dir.path(), "another boot", NOW).unwrap().store;
    let unknown = set_of(&next, "/bin/a").unwrap();
    assert_eq!(unknown.files[0].stamp, Stamp { dev: 0, ..file("/x", 1).stamp });
    // a set united without a new trace does not claim to know it, and it is not another file
    let quiet = launch("/bin/a", vec![]);
    next.add_launch(&quiet, &unknown, NOW).unwrap();
    assert_eq!(set_of(&next, "/bin/a").unwrap(), unknown);
    let moved = Touched { stamp: Stamp { dev: 0xfd02, ..unknown.files[0].stamp }, ..file("/x", 1) };
    learn(&mut next, "/bin/b", vec![moved.clone()]);
    assert_eq!(set_of(&next, "/bin/a").unwrap().files, [moved]);
}

#[test]
fn decisions_are_of_the_boot_in_which_they_were_stored() {
    let (dir, mut store) = store();
    let decision = |at_s| Decision {
        at_s,
        occasion: Occasion::Exec,
        program: ProgramId(1),
        probability: 1.0,
        outcome: ChoiceOutcome::LeftAlone,
        limit: None,
        usage: None,
    };
    store.add_decisions(&[decision(NOW), decision(NOW)]).unwrap();
    assert_eq!(store.decisions_of_boot("boot").unwrap(), 2);
    drop(store);
    let mut next = ProgramStore::open(dir.path(), "another boot", 7).unwrap().store;
    next.add_decisions(&[decision(7), decision(NOW + 60), decision(NOW + 61)]).unwrap();
    drop(next);
    // opened again within the boot
    let next = ProgramStore::open(dir.path(), "another boot", NOW).unwrap().store;
    assert_eq!(next.decisions_of_boot("another boot").unwrap(), 3);
    assert_eq!(next.decisions_of_boot("boot").unwrap(), 0);
}

#[test]
fn a_forgotten_program_leaves_no_trace() {
    let (_dir, mut store) = store();
    learn(&mut store, "/home/x/secret-program", vec![file("/home/x/secret-file", 1), file("/lib/c", 2)]);
    learn(&mut store, "/bin/a", vec![file("/lib/c", 2)]);
    let id = Program::of_exe("/home/x/secret-program").id();
    let started = UserEvent { at_s: 1.0, user: 0, event: Event::Start(id) };
    store.add_events(&[started, UserEvent { event: Event::Session, ..started }]).unwrap();
    store.add_decisions(&[decision(id)]).unwrap();
    assert!(store.forget_program(id).unwrap());
    assert!(!store.forget_program(id).unwrap());
    assert_eq!(set_of(&store, "/home/x/secret-program"), None);
    assert_eq!(set_of(&store, "/bin/a").unwrap().files, [file("/lib/c", 2)]);
    assert_eq!(store.events().unwrap().len(), 1);
    assert_eq!(store.decisions(None, 9).unwrap(), []);
    for name in [NAME.to_owned(), format!("{NAME}-wal")] {
        let bytes = std::fs::read(store.path().with_file_name(name)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|w| w == b"secret"));
    }
}

fn decision(program: ProgramId) -> Decision {
    Decision {
        at_s: NOW,
        occasion: Occasion::Ahead,
        program,
        probability: 0.25,
        outcome: ChoiceOutcome::SmallGain { cold_s: 0.01, took_s: None, least_s: 0.15 },
        limit: Some(Limit::Battery),
        usage: None,
    }
}

#[test]
fn decisions_are_loaded_with_their_usage() {
    let (_dir, mut store) = store();
    let (a, b) = (decision(ProgramId(u64::MAX)), decision(ProgramId(2)));
    let chosen = ChoiceOutcome::Chosen { bytes: 1, of_bytes: 2, saved_s: 0.5, of_s: 1.0 };
    let c = Decision { outcome: chosen, limit: None, occasion: Occasion::Exec, ..b.clone() };
    let ids = store.add_decisions(&[a.clone(), b.clone(), c.clone()]).unwrap();
    let usage = PageUsage { used_bytes: 4096, wasted_bytes: 0 };
    store.add_usage(ids[2], usage).unwrap();
    let c = Decision { usage: Some(usage), ..c };
    assert_eq!(store.decisions(None, 9).unwrap(), [c.clone(), b, a.clone()]);
    assert_eq!(store.decisions(Some(ProgramId(u64::MAX)), 9).unwrap(), [a]);
    assert_eq!(store.decisions(None, 1).unwrap(), [c]);
}

#[test]
fn logs_and_states_are_bounded() {
    let (_dir, mut store) = store();
    let start = |n: usize| UserEvent { at_s: n as f64, user: 7, event: Event::Start(ProgramId(n as u64)) };
    let many: Vec<UserEvent> = (0..MOST_EVENTS + 10).map(start).collect();
    store.add_events(&many).unwrap();
    let kept = store.events().unwrap();
    assert_eq!(kept.len(), MOST_EVENTS);
    assert_eq!(kept, many[10..]);
    let many: Vec<Decision> = (0..MOST_DECISIONS as u64 + 10).map(|n| decision(ProgramId(n))).collect();
    let ids = store.add_decisions(&many).unwrap();
    assert_eq!(store.decisions(None, usize::MAX >> 1).unwrap().len(), MOST_DECISIONS);
    store.add_usage(ids[0], PageUsage { used_bytes: 1, wasted_bytes: 1 }).unwrap();
    store.put_state("mixture", 1, b"abc").unwrap();
    store.put_state("mixture", 2, b"defg").unwrap();
    assert_eq!(store.state("mixture", 1).unwrap(), None);
    assert_eq!(store.state("mixture", 2).unwrap().unwrap(), b"defg");
    let refused = store.put_state("other", 1, &vec![0; 1 << 20]).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { most, .. } if most == (1 << 20) - 4), "{refused}");
    store.put_state("mixture", 2, &vec![0; 1 << 20]).unwrap();
}

#[test]
fn of_a_set_without_bounds_the_lightest_files_are_left_out() {
    let (_dir, mut store) = store();
    let weight = |n: u64| if n == 3 || n > 990 { 1.0 } else { 0.5 };
    let long = |n: u64| Touched { weight: weight(n), ..file(format!("/{}/{n}", "d".repeat(4000)), n) };
    let left_out = learn(&mut store, "/bin/hostile", (0..1000).map(long).collect());
    let kept = set_of(&store, "/bin/hostile").unwrap().files;
    assert_eq!(kept.len() + left_out.files, 1000);
    assert!((50..70).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept[..40], (0..40).map(long).collect::<Vec<_>>(), "the first of one weight");
    assert_eq!(kept[kept.len() - 9..], (991..1000).map(long).collect::<Vec<_>>(), "in the order of use");
}

#[test]
fn a_clock_jump_does_not_age_weights_away() {
    let (_dir, mut store) = store();
    learn(&mut store, "/bin/a", vec![]);
    for now in [NOW + 4000 * DAY, 0, NOW + 60] {
        let seen = UnlearnedLaunch { id: Program::of_exe("/bin/a").id(), at_s: now };
        store.count_launches(&[seen], now).unwrap();
    }
    let weight = store.records(NOW + 60).unwrap()[0].weight;
    // the launch before the jump has lost a week
    assert!((2.0_f64.powf(-7.0 / 30.0) + 3.0 - weight).abs() < 1e-4, "{weight}");
    let far = store.records(NOW + 4000 * DAY).unwrap()[0].weight;
    assert!(far > 0.8 * weight, "{far}");
    assert_eq!(store.records(i64::MIN).unwrap()[0].weight, weight);
}

#[test]
fn the_least_weighty_programs_go_first() {
    let (_dir, mut store) = store();
    for n in 0..MOST_PROGRAMS {
        learn(&mut store, &format!("/bin/{n}"), vec![file(format!("/bin/{n}"), n as u64)]);
    }
    let often = UnlearnedLaunch { id: Program::of_exe("/bin/0").id(), at_s: NOW };
    store.count_launches(&[often], NOW).unwrap();
    assert_eq!(learn(&mut store, "/bin/new", vec![file("/bin/new", 9999)]).programs, 1);
    let records = store.records(NOW).unwrap();
    assert_eq!(records.len(), MOST_PROGRAMS);
    let has = |exe: &str| records.iter().any(|r| r.program == Program::of_exe(exe));
    assert!(has("/bin/0") && has("/bin/new") && !has("/bin/1"));
    assert!(!store.forget_file(Path::new("/bin/1")).unwrap(), "its file is still there");
}

#[test]
fn one_users_programs_do_not_push_out_those_of_others() {
    let (_dir, mut store) = store();
    let by = |user, exe: &str| Launch { uid: user, ..launch(exe, vec![file(exe, user.into())]) };
    for n in 0..10 {
        let ours = by(1000, &format!("/bin/ours{n}"));
        store.add_launch(&ours, &ours.set, NOW).unwrap();
    }
    for n in 0..2 * MOST_PROGRAMS {
        let theirs = by(1001, &format!("/home/u/{n}"));
        // Often started, and later
        store.add_launch(&theirs, &theirs.set, NOW + DAY).unwrap();
        store.add_launch(&theirs, &theirs.set, NOW + DAY).unwrap();
    }
    let records = store.records(NOW + DAY).unwrap();
    assert_eq!(records.len(), MOST_PROGRAMS);
    let ours = records.iter().filter(|record| record.program.exe.starts_with("/bin")).count();
    assert_eq!(ours, 10);
}
