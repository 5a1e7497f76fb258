use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::file_set::Stamp;
use crate::pages::Span;

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

fn file(name: &str, spans: &[(u64, u64)]) -> Touched {
    let stamp = Stamp { dev: 1, ino: 2, size: 1 << 20, mtime_ns: 3 };
    Touched {
        path: name.into(),
        kind: Kind::File,
        stamp,
        pages: pages(spans),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    }
}

fn launch(files: Vec<Touched>) -> Launch {
    let set = FileSet { files };
    Launch {
        program: Program::of_exe("/usr/bin/x"),
        uid: 0,
        began_ns: 0,
        took: Duration::ZERO,
        ended: LaunchEnd::Quiet,
        cold_bytes: set.bytes(),
        set,
    }
}

fn names(set: &FileSet) -> Vec<&str> {
    set.files.iter().filter_map(|file| file.path.to_str()).collect()
}

/// The set after these launches.
fn all(launches: &[Launch]) -> FileSet {
    launches.iter().enumerate().fold(FileSet::default(), |known, (so_far, launch)| {
        unite(Some(&known), u32::try_from(so_far).unwrap(), launch)
    })
}

#[test]
fn the_first_launch_is_all_that_is_known() {
    let first = launch(vec![file("a", &[(0, 4)]), file("b", &[(7, 8)])]);
    assert_eq!(unite(None, 0, &first), first.set);
}

#[test]
fn pages_are_united_and_weights_are_shares() {
    let set = all(&[
        launch(vec![file("a", &[(0, 2)]), file("b", &[(0, 1)]), file("c", &[(0, 1)])]),
        launch(vec![file("a", &[(0, 3), (9, 10)]), file("c", &[(0, 1)])]),
    ]);
    let of = |name: &str| set.files.iter().find(|file| file.path == Path::new(name));
    assert_eq!(of("a").map(|file| file.weight), Some(1.0));
    // b may be due for review: it has half the weight, or is gone
    assert!(of("b").is_none_or(|file| file.weight == 0.5));
}

#[test]
fn a_new_file_is_likely_until_a_launch_does_without_it() {
    let common = launch(["a", "b", "c"].map(|name| file(&format!("/usr/lib/{name}"), &[(0, 1)])).to_vec());
    let given = Touched { weight: 0.5, ..file("/usr/share/given", &[(0, 1)]) };
    let metadata = Touched { kind: Kind::Device, ..file("/dev/sda1", &[(0, 1)]) };
    let new = [file("/usr/lib/new", &[(0, 1)]), file("/home/u/new", &[(0, 1)]), metadata, given];
    let mut launches = vec![common.clone(); 5];
    launches.push(launch([&common.set.files[..], &new].concat()));
    let set = all(&launches);
    let found = weights(&set);
    assert!(["a", "b", "c"].iter().all(|name| found[format!("/usr/lib/{name}").as_str()] >= 1.0));
    let names = ["/usr/lib/new", "/home/u/new", "/dev/sda1", "/usr/share/given"];
    assert_eq!(names.map(|name| found[name]), [0.6, 0.6, 0.6, 0.1]);
    launches.push(common);
    let set = all(&launches);
    assert!(names.iter().all(|name| weights(&set).get(name).is_none_or(|weight| *weight < 0.5)));
}

#[test]
fn pages_in_occasional_use_stay_and_pages_unused_in_six_launches_go() {
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        let with = |other: Touched| {
            let usual = ["u", "v", "w"].map(|name| file(name, &[(0, 1)]));
            launch([&[other], &usual[..]].concat())
        };
        let mut launches = vec![with(file(name, &[(0, 100)]))];
        launches.extend(vec![with(file(name, &[(0, 10)])); 2]);
        assert_eq!(all(&launches).files[0].pages, pages(&[(0, 100)]), "{name}");
        launches.extend(vec![with(file(name, &[(0, 10)])); 4]);
        assert_eq!(all(&launches).files[0].pages, pages(&[(0, 10)]), "{name}");
        launches.truncate(1);
        launches.extend(vec![with(file("z", &[(0, 1)])); 2]);
        assert_eq!(all(&launches).files.len(), 5, "{name}");
        launches.extend(vec![with(file("z", &[(0, 1)])); 4]);
        assert_eq!(names(&all(&launches)), ["z", "u", "v", "w"], "{name}");
    }
}

