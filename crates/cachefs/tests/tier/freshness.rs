//! Whether a file has changed since it was last seen.

use super::*;

/// A file of which the last change cannot be told from one more within the same tick, a moment later: is it as it was, if the watch reports
/// so?
fn a_moment_after(write: impl FnOnce(&mut Set), ahead_ns: i64, prepare: impl FnOnce(&Tier)) -> Freshness {
    // No time stamp is old enough by itself.
    a_moment_after_with((Duration::from_secs(60), Reporting::Watched), write, ahead_ns, prepare)
}

fn a_moment_after_with(
    (tick, reporting): (Duration, Reporting),
    write: impl FnOnce(&mut Set),
    ahead_ns: i64,
    prepare: impl FnOnce(&Tier),
) -> Freshness {
    let clock = Arc::new(Ahead::default());
    let options = Options { tick, clock: clock.clone(), ..Options::default() };
    let mut set = set_with(Compress::Sync, options);
    clock.0.store(-1_000_000_000, Ordering::SeqCst);
    set.tier.coverage().begin();
    set.tier.coverage().waits();
    clock.0.store(0, Ordering::SeqCst);
    set.open();
    write(&mut set);
    clock.0.store(ahead_ns, Ordering::SeqCst);
    prepare(&set.tier);
    set.tier.opened(set.file, set.backing.stamp().unwrap(), || reporting)
}

#[test]
fn a_watch_that_reports_nothing_for_a_second_settles_the_stamp_of_a_write() {
    const AFTER: i64 = 3_500_000_000;
    let own = |set: &mut Set| set.write(WritePosition::At(0), b"text");
    assert_eq!(a_moment_after(own, AFTER, |_| {}), Freshness::Unchanged);
    assert_eq!(a_moment_after(own, AFTER / 7, |_| {}), Freshness::Changed, "the report may be on its way");
    assert_eq!(
        a_moment_after(own, AFTER, |tier| tier.coverage().begin()),
        Freshness::Changed,
        "it may be lost"
    );
    assert_eq!(a_moment_after(own, AFTER, |tier| tier.coverage().end()), Freshness::Changed);
    let by_others = |set: &mut Set| {
        set.other.write_all_at(b"text", 0).unwrap();
        set.open();
    };
    assert_eq!(a_moment_after(by_others, AFTER, |_| {}), Freshness::Changed, "they may have mapped it");
    let beside_a_writer =
        a_moment_after_with((Duration::from_secs(60), Reporting::Unwatched), own, AFTER, |_| {});
    assert_eq!(beside_a_writer, Freshness::Changed, "it may store through a mapping");
    let on_tmpfs = a_moment_after_with((Duration::MAX, Reporting::Watched), own, AFTER, |_| {});
    assert_eq!(on_tmpfs, Freshness::Changed, "times show nothing there");
}

/// A file whose three blocks are stored, and whose next change shows.
fn stored() -> Set {
    let clock = Arc::new(Ahead(AtomicI64::new(3_000_000_000)));
    let mut set = set_with(Compress::Sync, Options { clock, ..Options::default() });
    set.write(WritePosition::At(0), &text(3 * BLOCK, 1));
    set.open();
    set.read(0, 3 * BLOCK);
    set.wait_for_next_stamp();
    set
}

#[test]
fn a_file_is_the_same_until_somebody_else_changes_it() {
    let clock = Arc::new(Ahead::default());
    let mut set = set_with(Compress::Sync, Options { clock: clock.clone(), ..Options::default() });
    set.write(WritePosition::At(0), &text(BLOCK, 1));
    assert_eq!(set.open(), Freshness::Changed, "nothing was known");
    assert_eq!(set.open(), Freshness::Changed, "a change within the tick would not show");
    clock.0.store(3_000_000_000, Ordering::SeqCst);
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
    set.write(WritePosition::End, &text(10, 2));
    set.truncate(100);
    assert_eq!(set.open(), Freshness::Unchanged, "our own changes are known");
    set.wait_for_next_stamp();
    set.other.write_all_at(b"x", 0).unwrap();
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
    set.tier.forget(set.file);
    assert_eq!(set.open(), Freshness::Changed);
}

#[test]
fn what_was_opened_soon_after_a_change_by_others_is_read_once_more_later() {
    let clock = Arc::new(Ahead(AtomicI64::new(500_000_000)));
    let options = Options { clock: clock.clone(), recheck: Duration::from_secs(20), ..Options::default() };
    let mut set = set_with(Compress::Sync, options);
    set.other.write_all_at(&text(BLOCK, 1), 0).unwrap();
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
    clock.0.store(60_000_000_000, Ordering::SeqCst);
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged), "the write went on");
    set.write(WritePosition::At(0), &text(BLOCK, 2));
    clock.0.store(120_000_000_000, Ordering::SeqCst);
    assert_eq!(set.open(), Freshness::Unchanged, "our own has ended");
}

