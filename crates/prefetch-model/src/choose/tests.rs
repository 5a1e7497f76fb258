//! Tables and properties of choices.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::cost::DiskCost;
use crate::file_set::{Kind, Stamp, Touched, UsedBy};
use crate::pages::{PAGE_BYTES, Pages, Span};

/// A laptop's disk: 8 ms, 40 MB/s.
const DISK: DiskCost = DiskCost { request_s: 0.008, near_request_s: 0.008, byte_s: 1.0 / 40e6 };
const PAGE_S: f64 = PAGE_BYTES as f64 / 40e6;
const ALL: u64 = u64::MAX;

struct Machine {
    cost: Option<DiskCost>,
    resident: Resident,
}

impl Environment for Machine {
    fn cost(&self, _: &Touched) -> Option<DiskCost> {
        self.cost
    }

    fn resident(&self, _: &Touched) -> Resident {
        self.resident.clone()
    }

    fn is_pinned(&self, path: &Path) -> bool {
        path.starts_with("/pinned")
    }
}

const COLD: Machine = Machine { cost: Some(DISK), resident: Resident::Unknown };

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

fn file(path: &str, spans: &[(u64, u64)]) -> Touched {
    Touched {
        path: path.into(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: pages(spans),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    }
}

fn set(files: &[Touched]) -> FileSet {
    FileSet { files: files.to_vec() }
}

fn candidate(id: u64, probability: f64, set: &FileSet) -> Candidate<'_> {
    Candidate { id: ProgramId(id), probability, took: None, set }
}

