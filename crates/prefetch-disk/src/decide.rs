//! Decides a disk's kind and how to read it, from its measurement.

use eke_model::units::PageSize;
use serde::{Deserialize, Serialize};

use crate::DiskKind;
use crate::backing::{Backing, Storage};
use crate::measure::Measured;
use eke_prefetch_model::cost::DiskCost;
use eke_prefetch_model::pages::PAGE_BYTES;

/// Requests that take this long need a moving arm: the fastest disks, of 15,000 rpm, need 5 ms, and flash under 1 ms.
const ARM_S: f64 = 0.003;
/// Backing this, requests are fast regardless of depth.
const FAST_S: f64 = 0.0003;
/// Depth helps if four requests at once give this many times the rate of one.
const DEPTH_HELPS: f64 = 1.5;
/// Distance matters if nearby requests take at most this share of distant ones.
const NEAR_SHARE: f64 = 0.75;
/// The time for all pieces in flight: with samples every 20 ms, reading then stops within 100 ms.
const PIECE_S: f64 = 0.025;
/// The most bytes per piece. readahead(2) reads at most 1280 KiB per call until Linux 6.12.
pub const MOST_PIECE_BYTES: u64 = 1 << 20;
const LEAST_PIECE_BYTES: u64 = 64 << 10;
/// The longest hole: unused pages take memory, however slow a seek is.
const MOST_HOLE_BYTES: u64 = 256 << 10;
/// Above this share, nearby requests are as slow as distant ones.
const ALL_THE_SAME: f64 = 0.9;

/// How to read a disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReadStrategy {
    /// In disk order, metadata first; otherwise in the order of first use.
    pub in_disk_order: bool,
    /// Reads in parallel.
    pub streams: usize,
    /// The most bytes of one read.
    pub piece_bytes: u64,
    /// The longest hole between requested ranges that is read too.
    pub hole_bytes: u64,
    /// Whether to read from it at all: not from memory, and not from a server, which may not answer.
    pub is_enabled: bool,
}

/// The profile of the disk below a file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskProfile {
    /// The devices of the file system.
    pub backing: Backing,
    /// The disk's kind.
    pub kind: DiskKind,
    /// The costs of reading.
    pub cost: DiskCost,
    /// How to read it.
    pub strategy: ReadStrategy,
    /// The measurement; `None` if the kind is assumed.
    pub measured: Option<Measured>,
    /// The reasons, as sentences for people.
    pub why: Vec<String>,
}

/// The assumed costs of a disk that is not measured: a laptop's.
pub const ASSUMED_ROTATING: DiskCost =
    DiskCost { request_s: 0.010, near_request_s: 0.005, byte_s: 1.0 / 100e6 };
/// The same for flash behind SATA.
const ASSUMED_FLASH: DiskCost = DiskCost { request_s: 0.000_1, near_request_s: 0.000_1, byte_s: 1.0 / 400e6 };
/// The same for a server.
const ASSUMED_NETWORK: DiskCost = DiskCost { request_s: 0.005, near_request_s: 0.005, byte_s: 1.0 / 10e6 };

/// Decides the profile. Without a measurement the kind is what the device reports, with the usual costs of that kind; `why` mentions it.
pub fn decide(backing: Backing, measured: Option<Measured>) -> DiskProfile {
    let mut why = Vec::new();
    let kind = kind(&backing, measured.as_ref(), &mut why);
    let assumed = match kind {
        DiskKind::Rotating => ASSUMED_ROTATING,
        DiskKind::Flash | DiskKind::Card => ASSUMED_FLASH,
        DiskKind::Network => ASSUMED_NETWORK,
    };
    let cost = measured.map_or(assumed, |m| m.cost());
    let gain = measured.map_or(1.0, |m| m.depth_gain);
    let strategy =
        ReadStrategy { is_enabled: is_enabled(&backing.storage, &mut why), ..strategy(kind, cost, gain) };
    if strategy.is_enabled {
        why.push(order_text(strategy));
    }
    DiskProfile { backing, kind, cost, strategy, measured, why }
}

fn kind(backing: &Backing, measured: Option<&Measured>, why: &mut Vec<String>) -> DiskKind {
    if backing.storage == Storage::Network {
        why.push(format!("{} has its files on a server", backing.file_system));
        return DiskKind::Network;
    }
    match measured {
        Some(measured) => {
            why.push(measurement_text(measured));
            by_measurements(measured, reports_rotational(&backing.storage), why)
        }
        None => by_own_report(&backing.storage, why),
    }
}

