//! Decodes the records of the BPF programs, in the layouts of `bpf/record.h`.

/// A record. Numbers are the kernel's: `dev` is its own encoding (major << 20 | minor), pages are the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A process executed a program.
    Exec(Exec<'a>),
    /// A process ended.
    Exit {
        /// Its launch; 0 for none.
        launch: u32,
        /// The process id.
        pid: u32,
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// A process of a launch forked.
    Fork {
        /// The launch.
        launch: u32,
        /// The child's process id.
        pid: u32,
        /// The process that forked.
        parent: u32,
    },
    /// A launch touches a file for the first time.
    File(File<'a>),
    /// A launch touches pages.
    Pages(Pages),
}

/// A process executed a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exec<'a> {
    /// The launch that the process already belonged to; 0 for none.
    pub launch: u32,
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The inode of the executable (for a script, its interpreter).
    pub ino: u64,
    /// The file system's device number.
    pub dev: u32,
    /// The process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent: u32,
    /// The real user id.
    pub uid: u32,
    /// The process group; 0 if the kernel did not give it.
    pub group: u32,
    /// The audit session; [`NO_SESSION`] for none.
    pub session: u32,
    /// The begin of its arguments, each followed by a zero byte.
    pub args: &'a [u8],
    /// Whether arguments are missing.
    pub has_more_args: bool,
    /// The names of its path; `None` if incomplete.
    pub names: Option<&'a [u8]>,
}

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// The launch.
    pub launch: u32,
    /// The process id.
    pub pid: u32,
    /// The inode; 0 for a block device.
    pub ino: u64,
    /// The file system's device number; a block device's own.
    pub dev: u32,
    /// The inode's generation.
    pub generation: u32,
    /// `st_size`.
    pub size: u64,
    /// `st_mtime` in nanoseconds.
    pub mtime_ns: i64,
    /// Links; 0 if deleted.
    pub nlink: u32,
    /// `st_mode`.
    pub mode: u16,
    /// `st_uid`.
    pub owner: u32,
    /// The names of its path; `None` if incomplete.
    pub names: Option<&'a [u8]>,
}

/// Pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// The launch.
    pub launch: u32,
    /// The process id.
    pub pid: u32,
    /// The inode; 0 for a block device.
    pub ino: u64,
    /// The file system's device number; a block device's own.
    pub dev: u32,
    /// The inode's generation.
    pub generation: u32,
    /// The page of bit 0.
    pub first: u64,
    /// The pages of the set bits.
    pub mask: u64,
    /// 0 added, 1 fault, 2 mapped around a fault, 3 read.
    pub how: u8,
}

const PATH_CUT: u8 = 1;
/// The bit of a launch whose process has executed another program since: whether that belongs to the launch is not decided yet.
pub const UNDECIDED: u32 = 1 << 31;
/// The audit session of a process without one (`AUDIT_SID_UNSET`, include/linux/audit.h).
pub const NO_SESSION: u32 = u32::MAX;
const ARGS_BYTES: usize = 256;
const EXEC_BYTES: usize = 56 + ARGS_BYTES;
const FILE_BYTES: usize = 72;
const PAGES_BYTES: usize = 56;
const PROCESS_BYTES: usize = 24;

/// The time of a record by CLOCK_MONOTONIC, in nanoseconds; 0 if it is too short.
pub fn at_ns(bytes: &[u8]) -> u64 {
    u64_at(bytes, 8).unwrap_or(0)
}

/// Decodes a record; `None` if its kind is unknown or it is too short.
pub fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let launch = u32_at(bytes, 4)? & !UNDECIDED;
    match bytes.first()? {
        1 => exec(bytes, launch),
        2 => process(bytes).map(|(at_ns, pid)| Record::Exit { launch, pid, at_ns }),
        3 => process(bytes).map(|(_, pid)| Record::Fork {
            launch,
            pid,
            parent: u32_at(bytes, 20).unwrap_or(0),
        }),
        4 => file(bytes, launch),
        5 => pages(bytes, launch),
        _ => None,
    }
}

fn exec(bytes: &[u8], launch: u32) -> Option<Record<'_>> {
    let args = bytes.get(56..EXEC_BYTES)?;
    let args_bytes = usize::from(u16_at(bytes, 40)?);
    Some(Record::Exec(Exec {
        launch,
        at_ns: u64_at(bytes, 8)?,
        ino: u64_at(bytes, 16)?,
        dev: u32_at(bytes, 24)?,
        pid: u32_at(bytes, 28)?,
        parent: u32_at(bytes, 32)?,
        uid: u32_at(bytes, 36)?,
        group: u32_at(bytes, 44)?,
        session: u32_at(bytes, 48)?,
        args: args.get(..args_bytes)?,
        has_more_args: u16_at(bytes, 42)? != 0,
        names: names(bytes, EXEC_BYTES)?,
    }))
}

