//! A process of a fake machine.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failing test panics, and it writes a fake machine"
)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

const START: u64 = 16 << 20;

/// A process below `root`, with `pages` pages of text.
pub fn put(root: &Path, pid: u32, pages: usize) {
    let size = rustix::param::page_size();
    let dir = root.join(format!("proc/{pid}"));
    fs::create_dir_all(&dir).unwrap();
    let kib = pages * size / 1024;
    fs::write(dir.join("status"), format!("Name:\tshop\nRssAnon:\t{kib} kB\n")).unwrap();
    let end = START + (pages * size) as u64;
    fs::write(dir.join("maps"), format!("{START:x}-{end:x} rw-p 00000000 00:00 0 [heap]\n")).unwrap();
    let entries: Vec<u8> = (0..pages).flat_map(|_| (1u64 << 63 | 1 << 56).to_ne_bytes()).collect();
    write_at(&dir.join("pagemap"), START / size as u64 * 8, &entries);
    let text =
        |n: usize| (0..size).map(move |i| b"the quick brown fox "[(i + n) % 20] ^ (i / 512 + n % 7) as u8);
    write_at(&dir.join("mem"), START, &(0..pages).flat_map(text).collect::<Vec<u8>>());
}

fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    fs::File::create(path).unwrap().write_all_at(bytes, offset).unwrap();
}
