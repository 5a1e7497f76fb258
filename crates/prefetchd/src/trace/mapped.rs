//! The pages of files that a process has mapped, from `/proc/PID/maps` and `/proc/PID/pagemap`. mincore(2) reports what is in memory for any process;
//! these are the pages that this process touched (or got together with one that it touched). No file is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use eke_linux::Root;
use eke_linux::parse::file_system::is_on_disk;
use eke_linux::parse::maps::{self, Mapping};
use eke_linux::read::answers;
use eke_model::units::PageSize;

use super::memory_files::MemoryFiles;
use super::mounts::Mounts;
use super::pagemap::present_pages;
use eke_prefetch_model::file_set::Kind;
use eke_prefetch_model::learn::{Inode, LaunchId, PageUse, TraceEvent, TracedFile};
use eke_prefetch_model::pages::MachineSpan;

/// The most bytes that are examined per process, so that a file of 50 GB does not take long.
const BYTES_PER_PROCESS: u64 = 1 << 30;
/// The most bytes of `/proc/PID/maps` that are read, and the most mappings of files in it: a process may have millions (`vm.max_map_count`).
const MAPS_BYTES: u64 = 4 << 20;
const MAPPINGS: usize = 8192;
const ENTRIES_A_READ: u64 = 8192;
const ENTRY_BYTES: u64 = 8;

/// Reports a process's mapped files and the present pages of each. Reports nothing for an ended process, nor for one within execve(2).
pub fn report(
    files: &MemoryFiles,
    mounts: &Mounts,
    launch: LaunchId,
    pid: u32,
    each: &mut dyn FnMut(TraceEvent),
) {
    // Whether each file is reported: it may be mapped thousands of times.
    let mut reported: BTreeMap<Inode, bool> = BTreeMap::new();
    let mut wanted = Vec::new();
    for mapping in mappings(&maps_of(files, pid)) {
        let inode = inode(&mapping);
        let is_reported = reported.entry(inode).or_insert_with(|| {
            let found = found(mounts, &mapping);
            let is_found = found.is_some();
            found.into_iter().for_each(|found| {
                each(TraceEvent::File { launch, pid, inode, found: Some(found) });
            });
            is_found
        });
        wanted.extend(is_reported.then_some(mapping));
    }
    if wanted.is_empty() {
        return;
    }
    let page = files.root().page_size();
    let spans = files.read(pid, move |root| all_present(root, pid, &wanted)).unwrap_or_default();
    for (inode, span) in spans {
        each(TraceEvent::Pages { launch, pid, inode, span: span.in_4k(page), how: PageUse::Mapped });
    }
}

/// Whether the file that a process has mapped from this path is at the same path on the host.
pub fn is_here(files: &MemoryFiles, mounts: &Mounts, pid: u32, path: &Path) -> bool {
    let text = maps_of(files, pid);
    let mut tried = BTreeSet::new();
    mappings(&text).any(|mapping| {
        mapping.path == path && tried.insert(inode(&mapping)) && found(mounts, &mapping).is_some()
    })
}

/// The mapped files, one mapping at a time.
fn mappings(text: &[u8]) -> impl Iterator<Item = Mapping> + '_ {
    text.split(|byte| *byte == b'\n').flat_map(maps::parse).take(MAPPINGS)
}

fn maps_of(files: &MemoryFiles, pid: u32) -> Vec<u8> {
    let maps = move |root: &Root| {
        let opened = answers(root, pid).then(|| File::open(root.path(format!("proc/{pid}/maps"))).ok());
        let file = opened.flatten()?;
        whole_lines(file, MAPS_BYTES).ok()
    };
    files.read(pid, maps).flatten().unwrap_or_default()
}

/// The whole lines among the first bytes.
fn whole_lines(file: impl Read, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(most_bytes).read_to_end(&mut text)?;
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
    Ok(text)
}

/// The spans of the files of these mappings that are present in the process.
fn all_present(root: &Root, pid: u32, mappings: &[Mapping]) -> Vec<(Inode, MachineSpan)> {
    let Ok(pagemap) = File::open(root.path(format!("proc/{pid}/pagemap"))) else { return Vec::new() };
    let page = root.page_size();
    let mut left = BYTES_PER_PROCESS / page.bytes();
    let spans = |mapping: &Mapping| {
        let (inode, spans) = (inode(mapping), present(&pagemap, mapping, page, &mut left));
        spans.into_iter().map(move |span| (inode, span))
    };
    mappings.iter().flat_map(spans).collect()
}

