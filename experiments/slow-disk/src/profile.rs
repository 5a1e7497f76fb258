//! The timing of a disk, as numbers.

use eke_model::units::Nanos;

use super::host::{self, Host};

/// Size of a request for "IOPS": one page.
pub(super) const PAGE: u64 = 4096;
/// Shortest seek of a rotating disk (track to track), by data sheets of 1995 to today.
const LEAST_SEEK: f64 = 1e6;

/// The timing of a disk. Each part can be used alone: only a rate, only a latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Bytes per second between the disk and the machine, shared by all requests.
    pub rate: u64,
    /// Most requests per second of any kind, also sequential ones; `None` for no such limit.
    pub iops: Option<u32>,
    /// Arm and platter of a rotating disk.
    pub head: Option<Head>,
    /// Additional time of each request (a network's round trip); it overlaps for requests served in parallel.
    pub latency: Nanos,
    /// Number of requests served in parallel, at least 1.
    pub depth: usize,
    /// Whether the drive orders requests itself and caches writes (native command queuing); only one with a head does.
    pub orders: bool,
    /// How the kernel uses the disk.
    pub host: Host,
}

/// A rotating disk. A seek takes `settle + stroke * sqrt(distance)`, with the distance as a share of the device (the
/// shape for short seeks in Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994).
/// Then the platter must rotate to the offset. A request that begins where the previous one ended needs neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The constant part of a seek.
    pub settle: Nanos,
    /// The additional time of a seek across the whole device.
    pub stroke: Nanos,
    /// One rotation of the platter.
    pub rotation: Nanos,
}

impl Head {
    /// A head whose random reads of 4 KiB over the whole device take `1/iops` on average: half a rotation, the
    /// transfer, and seeks for the rest. The mean of `sqrt(distance)` of two uniform offsets is 8/15.
    pub fn for_iops(iops: u32, rotation: Nanos, rate: u64) -> Self {
        let one = 1e9 / f64::from(iops.max(1));
        let mean_seek = (one - 1e9 * PAGE as f64 / rate as f64 - rotation.0 as f64 / 2.0).max(0.0);
        let settle = LEAST_SEEK.min(mean_seek / 2.0);
        let stroke = (mean_seek - settle) * 15.0 / 8.0;
        Self { settle: Nanos(settle as u64), stroke: Nanos(stroke as u64), rotation }
    }
}

