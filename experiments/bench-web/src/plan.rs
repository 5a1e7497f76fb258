//! The plan of runs: varies one axis at a time from a base point. Pure.

use std::time::Duration;

use eke_cache_policy::size::MOST_PERCENT;
use eke_model::units::Bytes;
use serde_json::Value;

use super::content::FileSystem;
use super::requests::Requests;
use super::server;

/// A set-up that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Plain ext4.
    Ext4,
    /// ext4 in a box with twice the memory.
    Ext4Twice,
    /// btrfs, compressed on the disk.
    Btrfs,
    /// EROFS, compressed on the disk.
    Erofs,
    /// eke over ext4.
    EkeExt4,
    /// eke over btrfs.
    EkeBtrfs,
    /// eke over ext4, compressing before it replies.
    EkeSync,
}

impl Variant {
    /// All variants, in the order of the table.
    pub const ALL: [Self; 7] =
        [Self::Ext4, Self::Ext4Twice, Self::Btrfs, Self::Erofs, Self::EkeExt4, Self::EkeBtrfs, Self::EkeSync];
    const QUICK: [Self; 4] = [Self::Ext4, Self::Ext4Twice, Self::Btrfs, Self::EkeExt4];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4Twice => "ext4, twice the memory",
            Self::Btrfs => "btrfs zstd",
            Self::Erofs => "EROFS lz4hc",
            Self::EkeExt4 => "eke over ext4",
            Self::EkeBtrfs => "eke over btrfs",
            Self::EkeSync => "eke over ext4, sync",
        }
    }

    /// The name on the command line, without commas.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4Twice => "ext4x2",
            Self::Btrfs => "btrfs",
            Self::Erofs => "erofs",
            Self::EkeExt4 => "eke",
            Self::EkeBtrfs => "eke-btrfs",
            Self::EkeSync => "eke-sync",
        }
    }

    /// The file system of its content.
    pub fn file_system(self) -> FileSystem {
        match self {
            Self::Btrfs | Self::EkeBtrfs => FileSystem::Btrfs,
            Self::Erofs => FileSystem::Erofs,
            _ => FileSystem::Ext4,
        }
    }

    /// Whether the content is served through eke's mount.
    pub fn uses_eke(self) -> bool {
        matches!(self, Self::EkeExt4 | Self::EkeBtrfs | Self::EkeSync)
    }

    /// The memory of its box, if the others have `memory`.
    pub fn memory(self, memory: Bytes) -> Bytes {
        if self == Self::Ext4Twice { Bytes(memory.0 * 2) } else { memory }
    }
}

/// A parameter that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// None: every variant at the base point.
    Base,
    /// The number of connections.
    Load,
    /// The store's share of the box's memory.
    Share,
    /// The size of the content.
    Content,
    /// The memory of the box.
    Memory,
    /// The web server.
    Server,
    /// The popularity of files.
    Requests,
    /// Content that fits into the page cache.
    Hot,
    /// This machine's own disk.
    FastDisk,
}

impl Axis {
    /// All axes, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::Base,
        Self::Load,
        Self::Share,
        Self::Content,
        Self::Memory,
        Self::Server,
        Self::Requests,
        Self::Hot,
        Self::FastDisk,
    ];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Load => "load",
            Self::Share => "share",
            Self::Content => "content",
            Self::Memory => "memory",
            Self::Server => "server",
            Self::Requests => "requests",
            Self::Hot => "hot",
            Self::FastDisk => "fast-disk",
        }
    }

    /// The suffix of a metric's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Base => "",
            Self::Load => "by connections",
            Self::Share => "by the share of the store",
            Self::Content => "by the size of the content",
            Self::Memory => "by memory",
            Self::Server => "by server",
            Self::Requests => "by popularity",
            Self::Hot => "everything hot",
            Self::FastDisk => "on a fast disk",
        }
    }
}

/// The conditions of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    /// The web server.
    pub server: server::Kind,
    /// The box's memory, for all variants but the one with twice as much.
    pub memory: Bytes,
    /// The number of clients, with 1.7 MB of content each.
    pub clients: u32,
    /// The number of connections.
    pub connections: usize,
    /// The popularity of files.
    pub requests: Requests,
    /// The pause of each connection after a reply.
    pub think: Duration,
    /// The most of the box's memory that the store may have, in percent.
    pub share: u8,
    /// The slow disk's name; `None` for this machine's own disk.
    pub disk: Option<String>,
}