#[test]
fn a_changed_file_has_new_pages_only() {
    for (path, is_other) in [("/usr/lib/a", true), ("/home/u/a", false), ("/home/u/app/a", true)] {
        let mut newer = file(path, &[(1, 2)]);
        newer.stamp.ino += 1;
        let mut launches = [launch(vec![file(path, &[(0, 50)])]), launch(vec![newer.clone()])];
        launches.iter_mut().for_each(|launch| launch.program = Program::of_exe("/home/u/app/app"));
        let set = all(&launches);
        let expected = if is_other { newer.pages } else { pages(&[(0, 50)]) };
        assert_eq!((&set.files[0].pages, set.files[0].stamp), (&expected, newer.stamp), "{path}");
    }
    let mut other_boot = file("a", &[(60, 61)]);
    other_boot.stamp.dev = 99;
    let set = unite(Some(&launch(vec![file("a", &[(0, 50)])]).set), 7, &{
        let mut launch = launch(vec![other_boot]);
        launch.ended = LaunchEnd::Lost;
        launch
    });
    assert_eq!(set.files[0].pages, pages(&[(0, 50), (60, 61)]));
}

#[test]
fn metadata_of_another_file_system_is_not_mixed() {
    let device = |uuid: u64| Touched {
        kind: Kind::Device,
        stamp: Stamp { ino: uuid, ..Stamp::default() },
        ..file("/dev/sda1", &[(uuid, uuid + 1)])
    };
    let pages_of = |first, second| {
        let launches = [first, second].map(|uuid| launch(vec![device(uuid)]));
        all(&launches).files[0].pages.clone()
    };
    assert_eq!(pages_of(7, 7), pages(&[(7, 8)]));
    assert_eq!(pages_of(7, 9), pages(&[(9, 10)]));
    assert_eq!(pages_of(0, 9), pages(&[(0, 1), (9, 10)]), "an earlier eke did not store it");
}

#[test]
fn metadata_of_a_renamed_device_stays_and_two_file_systems_keep_their_own() {
    let device = |name: &str, uuid: u64, page: u64| Touched {
        kind: Kind::Device,
        stamp: Stamp { ino: uuid, ..Stamp::default() },
        ..file(name, &[(page, page + 1)])
    };
    let before = launch(vec![device("/dev/sda1", 7, 1), device("/dev/sdb1", 8, 2)]);
    let after = launch(vec![device("/dev/disk/by-uuid/7", 7, 3), device("/dev/disk/by-uuid/8", 8, 4)]);
    let set = all(&[before, after]);
    assert_eq!(names(&set), ["/dev/disk/by-uuid/7", "/dev/disk/by-uuid/8"]);
    let of = |at: usize| (set.files[at].pages.clone(), set.files[at].weight);
    assert_eq!((of(0), of(1)), ((pages(&[(1, 2), (3, 4)]), 1.0), (pages(&[(2, 3), (4, 5)]), 1.0)));
}

#[test]
fn warm_launches_say_nothing_against_metadata() {
    let metadata = Touched { kind: Kind::Device, ..file("/dev/sda1", &[(3, 4), (900, 905)]) };
    let mut launches = vec![launch(vec![metadata.clone(), file("a", &[(0, 10)])])];
    let mut warm = launch(vec![file("a", &[(0, 10)])]);
    warm.cold_bytes = 0;
    launches.extend(vec![warm; 30]);
    let set = all(&launches);
    assert_eq!(set.files[0], metadata);
    let cold = launch(vec![file("a", &[(0, 10)])]);
    launches.extend(vec![cold; 11]);
    assert_eq!(names(&all(&launches)), ["a"]);
}

#[test]
fn an_incomplete_launch_removes_nothing() {
    let mut part = launch(vec![file("a", &[(0, 1)])]);
    part.ended = LaunchEnd::Lost;
    let first = launch(vec![file("a", &[(0, 9)]), file("b", &[(0, 9)])]);
    let mut launches = vec![first];
    launches.extend(vec![part; 20]);
    let set = all(&launches);
    assert_eq!(names(&set), ["a", "b"]);
    assert_eq!(set.files[0].pages, pages(&[(0, 9)]));
}