impl Profile {
    /// The names for [`Profile::named`].
    pub const NAMES: [&'static str; 6] = ["laptop", "sd", "nfs", "scsi2008", "nfs1g", "sata"];
    /// What [`Profile::named`] accepts after a name.
    pub const SUFFIXES: &'static str = "+ncq (the drive orders 32 requests itself and caches writes), +none, +mq-deadline, +kyber, +bfq, +queue=N \
         (requests in flight) and +readahead=KIB";

    /// One of the disks of the experiments, such as `laptop` or `laptop+ncq+mq-deadline+readahead=512`: see [`Profile::SUFFIXES`].
    pub fn named(name: &str) -> Option<Self> {
        let mut words = name.split('+');
        let profile = match words.next()? {
            "laptop" => Self::laptop(),
            "sd" => Self::sd(),
            "nfs" => Self::nfs(),
            "scsi2008" => Self::scsi2008(),
            "nfs1g" => Self::nfs1g(),
            "sata" => Self::sata(),
            _ => return None,
        };
        let host::Suffix { host, orders } = host::suffix(words)?;
        let profile = Self { name: name.to_owned(), orders, host, ..profile };
        profile.impossible().is_none().then_some(profile)
    }

    /// A laptop's disk: 7200 rpm, 60 MB/s, 120 IOPS.
    pub fn laptop() -> Self {
        Self::rotating("laptop", 60_000_000, 120, 7_200)
    }

    /// A server's SATA disk of 2023: 7200 rpm, 285 MB/s, and 85 IOPS, with which `sata+ncq` comes to the 168 of its data sheet.
    pub fn sata() -> Self {
        Self::rotating("sata", 285_000_000, 85, 7_200)
    }

    /// A server's SCSI disk of 2008: 10,000 rpm, 44 MB/s, 150 IOPS.
    pub fn scsi2008() -> Self {
        Self::rotating("scsi2008", 44_000_000, 150, 10_000)
    }

    /// An SD card: 40 MB/s, 2000 IOPS, one request at a time.
    pub fn sd() -> Self {
        Self { name: "sd".to_owned(), rate: 40_000_000, iops: Some(2_000), ..Self::plain() }
    }

    /// A file server over 100 Mbit/s: 11 MB/s, half a millisecond, 16 requests in flight (the Linux client's slot
    /// table, `sunrpc.tcp_slot_table_entries`, starts with 2 and grows).
    pub fn nfs() -> Self {
        let latency = Nanos::micros(500);
        Self { name: "nfs".to_owned(), rate: 11_000_000, latency, depth: 16, ..Self::plain() }
    }

    /// A file server over 1 Gbit/s: 125 MB/s, else as [`Self::nfs`].
    pub fn nfs1g() -> Self {
        Self { name: "nfs1g".to_owned(), rate: 125_000_000, ..Self::nfs() }
    }

    /// A rotating disk with `iops` random requests of 4 KiB per second.
    pub fn rotating(name: &str, rate: u64, iops: u32, rpm: u32) -> Self {
        let rotation = Nanos(60_000_000_000 / u64::from(rpm.max(1)));
        let head = Head::for_iops(iops, rotation, rate);
        Self { name: name.to_owned(), rate, head: Some(head), ..Self::plain() }
    }

    /// No limit but 10 GB/s: the basis of the others.
    pub fn plain() -> Self {
        Self {
            name: "plain".to_owned(),
            rate: 10_000_000_000,
            iops: None,
            head: None,
            latency: Nanos(0),
            depth: 1,
            orders: false,
            host: Host::default(),
        }
    }

    /// Random requests of 4 KiB per second when `depth` of them are always queued. Computed from the parts, to compare
    /// with model and fio. What a drive gains by its own order is not in it.
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

    /// Why no disk can have this profile; `None` if one can.
    pub(super) fn impossible(&self) -> Option<&'static str> {
        match self {
            Self { rate: 0, .. } => Some("a rate of 0 bytes/s never serves anything"),
            Self { iops: Some(0), .. } => Some("0 IOPS never serve anything"),
            Self { depth: 0, .. } => Some("a depth of 0 never serves anything"),
            Self { head: Some(Head { rotation: Nanos(0), .. }), .. } => Some("a rotation needs time"),
            Self { head: None, orders: true, .. } => Some("only a drive with a head orders requests"),
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
    fn the_disks_are_as_the_experiments_state_them() {
        for (name, rate, iops) in [
            ("nfs1g", 125e6, 1_876.9),
            ("laptop", 60e6, 120.0),
            ("sd", 40e6, 2_000.0),
            ("nfs", 11e6, 1_146.4),
            ("scsi2008", 44e6, 150.0),
            ("sata", 285e6, 85.0),
        ] {
            let p = Profile::named(name).unwrap();
            assert_eq!((p.name.as_str(), p.rate as f64, p.impossible()), (name, rate, None));
            assert!(near(p.nominal_iops(1), iops), "{name}: {}", p.nominal_iops(1));
        }
        assert_eq!(Profile::named("floppy"), None);
        assert!(Profile::NAMES.iter().all(|name| Profile::named(name).is_some()));
    }

    #[test]
    fn a_name_has_the_drives_queue_and_the_kernels_settings() {
        let disk = Profile::named("laptop+ncq+mq-deadline+readahead=512").unwrap();
        let host = Host { scheduler: Some("mq-deadline"), queue: Some(32), read_ahead_kib: Some(512) };
        assert_eq!((disk.orders, disk.host), (true, host));
        assert_eq!(
            Profile { name: "laptop".into(), orders: false, host: Host::default(), ..disk },
            Profile::laptop()
        );
        let queue = |name: &str| Profile::named(name).map(|disk| (disk.orders, disk.host.queue));
        assert_eq!(queue("sata+queue=4"), Some((false, Some(4))));
        assert_eq!(queue("sata+queue=8+ncq"), Some((true, Some(8))));
        for name in
            ["sd+ncq", "laptop+", "laptop+cfq", "laptop+readahead=", "laptop+queue=2", "laptop+queue=256"]
        {
            assert_eq!(queue(name), None, "{name}");
        }
    }

    #[test]
    fn requests_under_way_at_once_share_the_rate() {
        assert!(near(Profile::nfs().nominal_iops(8), 11e6 / 4096.0));
        assert!(near(Profile::laptop().nominal_iops(8), 120.0), "one arm");
    }

    #[test]
    fn a_disk_that_never_serves_is_refused() {
        assert!(Profile { depth: 0, ..Profile::sd() }.impossible().is_some());
        assert!(Profile { rate: 0, ..Profile::sd() }.impossible().is_some());
        assert!(Profile { iops: Some(0), ..Profile::sd() }.impossible().is_some());
    }
}
