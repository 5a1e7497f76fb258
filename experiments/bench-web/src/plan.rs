//! Which runs there are: one axis varied at a time from a base point. Pure.

use std::time::Duration;

use eke_model::units::Bytes;
use serde_json::Value;

use super::content::FileSystem;
use super::requests::Requests;
use super::server;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// ext4 as it is.
    Ext4,
    /// The same in a box of twice the memory.
    Ext4Twice,
    /// btrfs that compresses on the disk.
    Btrfs,
    /// EROFS that compresses on the disk.
    Erofs,
    /// eke over ext4.
    EkeExt4,
    /// eke over btrfs.
    EkeBtrfs,
    /// eke over ext4, which packs before it answers.
    EkeSync,
}

impl Variant {
    /// In the order of the table.
    pub const ALL: [Self; 7] =
        [Self::Ext4, Self::Ext4Twice, Self::Btrfs, Self::Erofs, Self::EkeExt4, Self::EkeBtrfs, Self::EkeSync];
    const QUICK: [Self; 4] = [Self::Ext4, Self::Ext4Twice, Self::Btrfs, Self::EkeExt4];

    /// In reports.
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

    /// On the command line, where names with commas are no good.
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

    /// What its content lies in.
    pub fn file_system(self) -> FileSystem {
        match self {
            Self::Btrfs | Self::EkeBtrfs => FileSystem::Btrfs,
            Self::Erofs => FileSystem::Erofs,
            _ => FileSystem::Ext4,
        }
    }

    /// Is it served through eke's mount?
    pub fn is_ours(self) -> bool {
        matches!(self, Self::EkeExt4 | Self::EkeBtrfs | Self::EkeSync)
    }

    /// Its box, where others have `memory`.
    pub fn memory(self, memory: Bytes) -> Bytes {
        if self == Self::Ext4Twice { Bytes(memory.0 * 2) } else { memory }
    }
}

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Nothing: every variant at the base point.
    Base,
    /// How many connections ask at once.
    Load,
    /// How much of the box the store may have.
    Share,
    /// The size of the content.
    Content,
    /// The memory of the box.
    Memory,
    /// Which web server.
    Server,
    /// How popular files differ.
    Requests,
    /// Content that fits into the page cache.
    Hot,
    /// This machine's own disk.
    FastDisk,
}

impl Axis {
    /// In the order of the report.
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

    /// On the command line.
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

    /// Behind a metric's name.
    pub fn words(self) -> &'static str {
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

/// Everything that a run depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    /// The web server.
    pub server: server::Kind,
    /// The box of all variants but the one with twice as much.
    pub memory: Bytes,
    /// 1.7 MB of content for each.
    pub clients: u32,
    /// How many ask at once.
    pub connections: usize,
    /// For what.
    pub requests: Requests,
    /// How long each waits after a reply.
    pub think: Duration,
    /// What the store may have of the box, in percent.
    pub share: u8,
    /// The slow disk's name; `None` for this machine's own.
    pub disk: Option<String>,
}

/// One run, and where its figures are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Of what.
    pub variant: Variant,
    /// Under which conditions.
    pub conditions: Conditions,
    /// In which figures, and at which place in them.
    pub shown: Vec<(Axis, Place)>,
}