#[test]
fn a_cold_launch_that_was_cut_removes_nothing() {
    let mut cut = launch(vec![file("a", &[(0, 1)])]);
    cut.ended = LaunchEnd::Limit;
    let first = launch(vec![file("a", &[(0, 9)]), file("b", &[(0, 9)])]);
    let after = |cut: &Launch| all(&[vec![first.clone()], vec![cut.clone(); 20]].concat());
    assert_eq!(names(&after(&cut)), ["a", "b"]);
    cut.cold_bytes = 0;
    assert_eq!(names(&after(&cut)), ["a"], "a warm one goes on because it works");
}

#[test]
fn without_uses_only_a_launch_that_read_most_removes_pages() {
    let without_uses = |files| Launch { ended: LaunchEnd::WithoutUses, ..launch(files) };
    let first = without_uses(vec![file("a", &[(0, 90)]), file("b", &[(0, 9)]), file("gone", &[(0, 9)])]);
    let after = |next: &Launch| all(&[vec![first.clone()], vec![next.clone(); 20]].concat());
    let cold = without_uses(vec![file("a", &[(0, 80)]), file("b", &[(0, 9)])]);
    assert_eq!(names(&after(&cold)), ["a", "b"]);
    assert_eq!(after(&cold).files[0].pages, pages(&[(0, 80)]));
    let little = without_uses(vec![file("b", &[(0, 9)])]);
    let film = without_uses(vec![file("b", &[(0, 9)]), file("film", &[(0, 5000)])]);
    let was_read = Launch { ended: LaunchEnd::Lost, ..cold };
    for kept in [little, film, was_read] {
        let set = after(&kept);
        assert!(["a", "b", "gone"].iter().all(|name| names(&set).contains(name)), "{kept:?}");
        let a = set.files.iter().find(|file| file.path == Path::new("a"));
        assert_eq!(a.map(|file| &file.pages), Some(&pages(&[(0, 90)])));
    }
}

const ANNA: u32 = 1000;
const BOB: u32 = 1001;

/// A launch of this account that uses these files.
fn by(account: u32, names: &[&str]) -> Launch {
    let files = names.iter().map(|name| file(name, &[(0, 9)]));
    let files = files.map(|file| Touched { used_by: UsedBy::One(account), ..file });
    Launch { uid: account, ..launch(files.collect()) }
}

fn weights(set: &FileSet) -> BTreeMap<&str, f32> {
    set.files.iter().filter_map(|file| Some((file.path.to_str()?, file.weight))).collect()
}

#[test]
fn a_launch_says_nothing_against_the_profile_of_another_user() {
    let anna = by(ANNA, &["a", "b", "c", "anna/profile"]);
    let bob = by(BOB, &["a", "b", "c", "bob/profile"]);
    let set = all(&[vec![anna.clone()], vec![bob; 20], vec![anna]].concat());
    let weights = weights(&set);
    assert!(weights["anna/profile"] >= 1.0 && weights["bob/profile"] > 0.9, "{weights:?}");
    assert_eq!(set.files[0].used_by, UsedBy::Several);
    let own = set.files.iter().find(|file| file.path == Path::new("bob/profile"));
    assert_eq!(own.map(|file| file.used_by), Some(UsedBy::One(BOB)));
}

#[test]
fn a_user_cannot_make_a_shared_program_read_more_for_others() {
    let bob = by(BOB, &["a", "b", "c", "junk1", "junk2", "junk3", "junk4", "junk5"]);
    let mut set = all(&[vec![by(ANNA, &["a", "b", "c"])], vec![bob; 9]].concat());
    set.keep_for(ANNA);
    assert_eq!(names(&set), ["a", "b", "c"]);
    let set = unite(Some(&set), 10, &by(ANNA, &["a", "b"]));
    assert!(weights(&set)["c"] < 0.9, "a whole launch of hers counts");
}