fn process(bytes: &[u8]) -> Option<(u64, u32)> {
    (bytes.len() >= PROCESS_BYTES).then_some(())?;
    Some((u64_at(bytes, 8)?, u32_at(bytes, 16)?))
}

fn file(bytes: &[u8], launch: u32) -> Option<Record<'_>> {
    let seconds = i64::from_ne_bytes(bytes.get(32..40)?.try_into().ok()?);
    Some(Record::File(File {
        launch,
        pid: u32_at(bytes, 56)?,
        ino: u64_at(bytes, 16)?,
        size: u64_at(bytes, 24)?,
        mtime_ns: seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(u32_at(bytes, 40)?)),
        dev: u32_at(bytes, 44)?,
        generation: u32_at(bytes, 64)?,
        nlink: u32_at(bytes, 48)?,
        mode: u16::from_ne_bytes(bytes.get(52..54)?.try_into().ok()?),
        owner: u32_at(bytes, 60)?,
        names: names(bytes, FILE_BYTES)?,
    }))
}

fn pages(bytes: &[u8], launch: u32) -> Option<Record<'_>> {
    (bytes.len() >= PAGES_BYTES).then_some(())?;
    Some(Record::Pages(Pages {
        launch,
        pid: u32_at(bytes, 44)?,
        ino: u64_at(bytes, 16)?,
        first: u64_at(bytes, 24)?,
        mask: u64_at(bytes, 32)?,
        dev: u32_at(bytes, 40)?,
        generation: u32_at(bytes, 48)?,
        how: *bytes.get(1)?,
    }))
}

/// The names after `at` bytes; `Some(None)` if BPF could not read them all.
#[expect(clippy::option_option, reason = "too short a record is not a record without names")]
fn names(bytes: &[u8], at: usize) -> Option<Option<&[u8]>> {
    let length = usize::from(u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?));
    let names = bytes.get(at..at.checked_add(length)?)?;
    Some((bytes[1] & PATH_CUT == 0).then_some(names))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_from_its_places() {
        let mut bytes = vec![4u8, 0, 8, 0];
        bytes.extend((7u32 | UNDECIDED).to_ne_bytes());
        bytes.extend(77u64.to_ne_bytes());
        bytes.extend(1234u64.to_ne_bytes());
        bytes.extend(9000u64.to_ne_bytes());
        bytes.extend(2i64.to_ne_bytes());
        bytes.extend(5u32.to_ne_bytes());
        bytes.extend(0x0080_0003u32.to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(0o100_644u16.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(99u32.to_ne_bytes());
        bytes.extend(1000u32.to_ne_bytes());
        bytes.extend(6u32.to_ne_bytes());
        bytes.extend([0; 4]);
        assert_eq!((bytes.len(), at_ns(&bytes)), (FILE_BYTES, 77));
        bytes.extend(b"ls\0usr\0z");
        let expected = File {
            launch: 7,
            pid: 99,
            ino: 1234,
            dev: 0x0080_0003,
            generation: 6,
            size: 9000,
            mtime_ns: 2_000_000_005,
            nlink: 1,
            mode: 0o100_644,
            owner: 1000,
            names: Some(b"ls\0usr\0z"),
        };
        assert_eq!(decode(&bytes), Some(Record::File(expected)));
        bytes[1] = PATH_CUT;
        assert_eq!(decode(&bytes), Some(Record::File(File { names: None, ..expected })));
        bytes.pop();
        assert_eq!(decode(&bytes), None);
    }

    #[test]
    fn an_exec_is_read_from_its_places() {
        let mut bytes = vec![1u8, 0, 3, 0];
        bytes.extend(7u32.to_ne_bytes());
        bytes.extend(77u64.to_ne_bytes());
        bytes.extend(1234u64.to_ne_bytes());
        [0x0080_0003u32, 99, 98, 1000].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        [2u16, 0].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        [97u32, 5, 0].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        bytes.extend(b"a\0");
        bytes.resize(EXEC_BYTES, 0);
        bytes.extend(b"ls\0");
        let expected = Exec {
            launch: 7,
            at_ns: 77,
            ino: 1234,
            dev: 0x0080_0003,
            pid: 99,
            parent: 98,
            uid: 1000,
            group: 97,
            session: 5,
            args: b"a\0",
            has_more_args: false,
            names: Some(b"ls\0"),
        };
        assert_eq!(decode(&bytes), Some(Record::Exec(expected)));
        bytes.pop();
        assert_eq!(decode(&bytes), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(mut bytes in proptest::collection::vec(0u8.., 0..400), kind in 0u8..7) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _ = decode(&bytes);
        }
    }
}