/// The spans of the file that are present in the process.
fn present(pagemap: &File, mapping: &Mapping, page_size: PageSize, left: &mut u64) -> Vec<MachineSpan> {
    let number = |byte: u64| byte / page_size.bytes();
    let mut found = Vec::new();
    let mut page = number(mapping.start);
    let end = number(mapping.end);
    let in_file = |page: u64| page - number(mapping.start) + number(mapping.offset);
    let mut buffer = vec![0; (ENTRIES_A_READ.min(end.saturating_sub(page)) * ENTRY_BYTES) as usize];
    while page < end && *left > 0 {
        let count = ENTRIES_A_READ.min(end - page).min(*left);
        let entries = &mut buffer[..(count * ENTRY_BYTES) as usize];
        if pagemap.read_exact_at(entries, page * ENTRY_BYTES).is_err() {
            break;
        }
        found.extend(present_pages(entries, in_file(page)));
        page += count;
        *left -= count;
    }
    found
}

fn inode(mapping: &Mapping) -> Inode {
    Inode { dev: mapping.device.st_dev(), ino: mapping.ino, generation: 0 }
}

/// The mapped file; `None` to leave it out: deleted, not on a disk, on one that may never answer, or different from the host's file at that path.
fn found(mounts: &Mounts, mapping: &Mapping) -> Option<TracedFile> {
    let kind = mounts.kind(mapping.device)?;
    // a container's path may lead elsewhere on the host, even to a file system that never answers
    let is_here = mounts.shows(mapping.device, &mapping.path);
    if mapping.is_deleted || !is_here || !is_on_disk(kind) {
        return None;
    }
    let (stamp, owner) = mounts.stat(&mapping.path).filter(|(stamp, _)| stamp.ino == mapping.ino)?;
    Some(TracedFile { path: mapping.path.clone(), kind: Kind::File, stamp, owner })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use eke_testkit::tree::put;

    use super::*;

    const PAGE: u64 = 4096;

    fn line(nth: u64, ino: u64, path: &str) -> String {
        let (start, end) = (nth * PAGE, (nth + 1) * PAGE);
        format!("{start:x}-{end:x} r--p 00000000 08:01 {ino} {path}\n")
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "test code")]
    fn a_file_that_is_mapped_ten_thousand_times_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        ["usr/lib/x", "usr/lib/y", "usr/lib/z"].iter().for_each(|file| put(dir.path(), file, ""));
        let ino = |file: &str| std::fs::metadata(dir.path().join(file)).unwrap().ino();
        let mut maps = line(1, ino("usr/lib/y"), "/usr/lib/y");
        (2..10_000).for_each(|nth| maps += &line(nth, ino("usr/lib/x"), "/usr/lib/x"));
        maps += &line(10_000, ino("usr/lib/z"), "/usr/lib/z");
        put(dir.path(), "proc/7/maps", &maps);
        let mut pagemap = vec![0; 10_001 * ENTRY_BYTES as usize];
        pagemap[5 * ENTRY_BYTES as usize..][..8].copy_from_slice(&(1_u64 << 63).to_ne_bytes());
        std::fs::write(dir.path().join("proc/7/pagemap"), pagemap).unwrap();
        let root = Root::at(dir.path());
        let (mut files, mut pages) = (Vec::new(), 0);
        let known = MemoryFiles::new(&root);
        report(&known, &Mounts::read(&root), LaunchId(1), 7, &mut |event| match event {
            TraceEvent::File { inode, .. } => files.push(inode.ino),
            TraceEvent::Pages { .. } => pages += 1,
            _ => {}
        });
        assert_eq!(
            files,
            [ino("usr/lib/y"), ino("usr/lib/x")],
            "once each, and none after {MAPPINGS} mappings"
        );
        assert_eq!(pages, 1);
        assert!(is_here(&known, &Mounts::read(&root), 7, Path::new("/usr/lib/x")));
        assert!(!is_here(&known, &Mounts::read(&root), 7, Path::new("/usr/lib/w")));
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let text = |most| whole_lines(&b"1-2 /a\n3-4 /bcd\n"[..], most).unwrap();
        assert_eq!(text(100), b"1-2 /a\n3-4 /bcd\n");
        assert_eq!(text(13), b"1-2 /a\n");
        assert_eq!(text(5), b"");
    }
}