#[test]
fn a_change_of_mode_keeps_the_blocks() {
    let mut set = stored();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    let stat = || set.backing.stamp();
    set.tier.change_beside(set.file, stat, || set.other.set_permissions(mode)).unwrap();
    let before = set.tier.report().misses;
    assert_eq!(set.open(), Freshness::Unchanged);
    set.read(0, 3 * BLOCK);
    assert_eq!(set.tier.report().misses, before);
}

#[test]
fn after_a_change_that_failed_half_way_the_kernels_pages_are_not_kept() {
    let clock = Arc::new(Ahead(AtomicI64::new(3_000_000_000)));
    let mut set = set_with(Compress::Sync, Options { clock, ..Options::default() });
    set.write(WritePosition::At(0), &text(BLOCK, 1));
    set.open();
    let fail = |errno: rustix::io::Errno| {
        let failed = set.tier.change(set.file, 0..u64::MAX, &set.backing, || Err::<(), _>(errno.into()));
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(errno.raw_os_error()));
        (set.open(), set.open())
    };
    let half_done = (Freshness::Changed, Freshness::Unchanged);
    assert_eq!(fail(rustix::io::Errno::DQUOT), half_done);
    assert_eq!(fail(rustix::io::Errno::NOSPC), half_done);
    assert_eq!(fail(rustix::io::Errno::IO), half_done);
    assert_eq!(fail(rustix::io::Errno::OPNOTSUPP), (Freshness::Unchanged, Freshness::Unchanged));
}

#[test]
fn a_change_by_others_shows_at_our_own_next_write() {
    let mut set = stored();
    set.other.write_all_at(b"x", 0).unwrap();
    set.write(WritePosition::At(BLOCK as u64), b"y");
    assert_eq!(set.read(0, 1), b"x");
    assert_eq!(set.open(), Freshness::Changed, "the kernel has old pages");
}

#[test]
fn a_backing_file_that_grew_is_not_served_short() {
    let mut set = set(Compress::Sync);
    set.other.write_all_at(b"short", 0).unwrap();
    assert_eq!(set.read(0, 100), b"short");
    set.other.write_all_at(b"er now", 5).unwrap();
    assert_eq!(set.read(0, 100), b"shorter now");
    set.truncate(3);
    assert_eq!(set.read(0, 100), b"sho");
}

/// A small cache starts on a machine with little memory, and grows later.
#[test]
fn as_many_files_are_remembered_as_the_store_has_room_for() {
    const FILES: u64 = 20_000;
    let set = set(Compress::Sync);
    let old = Stamp { size: 4096, modified_ns: 1_000, changed_ns: 1_000, born_ns: 1_000 };
    let unchanged = || {
        let opened = (0..FILES).map(|ino| set.tier.opened(set.tier.id(1, ino), old, || Reporting::Unwatched));
        opened.filter(|seen| *seen == Freshness::Unchanged).count() as u64
    };
    assert_eq!(unchanged() + unchanged(), 0, "4 MiB are not enough");
    set.store.resize(Bytes(3 * FILES * 1024));
    set.tier.follow_limit();
    unchanged();
    assert_eq!(unchanged(), FILES);
}

#[test]
fn identities_are_one_to_a_file_and_stay() {
    let tier = Tier::default();
    let files = [(1, 5), (1, 6), (2, 5), (1, u64::MAX), (1, 1 << 63), (2, 6)];
    let ids = files.map(|(dev, ino)| tier.id(dev, ino));
    assert_eq!(files.map(|(dev, ino)| tier.id(dev, ino)), ids);
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), files.len());
}

/// Stores through a mapping of such a file have no time. An own write does not change that.
#[test]
fn a_file_in_memory_counts_as_changed_after_a_read() {
    let mut set = set_with(Compress::Sync, Options { tick: Duration::ZERO, ..Options::default() });
    let memory = rustix::fs::memfd_create("eke-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    set.backing = File::new(memory);
    set.write(WritePosition::At(0), &[1; 5000]);
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
    for _ in 0..2 {
        assert_eq!(set.read(0, 5000), [1; 5000]);
        set.write(WritePosition::At(0), &[1; 5000]);
        assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
    }
}
