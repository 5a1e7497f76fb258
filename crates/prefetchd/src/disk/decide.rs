//! What kind of disk it is, and how it is best read, of what was measured.

use eke_model::units::PageSize;
use serde::{Deserialize, Serialize};

use super::DiskKind;
use super::below::{Below, Bottom};
use super::measure::Measured;
use eke_prefetch_model::cost::DiskCost;
use eke_prefetch_model::pages::PAGE_BYTES;

/// From this on a request is as slow as an arm makes it: the quickest disks of 15,000 turns need 5 ms, flash under 1 ms.
const ARM_S: f64 = 0.003;
/// Below this a request is quick whatever depth does.
const QUICK_S: f64 = 0.0003;
/// Four at once help if they bring this many times what one brings.
const DEPTH_HELPS: f64 = 1.5;
/// Distance matters if requests near each other take at most this share of those far apart.
const NEAR_SHARE: f64 = 0.75;
/// What the pieces under way may take: with that and a look every 20 ms, 100 ms are enough to stop.
const PIECE_S: f64 = 0.025;
/// The kernel reads no more in one call of readahead(2) (1280 KiB until 6.12), and less is asked for.
pub const MOST_PIECE_BYTES: u64 = 1 << 20;
const LEAST_PIECE_BYTES: u64 = 64 << 10;
/// Pages that nobody asked for take memory: no hole above this is read, whatever a seek costs.
const MOST_HOLE_BYTES: u64 = 256 << 10;
/// Above this share, requests near each other take as long as any.
const ALL_THE_SAME: f64 = 0.9;
/// A server that answers later than this, or brings less than 5 MB/s, is left for those who ask it themselves.
const SERVER_S: f64 = 0.02;
const SERVER_BYTE_S: f64 = 1.0 / 5e6;

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
    /// Is anything fetched from it? Not from memory, nor from a server, unless its cost says that it pays.
    pub on: bool,
}

/// All that is known of the disk below a file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskProfile {
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

/// What is assumed of a disk that was not measured: a laptop's.
const ASSUMED_ROTATING: DiskCost = DiskCost { request_s: 0.010, near_request_s: 0.005, byte_s: 1.0 / 100e6 };
/// The same of flash behind SATA.
const ASSUMED_FLASH: DiskCost = DiskCost { request_s: 0.000_1, near_request_s: 0.000_1, byte_s: 1.0 / 400e6 };
/// The same of a server.
const ASSUMED_NETWORK: DiskCost = DiskCost { request_s: 0.005, near_request_s: 0.005, byte_s: 1.0 / 10e6 };

/// Decides. Without a measurement the kind is what the device says of itself, and the costs are usual ones of that kind;
/// `why` says so.
pub fn decide(below: Below, measured: Option<Measured>) -> DiskProfile {
    let mut why = Vec::new();
    let kind = kind(&below, measured.as_ref(), &mut why);
    let assumed = match kind {
        DiskKind::Rotating => ASSUMED_ROTATING,
        DiskKind::Flash | DiskKind::Card => ASSUMED_FLASH,
        DiskKind::Network => ASSUMED_NETWORK,
    };
    let cost = measured.map_or(assumed, |m| m.cost());
    let gain = measured.map_or(1.0, |m| m.depth_gain);
    let way = Way { on: is_on(&below.bottom, measured.as_ref(), &mut why), ..way(kind, cost, gain) };
    if way.on {
        why.push(order_in_words(way));
    }
    DiskProfile { below, kind, cost, way, measured, why }
}

fn kind(below: &Below, measured: Option<&Measured>, why: &mut Vec<String>) -> DiskKind {
    if below.bottom == Bottom::Network {
        why.push(format!("{} has its files from a server", below.file_system));
        return DiskKind::Network;
    }
    match measured {
        Some(measured) => {
            why.push(measurements_in_words(measured));
            by_measurements(measured, says_rotational(&below.bottom), why)
        }
        None => by_its_own_words(&below.bottom, why),
    }
}