/// One run, and its points on the axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The set-up.
    pub variant: Variant,
    /// The conditions.
    pub conditions: Conditions,
    /// The axes that show the run, with its position on each.
    pub shown: Vec<(Axis, Position)>,
}

/// The position of a run on an axis: the parameter's name and value.
pub type Position = Option<(&'static str, Value)>;

/// The clients of the larger content: 3.7 GB.
const LARGE_CLIENTS: u32 = 2160;
/// The size of hot content, as a share of the box's memory.
const HOT_SHARE: f64 = 0.25;
/// The bytes of SPECweb2005 Support per client.
const PER_CLIENT: f64 = 1_711_800.5;
/// The share of a mount without `--memory`.
pub const DEFAULT_SHARE: u8 = MOST_PERCENT;
const CONNECTIONS: [usize; 3] = [4, 16, 64];
const SHARES: [u8; 5] = [10, 25, 50, 70, 85];
const SHARES_SYNC: [u8; 2] = [25, 50];
const EXPONENTS: [f64; 2] = [0.6, 1.0];

/// All runs along these axes around `base`, of the variants `only` (all if empty). A point on several axes is one run.
pub fn runs(base: &Conditions, axes: &[Axis], only: &[Variant], quick: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for axis in axes {
        for (variant, conditions, position) in points(*axis, base, quick) {
            if !only.is_empty() && !only.contains(&variant) {
                continue;
            }
            match runs.iter_mut().find(|r| r.variant == variant && r.conditions == conditions) {
                Some(run) => run.shown.push((*axis, position)),
                None => runs.push(Run { variant, conditions, shown: vec![(*axis, position)] }),
            }
        }
    }
    runs
}

type Point = (Variant, Conditions, Position);

fn points(axis: Axis, base: &Conditions, quick: bool) -> Vec<Point> {
    use Variant::{EkeExt4, Ext4};
    let with_and_without_eke = [Ext4, EkeExt4];
    match axis {
        Axis::Base => {
            let all = if quick { Variant::QUICK.to_vec() } else { Variant::ALL.to_vec() };
            all.into_iter().map(|v| (v, base.clone(), None)).collect()
        }
        Axis::Load => {
            let mut loads = [&CONNECTIONS[..], &[base.connections]].concat();
            loads.sort_unstable();
            loads.dedup();
            let at = |connections: usize| Conditions { connections, ..base.clone() };
            crossed(&loads, &with_and_without_eke, |n| (at(*n), Some(("connections", (*n).into()))))
        }
        Axis::Share => shares(base),
        Axis::Content => contents(base),
        Axis::Memory => {
            let at = |memory: Bytes| Conditions { memory, ..base.clone() };
            let position = |m: &Bytes| (at(*m), Some(("memory", m.to_string().into())));
            crossed(&[base.memory, Bytes(base.memory.0 * 2)], &with_and_without_eke, position)
        }
        Axis::Server => {
            let at = |server| Conditions { server, ..base.clone() };
            let position = |kind: &server::Kind| (at(*kind), Some(("server", kind.name().into())));
            crossed(&[server::Kind::Nginx, server::Kind::Tomcat], &with_and_without_eke, position)
        }
        Axis::Requests => popularities(base),
        Axis::Hot => {
            let clients = (base.memory.0 as f64 * HOT_SHARE / PER_CLIENT).round().max(1.0) as u32;
            let conditions = Conditions { clients: clients.min(base.clients), ..base.clone() };
            with_and_without_eke.map(|v| (v, conditions.clone(), None)).to_vec()
        }
        Axis::FastDisk => {
            with_and_without_eke.map(|v| (v, Conditions { disk: None, ..base.clone() }, None)).to_vec()
        }
    }
}

/// All variants at each value, before the next value: warming up or wearing out favours none of them.
fn crossed<T>(values: &[T], variants: &[Variant], at: impl Fn(&T) -> (Conditions, Position)) -> Vec<Point> {
    let of = |value| {
        let (conditions, position) = at(value);
        variants.iter().map(move |v| (*v, conditions.clone(), position.clone()))
    };
    values.iter().flat_map(of).collect()
}

/// The points of the content's size.
fn contents(base: &Conditions) -> Vec<Point> {
    use Variant::{Btrfs, EkeExt4, Ext4, Ext4Twice};
    let gb = |clients: u32| (f64::from(clients) * PER_CLIENT / 1e8).round() / 10.0;
    let at = |clients: &u32| {
        let position = Some(("content", format!("{} GB", gb(*clients)).into()));
        (Conditions { clients: *clients, ..base.clone() }, position)
    };
    crossed(&[base.clients, LARGE_CLIENTS], &[Ext4, Ext4Twice, Btrfs, EkeExt4], at)
}

/// The points of the files' popularity.
fn popularities(base: &Conditions) -> Vec<Point> {
    let mut all: Vec<Requests> = EXPONENTS.map(Requests::Zipf).to_vec();
    all.extend([Requests::Uniform, base.requests]);
    let at = |requests: &Requests| {
        let position = Some(("requests", requests.to_string().into()));
        (Conditions { requests: *requests, ..base.clone() }, position)
    };
    crossed(&all, &[Variant::Ext4, Variant::EkeExt4], at)
}

/// The points from no share, which is ext4 alone, to the largest.
fn shares(base: &Conditions) -> Vec<Point> {
    let position = |share: u8| Some(("share_percent", share.into()));
    let of = |share: u8, variant| (variant, Conditions { share, ..base.clone() }, position(share));
    let mut points = vec![(Variant::Ext4, base.clone(), position(0))];
    let mut all: Vec<u8> = [&SHARES[..], &[base.share]].concat();
    all.sort_unstable();
    all.dedup();
    for share in all {
        points.push(of(share, Variant::EkeExt4));
        if SHARES_SYNC.contains(&share) || share == base.share {
            points.push(of(share, Variant::EkeSync));
        }
    }
    points
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn base() -> Conditions {
        Conditions {
            server: server::Kind::Nginx,
            memory: Bytes::mib(400),
            clients: 1000,
            connections: 32,
            requests: Requests::Zipf(0.8),
            think: Duration::ZERO,
            share: DEFAULT_SHARE,
            disk: Some("scsi2008".into()),
        }
    }

    #[test]
    fn the_experiment_has_at_most_40_runs() {
        let runs = runs(&base(), &Axis::ALL, &[], false);
        assert!(runs.len() <= 40, "{}", runs.len());
        for (at, run) in runs.iter().enumerate() {
            let same = |r: &Run| r.variant == run.variant && r.conditions == run.conditions;
            assert_eq!(runs.iter().position(same), Some(at), "{run:?} twice");
        }
    }

    #[test]
    fn one_parameter_is_varied_at_a_time() {
        for run in runs(&base(), &Axis::ALL, &[], false) {
            let (c, b) = (&run.conditions, &base());
            let differs = [
                c.server != b.server,
                c.memory != b.memory,
                c.clients != b.clients,
                c.connections != b.connections,
                c.requests != b.requests,
                c.share != b.share,
                c.disk != b.disk,
            ];
            assert!(differs.iter().filter(|d| **d).count() <= 1, "{run:?}");
        }
    }

    #[test]
    fn the_base_point_is_on_every_curve() {
        let runs = runs(&base(), &Axis::ALL, &[], false);
        let eke = runs.iter().find(|r| r.variant == Variant::EkeExt4 && r.conditions == base()).unwrap();
        let axes: Vec<Axis> = eke.shown.iter().map(|(axis, _)| *axis).collect();
        assert_eq!(axes[..], Axis::ALL[..7]);
        let ext4 = runs.iter().find(|r| r.variant == Variant::Ext4 && r.conditions == base()).unwrap();
        assert!(ext4.shown.contains(&(Axis::Share, Some(("share_percent", 0.into())))));
    }

    #[test]
    fn a_quick_run_is_four_and_variants_can_be_chosen() {
        assert_eq!(runs(&base(), &[Axis::Base], &[], true).len(), 4);
        let only = runs(&base(), &[Axis::Base, Axis::Load], &[Variant::Ext4], false);
        assert_eq!(only.len(), 4);
        let fast = Conditions { disk: None, ..base() };
        assert_eq!(runs(&fast, &[Axis::FastDisk], &[], true).len(), 2);
    }
}
