//! One operation on a tree, as data; what proptest makes of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use proptest::prelude::*;

/// Few names, so that operations meet: files, directories, and what is both at times; one is no UTF-8.
const NAMES: [&[u8]; 11] =
    [b"a", b"b", b"c", b"n\xff\xfe", b"d", b"e", b"d/a", b"d/b", b"d/e", b"d/e/a", b"e/a"];
/// Open files at the same time.
const SLOTS: usize = 3;
/// Somewhat more than four blocks of the store.
const END: u64 = 300_000;

/// One of [`NAMES`].
#[derive(Debug, Clone, Copy)]
pub struct Name(usize);

impl Name {
    /// Below the tree's root.
    pub fn path(self) -> PathBuf {
        OsStr::from_bytes(NAMES[self.0]).into()
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub at: u64,
    pub len: usize,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
pub struct How {
    pub write: bool,
    pub append: bool,
    pub create: bool,
    pub exclusive: bool,
    pub truncate: bool,
}

/// How room in a file is changed (fallocate(2)).
#[derive(Debug, Clone, Copy)]
pub enum Room {
    Reserve,
    ReserveInside,
    Punch,
    Zero,
}

/// What a rename does if there is something.
#[derive(Debug, Clone, Copy)]
pub enum Meets {
    Replaces,
    Fails,
    Exchanges,
}

#[derive(Debug, Clone)]
pub enum Op {
    Make(Name),
    MakeDirectory(Name),
    RemoveDirectory(Name),
    Unlink(Name),
    Rename(Name, Name, Meets),
    Link(Name, Name),
    Symlink(Name, Name),
    ReadLink(Name),
    Stat(Name),
    List(Name),
    Mode(Name, u32),
    Modified(Name, u32),
    SetAttribute(Name, u8, Vec<u8>),
    GetAttribute(Name, u8),
    ListAttributes(Name),
    RemoveAttribute(Name, u8),
    Write(Name, Part, u8),
    Append(Name, usize, u8),
    Truncate(Name, u64),
    Read(Name),
    Open(usize, Name, How),
    Close(usize),
    SlotRead(usize, Part),
    SlotWrite(usize, Part, u8),
    SlotMap(usize, Part),
    SlotMapWrite(usize, Part, u8),
    SlotTruncate(usize, u64),
    SlotRoom(usize, Room, Part),
    SlotCopy(usize, usize, Part, u64),
    SlotStat(usize),
    SlotSync(usize),
    /// Below, by somebody else, while nothing is open; then read at once from above, in a new open.
    Below(Below),
}

/// Changes to a file's content that are made below.
#[derive(Debug, Clone)]
pub enum Below {
    Write(Name, Part, u8),
    Append(Name, usize, u8),
    Truncate(Name, u64),
    /// The same bytes in number, by a mapping.
    MapWrite(Name, Part, u8),
}

impl Below {
    /// Which file.
    pub fn name(&self) -> Name {
        match self {
            Self::Write(name, ..)
            | Self::Append(name, ..)
            | Self::Truncate(name, _)
            | Self::MapWrite(name, ..) => *name,
        }
    }
}

fn name() -> impl Strategy<Value = Name> {
    (0..NAMES.len()).prop_map(Name)
}

/// Files are chosen more often.
fn file() -> impl Strategy<Value = Name> {
    prop_oneof![4 => (0..2usize).prop_map(Name), 1 => name()]
}

/// Around the borders of pages and blocks as often as elsewhere.
fn offset() -> impl Strategy<Value = u64> {
    let border = (0..=4u64, 0..=6u64).prop_map(|(block, around)| (block * 65_536 + around).saturating_sub(3));
    let page = (0..=20u64, 0..=6u64).prop_map(|(page, around)| (page * 4096 + around).saturating_sub(3));
    prop_oneof![border, page, 0..END, Just(0)]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..10usize, 1..5000usize, 1..140_000usize, Just(4096), Just(65_536)]
}

fn part() -> impl Strategy<Value = Part> {
    (offset(), length()).prop_map(|(at, len)| Part { at, len })
}

fn how() -> impl Strategy<Value = How> {
    (any::<bool>(), 0..4u8, any::<bool>(), 0..6u8, 0..4u8).prop_map(
        |(write, append, create, exclusive, truncate)| How {
            write,
            append: write && append == 0,
            create: write && create,
            exclusive: exclusive == 0,
            truncate: write && truncate == 0,
        },
    )
}

fn names() -> impl Strategy<Value = Op> {
    let meets = prop_oneof![3 => Just(Meets::Replaces), 1 => Just(Meets::Fails), 1 => Just(Meets::Exchanges)];
    prop_oneof![
        name().prop_map(Op::Make),
        name().prop_map(Op::MakeDirectory),
        name().prop_map(Op::RemoveDirectory),
        file().prop_map(Op::Unlink),
        (name(), name(), meets).prop_map(|(a, b, m)| Op::Rename(a, b, m)),
        (name(), name()).prop_map(|(a, b)| Op::Link(a, b)),
        (name(), name()).prop_map(|(a, b)| Op::Symlink(a, b)),
        name().prop_map(Op::ReadLink),
        name().prop_map(Op::List),
    ]
}

fn attributes() -> impl Strategy<Value = Op> {
    let value = proptest::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        3 => name().prop_map(Op::Stat),
        1 => (file(), 0..0o7777u32).prop_map(|(n, mode)| Op::Mode(n, mode)),
        1 => (file(), any::<u32>()).prop_map(|(n, at)| Op::Modified(n, at)),
        1 => (file(), 0..3u8, value).prop_map(|(n, which, value)| Op::SetAttribute(n, which, value)),
        1 => (file(), 0..3u8).prop_map(|(n, which)| Op::GetAttribute(n, which)),
        1 => file().prop_map(Op::ListAttributes),
        1 => (file(), 0..3u8).prop_map(|(n, which)| Op::RemoveAttribute(n, which)),
    ]
}

