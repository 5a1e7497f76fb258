//! The pages of files that a process has mapped, as seen from outside: `/proc/PID/maps` and `/proc/PID/pagemap`. Unlike mincore(2), which
//! tells what is in memory for whomever, these are the pages that this process touched (or got along with one that it touched), and no file
//! is opened for it.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use eke_linux::Root;
use eke_linux::parse::file_system::is_on_disk;
use eke_linux::parse::maps::{self, Mapping};
use eke_model::units::PageSize;

use super::maps::held as held_pages;
use super::mounts::Mounts;
use super::places::Device;
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::learn::{Found, How, Inode, LaunchId, Seen};
use eke_prefetch_model::pages::MachineSpan;

/// Of one mapping its first GiB is looked at, and so much of a process in all: a file of 50 GB is not looked at page by page.
const BYTES_A_LOOK: u64 = 1 << 30;
const ENTRIES_A_READ: u64 = 8192;
const ENTRY_BYTES: u64 = 8;

/// Tells of the files that a process has mapped, and of their pages that it has. Of a process that is gone, nothing.
pub fn look(root: &Root, mounts: &Mounts, launch: LaunchId, pid: u32, each: &mut dyn FnMut(Seen)) {
    let text = root.read_bytes(format!("proc/{pid}/maps")).unwrap_or_default();
    let Ok(pagemap) = File::open(root.path(format!("proc/{pid}/pagemap"))) else { return };
    let page = root.page_size();
    let mut left = BYTES_A_LOOK / page.bytes();
    for mapping in maps::parse(&text) {
        let inode = Inode { dev: device(&mapping).st_dev(), ino: mapping.ino };
        let Some(found) = found(mounts, &mapping) else { continue };
        each(Seen::File { launch, inode, found: Some(found) });
        for span in held(&pagemap, &mapping, page, &mut left) {
            each(Seen::Pages { launch, inode, span: span.in_4k(page), how: How::Mapped });
        }
    }
}

/// Has the host the file that a process has mapped from this path, at this path?
pub fn is_here(root: &Root, mounts: &Mounts, pid: u32, path: &Path) -> bool {
    let text = root.read_bytes(format!("proc/{pid}/maps")).unwrap_or_default();
    maps::parse(&text).iter().any(|mapping| mapping.path == path && found(mounts, mapping).is_some())
}

/// The spans of the file that are held.
fn held(pagemap: &File, mapping: &Mapping, page_size: PageSize, left: &mut u64) -> Vec<MachineSpan> {
    let number = |byte: u64| byte / page_size.bytes();
    let mut found = Vec::new();
    let mut page = number(mapping.start);
    let end = number(mapping.end);
    let in_file = |page: u64| page - number(mapping.start) + number(mapping.offset);
    let mut buffer = vec![0; (ENTRIES_A_READ.min(end.saturating_sub(page)) * ENTRY_BYTES) as usize];
    while page < end && *left > 0 {
        let count = ENTRIES_A_READ.min(end - page).min(*left);
        let wanted = &mut buffer[..(count * ENTRY_BYTES) as usize];
        if pagemap.read_exact_at(wanted, page * ENTRY_BYTES).is_err() {
            break;
        }
        found.extend(held_pages(wanted, in_file(page)));
        page += count;
        *left -= count;
    }
    found
}

fn device(mapping: &Mapping) -> Device {
    let (major, minor) = mapping.device;
    Device { major, minor }
}

/// What is known of a mapped file; `None` if it is to be left out: deleted, not on a disk, on one that may never answer, or another file than
/// the host has at that path.
fn found(mounts: &Mounts, mapping: &Mapping) -> Option<Found> {
    let kind = mounts.kind(device(mapping))?;
    // a container's path may lead elsewhere here, also to what never answers
    let is_here = mounts.shows(device(mapping), &mapping.path);
    if mapping.is_deleted || !is_here || !is_on_disk(kind) {
        return None;
    }
    let file = std::fs::symlink_metadata(&mapping.path).ok()?;
    if file.ino() != mapping.ino || !file.is_file() {
        return None;
    }
    let mtime_ns = file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
    let stamp = Stamp { dev: file.dev(), ino: file.ino(), size: file.size(), mtime_ns };
    Some(Found { path: mapping.path.clone(), kind: Kind::File, stamp })
}
