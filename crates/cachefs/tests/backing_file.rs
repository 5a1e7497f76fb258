//! Backing files on the real kernel: reads leave its page cache alone, and are right wherever they begin.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use eke_cachefs::backing::File;
use eke_testkit::real::skip;
use rustix::fs::{Advice, fadvise, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

const BLOCK: usize = 64 << 10;
const SIZE: usize = 8 << 20;
const TMPFS: u32 = 0x0102_1994;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 + at % 251) as u8).collect()
}

fn opened(file: &std::fs::File) -> File {
    File::new(OwnedFd::from(file.try_clone().unwrap()))
}

/// A file on disk whose pages the kernel has dropped.
fn cold() -> std::fs::File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content(SIZE), 0).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    file
}

/// True if the page at this offset is in the page cache. `RWF_NOWAIT` reads only what needs no disk; but a missing page
/// starts readahead of what follows.
fn is_cached(file: impl AsFd, offset: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT);
    assert!(matches!(read, Ok(1) | Err(Errno::AGAIN)), "{read:?}");
    read.is_ok()
}

/// Memory aligned for direct reads.
fn aligned(memory: &mut [u8], len: usize) -> &mut [u8] {
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..start + len]
}

#[test]
fn random_reads_leave_nothing_in_the_page_cache() {
    let file = cold();
    if fstatfs(&file).unwrap().f_type as u32 == TMPFS {
        skip("backing_file", "the temporary directory is memory itself");
        return;
    }
    let (backing, mut memory) = (opened(&file), vec![0; BLOCK + 4096]);
    let places = [0, 3 << 20, 6 << 20];
    for at in places {
        let out = aligned(&mut memory, BLOCK);
        assert_eq!(backing.read_at(out, at as u64).unwrap(), BLOCK);
        assert!(out == &content(SIZE)[at..at + BLOCK]);
    }
    for at in places.into_iter().rev() {
        assert!(!is_cached(&file, at as u64), "{at}");
    }
    let usual = cold();
    usual.read_at(aligned(&mut memory, BLOCK), 0).unwrap();
    assert!(is_cached(&usual, 0), "it shows where pages stay");
}

#[test]
fn reads_are_right_wherever_they_begin_and_end() {
    let (file, expected) = (cold(), content(SIZE));
    let backing = opened(&file);
    let mut memory = vec![0; (1 << 20) + 4096];
    for (at, len) in [
        (0, 1 << 20),
        (5, 10),
        (4096, 4096),
        (SIZE - 100, 4096),
        (SIZE - 4096, BLOCK),
        (SIZE, 10),
        (1 << 20, 5000),
    ] {
        let out = aligned(&mut memory, len);
        let read = backing.read_at(out, at as u64).unwrap();
        assert!(out[..read] == expected[at..SIZE.min(at + len)], "{len} at {at}");
    }
}

#[test]
fn the_end_need_not_be_aligned() {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content(5000), 0).unwrap();
    let (backing, mut memory) = (opened(&file), vec![0; BLOCK + 4096]);
    for _ in 0..2 {
        let out = aligned(&mut memory, BLOCK);
        assert_eq!(backing.read_at(out, 0).unwrap(), 5000);
        assert!(out[..5000] == content(5000));
    }
}

#[test]
fn a_read_returns_the_last_write() {
    let file = cold();
    let (backing, mut memory) = (opened(&file), vec![0; BLOCK + 4096]);
    for (round, len) in [1, 4096, BLOCK, 2 * BLOCK].into_iter().enumerate() {
        assert_eq!(backing.write_at(&vec![round as u8; len], 0).unwrap(), len);
        let out = aligned(&mut memory, BLOCK);
        backing.read_at(out, 0).unwrap();
        assert!(out[..len.min(BLOCK)].iter().all(|&byte| byte == round as u8), "{len}");
    }
    assert_eq!(backing.append(b"end").unwrap(), 3);
    let mut end = [0; 10];
    assert_eq!(backing.read_at(&mut end, SIZE as u64).unwrap(), 3);
    assert_eq!(&end[..3], b"end");
}

#[test]
fn memory_file_systems_are_read_too() {
    let Ok(file) = tempfile::tempfile_in("/dev/shm") else {
        skip("backing_file", "no /dev/shm");
        return;
    };
    file.write_all_at(&content(300_000), 0).unwrap();
    let (backing, mut memory) = (opened(&file), vec![0; (1 << 20) + 4096]);
    for at in [0, 100_000, 65_536, 299_999] {
        let out = aligned(&mut memory, 1 << 20);
        let read = backing.read_at(out, at).unwrap();
        assert!(out[..read] == content(300_000)[at as usize..]);
    }
    assert_eq!(backing.write_at(&[1; BLOCK], 0).unwrap(), BLOCK);
}