/// The place of a figure on an axis: the parameter's name and value.
pub type Place = Option<(&'static str, Value)>;

/// Clients of the larger content: 3.7 GB.
const LARGE_CLIENTS: u32 = 2160;
/// The content that is hot has this share of the box.
const HOT_SHARE: f64 = 0.25;
/// SPECweb2005 Support per client.
const PER_CLIENT: f64 = 1_711_800.5;
const CONNECTIONS: [usize; 3] = [4, 16, 64];
const SHARES: [u8; 5] = [10, 25, 50, 70, 85];
const SHARES_SYNC: [u8; 2] = [25, 50];
const EXPONENTS: [f64; 2] = [0.6, 1.0];

/// All runs along these axes around `base`, of the named variants (all if empty). Points that axes share are run once.
pub fn runs(base: &Conditions, axes: &[Axis], only: &[Variant], quick: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for axis in axes {
        for (variant, conditions, place) in points(*axis, base, quick) {
            if !only.is_empty() && !only.contains(&variant) {
                continue;
            }
            match runs.iter_mut().find(|r| r.variant == variant && r.conditions == conditions) {
                Some(run) => run.shown.push((*axis, place)),
                None => runs.push(Run { variant, conditions, shown: vec![(*axis, place)] }),
            }
        }
    }
    runs
}

type Point = (Variant, Conditions, Place);

fn points(axis: Axis, base: &Conditions, quick: bool) -> Vec<Point> {
    use Variant::{Btrfs, EkeExt4, Ext4, Ext4Twice};
    let native_and_ours = [Ext4, EkeExt4];
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
            crossed(&loads, &native_and_ours, |n| (at(*n), Some(("connections", (*n).into()))))
        }
        Axis::Share => shares(base),
        Axis::Content => {
            let at = |clients: u32| Conditions { clients, ..base.clone() };
            let mb = |clients: u32| (f64::from(clients) * PER_CLIENT / 1e8).round() / 10.0;
            let place =
                |clients: &u32| (at(*clients), Some(("content", format!("{} GB", mb(*clients)).into())));
            crossed(&[base.clients, LARGE_CLIENTS], &[Ext4, Ext4Twice, Btrfs, EkeExt4], place)
        }
        Axis::Memory => {
            let at = |memory: Bytes| Conditions { memory, ..base.clone() };
            let place = |m: &Bytes| (at(*m), Some(("memory", m.to_string().into())));
            crossed(&[base.memory, Bytes(base.memory.0 * 2)], &native_and_ours, place)
        }
        Axis::Server => {
            let at = |server| Conditions { server, ..base.clone() };
            let place = |kind: &server::Kind| (at(*kind), Some(("server", kind.name().into())));
            crossed(&[server::Kind::Nginx, server::Kind::Tomcat], &native_and_ours, place)
        }
        Axis::Requests => {
            let mut all: Vec<Requests> = EXPONENTS.map(Requests::Zipf).to_vec();
            all.extend([Requests::Uniform, base.requests]);
            let at = |requests| Conditions { requests, ..base.clone() };
            let place = |r: &Requests| (at(*r), Some(("requests", r.to_string().into())));
            crossed(&all, &native_and_ours, place)
        }
        Axis::Hot => {
            let clients = (base.memory.0 as f64 * HOT_SHARE / PER_CLIENT).round().max(1.0) as u32;
            let conditions = Conditions { clients: clients.min(base.clients), ..base.clone() };
            native_and_ours.map(|v| (v, conditions.clone(), None)).to_vec()
        }
        Axis::FastDisk => {
            native_and_ours.map(|v| (v, Conditions { disk: None, ..base.clone() }, None)).to_vec()
        }
    }
}

/// The variants in turn at each value: what warms up or wears out from one value to the next favours none of them.
fn crossed<T>(values: &[T], variants: &[Variant], at: impl Fn(&T) -> (Conditions, Place)) -> Vec<Point> {
    let of = |value| {
        let (conditions, place) = at(value);
        variants.iter().map(move |v| (*v, conditions.clone(), place.clone()))
    };
    values.iter().flat_map(of).collect()
}

/// From none, which is ext4 alone, to the most.
fn shares(base: &Conditions) -> Vec<Point> {
    let place = |share: u8| Some(("share_percent", share.into()));
    let of = |share: u8, variant| (variant, Conditions { share, ..base.clone() }, place(share));
    let mut points = vec![(Variant::Ext4, base.clone(), place(0))];
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
            share: 80,
            disk: Some("scsi2008".into()),
        }
    }

    #[test]
    fn the_whole_experiment_is_at_most_40_runs() {
        let runs = runs(&base(), &Axis::ALL, &[], false);
        assert!(runs.len() <= 40, "{}", runs.len());
        for (at, run) in runs.iter().enumerate() {
            let same = |r: &Run| r.variant == run.variant && r.conditions == run.conditions;
            assert_eq!(runs.iter().position(same), Some(at), "{run:?} twice");
        }
    }

    #[test]
    fn one_thing_is_varied_at_a_time() {
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
        let ours = runs.iter().find(|r| r.variant == Variant::EkeExt4 && r.conditions == base()).unwrap();
        let axes: Vec<Axis> = ours.shown.iter().map(|(axis, _)| *axis).collect();
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