fn content() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (file(), part(), any::<u8>()).prop_map(|(n, p, b)| Op::Write(n, p, b)),
        1 => (file(), length(), any::<u8>()).prop_map(|(n, len, b)| Op::Append(n, len, b)),
        1 => (file(), offset()).prop_map(|(n, size)| Op::Truncate(n, size)),
        2 => file().prop_map(Op::Read),
    ]
}

fn open_files() -> impl Strategy<Value = Op> {
    let slot = || 0..SLOTS;
    let room =
        prop_oneof![Just(Room::Reserve), Just(Room::ReserveInside), Just(Room::Punch), Just(Room::Zero)];
    prop_oneof![
        4 => (slot(), file(), how()).prop_map(|(s, n, how)| Op::Open(s, n, how)),
        1 => slot().prop_map(Op::Close),
        3 => (slot(), part()).prop_map(|(s, p)| Op::SlotRead(s, p)),
        3 => (slot(), part(), any::<u8>()).prop_map(|(s, p, b)| Op::SlotWrite(s, p, b)),
        1 => (slot(), part()).prop_map(|(s, p)| Op::SlotMap(s, p)),
        1 => (slot(), part(), any::<u8>()).prop_map(|(s, p, b)| Op::SlotMapWrite(s, p, b)),
        1 => (slot(), offset()).prop_map(|(s, size)| Op::SlotTruncate(s, size)),
        1 => (slot(), room, part()).prop_map(|(s, room, p)| Op::SlotRoom(s, room, p)),
        1 => (slot(), slot(), part(), offset()).prop_map(|(a, b, p, to)| Op::SlotCopy(a, b, p, to)),
        1 => slot().prop_map(Op::SlotStat),
        1 => slot().prop_map(Op::SlotSync),
    ]
}

fn below() -> impl Strategy<Value = Op> {
    prop_oneof![
        (file(), part(), any::<u8>()).prop_map(|(n, p, b)| Below::Write(n, p, b)),
        (file(), length(), any::<u8>()).prop_map(|(n, len, b)| Below::Append(n, len, b)),
        (file(), offset()).prop_map(|(n, size)| Below::Truncate(n, size)),
        (file(), part(), any::<u8>()).prop_map(|(n, p, b)| Below::MapWrite(n, p, b)),
    ]
    .prop_map(Op::Below)
}

/// Any of them.
pub fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![3 => names(), 2 => attributes(), 4 => content(), 5 => open_files(), 2 => below()]
}
