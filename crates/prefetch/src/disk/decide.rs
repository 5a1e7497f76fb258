//! What kind of disk it is, and how it is best read, of what was measured.

use serde::{Deserialize, Serialize};

use super::DiskKind;
use super::below::{Below, Bottom};
use super::measure::Measured;
use crate::cost::DiskCost;

/// From this on a request is as slow as an arm makes it: the quickest disks of 15,000 turns need 5 ms, flash under 1 ms.
const ARM_S: f64 = 0.003;
/// Below this a request is quick whatever depth does.
const QUICK_S: f64 = 0.0003;
/// Four at once help if they bring this many times what one brings.
const DEPTH_HELPS: f64 = 1.5;
/// Distance matters if requests near each other take at most this share of those far apart.
const NEAR_SHARE: f64 = 0.75;
/// What a piece may take: with it and a look every 20 ms, 100 ms are enough to stop.
const PIECE_S: f64 = 0.025;
/// The kernel reads no more in one call of readahead(2) (1280 KiB until 6.12), and less is asked for.
pub const MOST_PIECE_BYTES: u64 = 1 << 20;
const LEAST_PIECE_BYTES: u64 = 64 << 10;
/// Pages that nobody asked for take memory: no hole above this is read, whatever a seek costs.
const MOST_HOLE_BYTES: u64 = 256 << 10;

/// How a disk is best read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// In the order of places on the disk, metadata first; else in the order of first use.
    pub by_place: bool,
    /// How many read at once.
    pub streams: usize,
    /// The most bytes of one read.
    pub piece_bytes: u64,
    /// Between two wanted ranges, at most this much is read that nobody asked for.
    pub hole_bytes: u64,
    /// Is it read ahead at all? Not where a server answers, unless its cost says that it pays.
    pub on: bool,
}

/// All that is known of the disk below a file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Where it is.
    pub below: Below,
    /// Its kind.
    pub kind: DiskKind,
    /// What reads cost.
    pub cost: DiskCost,
    /// How it is best read.
    pub way: Way,
    /// What was measured; `None` where it was not and the kind is assumed.
    pub measured: Option<Measured>,
    /// Why this kind and this way, sentences for people.
    pub why: Vec<String>,
}

/// Decides. Without a measurement the kind is what the device says of itself, and the costs are usual ones of that kind;
/// `why` says so.
pub fn decide(below: Below, measured: Option<Measured>) -> Figures {
    let _ = (below, measured, Bottom::Unknown(String::new()));
    let _ = (ARM_S, QUICK_S, DEPTH_HELPS, NEAR_SHARE, PIECE_S, LEAST_PIECE_BYTES, MOST_HOLE_BYTES);
    todo!()
}
