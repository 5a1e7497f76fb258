use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

const FILE: u64 = 7 << 40;

fn hash(file: u64) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(file)
}

/// An open of a file that is not open otherwise.
fn opened(admission: &Admission, file: u64, size: u64) -> DataPath {
    admission.decide_at_open(file, true, || Some(size), Content::Compresses);
    admission.data_path(file, false)
}

/// Reads a file of `blocks` blocks `passes` times, in runs of eight; every admitted block is a hit later. Returns the hits.
fn read(admission: &Admission, blocks: u64, passes: u32, backing_us: u64, compresses: bool) -> u64 {
    let mut stored = std::collections::BTreeSet::new();
    let mut hits = 0;
    for _ in 0..passes {
        for run in (0..blocks).step_by(8) {
            let missing: Vec<u64> = (run..(run + 8).min(blocks)).filter(|b| !stored.contains(b)).collect();
            let hits_now = 8 - missing.len() as u64;
            (0..hits_now).for_each(|_| admission.note_hit(FILE, 64 << 10, Duration::from_micros(25)));
            hits += hits_now;
            let Some(first) = missing.first() else { continue };
            admission.note_backing_read(
                FILE,
                missing.len() << 16,
                Duration::from_micros(backing_us * missing.len() as u64),
            );
            if admission.admit(FILE, *first) {
                admission.note_compressed(missing.len(), Duration::from_micros(90 * missing.len() as u64));
                stored.extend(missing.into_iter().filter(|_| compresses));
            }
        }
    }
    hits
}

#[test]
fn a_new_file_uses_passthrough_unless_there_is_none() {
    let of_new = |asked| Admission::new(asked).data_path(FILE, true);
    assert_eq!(of_new(PassthroughMode::Auto), DataPath::Passthrough);
    assert_eq!(of_new(PassthroughMode::Never), DataPath::Cached);
    let admission = Admission::new(PassthroughMode::Auto);
    admission.no_passthrough("no root".into());
    assert_eq!(admission.data_path(FILE, true), DataPath::Cached);
}

#[test]
fn incompressible_files_are_tried_rarely_and_admitted_when_they_compress() {
    let admission = Admission::new(PassthroughMode::Auto);
    assert_eq!(opened(&admission, FILE, 512 << 16), DataPath::Cached);
    read(&admission, 512, 4, 1500, false);
    assert_eq!(admission.report().declined, 0, "on a slow disk, with idle processors");
    admission.processors_are_busy(true);
    read(&admission, 512, 1, 1500, false);
    let report = admission.report();
    assert_eq!((report.admitted, report.declined), (0, 1), "{report:?}");
    let taken = (0..640).filter(|n| admission.admit(FILE, n * 100)).count();
    assert_eq!(taken, 10);
    read(&admission, 512, 40, 1500, true);
    let report = admission.report();
    assert_eq!((report.admitted, report.declined), (1, 0), "{report:?}");
    assert!(matches!(report.reasons.back(), Some(Reason::Pays { .. })), "{report:?}");
}

#[test]
fn the_size_of_a_file_is_asked_only_where_it_decides_something() {
    Admission::new(PassthroughMode::Never).decide_at_open(
        FILE,
        true,
        || panic!("asked"),
        Content::Compresses,
    );
    let admission = Admission::new(PassthroughMode::Auto);
    assert_eq!(admission.decide_at_open(FILE, true, || None, Content::Compresses), OpenDecision::Unchanged);
    admission.no_passthrough("no root".into());
    admission.decide_at_open(FILE, true, || panic!("asked"), Content::Compresses);
}

#[test]
fn a_stream_larger_than_the_store_is_declined_on_its_first_pass() {
    let admission = Admission::new(PassthroughMode::Auto);
    admission.has_room_for(Bytes::mib(64));
    assert_eq!(opened(&admission, FILE, 4096 << 16), DataPath::Cached);
    read(&admission, 2048, 1, 1500, true);
    assert!(
        matches!(admission.report().reasons.front(), Some(Reason::Stream { .. })),
        "{:?}",
        admission.report()
    );
}

#[test]
fn files_on_a_fast_disk_use_passthrough_with_probes_and_on_a_slow_one_never() {
    let admission = Admission::new(PassthroughMode::Auto);
    read(&admission, 512, 3, 30, true);
    assert_eq!(
        admission.decide_at_open(FILE, true, || Some(512 << 16), Content::Compresses),
        OpenDecision::NowPassthrough,
        "its stored blocks are dropped"
    );
    assert_eq!(
        admission.decide_at_open(FILE, true, || Some(512 << 16), Content::Compresses),
        OpenDecision::Unchanged
    );
    let paths: Vec<DataPath> = (0..32).map(|_| opened(&admission, FILE, 512 << 16)).collect();
    assert_eq!(
        paths.iter().filter(|path| **path == DataPath::Cached).count(),
        2,
        "{paths:?} {:?}",
        admission.report()
    );
    let others: Vec<DataPath> = (100..132).map(|n| opened(&admission, hash(n), 512 << 16)).collect();
    assert_eq!(others.iter().filter(|path| **path == DataPath::Cached).count(), 1, "{others:?}");
    // The disk becomes slow: the probes' reads show it.
    read(&admission, 512, 20, 3000, true);
    assert_eq!(opened(&admission, FILE, 512 << 16), DataPath::Cached, "{:?}", admission.report());
}

#[test]
fn a_file_that_is_only_opened_to_read_and_write_keeps_its_blocks_on_a_fast_disk() {
    let admission = Admission::new(PassthroughMode::Auto);
    read(&admission, 512, 3, 30, true);
    let decide = |passes| admission.decide_at_open(FILE, passes, || Some(512 << 16), Content::Compresses);
    assert_eq!(decide(false), OpenDecision::Unchanged);
    assert!((1..100).all(|block| admission.admit(FILE, block)));
    assert_eq!(decide(true), OpenDecision::NowPassthrough);
}

#[test]
fn the_mode_that_was_asked_for_is_used_unless_there_is_no_passthrough() {
    let always = Admission::new(PassthroughMode::Always);
    assert_eq!(opened(&always, FILE, 1), DataPath::Passthrough);
    always.no_passthrough("not root".to_owned());
    assert_eq!(opened(&always, FILE, 1), DataPath::Cached);
    let never = Admission::new(PassthroughMode::Never);
    read(&never, 512, 3, 30, true);
    assert_eq!(opened(&never, FILE, 1), DataPath::Cached);
}

#[test]
fn reasons_are_sentences_and_bounded() {
    let admission = Admission::new(PassthroughMode::Auto);
    for n in 0..20 {
        let row = admission.table.row(hash(n));
        admission
            .change(row, Some(Reason::BackingFaster { through_us: 65.4, backing_us: 40.0 + n as f32 / 2.0 }));
    }
    let report = admission.report();
    assert_eq!((report.reasons.len(), report.passthrough), (REASONS, 20));
    assert_eq!(
        report.reasons[0].sentence(),
        "passthrough: 46 µs a block from the disk, 65 µs through the cache"
    );
}

#[test]
fn equal_reasons_are_reported_once() {
    let admission = Admission::new(PassthroughMode::Auto);
    for n in 0..20 {
        let reason = if n == 7 { Reason::LikeOthers { percent: 97 } } else { Reason::Incompressible };
        admission.change(admission.table.row(hash(n)), Some(reason));
    }
    let reasons: Vec<Reason> = admission.report().reasons.into();
    assert_eq!(reasons, [Reason::LikeOthers { percent: 97 }, Reason::Incompressible]);
}