#[test]
fn starts_of_one_user_that_only_print_a_version_take_no_library_from_anybody() {
    let [exe, lib, plugin, own] = ["/usr/bin/x", "/usr/lib/a.so", "/usr/lib/b.so", "/home/anna/x.db"];
    let anna = by(ANNA, &[exe, lib, plugin, own]);
    let version = Launch { ended: LaunchEnd::Exited, ..by(BOB, &[exe]) };
    let set = all(&[vec![anna], vec![version; 9]].concat());
    assert!(weights(&set).values().all(|weight| *weight >= 1.0), "{:?}", weights(&set));
    let of = |account| {
        let mut set = set.clone();
        set.keep_for(account);
        set.files.len()
    };
    assert_eq!((of(ANNA), of(BOB)), (4, 3));
}

#[test]
fn a_start_that_ended_before_it_used_most_lowers_nothing_at_first_and_little_later() {
    let (whole, small) = (by(ANNA, &["a", "b", "c", "d"]), by(ANNA, &["a"]));
    for ended in [LaunchEnd::Exited, LaunchEnd::Quiet] {
        let small = Launch { ended, ..small.clone() };
        let after = |times: usize| {
            let set = all(&[vec![whole.clone()], vec![small.clone(); times]].concat());
            (set.files.len(), weights(&set)["b"], set.files[1].pages.clone())
        };
        assert_eq!(after(2), (4, 1.0, pages(&[(0, 9)])), "{ended:?}");
        assert!((after(3).1 - 0.9).abs() < 1e-6, "{:?}", after(3));
        assert_eq!(after(9).0, 4, "it is usual no more");
        let by_bob = Launch { uid: BOB, ..small };
        let shared = [vec![whole.clone(), Launch { uid: BOB, ..whole.clone() }], vec![by_bob; 30]];
        assert_eq!(weights(&all(&shared.concat()))["b"], 1.0, "another user's says nothing");
    }
}

#[test]
fn what_most_small_starts_do_without_stays_known() {
    let (whole, small) = (by(ANNA, &["a", "b", "c", "d"]), by(ANNA, &[]));
    let evidence = LaunchEvidence::new(9, &small, || false);
    let mut file = whole.set.files[0].clone();
    (0..100).for_each(|_| file = evidence.unused(&file).unwrap());
    assert!((file.weight - SMALL_FLOOR).abs() < 1e-6);
    let light = Touched { weight: 0.15, ..file };
    assert_eq!(evidence.unused(&light), Some(light));
}

#[test]
fn the_order_is_that_of_first_use() {
    let one = launch(vec![file("a", &[(0, 1)]), file("b", &[(0, 1)]), file("c", &[(0, 1)])]);
    let other = launch(vec![file("a", &[(0, 1)]), file("c", &[(0, 1)]), file("x", &[(0, 1)])]);
    let set = unite(Some(&one.set), 50, &Launch { ended: LaunchEnd::Lost, ..other });
    assert_eq!(names(&set), ["a", "b", "c", "x"]);
}

proptest! {
    #[test]
    fn it_has_the_newest_pages_and_only_known_files(
        runs in proptest::collection::vec(proptest::collection::btree_map(0u8..6, (0u64..40, 1u64..9), 1..6), 1..12)
    ) {
        let launches: Vec<Launch> = runs.iter().map(|run| {
            launch(run.iter().map(|(n, (first, count))| file(&format!("f{n}"), &[(*first, first + count)])).collect())
        }).collect();
        let set = all(&launches);
        let of = |files: &[Touched], path: &Path| files.iter().find(|f| f.path == path).map(|f| f.pages.clone());
        for newest in &launches[launches.len() - 1].set.files {
            let have = of(&set.files, &newest.path).unwrap();
            prop_assert!(newest.pages.without(&have).is_empty());
        }
        for file in &set.files {
            prop_assert!((0.0..=1.0).contains(&file.weight));
            let ever = launches.iter().filter_map(|l| of(&l.set.files, &file.path)).fold(Pages::default(), |a, b| a.union(&b));
            prop_assert!(file.pages.without(&ever).is_empty());
            prop_assert!(file.stale.without(&file.pages).is_empty());
        }
        let mut paths: Vec<_> = set.files.iter().map(|f| &f.path).collect();
        paths.sort();
        paths.dedup();
        prop_assert_eq!(paths.len(), set.files.len());
    }
}
