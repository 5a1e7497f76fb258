//! The jobs of a device, in order.

use super::order::{LocatedRequest, by_position, by_use};
use crate::read::{DeviceQueue, Extent, Job};
use crate::request::Priority;
use eke_prefetch_model::file_set::Kind;

/// The first jobs. In disk order: metadata from the device, then directories and extents of files by inode number, because inodes lie on the disk in
/// that order; the rest waits for [`then`]. Otherwise all jobs in the order of requests.
pub(super) fn first(device: &DeviceQueue) -> Vec<Job> {
    if device.profile.strategy.in_disk_order { metadata(device) } else { as_requested(device) }
}

/// A file with more than this share of all requested bytes is large.
const LARGE_SHARE: u64 = 16;
/// Ahead, a sweep ends after the first file that brings all requested bytes so far to this. The rest is the last one.
const SWEEPS_END: [u64; 2] = [128 << 20, 512 << 20];

/// The second jobs: the files' pages in disk order, as far as their extents are known.
pub(super) fn then<'a>(
    device: &'a DeviceQueue,
    priority: Priority,
    located: impl Fn(usize) -> Option<&'a [Extent]>,
) -> Vec<Job> {
    let strategy = device.profile.strategy;
    if !strategy.in_disk_order {
        return Vec::new();
    }
    let files = device.requests.iter().enumerate().filter(|(_, on)| on.request.kind == Kind::File);
    let placed = files.map(|(request, on)| LocatedRequest {
        request,
        file_system: on.mount,
        pages: &on.request.pages,
        extents: located(request),
    });
    let placed: Vec<LocatedRequest<'_>> = placed.collect();
    let sweeps = match priority {
        Priority::AtExec => large_last(placed),
        Priority::Ahead => first_first(placed),
    };
    let pieces =
        sweeps.iter().flat_map(|sweep| by_position(sweep, strategy.piece_bytes, strategy.hole_bytes));
    pieces.map(Job::Read).collect()
}

