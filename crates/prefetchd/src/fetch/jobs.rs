//! What is to be done in a lane, in which order.

use super::Haste;
use super::lanes::Lane;
use super::order::{Extent, Piece, Placed, by_place, by_use};
use eke_prefetch_model::file_set::Kind;

/// What a worker does at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Read this.
    Read(Piece),
    /// Go through this directory.
    List(usize),
    /// Find out where this file lies.
    Locate(usize),
}

impl Job {
    /// Of which want.
    pub(super) fn want(&self) -> usize {
        match self {
            Self::Read(piece) => piece.want,
            Self::List(want) | Self::Locate(want) => *want,
        }
    }

    /// What it may bring.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Read(piece) => piece.bytes,
            _ => 0,
        }
    }
}

/// What comes first. Where places count: metadata from the device, in its order; then directories and the files' places, in the
/// order of their inodes, which lie in the order of their numbers; the rest waits for [`then`]. Else all, as it is wanted.
pub(super) fn first(lane: &Lane) -> Vec<Job> {
    if lane.figures.way.by_place { metadata(lane) } else { as_wanted(lane) }
}

/// Of this share of all that is wanted a file is large.
const LARGE_SHARE: u64 = 16;
/// What comes then: the files' pages in the order of their places, as far as these are known.
pub(super) fn then<'a>(
    lane: &'a Lane,
    haste: Haste,
    located: impl Fn(usize) -> Option<&'a [Extent]>,
) -> Vec<Job> {
    let way = lane.figures.way;
    if !way.by_place {
        return Vec::new();
    }
    let files = lane.wants.iter().enumerate().filter(|(_, on)| on.want.kind == Kind::File);
    let placed = files.map(|(want, on)| Placed {
        want,
        file_system: on.mount,
        pages: &on.want.pages,
        extents: located(want),
    });
    let placed: Vec<Placed<'_>> = placed.collect();
    let sweeps = if haste == Haste::AtExec { large_last(placed) } else { vec![placed] };
    let pieces = sweeps.iter().flat_map(|sweep| by_place(sweep, way.piece_bytes, way.hole_bytes));
    pieces.map(Job::Read).collect()
}

/// The few large files by themselves: a program waits for something of each of its many small files before it has much to do, and does that
/// while the arm is with the large ones. To go over the disk more often, by first use, costs more than the program gains (Chromium 8.4
/// instead of 7.5 s, gedit 2.7 instead of 2.3 on a disk of 120 requests a second).
fn large_last(placed: Vec<Placed<'_>>) -> Vec<Vec<Placed<'_>>> {
    let all: u64 = placed.iter().map(|placed| placed.pages.bytes()).sum();
    let is_large = |placed: &Placed<'_>| placed.pages.bytes() > all / LARGE_SHARE;
    let (large, small) = placed.into_iter().partition(is_large);
    vec![small, large]
}

fn metadata(lane: &Lane) -> Vec<Job> {
    // A device's pages lie where they are.
    let whole = [Extent { logical: 0, physical: 0, bytes: u64::MAX }];
    let all = || lane.wants.iter().enumerate();
    let devices: Vec<Placed<'_>> = all()
        .filter(|(_, on)| on.want.kind == Kind::Device)
        .map(|(want, on)| Placed {
            want,
            file_system: on.mount,
            pages: &on.want.pages,
            extents: Some(&whole),
        })
        .collect();
    let way = lane.figures.way;
    let pieces = by_place(&devices, way.piece_bytes, way.hole_bytes).into_iter().map(Job::Read);
    let mut rest: Vec<usize> =
        all().filter(|(_, on)| on.want.kind != Kind::Device).map(|(want, _)| want).collect();
    rest.sort_by_key(|want| (lane.wants[*want].mount, lane.wants[*want].want.stamp.ino));
    let looks = rest.into_iter().map(|want| match lane.wants[want].want.kind {
        Kind::Directory => Job::List(want),
        _ => Job::Locate(want),
    });
    pieces.chain(looks).collect()
}

fn as_wanted(lane: &Lane) -> Vec<Job> {
    let way = lane.figures.way;
    let each = lane.wants.iter().enumerate().flat_map(|(want, on)| match on.want.kind {
        Kind::Directory => vec![Job::List(want)],
        _ => by_use([(want, &on.want.pages)], way.piece_bytes, way.hole_bytes)
            .into_iter()
            .map(Job::Read)
            .collect(),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::Want;
    use super::super::lanes::OnMount;
    use super::*;
    use crate::disk::below::{Below, Block, Bottom};
    use crate::disk::decide;
    use eke_prefetch_model::file_set::Stamp;
    use eke_prefetch_model::pages::Span;

    fn lane(says_rotational: bool) -> Lane {
        let disk = Block { name: "sda".into(), dev: 8, size_bytes: 1 << 30, says_rotational };
        let below = Below {
            dev: 8,
            file_system: "ext4".into(),
            through: Vec::new(),
            own: None,
            bottom: Bottom::Disks(vec![disk]),
            cached_between: false,
        };
        let want = |kind, ino, first, end| OnMount {
            mount: 8,
            want: Want {
                path: "/x".into(),
                kind,
                stamp: Stamp { ino, ..Stamp::default() },
                pages: Span::new(first, end).into_iter().collect(),
            },
        };
        let wants = vec![
            want(Kind::File, 30, 0, 2),
            want(Kind::Device, 0, 90, 91),
            want(Kind::Directory, 10, 0, 0),
            want(Kind::File, 20, 5, 6),
        ];
        Lane { figures: decide(below, None), wants }
    }

    fn read(want: usize, first: u64, pages: u64) -> Job {
        Job::Read(Piece { want, offset: first * 4096, bytes: pages * 4096 })
    }

    #[test]
    fn flash_is_read_as_it_is_wanted() {
        let lane = lane(false);
        assert_eq!(first(&lane), [read(0, 0, 2), read(1, 90, 1), Job::List(2), read(3, 5, 1)]);
        assert_eq!(then(&lane, Haste::Ahead, |_| None), []);
    }

    #[test]
    fn a_rotating_disk_has_metadata_first_then_inodes_then_places() {
        let lane = lane(true);
        assert_eq!(first(&lane), [read(1, 90, 1), Job::List(2), Job::Locate(3), Job::Locate(0)]);
        let near = [Extent { logical: 0, physical: 4096, bytes: 1 << 20 }];
        let far = [Extent { logical: 0, physical: 1 << 30, bytes: 1 << 20 }];
        let jobs = then(&lane, Haste::Ahead, |want| if want == 0 { Some(&far[..]) } else { Some(&near[..]) });
        assert_eq!(jobs, [read(3, 5, 1), read(0, 0, 2)]);
        let jobs = then(&lane, Haste::Ahead, |want| (want == 0).then_some(&far[..]));
        assert_eq!(jobs, [read(0, 0, 2), read(3, 5, 1)], "what has no known place comes last");
    }

    #[test]
    fn at_exec_large_files_come_last() {
        let mut lane = lane(true);
        lane.wants[3].want.pages = Span::new(0, 160).into_iter().collect();
        let at = |physical| [Extent { logical: 0, physical, bytes: 1 << 30 }];
        let (front, back) = (at(4096), at(1 << 40));
        let order = |haste| then(&lane, haste, |want| Some(if want == 0 { &back[..] } else { &front[..] }));
        let whole = [read(3, 0, 160), read(0, 0, 2)];
        let ending = [read(0, 0, 2), read(3, 0, 160)];
        assert_eq!((&order(Haste::Ahead)[..], &order(Haste::AtExec)[..]), (&whole[..], &ending[..]));
    }
}