/// Without the rule that leaves out small gains.
fn limits(budget_bytes: u64) -> Limits {
    Limits { least_saved_s: 0.0, ..Limits::of(budget_bytes) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn many_seeks_for_few_bytes_come_first() {
    let directory = Touched { kind: Kind::Directory, pages: Pages::default(), ..file("/usr/lib", &[]) };
    let device = Touched { kind: Kind::Device, ..file("/dev/sda", &[(50_000, 50_001), (90_000, 90_001)]) };
    let all = set(&[file("/big", &[(0, 2560)]), file("/small", &[(0, 16)]), device, directory]);
    let choice = choose(&[candidate(1, 1.0, &all)], &COLD, &limits(ALL));
    let paths: Vec<&str> = choice.reads.iter().filter_map(|read| read.path.to_str()).collect();
    assert_eq!(paths, ["/dev/sda", "/usr/lib", "/small", "/big"]);
    assert_eq!(choice.bytes, (2560 + 16 + 2 + 1) * PAGE_BYTES);
    let seconds = 5.0 * DISK.request_s + 2579.0 * PAGE_S;
    assert!(close(choice.saved_s, seconds), "{}", choice.saved_s);
    assert_eq!(choice.reads[0].position, 2);
    assert_eq!(choice.reads[1].pages, Pages::default());
}

#[test]
fn shared_pages_count_once_with_the_probability_of_any_use() {
    let (a, b) = (set(&[file("/lib", &[(0, 10)])]), set(&[file("/lib", &[(5, 15)])]));
    let choice = choose(&[candidate(1, 0.5, &a), candidate(2, 0.2, &b)], &COLD, &limits(ALL));
    assert_eq!(choice.bytes, 15 * PAGE_BYTES);
    let requests = (0.5 + 0.2) * DISK.request_s;
    let bytes = (5.0 * 0.5 + 5.0 * (1.0 - 0.5 * 0.8) + 5.0 * 0.2) * PAGE_S;
    assert!(close(choice.saved_s, requests + bytes), "{}", choice.saved_s);
    let total = 10 * PAGE_BYTES;
    for (_, outcome) in &choice.outcomes {
        assert!(
            matches!(outcome, ChoiceOutcome::Chosen { bytes, of_bytes, .. } if (*bytes, *of_bytes) == (total, total))
        );
    }
    // Both begin at the same page: one request, saved if either starts.
    let choice = choose(&[candidate(1, 0.5, &a), candidate(2, 0.2, &a)], &COLD, &limits(ALL));
    assert!(close(choice.saved_s, 0.6 * (DISK.request_s + 10.0 * PAGE_S)), "{}", choice.saved_s);
}

#[test]
fn a_file_saves_in_proportion_to_the_launches_that_use_it() {
    let some = set(&[Touched { weight: 0.25, ..file("/x", &[(0, 10)]) }]);
    let choice = choose(&[candidate(1, 0.5, &some)], &COLD, &limits(ALL));
    assert!(close(choice.saved_s, 0.125 * (DISK.request_s + 10.0 * PAGE_S)), "{}", choice.saved_s);
}

#[test]
fn at_exec_a_page_is_likelier_used_than_not() {
    let third = |path| Touched { weight: 1.0 / 3.0, ..file(path, &[(0, 10_000)]) };
    let half = Touched { weight: 0.5, ..file("/half", &[(0, 10_000)]) };
    let all = set(&[file("/habit", &[(0, 2000)]), third("/a"), third("/b"), half]);
    let choice = choose(&[candidate(1, 1.0, &all)], &COLD, &Limits::at_exec(ALL));
    assert_eq!(choice.bytes, 2000 * PAGE_BYTES);
    assert_eq!(choice.reads[0].path, Path::new("/habit"));
    let ahead = choose(&[candidate(1, 1.0, &all)], &COLD, &Limits::of(ALL));
    assert_eq!(ahead.reads.len(), 4);
}

#[test]
fn what_is_not_read_at_exec_decides_nothing() {
    let film = Touched { weight: 0.5, ..file("/film", &[(0, 100_000)]) };
    let outcome = |files: &[Touched], limits: &Limits| {
        let set = set(files);
        choose(&[candidate(1, 1.0, &set)], &COLD, limits).outcomes[0].1
    };
    let limits = Limits::at_exec(ALL);
    let few = file("/few", &[(0, 4)]);
    let small = outcome(&[few, film.clone()], &limits);
    assert!(matches!(small, ChoiceOutcome::SmallGain { cold_s, .. } if cold_s < 0.01), "{small:?}");
    let improbable = ChoiceOutcome::Improbable { probability: 1.0, least: 0.51 };
    assert_eq!(outcome(std::slice::from_ref(&film), &limits), improbable);
    // Seeks pay for eke's CPU time, and the film would not.
    let seeks: Vec<(u64, u64)> = (0..20).map(|n| (n * 100, n * 100 + 1)).collect();
    let slow_cpu = Limits { cpu_page_s: 2.0 * PAGE_S, ..limits };
    let chosen = outcome(&[file("/seeks", &seeks), film], &slow_cpu);
    assert!(matches!(chosen, ChoiceOutcome::Chosen { .. }), "{chosen:?}");
}

#[test]
fn holes_are_read_where_that_is_cheaper_than_another_request() {
    // 8 ms are 78 pages
    let near = set(&[file("/x", &[(0, 10), (80, 90)])]);
    let choice = choose(&[candidate(1, 1.0, &near)], &COLD, &limits(ALL));
    assert_eq!(choice.reads[0].pages, pages(&[(0, 90)]));
    let far = set(&[file("/x", &[(0, 10), (90, 100)])]);
    let choice = choose(&[candidate(1, 1.0, &far)], &COLD, &limits(ALL));
    assert_eq!(choice.reads[0].pages, pages(&[(0, 10), (90, 100)]));
    let flash = Machine {
        cost: Some(DiskCost { request_s: 0.0001, near_request_s: 0.0001, byte_s: 1.0 / 500e6 }),
        ..COLD
    };
    let choice = choose(&[candidate(1, 1.0, &near)], &flash, &limits(ALL));
    assert_eq!(choice.reads[0].pages, pages(&[(0, 10), (80, 90)]));
}

#[test]
fn no_hole_is_read_instead_of_used_pages() {
    let files: Vec<Touched> =
        (0..9).map(|n| file(&format!("/{n}"), &[(0, 5), (50, 55), (100, 105)])).collect();
    let all = set(&files);
    let used = 9 * 15;
    let choice = choose(&[candidate(1, 1.0, &all)], &COLD, &limits(used * PAGE_BYTES));
    assert_eq!(choice.bytes, used * PAGE_BYTES);
    assert!(close(choice.saved_s, 27.0 * DISK.request_s + used as f64 * PAGE_S), "{}", choice.saved_s);
    // room for one hole and part of another
    let more = choose(&[candidate(1, 1.0, &all)], &COLD, &limits((used + 60) * PAGE_BYTES));
    assert_eq!(more.bytes, (used + 45) * PAGE_BYTES);
    assert!(close(more.saved_s, choice.saved_s));
}

#[test]
fn resident_pages_are_not_chosen() {
    let all = set(&[file("/x", &[(0, 300)])]);
    let with = |resident| Machine { resident, ..COLD };
    let part = with(Resident::Pages(pages(&[(0, 150), (200, 260)])));
    let choice = choose(&[candidate(1, 1.0, &all)], &part, &limits(ALL));
    // a hole of 60 pages would be cheap, but it is resident
    assert_eq!(choice.reads[0].pages, pages(&[(150, 200), (260, 300)]));
    assert_eq!(choice.bytes, 90 * PAGE_BYTES);
}

#[test]
fn each_outcome_has_its_reason_with_numbers() {
    let all = set(&[file("/x", &[(0, 100)])]);
    let outcome = |p, set: &FileSet, machine: &Machine, limits: &Limits| {
        choose(&[candidate(1, p, set)], machine, limits).outcomes[0].1
    };
    let cold_s = DISK.request_s + 100.0 * PAGE_S;
    let of_bytes = 100 * PAGE_BYTES;
    let chosen = ChoiceOutcome::Chosen { bytes: of_bytes, of_bytes, saved_s: cold_s, of_s: cold_s };
    assert_eq!(outcome(1.0, &all, &COLD, &limits(ALL)), chosen);
    let resident = Machine { resident: Resident::All, ..COLD };
    assert_eq!(outcome(1.0, &all, &resident, &limits(ALL)), ChoiceOutcome::AlreadyResident);
    let is_small_gain = ChoiceOutcome::SmallGain { cold_s, took_s: None, least_s: 0.15 };
    assert_eq!(outcome(1.0, &all, &COLD, &Limits::of(ALL)), is_small_gain);
    let improbable = ChoiceOutcome::Improbable { probability: 0.01, least: 0.02 };
    assert_eq!(outcome(0.01, &all, &COLD, &limits(ALL)), improbable);
    let no_room = ChoiceOutcome::NoRoom { of_bytes, of_s: cold_s, budget_bytes: 4095 };
    assert_eq!(outcome(1.0, &all, &COLD, &limits(4095)), no_room);
    let nothing = ChoiceOutcome::NothingToRead { files: 1 };
    let network = Machine { cost: None, ..COLD };
    assert_eq!(outcome(1.0, &all, &network, &limits(ALL)), nothing);
    let broken = Machine {
        cost: Some(DiskCost { request_s: f64::NAN, near_request_s: f64::NAN, byte_s: 1.0 }),
        ..COLD
    };
    assert_eq!(outcome(1.0, &all, &broken, &limits(ALL)), nothing);
    assert_eq!(outcome(1.0, &set(&[file("/pinned/x", &[(0, 100)])]), &COLD, &limits(ALL)), nothing);
    assert_eq!(
        outcome(f64::NAN, &all, &COLD, &limits(ALL)),
        ChoiceOutcome::Improbable { probability: 0.0, least: 0.02 }
    );
}

#[test]
fn what_an_improbable_program_shares_is_not_read_for_it() {
    let likely = set(&[file("/lib", &[(0, 1000)]), file("/likely", &[(0, 1000)])]);
    let other = set(&[file("/lib", &[(0, 1000)]), file("/other", &[(0, 1000)])]);
    let outcomes = |budget| {
        let both = [candidate(1, 0.9, &likely), candidate(2, 0.001, &other)];
        let choice = choose(&both, &COLD, &limits(budget));
        assert!(choice.reads.iter().all(|read| read.path != Path::new("/other")));
        choice.outcomes.iter().map(|(_, outcome)| *outcome).collect::<Vec<_>>()
    };
    let (lib, all) = (1000 * PAGE_BYTES, 2000 * PAGE_BYTES);
    let shared = ChoiceOutcome::Shared { bytes: lib, of_bytes: all, probability: 0.001, least: 0.02 };
    assert!(matches!(outcomes(ALL)[0], ChoiceOutcome::Chosen { bytes, .. } if bytes == all));
    assert_eq!(outcomes(ALL)[1], shared);
    assert!(matches!(outcomes(0)[0], ChoiceOutcome::NoRoom { .. }));
    assert_eq!(outcomes(0)[1], ChoiceOutcome::Improbable { probability: 0.001, least: 0.02 });
}

#[test]
fn a_slow_cpu_beside_a_fast_disk_reads_nothing() {
    let all = set(&[file("/x", &[(0, 100)])]);
    let outcome = |cpu_page_s| {
        let limits = Limits { cpu_page_s, ..limits(ALL) };
        choose(&[candidate(1, 1.0, &all)], &COLD, &limits)
    };
    let cold_s = DISK.request_s + 100.0 * PAGE_S;
    assert!(matches!(outcome(0.99 * cold_s / 100.0).outcomes[0].1, ChoiceOutcome::Chosen { .. }));
    let costs = outcome(2.0 * cold_s / 100.0);
    assert!(costs.reads.is_empty());
    let ChoiceOutcome::CostsCpu { cold_s: disk, cpu_s } = costs.outcomes[0].1 else { panic!("{costs:?}") };
    assert_eq!((disk, cpu_s), (cold_s, 2.0 * cold_s));
}

#[test]
fn at_exec_a_launch_shares_its_cpu_and_ahead_nobody_waits() {
    assert_eq!([1, 4, 0].map(|cpus| cpu_share(Occasion::Exec, cpus)), [1.0, 0.25, 1.0]);
    assert_eq!(cpu_share(Occasion::Ahead, 1), 0.1);
}

#[test]
fn a_small_gain_counts_where_the_launch_is_short() {
    let all = set(&[file("/x", &[(0, 800)])]);
    let outcome = |took_ms| {
        let candidate = Candidate { took: Some(Duration::from_millis(took_ms)), ..candidate(1, 1.0, &all) };
        choose(&[candidate], &COLD, &Limits::of(ALL)).outcomes[0].1
    };
    // 90 ms of 800 ms are more than a tenth
    assert!(matches!(outcome(800), ChoiceOutcome::Chosen { .. }));
    assert!(matches!(outcome(5000), ChoiceOutcome::SmallGain { least_s: 0.15, took_s: Some(5.0), .. }));
}

#[test]
fn the_last_piece_is_cut_where_the_budget_ends() {
    let all = set(&[file("/a", &[(0, 10)]), file("/b", &[(0, 1000)])]);
    let choice = choose(&[candidate(1, 1.0, &all)], &COLD, &limits(110 * PAGE_BYTES + 7));
    assert_eq!(choice.bytes, 110 * PAGE_BYTES);
    assert_eq!(choice.reads[1].pages, pages(&[(0, 100)]));
    let total = 1010 * PAGE_BYTES;
    assert!(
        matches!(choice.outcomes[0].1, ChoiceOutcome::Chosen { bytes, of_bytes, .. } if bytes == 110 * PAGE_BYTES && of_bytes == total)
    );
}

/// Few paths and near pages, so that much is shared.
fn some_set() -> impl Strategy<Value = FileSet> {
    let spans = proptest::collection::vec((0u64..400, 1u64..60), 0..5);
    let one = (0u8..6, spans, 0u8..8, 0.0f32..=1.0).prop_map(|(name, spans, kind, weight)| {
        let spans: Vec<(u64, u64)> = spans.into_iter().map(|(first, count)| (first, first + count)).collect();
        let kind = match kind {
            0 => Kind::Directory,
            1 => Kind::Device,
            _ => Kind::File,
        };
        let spans = if kind == Kind::Directory { &[][..] } else { &spans[..] };
        Touched { kind, weight, ..file(&format!("/{name}"), spans) }
    });
    let names = |files: Vec<Touched>| {
        let mut had = BTreeSet::new();
        FileSet { files: files.into_iter().filter(|f| had.insert((f.path.clone(), f.kind))).collect() }
    };
    proptest::collection::vec(one, 0..8).prop_map(names)
}

fn some_sets() -> impl Strategy<Value = Vec<(f64, FileSet)>> {
    proptest::collection::vec((0.0f64..=1.0, some_set()), 1..5)
}

fn candidates(sets: &[(f64, FileSet)]) -> Vec<Candidate<'_>> {
    sets.iter().zip(1..).map(|((p, set), id)| candidate(id, *p, set)).collect()
}

fn read(choice: &Choice) -> BTreeSet<(Kind, &Path, u64)> {
    let of = |read: &'_ PlannedRead| {
        read.pages.spans().iter().flat_map(|span| span.first..span.end).collect::<Vec<u64>>()
    };
    choice.reads.iter().flat_map(|w| of(w).into_iter().map(|page| (w.kind, w.path.as_path(), page))).collect()
}

