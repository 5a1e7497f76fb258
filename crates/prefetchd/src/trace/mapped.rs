//! The pages of files that a process has mapped, from `/proc/PID/maps` and `/proc/PID/pagemap`. mincore(2) reports what is in memory for any process;
//! these are the pages that this process touched (or got together with one that it touched). No file is opened.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use eke_linux::Root;
use eke_linux::parse::file_system::is_on_disk;
use eke_linux::parse::maps::{self, Mapping};
use eke_linux::read::answers;
use eke_model::units::PageSize;

use super::mount_index::Device;
use super::mounts::Mounts;
use super::pagemap::present_pages;
use eke_prefetch_model::file_set::Kind;
use eke_prefetch_model::learn::{Inode, LaunchId, PageUse, TraceEvent, TracedFile};
use eke_prefetch_model::pages::MachineSpan;

/// The most bytes that are examined per process, so that a file of 50 GB does not take long.
const BYTES_PER_PROCESS: u64 = 1 << 30;
const ENTRIES_A_READ: u64 = 8192;
const ENTRY_BYTES: u64 = 8;

/// Reports a process's mapped files and the present pages of each. Reports nothing for an ended process.
pub fn report(root: &Root, mounts: &Mounts, launch: LaunchId, pid: u32, each: &mut dyn FnMut(TraceEvent)) {
    let text = maps_of(root, pid);
    let Ok(pagemap) = File::open(root.path(format!("proc/{pid}/pagemap"))) else { return };
    let page = root.page_size();
    let mut left = BYTES_PER_PROCESS / page.bytes();
    for mapping in maps::parse(&text) {
        let inode = Inode { dev: device(&mapping).st_dev(), ino: mapping.ino };
        let Some(found) = found(mounts, &mapping) else { continue };
        each(TraceEvent::File { launch, pid, inode, found: Some(found) });
        for span in present(&pagemap, &mapping, page, &mut left) {
            each(TraceEvent::Pages { launch, pid, inode, span: span.in_4k(page), how: PageUse::Mapped });
        }
    }
}

/// Whether the file that a process has mapped from this path is at the same path on the host.
pub fn is_here(root: &Root, mounts: &Mounts, pid: u32, path: &Path) -> bool {
    let text = maps_of(root, pid);
    maps::parse(&text).iter().any(|mapping| mapping.path == path && found(mounts, mapping).is_some())
}

fn maps_of(root: &Root, pid: u32) -> Vec<u8> {
    let text = answers(root, pid).then(|| root.read_bytes(format!("proc/{pid}/maps")).ok());
    text.flatten().unwrap_or_default()
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

fn device(mapping: &Mapping) -> Device {
    let (major, minor) = mapping.device;
    Device { major, minor }
}

/// The mapped file; `None` to leave it out: deleted, not on a disk, on one that may never answer, or different from the host's file at that path.
fn found(mounts: &Mounts, mapping: &Mapping) -> Option<TracedFile> {
    let kind = mounts.kind(device(mapping))?;
    // a container's path may lead elsewhere on the host, even to a file system that never answers
    let is_here = mounts.shows(device(mapping), &mapping.path);
    if mapping.is_deleted || !is_here || !is_on_disk(kind) {
        return None;
    }
    let (stamp, owner) = mounts.stat(&mapping.path).filter(|(stamp, _)| stamp.ino == mapping.ino)?;
    Some(TracedFile { path: mapping.path.clone(), kind: Kind::File, stamp, owner })
}