/// The kind that the measurements show. What the disk says counts only where they leave it open, as few reads may: half of what a
/// rotating disk takes is chance.
fn by_measurements(m: &Measured, says_rotational: bool, why: &mut Vec<String>) -> DiskKind {
    let near_share = m.near_request_s / m.request_s.max(f64::MIN_POSITIVE);
    let depth_helps = m.depth_gain >= DEPTH_HELPS;
    let (kind, reason) = if m.request_s < QUICK_S {
        (DiskKind::Flash, "requests are quick")
    } else if m.request_s >= ARM_S && near_share <= NEAR_SHARE {
        (DiskKind::Rotating, "requests are slow, and less so near each other: an arm moves")
    } else if m.request_s >= ARM_S && !depth_helps && near_share <= ALL_THE_SAME {
        (
            DiskKind::Rotating,
            "requests are slow, several at once are no quicker, and distance costs something",
        )
    } else if m.request_s >= ARM_S && !depth_helps && says_rotational {
        (DiskKind::Rotating, "requests are slow, several at once are no quicker, and it says that it rotates")
    } else if m.request_s < ARM_S && depth_helps {
        (DiskKind::Flash, "several requests at once are quicker")
    } else {
        (DiskKind::Card, "requests are slow wherever they are")
    };
    why.push(format!("{} ({reason})", name(kind)));
    kind
}

fn measurements_in_words(m: &Measured) -> String {
    format!(
        "measured by {} reads: a random read of 4 KiB takes {:.2} ms, {:.2} ms near the one before; four at once bring {:.1} times as \
         many; {:.0} MB/s in a row",
        m.reads,
        m.request_s * 1e3,
        m.near_request_s * 1e3,
        m.depth_gain,
        1e-6 / m.byte_s.max(1e-12)
    )
}

fn says_rotational(bottom: &Bottom) -> bool {
    matches!(bottom, Bottom::Disks(disks) if disks.iter().any(|disk| disk.says_rotational))
}

fn by_its_own_words(bottom: &Bottom, why: &mut Vec<String>) -> DiskKind {
    let kind = if says_rotational(bottom) { DiskKind::Rotating } else { DiskKind::Flash };
    why.push(format!("not measured yet; by what it says of itself: {}", name(kind)));
    kind
}

fn way(kind: DiskKind, cost: DiskCost, gain: f64) -> Way {
    let streams = streams(kind, gain);
    Way {
        by_place: kind == DiskKind::Rotating,
        streams,
        piece_bytes: piece_bytes(cost, streams),
        hole_bytes: hole_bytes(kind, cost),
        on: true,
    }
}

fn order_in_words(way: Way) -> String {
    let order = if way.by_place {
        "metadata first, then in the order of places"
    } else {
        "in the order of first use"
    };
    let (streams, piece, hole) = (way.streams, way.piece_bytes >> 10, way.hole_bytes >> 10);
    format!("read {order}, {streams} at once, at most {piece} KiB each, over holes up to {hole} KiB")
}

/// Flash has four to eight; a card or a server as many as they bring more by it, as far as four at once show.
fn streams(kind: DiskKind, gain: f64) -> usize {
    match kind {
        DiskKind::Rotating => 1,
        DiskKind::Flash if gain >= 3.0 => 8,
        DiskKind::Flash => 4,
        DiskKind::Card | DiskKind::Network => (gain.round() as usize).clamp(1, 4),
    }
}

/// As much as all streams together read in [`PIECE_S`], in whole pages of any machine.
fn piece_bytes(cost: DiskCost, streams: usize) -> u64 {
    let bytes = PIECE_S / cost.byte_s.max(1e-12) / streams.max(1) as f64;
    PageSize::LARGEST
        .begin((bytes.min(MOST_PIECE_BYTES as f64) as u64).clamp(LEAST_PIECE_BYTES, MOST_PIECE_BYTES))
}

/// A hole that is read sooner than a request is answered. Flash answers others meanwhile: there it is only memory lost.
fn hole_bytes(kind: DiskKind, cost: DiskCost) -> u64 {
    if kind == DiskKind::Flash {
        return 0;
    }
    (cost.hole_bytes().min(MOST_HOLE_BYTES as f64) as u64) / PAGE_BYTES * PAGE_BYTES
}

fn is_on(bottom: &Bottom, measured: Option<&Measured>, why: &mut Vec<String>) -> bool {
    match bottom {
        Bottom::Disks(_) => true,
        Bottom::Memory => {
            why.push("not fetched: its files are in memory already".to_owned());
            false
        }
        Bottom::Unknown(reason) => {
            why.push(format!("not fetched: others on its disk could not be seen, since {reason}"));
            false
        }
        Bottom::Network => {
            let pays = measured.is_some_and(|m| m.request_s <= SERVER_S && m.byte_s <= SERVER_BYTE_S);
            why.push(
                if pays {
                    "fetched: its server is quick"
                } else {
                    "not fetched: it is not known to be quick"
                }
                .to_owned(),
            );
            pays
        }
    }
}

fn name(kind: DiskKind) -> &'static str {
    match kind {
        DiskKind::Rotating => "a rotating disk",
        DiskKind::Flash => "flash, or as quick",
        DiskKind::Card => "a card, or as slow",
        DiskKind::Network => "a server",
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
