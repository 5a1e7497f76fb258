//! Proptest's strategies for operations.

use proptest::prelude::*;
use proptest::strategy::Union;
use rustix::fs::{FallocateFlags, OFlags, RenameFlags, XattrFlags};

use super::allowed;
use super::case::Case;
use super::op::{At, Kind, LockBy, NAMES, Op, Part, Step, Time, Via, Xattr};
use super::user::{SHARED, USERS};

/// The operations that are done past the mount, in the backing directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackingOps {
    /// Changes of files' content: an open shows them at once.
    Content,
    /// The same. And on the mount nothing that does not survive a worker's death: `O_PATH` of an unlinked file, exchanges.
    ContentWithDeaths,
    /// Changes of names, too: for a mount whose names and attributes the kernel does not cache.
    All,
}

/// Offsets are below this: a little more than four blocks of the store.
const END: u64 = 300_000;

fn at() -> impl Strategy<Value = At> {
    let files = prop_oneof![3 => 0..2u8, 1 => Just(5), 1 => 12..14u8, 1 => Just(16)];
    let index = prop_oneof![12 => files, 3 => 0..20u8, 1 => 0..NAMES.len() as u8];
    (index, prop_oneof![15 => Just(false), 1 => Just(true)]).prop_map(|(n, working)| At(n, working))
}

fn directory() -> impl Strategy<Value = At> {
    prop_oneof![Just(4), Just(7), Just(9), Just(11), Just(14), Just(15), Just(17), Just(19), Just(21)]
        .prop_map(|n| At(n, false))
}

fn mode() -> impl Strategy<Value = u32> {
    prop_oneof![
        2 => Just(0o644),
        2 => Just(0o755),
        1 => Just(0o600),
        2 => Just(0o660),
        4 => Just(0o666),
        6 => Just(0o777),
        1 => Just(0o2770),
        2 => Just(0o6777),
        1 => Just(0o1777),
        1 => 0..0o10000u32
    ]
}

/// Offsets near the borders of pages and blocks are as frequent as others.
fn offset() -> impl Strategy<Value = u64> {
    let border = (0..=4u64, 0..=6u64).prop_map(|(block, around)| (block * 65_536 + around).saturating_sub(3));
    let page = (0..=20u64, 0..=6u64).prop_map(|(page, around)| (page * 4096 + around).saturating_sub(3));
    let aligned = (0..=20u64).prop_map(|page| page * 4096);
    prop_oneof![4 => border, 4 => page, 4 => aligned, 4 => 0..END, 4 => Just(0)]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..10usize, 1..5000usize, 1..140_000usize, Just(4096), Just(65_536)]
}

fn part() -> impl Strategy<Value = Part> {
    (offset(), length()).prop_map(|(at, len)| Part { at, len })
}

/// Sometimes greater than ext4 allows.
fn size() -> impl Strategy<Value = u64> {
    let huge = prop_oneof![Just(1 << 43), Just((1 << 44) + 1), Just(i64::MAX as u64)];
    prop_oneof![30 => offset(), 1 => huge]
}

fn flags() -> impl Strategy<Value = u32> {
    let access = prop_oneof![4 => Just(0u32), 4 => Just(1), 12 => Just(2), 1 => Just(3)];
    let rare: [OFlags; 8] = [
        OFlags::EXCL,
        OFlags::TRUNC,
        OFlags::APPEND,
        OFlags::DIRECTORY,
        OFlags::NOFOLLOW,
        OFlags::PATH,
        OFlags::DIRECT,
        OFlags::NOATIME,
    ];
    let odds = [12u32, 8, 6, 40, 20, 30, 10, 25];
    let draws: Vec<_> = odds.iter().map(|n| (0..*n).prop_map(|n| n == 1)).collect();
    let special =
        prop_oneof![60 => Just(0u32), 1 => Just(OFlags::TMPFILE.bits()), 1 => Just(OFlags::SYNC.bits())];
    (access, any::<bool>(), draws, special).prop_map(move |(access, create, drawn, special)| {
        let set = rare.iter().zip(drawn).filter(|(_, on)| *on).fold(0, |all, (flag, _)| all | flag.bits());
        access | set | special | if create { OFlags::CREATE.bits() } else { 0 }
    })
}