/// The kind according to the measurement. The disk's own report decides only if the measurement is ambiguous: with few reads, half of a rotating
/// disk's time is chance.
fn by_measurements(m: &Measured, reports_rotational: bool, why: &mut Vec<String>) -> DiskKind {
    let near_share = m.near_request_s / m.request_s.max(f64::MIN_POSITIVE);
    let depth_helps = m.depth_gain >= DEPTH_HELPS;
    let (kind, reason) = if m.request_s < FAST_S {
        (DiskKind::Flash, "requests are fast")
    } else if m.request_s >= ARM_S && near_share <= NEAR_SHARE {
        (DiskKind::Rotating, "requests are slow, and less so near each other: an arm moves")
    } else if m.request_s >= ARM_S && !depth_helps && near_share <= ALL_THE_SAME {
        (DiskKind::Rotating, "requests are slow, several at once are no faster, and distance matters")
    } else if m.request_s >= ARM_S && !depth_helps && reports_rotational {
        (
            DiskKind::Rotating,
            "requests are slow, several at once are no faster, and it reports itself as rotating",
        )
    } else if m.request_s < ARM_S && depth_helps {
        (DiskKind::Flash, "several requests at once are faster")
    } else {
        (DiskKind::Card, "requests are slow at any distance")
    };
    why.push(format!("{} ({reason})", name(kind)));
    kind
}

fn measurement_text(m: &Measured) -> String {
    format!(
        "measured with {} reads: a random read of 4 KiB takes {:.2} ms, a nearby one {:.2} ms; four at once give {:.1} times the rate; \
         {:.0} MB/s sequential",
        m.reads,
        m.request_s * 1e3,
        m.near_request_s * 1e3,
        m.depth_gain,
        1e-6 / m.byte_s.max(1e-12)
    )
}

fn reports_rotational(storage: &Storage) -> bool {
    matches!(storage, Storage::Disks(disks) if disks.iter().any(|disk| disk.reports_rotational))
}

fn by_own_report(storage: &Storage, why: &mut Vec<String>) -> DiskKind {
    let kind = if reports_rotational(storage) { DiskKind::Rotating } else { DiskKind::Flash };
    why.push(format!("not measured yet; by its own report {}", name(kind)));
    kind
}

fn strategy(kind: DiskKind, cost: DiskCost, gain: f64) -> ReadStrategy {
    let streams = streams(kind, gain);
    ReadStrategy {
        in_disk_order: kind == DiskKind::Rotating,
        streams,
        piece_bytes: piece_bytes(cost, streams),
        hole_bytes: hole_bytes(kind, cost),
        is_enabled: true,
    }
}

fn order_text(strategy: ReadStrategy) -> String {
    let order = if strategy.in_disk_order {
        "metadata first, then in disk order"
    } else {
        "in the order of first use"
    };
    let (streams, piece, hole) = (strategy.streams, strategy.piece_bytes >> 10, strategy.hole_bytes >> 10);
    format!("read {order}, {streams} at once, at most {piece} KiB each, with holes up to {hole} KiB")
}

/// Flash gets four to eight; a card or server as many as help, up to four.
fn streams(kind: DiskKind, gain: f64) -> usize {
    match kind {
        DiskKind::Rotating => 1,
        DiskKind::Flash if gain >= 3.0 => 8,
        DiskKind::Flash => 4,
        DiskKind::Card | DiskKind::Network => (gain.round() as usize).clamp(1, 4),
    }
}

/// What one stream reads in [`PIECE_S`] while all are reading, in whole pages of any machine.
fn piece_bytes(cost: DiskCost, streams: usize) -> u64 {
    let bytes = PIECE_S / cost.byte_s.max(1e-12) / streams.max(1) as f64;
    PageSize::LARGEST
        .begin((bytes.min(MOST_PIECE_BYTES as f64) as u64).clamp(LEAST_PIECE_BYTES, MOST_PIECE_BYTES))
}

/// The hole that is faster to read than to skip. Flash serves others meanwhile, so holes would only waste memory there.
fn hole_bytes(kind: DiskKind, cost: DiskCost) -> u64 {
    if kind == DiskKind::Flash {
        return 0;
    }
    (cost.hole_bytes().min(MOST_HOLE_BYTES as f64) as u64) / PAGE_BYTES * PAGE_BYTES
}

fn is_enabled(storage: &Storage, why: &mut Vec<String>) -> bool {
    match storage {
        Storage::Disks(_) => true,
        Storage::Memory => {
            why.push("not read: its files are in memory already".to_owned());
            false
        }
        Storage::Unknown(reason) => {
            why.push(format!("not read: others' I/O on its disk cannot be seen: {reason}"));
            false
        }
        Storage::Network => {
            why.push("not read: a server may never answer".to_owned());
            false
        }
    }
}

fn name(kind: DiskKind) -> &'static str {
    match kind {
        DiskKind::Rotating => "a rotating disk",
        DiskKind::Flash => "flash or as fast",
        DiskKind::Card => "a card or as slow",
        DiskKind::Network => "a server",
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