proptest! {
    #[test]
    fn it_stays_within_the_budget_and_reads_each_page_once(sets in some_sets(), budget in 0u64..3_000_000) {
        let choice = choose(&candidates(&sets), &COLD, &limits(budget));
        prop_assert!(choice.bytes <= budget);
        prop_assert_eq!(choice.bytes, choice.reads.iter().map(|read| read.bytes).sum::<u64>());
        let directories = choice.reads.iter().filter(|read| read.kind == Kind::Directory).count() as u64;
        prop_assert_eq!(choice.bytes, (read(&choice).len() as u64 + directories) * PAGE_BYTES);
        let saved: f64 = choice.reads.iter().map(|read| read.saved_s).sum();
        prop_assert!((saved - choice.saved_s).abs() < 1e-9);
    }

    #[test]
    fn more_budget_reads_more_and_never_saves_less(sets in some_sets(), budget in 0u64..3_000_000, more in 0u64..1_000_000) {
        let of = |budget| choose(&candidates(&sets), &COLD, &limits(budget));
        let (small, large) = (of(budget), of(budget + more));
        prop_assert!(large.saved_s >= small.saved_s - 1e-9);
        prop_assert!(read(&large).is_superset(&read(&small)));
    }

    #[test]
    fn everything_in_use_is_read_if_the_budget_allows(sets in some_sets()) {
        let limits = Limits { least_probability: 0.0, ..limits(ALL) };
        let choice = choose(&candidates(&sets), &COLD, &limits);
        let read = read(&choice);
        for file in sets.iter().flat_map(|(_, set)| &set.files) {
            let used = file.pages.spans().iter().flat_map(|span| span.first..span.end);
            for page in used {
                prop_assert!(read.contains(&(file.kind, file.path.as_path(), page)));
            }
        }
        for (_, outcome) in choice.outcomes {
            if let ChoiceOutcome::Chosen { bytes, of_bytes, saved_s, of_s } = outcome {
                prop_assert!(bytes == of_bytes && (saved_s - of_s).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_order_of_candidates_makes_no_difference(sets in some_sets(), budget in 0u64..3_000_000) {
        let mut candidates = candidates(&sets);
        let forth = choose(&candidates, &COLD, &limits(budget));
        candidates.reverse();
        let back = choose(&candidates, &COLD, &limits(budget));
        prop_assert_eq!(read(&forth), read(&back));
        prop_assert!((forth.saved_s - back.saved_s).abs() < 1e-9);
        let order = |choice: &Choice| choice.reads.iter().map(|w| (w.path.clone(), w.kind, w.pages.clone())).collect::<Vec<_>>();
        prop_assert_eq!(order(&forth), order(&back));
    }

    #[test]
    fn another_candidate_never_counts_shared_pages_twice(set in some_set(), p in 0.1f64..1.0, q in 0.1f64..1.0) {
        let limits = Limits { least_probability: 0.0, ..limits(ALL) };
        let one = choose(&[candidate(1, p, &set)], &COLD, &limits);
        let two = choose(&[candidate(1, p, &set), candidate(2, q, &set)], &COLD, &limits);
        prop_assert_eq!(one.bytes, two.bytes);
        prop_assert!(two.saved_s >= one.saved_s - 1e-9 && two.saved_s <= one.saved_s * (1.0 + q / p) + 1e-9);
    }
}