fn time() -> impl Strategy<Value = Time> {
    let seconds =
        prop_oneof![Just(-2i64), Just(0), Just(1), Just(1 << 31), Just((1 << 32) + 5), Just(1 << 40)];
    let at = (seconds, prop_oneof![Just(0u32), Just(999_999_999), Just(7)]).prop_map(|(s, n)| Time::At(s, n));
    prop_oneof![1 => Just(Time::Now), 1 => Just(Time::Omit), 3 => at]
}

fn xattr() -> impl Strategy<Value = Xattr> {
    prop_oneof![
        4 => Just(Xattr::User),
        2 => Just(Xattr::Other),
        1 => Just(Xattr::Trusted),
        1 => Just(Xattr::Security),
        1 => Just(Xattr::Capability),
        2 => Just(Xattr::AccessAcl),
        2 => Just(Xattr::DefaultAcl),
        1 => Just(Xattr::System),
        1 => Just(Xattr::NoPrefix)
    ]
}

fn owner() -> impl Strategy<Value = (Option<u32>, Option<u32>)> {
    let users = vec![USERS[0].uid, USERS[1].uid, USERS[2].uid, USERS[3].uid];
    let groups = vec![USERS[0].gid, USERS[1].gid, USERS[2].gid, SHARED[0], SHARED[1]];
    let (uid, gid) = (proptest::sample::select(users), proptest::sample::select(groups));
    // Not -1:-1, see `allowed`.
    let either =
        prop_oneof![gid.clone().prop_map(|g| (None, Some(g))), uid.clone().prop_map(|u| (Some(u), None))];
    prop_oneof![3 => either, 1 => (uid, gid).prop_map(|(u, g)| (Some(u), Some(g)))]
}

fn any_of(ops: Vec<(u32, BoxedStrategy<Op>)>) -> BoxedStrategy<Op> {
    Union::new_weighted(ops).boxed()
}

fn rename() -> BoxedStrategy<Op> {
    let flags = prop_oneof![
        6 => Just(0),
        2 => Just(RenameFlags::NOREPLACE.bits()),
        2 => Just(RenameFlags::EXCHANGE.bits()),
        1 => Just(RenameFlags::WHITEOUT.bits()),
        1 => 0..8u32
    ];
    (at(), at(), flags).prop_map(|(from, to, flags)| Op::Rename { from, to, flags }).boxed()
}

fn names() -> BoxedStrategy<Op> {
    let kind = prop_oneof![3 => Just(Kind::File), 1 => Just(Kind::Pipe), 1 => Just(Kind::Socket), 1 => Just(Kind::NullDevice)];
    any_of(vec![
        (4, (directory(), mode()).prop_map(|(at, mode)| Op::Mkdir { at, mode }).boxed()),
        (1, (at(), mode()).prop_map(|(at, mode)| Op::Mkdir { at, mode }).boxed()),
        (2, (at(), kind, mode()).prop_map(|(at, kind, mode)| Op::Mknod { at, kind, mode }).boxed()),
        (2, (at(), at()).prop_map(|(to, at)| Op::Symlink { to, at }).boxed()),
        (3, (at(), at(), any::<bool>()).prop_map(|(from, to, follow)| Op::Link { from, to, follow }).boxed()),
        (4, rename()),
        (3, at().prop_map(|at| Op::Unlink { at }).boxed()),
        (1, prop_oneof![directory().boxed(), at().boxed()].prop_map(|at| Op::Rmdir { at }).boxed()),
    ])
}

fn queries() -> BoxedStrategy<Op> {
    any_of(vec![
        (1, at().prop_map(|at| Op::Readlink { at }).boxed()),
        (3, (at(), any::<bool>()).prop_map(|(at, follow)| Op::Stat { at, follow }).boxed()),
        (
            2,
            (at(), 0..8u32, any::<bool>())
                .prop_map(|(at, mode, effective)| Op::Access { at, mode, effective })
                .boxed(),
        ),
        (2, directory().prop_map(|at| Op::List { at }).boxed()),
        (1, directory().prop_map(|at| Op::Chdir { at }).boxed()),
        (1, (0..0o1000u32).prop_map(|mode| Op::Umask { mode }).boxed()),
        (1, at().prop_map(|at| Op::Statfs { at }).boxed()),
        (2, at().prop_map(|at| Op::Get { at }).boxed()),
    ])
}

