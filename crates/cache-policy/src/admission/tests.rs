use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

const FILE: u64 = 7 << 40;

fn hash(file: u64) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(file)
}

/// An open of a file that is not open otherwise.
fn opened(admission: &Admission, file: u64, size: u64) -> Way {
    admission.judge_open(file, || Some(size));
    admission.way(file)
}

/// `passes` times through a file of so many blocks, in runs of eight, with every block that was taken in a hit.
fn read(admission: &Admission, blocks: u64, passes: u32, backing_us: u64, compresses: bool) -> u64 {
    let mut held = std::collections::BTreeSet::new();
    let mut hits = 0;
    for _ in 0..passes {
        for run in (0..blocks).step_by(8) {
            let missing: Vec<u64> = (run..(run + 8).min(blocks)).filter(|b| !held.contains(b)).collect();
            let there = 8 - missing.len() as u64;
            (0..there).for_each(|_| admission.note_hit(FILE, 64 << 10, Duration::from_micros(25)));
            hits += there;
            let Some(first) = missing.first() else { continue };
            admission.note_backing_read(
                FILE,
                missing.len() << 16,
                Duration::from_micros(backing_us * missing.len() as u64),
            );
            if admission.admit(FILE, *first) {
                admission.note_compressed(missing.len(), Duration::from_micros(90 * missing.len() as u64));
                held.extend(missing.into_iter().filter(|_| compresses));
            }
        }
    }
    hits
}

#[test]
fn what_does_not_compress_is_tried_rarely_and_taken_in_again_when_it_does() {
    let admission = Admission::new(PassthroughMode::Auto);
    assert_eq!(opened(&admission, FILE, 512 << 16), Way::Cached);
    read(&admission, 512, 4, 1500, false);
    let report = admission.report();
    assert_eq!((report.taken_in, report.not_taken_in), (0, 1), "{report:?}");
    let taken = (0..640).filter(|n| admission.admit(FILE, n * 100)).count();
    assert_eq!(taken, 10);
    read(&admission, 512, 40, 1500, true);
    let report = admission.report();
    assert_eq!((report.taken_in, report.not_taken_in), (1, 0), "{report:?}");
    assert!(matches!(report.reasons.back(), Some(Reason::Pays { .. })), "{report:?}");
}

#[test]
fn the_size_of_a_file_is_asked_only_where_it_decides_something() {
    Admission::new(PassthroughMode::Never).judge_open(FILE, || panic!("asked"));
    let admission = Admission::new(PassthroughMode::Auto);
    assert_eq!(admission.judge_open(FILE, || None), Judged::AsBefore);
    admission.no_passthrough("no root".into());
    admission.judge_open(FILE, || panic!("asked"));
}

#[test]
fn a_stream_larger_than_the_store_is_not_taken_in_on_its_first_pass() {
    let admission = Admission::new(PassthroughMode::Auto);
    admission.has_room_for(Bytes::mib(64));
    assert_eq!(opened(&admission, FILE, 4096 << 16), Way::Cached);
    read(&admission, 2048, 1, 1500, true);
    assert!(
        matches!(admission.report().reasons.front(), Some(Reason::Stream { .. })),
        "{:?}",
        admission.report()
    );
}

#[test]
fn a_fast_disk_is_passed_passthrough_with_probes_and_a_slow_one_never() {
    let admission = Admission::new(PassthroughMode::Auto);
    read(&admission, 512, 3, 30, true);
    assert_eq!(
        admission.judge_open(FILE, || Some(512 << 16)),
        Judged::TurnedToPassthrough,
        "what is held of it is let go"
    );
    assert_eq!(admission.judge_open(FILE, || Some(512 << 16)), Judged::AsBefore);
    let ways: Vec<Way> = (0..32).map(|_| opened(&admission, FILE, 512 << 16)).collect();
    assert_eq!(
        ways.iter().filter(|way| **way == Way::Cached).count(),
        2,
        "{ways:?} {:?}",
        admission.report()
    );
    let others: Vec<Way> = (100..132).map(|n| opened(&admission, hash(n), 512 << 16)).collect();
    assert_eq!(others.iter().filter(|way| **way == Way::Cached).count(), 1, "{others:?}");
    // The disk gets slow: what probes read shows it.
    read(&admission, 512, 20, 3000, true);
    assert_eq!(opened(&admission, FILE, 512 << 16), Way::Cached, "{:?}", admission.report());
}

#[test]
fn what_was_asked_for_is_done_but_where_there_is_no_passthrough() {
    let always = Admission::new(PassthroughMode::Always);
    assert_eq!(opened(&always, FILE, 1), Way::Passthrough);
    always.no_passthrough("not root".to_owned());
    assert_eq!(opened(&always, FILE, 1), Way::Cached);
    let never = Admission::new(PassthroughMode::Never);
    read(&never, 512, 3, 30, true);
    assert_eq!(opened(&never, FILE, 1), Way::Cached);
}

#[test]
fn reasons_are_sentences_and_bounded() {
    let admission = Admission::new(PassthroughMode::Auto);
    for n in 0..20 {
        let row = admission.table.row(hash(n));
        admission.change(row, Some(Reason::BackingFaster { through_us: 65.4, backing_us: 40.0 }));
    }
    let report = admission.report();
    assert_eq!((report.reasons.len(), report.passthrough), (REASONS, 20));
    assert_eq!(report.reasons[0].sentence(), "passthrough: 40 µs a block below, 65 µs through the cache");
}
