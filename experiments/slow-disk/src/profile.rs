//! What a disk is like, as numbers.

use eke_model::units::Nanos;

/// The request by which "IOPS" is counted: one page.
pub(super) const PAGE: u64 = 4096;
/// The least seek of a rotating disk (track to track), about what data sheets of 1995 to today say.
const LEAST_SEEK: f64 = 1e6;

/// A disk's timing. Every part can be had alone: a rate only, a latency only.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What people call it.
    pub name: String,
    /// Bytes per second between the disk and the machine; all requests share it.
    pub rate: u64,
    /// The most requests per second, of any kind, also sequential ones; `None` where something else limits them.
    pub iops: Option<u32>,
    /// The arm and the platter of a rotating disk.
    pub head: Option<Head>,
    /// What each request takes besides (a network's round trip); those of requests served at once overlap.
    pub latency: Nanos,
    /// How many requests are served at once, at least 1.
    pub depth: usize,
}

/// A rotating disk: a seek takes `settle + stroke * sqrt(distance)`, distance as a share of the device (the shape is that
/// of Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994, for short seeks), then the
/// platter must turn to the place. A request that begins where the one before ended costs neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The part of a seek that does not depend on the distance.
    pub settle: Nanos,
    /// What a seek across the whole device takes besides.
    pub stroke: Nanos,
    /// One turn of the platter.
    pub rotation: Nanos,
}

impl Head {
    /// A head with which random reads of 4 KiB over the whole device take `1/iops` on average: half a turn, the
    /// transfer, and for the rest seeks. Two places chosen evenly are 8/15 apart on average in `sqrt(distance)`.
    pub fn for_iops(iops: u32, rotation: Nanos, rate: u64) -> Self {
        let one = 1e9 / f64::from(iops.max(1));
        let mean_seek = (one - 1e9 * PAGE as f64 / rate as f64 - rotation.0 as f64 / 2.0).max(0.0);
        let settle = LEAST_SEEK.min(mean_seek / 2.0);
        let stroke = (mean_seek - settle) * 15.0 / 8.0;
        Self { settle: Nanos(settle as u64), stroke: Nanos(stroke as u64), rotation }
    }
}

impl Profile {
    /// The names that [`Profile::named`] knows.
    pub const NAMES: [&'static str; 4] = ["laptop", "sd", "nfs", "scsi2008"];

    /// One of the four disks of the experiments.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "laptop" => Some(Self::laptop()),
            "sd" => Some(Self::sd()),
            "nfs" => Some(Self::nfs()),
            "scsi2008" => Some(Self::scsi2008()),
            _ => None,
        }
    }

    /// A laptop's disk: 7200 turns a minute, 60 MB/s, 120 IOPS.
    pub fn laptop() -> Self {
        Self::rotating("laptop", 60_000_000, 120, 7_200)
    }

    /// A server's SCSI disk of 2008: 10,000 turns a minute, 44 MB/s, 150 IOPS.
    pub fn scsi2008() -> Self {
        Self::rotating("scsi2008", 44_000_000, 150, 10_000)
    }

    /// An SD card: 40 MB/s, 2000 IOPS, one request after the other.
    pub fn sd() -> Self {
        Self { name: "sd".to_owned(), rate: 40_000_000, iops: Some(2_000), ..Self::plain() }
    }

    /// A file server over 100 Mbit/s: 11 MB/s, half a millisecond, 16 requests under way (the Linux client's slot table,
    /// `sunrpc.tcp_slot_table_entries`, begins with 2 and grows).
    pub fn nfs() -> Self {
        let latency = Nanos::micros(500);
        Self { name: "nfs".to_owned(), rate: 11_000_000, latency, depth: 16, ..Self::plain() }
    }

    /// A rotating disk of `iops` for random 4 KiB.
    pub fn rotating(name: &str, rate: u64, iops: u32, turns_per_minute: u32) -> Self {
        let rotation = Nanos(60_000_000_000 / u64::from(turns_per_minute.max(1)));
        let head = Head::for_iops(iops, rotation, rate);
        Self { name: name.to_owned(), rate, head: Some(head), ..Self::plain() }
    }

    /// Without any limit but 10 GB/s: what the others are made from.
    pub fn plain() -> Self {
        Self {
            name: "plain".to_owned(),
            rate: 10_000_000_000,
            iops: None,
            head: None,
            latency: Nanos(0),
            depth: 1,
        }
    }

    /// What random requests of 4 KiB come to in a second when `depth` of them are always waiting: worked out by hand from
    /// the parts, for comparison with what the model and fio say.
    pub fn nominal_iops(&self, depth: usize) -> f64 {
        let transfer = PAGE as f64 / self.rate as f64;
        let head = self.head.map_or(0.0, |h| {
            let seek = h.settle.seconds() + h.stroke.seconds() * 8.0 / 15.0;
            seek + h.rotation.seconds() / 2.0
        });
        let alone = self.latency.seconds() + head + transfer;
        let at_once = depth.min(self.depth).max(1) as f64;
        let limit = self.iops.map_or(f64::INFINITY, f64::from);
        (at_once / alone).min(1.0 / transfer).min(limit)
    }

    /// Why no disk can be like this, `None` if one can.
    pub(super) fn impossible(&self) -> Option<&'static str> {
        match self {
            Self { rate: 0, .. } => Some("a rate of 0 bytes/s never serves anything"),
            Self { iops: Some(0), .. } => Some("0 IOPS never serve anything"),
            Self { depth: 0, .. } => Some("a depth of 0 never serves anything"),
            Self { head: Some(Head { rotation: Nanos(0), .. }), .. } => Some("a platter needs time to turn"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.001
    }

    #[test]
    fn the_four_disks_are_as_the_experiments_state_them() {
        for (name, rate, iops) in [
            ("laptop", 60e6, 120.0),
            ("sd", 40e6, 2_000.0),
            ("nfs", 11e6, 1_146.4),
            ("scsi2008", 44e6, 150.0),
        ] {
            let p = Profile::named(name).unwrap();
            assert_eq!((p.name.as_str(), p.rate as f64, p.impossible()), (name, rate, None));
            assert!(near(p.nominal_iops(1), iops), "{name}: {}", p.nominal_iops(1));
        }
        assert_eq!(Profile::named("floppy"), None);
        assert!(Profile::NAMES.iter().all(|name| Profile::named(name).is_some()));
    }

    #[test]
    fn requests_under_way_at_once_share_the_rate() {
        assert!(near(Profile::nfs().nominal_iops(8), 11e6 / 4096.0));
        assert!(near(Profile::laptop().nominal_iops(8), 120.0), "one arm");
    }

    #[test]
    fn what_never_serves_is_no_disk() {
        assert!(Profile { depth: 0, ..Profile::sd() }.impossible().is_some());
        assert!(Profile { rate: 0, ..Profile::sd() }.impossible().is_some());
        assert!(Profile { iops: Some(0), ..Profile::sd() }.impossible().is_some());
    }
}