fn attributes() -> BoxedStrategy<Op> {
    let any_at = || prop_oneof![4 => at().boxed(), 1 => directory().boxed()];
    let room = || prop_oneof![Just(0usize), 1..20usize, Just(4096)];
    let set_flags = prop_oneof![4 => Just(0), 1 => Just(XattrFlags::CREATE.bits()), 1 => Just(XattrFlags::REPLACE.bits())];
    let len = prop_oneof![8 => 0..300usize, 1 => Just(5000usize), 1 => Just(65_537usize)];
    any_of(vec![
        (4, (any_at(), mode()).prop_map(|(at, mode)| Op::Chmod { at, mode }).boxed()),
        (
            4,
            (any_at(), owner(), any::<bool>())
                .prop_map(|(at, (uid, gid), follow)| Op::Chown { at, uid, gid, follow })
                .boxed(),
        ),
        (
            2,
            (any_at(), time(), time(), any::<bool>())
                .prop_map(|(at, accessed, modified, follow)| Op::Times { at, accessed, modified, follow })
                .boxed(),
        ),
        (
            3,
            (any_at(), xattr(), len, any::<u8>(), set_flags)
                .prop_map(|(at, name, len, seed, flags)| Op::SetXattr { at, name, len, seed, flags })
                .boxed(),
        ),
        (2, (any_at(), xattr(), room()).prop_map(|(at, name, room)| Op::GetXattr { at, name, room }).boxed()),
        (1, (any_at(), room()).prop_map(|(at, room)| Op::ListXattr { at, room }).boxed()),
        (2, (any_at(), xattr()).prop_map(|(at, name)| Op::RemoveXattr { at, name }).boxed()),
        (
            3,
            (any_at(), any::<bool>(), 0..8u8)
                .prop_map(|(at, default, list)| Op::SetAcl { at, default, list })
                .boxed(),
        ),
    ])
}

fn content() -> BoxedStrategy<Op> {
    any_of(vec![
        (3, (at(), part(), any::<u8>()).prop_map(|(at, part, seed)| Op::Put { at, part, seed }).boxed()),
        (
            1,
            (at(), part(), any::<u8>()).prop_map(|(at, part, seed)| Op::PutMapped { at, part, seed }).boxed(),
        ),
        (1, (at(), size()).prop_map(|(at, size)| Op::Truncate { at, size }).boxed()),
    ])
}

/// By root, so that it is not refused. Later reads come from the store or the backing file.
fn drops_pages() -> impl Strategy<Value = Step> {
    at().prop_map(|at| Step { by: 0, via: Via::Mount, op: Op::DropPages { at } })
}

fn slot() -> std::ops::Range<u8> {
    0..2
}

fn opens() -> BoxedStrategy<Op> {
    any_of(vec![
        (
            9,
            (slot(), at(), flags(), mode())
                .prop_map(|(slot, at, flags, mode)| Op::Open { slot, at, flags, mode })
                .boxed(),
        ),
        (1, slot().prop_map(|slot| Op::Close { slot }).boxed()),
    ])
}

fn transfers() -> BoxedStrategy<Op> {
    let seed = any::<u8>;
    any_of(vec![
        (3, (slot(), part()).prop_map(|(slot, part)| Op::Read { slot, part }).boxed()),
        (1, (slot(), length()).prop_map(|(slot, len)| Op::ReadNext { slot, len }).boxed()),
        (3, (slot(), part(), seed()).prop_map(|(slot, part, seed)| Op::Write { slot, part, seed }).boxed()),
        (
            2,
            (slot(), length(), seed())
                .prop_map(|(slot, len, seed)| Op::WriteNext { slot, len, seed })
                .boxed(),
        ),
        (
            1,
            (slot(), 0..3i32, -5000..END as i64)
                .prop_map(|(slot, whence, to)| Op::Seek { slot, whence, to })
                .boxed(),
        ),
        (
            2,
            (slot(), part(), any::<bool>(), proptest::option::of(seed()))
                .prop_map(|(slot, part, shared, store)| Op::Map { slot, part, shared, store })
                .boxed(),
        ),
        (
            1,
            (slot(), slot(), part(), offset())
                .prop_map(|(from, to, part, at)| Op::Copy { from, to, part, at })
                .boxed(),
        ),
    ])
}