/// Puts the few large files last: a program waits for parts of all its small files before it can work much, and works while the large ones are read.
/// More sweeps, by first use, cost more than the program gains (Chromium 8.4 instead of 7.5 s, gedit 2.7 instead of 2.3 on a disk of 120 requests a
/// second).
fn large_last(placed: Vec<LocatedRequest<'_>>) -> Vec<Vec<LocatedRequest<'_>>> {
    let all: u64 = placed.iter().map(|placed| placed.pages.bytes()).sum();
    let is_large = |placed: &LocatedRequest<'_>| placed.pages.bytes() > all / LARGE_SHARE;
    let (large, small) = placed.into_iter().partition(is_large);
    vec![small, large]
}

/// Cuts the files into sweeps in the order of requests. What saves most comes first there, and should be in memory first: one sweep over all completes
/// each program only near its end.
fn first_first(placed: Vec<LocatedRequest<'_>>) -> Vec<Vec<LocatedRequest<'_>>> {
    let mut sweeps = vec![Vec::new(); SWEEPS_END.len() + 1];
    let mut before = 0;
    for file in placed {
        sweeps[SWEEPS_END.partition_point(|end| *end <= before)].push(file);
        before += file.pages.bytes();
    }
    sweeps
}

fn metadata(device: &DeviceQueue) -> Vec<Job> {
    // A device's offsets are disk positions.
    let whole = [Extent { logical: 0, physical: 0, bytes: u64::MAX }];
    let all = || device.requests.iter().enumerate();
    let devices: Vec<LocatedRequest<'_>> = all()
        .filter(|(_, on)| on.request.kind == Kind::Device)
        .map(|(request, on)| LocatedRequest {
            request,
            file_system: on.mount,
            pages: &on.request.pages,
            extents: Some(&whole),
        })
        .collect();
    let strategy = device.profile.strategy;
    let pieces = by_position(&devices, strategy.piece_bytes, strategy.hole_bytes).into_iter().map(Job::Read);
    let mut rest: Vec<usize> =
        all().filter(|(_, on)| on.request.kind != Kind::Device).map(|(request, _)| request).collect();
    rest.sort_by_key(|request| {
        (device.requests[*request].mount, device.requests[*request].request.stamp.ino)
    });
    let lookups = rest.into_iter().map(|request| match device.requests[request].request.kind {
        Kind::Directory => Job::List(request),
        _ => Job::Locate(request),
    });
    pieces.chain(lookups).collect()
}

fn as_requested(device: &DeviceQueue) -> Vec<Job> {
    let strategy = device.profile.strategy;
    let each = device.requests.iter().enumerate().flat_map(|(request, on)| match on.request.kind {
        Kind::Directory => vec![Job::List(request)],
        _ => by_use([(request, &on.request.pages)], strategy.piece_bytes, strategy.hole_bytes)
            .into_iter()
            .map(Job::Read)
            .collect(),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{MountedRequest, Piece};
    use crate::request::ReadRequest;
    use eke_prefetch_disk::backing::{Backing, Block, Storage};
    use eke_prefetch_disk::decide;
    use eke_prefetch_model::file_set::Stamp;
    use eke_prefetch_model::pages::Span;

    fn device(reports_rotational: bool) -> DeviceQueue {
        let disk = Block { name: "sda".into(), dev: 8, size_bytes: 1 << 30, reports_rotational };
        let backing = Backing {
            dev: 8,
            file_system: "ext4".into(),
            through: Vec::new(),
            own: None,
            storage: Storage::Disks(vec![disk]),
            cached_between: false,
        };
        let request = |kind, ino, first, end| MountedRequest {
            mount: 8,
            request: ReadRequest {
                path: "/x".into(),
                kind,
                stamp: Stamp { ino, ..Stamp::default() },
                pages: Span::new(first, end).into_iter().collect(),
                user: 0,
                is_own: false,
            },
        };
        let requests = vec![
            request(Kind::File, 30, 0, 2),
            request(Kind::Device, 0, 90, 91),
            request(Kind::Directory, 10, 0, 0),
            request(Kind::File, 20, 5, 6),
        ];
        DeviceQueue { profile: decide(backing, None), requests }
    }

    fn read(request: usize, first: u64, pages: u64) -> Job {
        Job::Read(Piece { request, offset: first * 4096, bytes: pages * 4096 })
    }

    #[test]
    fn flash_is_read_in_the_order_of_requests() {
        let device = device(false);
        assert_eq!(first(&device), [read(0, 0, 2), read(1, 90, 1), Job::List(2), read(3, 5, 1)]);
        assert_eq!(then(&device, Priority::Ahead, |_| None), []);
    }

    #[test]
    fn a_rotating_disk_has_metadata_first_then_inodes_then_places() {
        let device = device(true);
        assert_eq!(first(&device), [read(1, 90, 1), Job::List(2), Job::Locate(3), Job::Locate(0)]);
        let near = [Extent { logical: 0, physical: 4096, bytes: 1 << 20 }];
        let far = [Extent { logical: 0, physical: 1 << 30, bytes: 1 << 20 }];
        let jobs =
            then(
                &device,
                Priority::Ahead,
                |request| if request == 0 { Some(&far[..]) } else { Some(&near[..]) },
            );
        assert_eq!(jobs, [read(3, 5, 1), read(0, 0, 2)]);
        let jobs = then(&device, Priority::Ahead, |request| (request == 0).then_some(&far[..]));
        assert_eq!(jobs, [read(0, 0, 2), read(3, 5, 1)], "what has no known position comes last");
    }

    #[test]
    fn ahead_what_was_requested_first_is_read_first_however_far_it_is() {
        let mut device = device(true);
        let pages = |mib: u64| Span::new(0, mib << 8).into_iter().collect();
        device.requests[0].request.pages = pages(127);
        device.requests[3].request.pages = pages(2);
        for mib in [383, 1, 1] {
            let mut next = device.requests[3].clone();
            next.request.pages = pages(mib);
            device.requests.push(next);
        }
        // The last request lies first on the disk.
        let at: Vec<[Extent; 1]> =
            (0..7).rev().map(|n| [Extent { logical: 0, physical: n << 32, bytes: 1 << 32 }]).collect();
        let jobs = then(&device, Priority::Ahead, |request| Some(&at[request][..]));
        let mut order: Vec<usize> = jobs.iter().map(Job::request).collect();
        order.dedup();
        assert_eq!(order, [3, 0, 4, 6, 5], "127 and 2 MiB, 383 MiB, and the rest");
    }

    #[test]
    fn at_exec_large_files_come_last() {
        let mut device = device(true);
        device.requests[3].request.pages = Span::new(0, 160).into_iter().collect();
        let at = |physical| [Extent { logical: 0, physical, bytes: 1 << 30 }];
        let (front, back) = (at(4096), at(1 << 40));
        let order = |priority| {
            then(&device, priority, |request| Some(if request == 0 { &back[..] } else { &front[..] }))
        };
        let whole = [read(3, 0, 160), read(0, 0, 2)];
        let ending = [read(0, 0, 2), read(3, 0, 160)];
        assert_eq!((&order(Priority::Ahead)[..], &order(Priority::AtExec)[..]), (&whole[..], &ending[..]));
    }
}