fn of_open_files() -> BoxedStrategy<Op> {
    let by = prop_oneof![Just(LockBy::Flock), Just(LockBy::OpenFile), Just(LockBy::Process)];
    let room = prop_oneof![
        Just(FallocateFlags::empty().bits()),
        Just(FallocateFlags::KEEP_SIZE.bits()),
        Just((FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE).bits()),
        Just(FallocateFlags::ZERO_RANGE.bits()),
        Just((FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE).bits()),
        Just(FallocateFlags::COLLAPSE_RANGE.bits()),
        Just(FallocateFlags::PUNCH_HOLE.bits())
    ];
    any_of(vec![
        (
            2,
            (slot(), any::<bool>(), offset())
                .prop_map(|(slot, hole, from)| Op::SeekData { slot, hole, from })
                .boxed(),
        ),
        (2, (slot(), size()).prop_map(|(slot, size)| Op::Ftruncate { slot, size }).boxed()),
        (2, (slot(), room, part()).prop_map(|(slot, mode, part)| Op::Fallocate { slot, mode, part }).boxed()),
        (1, (slot(), mode()).prop_map(|(slot, mode)| Op::Fchmod { slot, mode }).boxed()),
        (1, (slot(), owner()).prop_map(|(slot, (uid, gid))| Op::Fchown { slot, uid, gid }).boxed()),
        (
            1,
            (slot(), time(), time())
                .prop_map(|(slot, accessed, modified)| Op::Futimens { slot, accessed, modified })
                .boxed(),
        ),
        (2, slot().prop_map(|slot| Op::Fstat { slot }).boxed()),
        (1, (slot(), xattr()).prop_map(|(slot, name)| Op::FgetXattr { slot, name }).boxed()),
        (1, (slot(), any::<bool>()).prop_map(|(slot, data)| Op::Fsync { slot, data }).boxed()),
        (
            2,
            (slot(), by, 0..6u8, part())
                .prop_map(|(slot, by, kind, part)| Op::Lock { slot, by, kind, part })
                .boxed(),
        ),
    ])
}

fn backing(what: BackingOps) -> BoxedStrategy<Op> {
    match what {
        BackingOps::Content | BackingOps::ContentWithDeaths => content(),
        BackingOps::All => any_of(vec![(4, content()), (5, names()), (3, attributes())]),
    }
}

/// Root gets few errors, so it is not the most frequent; among the others one is, so that it uses what it has open.
fn user() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0u8), 5 => Just(1), 2 => Just(2), 1 => Just(3)]
}

fn step(may: BackingOps) -> impl Strategy<Value = Step> {
    let op = any_of(vec![
        (4, names()),
        (2, queries()),
        (4, attributes()),
        (2, content()),
        (6, opens()),
        (6, transfers()),
        (4, of_open_files()),
    ]);
    let on_mount =
        (user(), op).prop_map(move |(by, op)| Step { by, via: Via::Mount, op: survivable(op, may) });
    let past_mount = (user(), backing(may)).prop_map(|(by, op)| Step { by, via: Via::Backing, op });
    prop_oneof![16 => on_mount, 2 => past_mount, 1 => drops_pages()]
}

/// Replaces operations that a resent request must not do twice, see `fs/again.rs`.
fn survivable(mut op: Op, may: BackingOps) -> Op {
    if may == BackingOps::ContentWithDeaths {
        match &mut op {
            Op::Open { flags, .. } => *flags &= !OFlags::PATH.bits(),
            Op::Rename { flags, .. } => *flags &= !RenameFlags::EXCHANGE.bits(),
            Op::Chdir { at } => return Op::List { at: *at },
            _ => {}
        }
    }
    op
}

/// A case of up to `most` steps.
pub fn case(may: BackingOps, most: usize) -> impl Strategy<Value = Case> {
    (proptest::collection::vec(step(may), 1..most), any::<bool>(), 1..25u8).prop_map(
        |(steps, compare_each, walk_every)| Case {
            compare_each,
            walk_every,
            steps: allowed::together(steps),
        },
    )
}

/// Can a recorded case be run with these operations alone?
pub fn is_for(may: BackingOps, case: &Case) -> bool {
    let content = |op: &Op| matches!(op, Op::Put { .. } | Op::PutMapped { .. } | Op::Truncate { .. });
    let fits = |step: &Step| match step.via {
        Via::Mount => survivable(step.op.clone(), may) == step.op,
        Via::Backing => may == BackingOps::All || content(&step.op),
    };
    case.steps.iter().all(fits)
}
