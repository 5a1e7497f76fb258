//! The store's ceiling: beyond a quarter of memory it must not grow at the cost of others' files. Pure.
//!
//! Available memory includes the page cache of all other files. If the store takes that, others read from the disk again what was dropped for it. The
//! kernel counts such pages (`workingset_refault_file` in `/proc/vmstat`, since Linux 5.9), but also those over this mount, which cost no disk
//! read. So what others read again is at most what all disks read (`pgpgin`) without the cache's own reads, and at most the refaults without the
//! mount's, whose share of what it serves shows while nobody else reads. It is the store's doing only if the store has more
//! than the quarter, and little memory is free: a group's limit, a scan or an unmount cause refaults beside plenty of free memory.
//!
//! - Readings are a second apart at least, as the counters do not move together.
//! - While others read again more than [`NOISE`], and more than an eighth of what the cache reads (it would read more with less), the ceiling falls by a sixteenth a second, down to the quarter.
//! - After a calm time it rises by a sixty-fourth of the most a second. The calm time doubles with each fall that follows a rise, so that a machine whose
//!   files and store do not fit together is left alone.

use std::time::Duration;

use eke_model::units::{Bytes, MIB};

use super::signals::{Machine, OwnUse};

/// Less than this is noise, in bytes a second.
pub const NOISE: u64 = MIB;

/// The store may have this share of memory in any case, as long as it is available.
const FLOOR: f64 = 0.25;
/// Readings that are closer are not compared.
const LEAST_APART: Duration = Duration::from_secs(1);
/// Others' share of the cache's own reads below which it would only read more itself.
const OWN_SHARE: u64 = 8;
const FALL: f64 = 1.0 / 16.0;
const RISE: f64 = 1.0 / 64.0;
/// The calm time before the first rise, and the longest.
const CALM: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1800));

/// What the machine and the cache have read from disks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskReads {
    /// All reads of the machine's disks.
    pub all: Bytes,
    /// Of pages that the kernel had dropped shortly before; pages of FUSE mounts too.
    pub refaulted: Bytes,
    /// The cache's own reads of the machine's disks.
    pub own: Bytes,
    /// What the mount served, from the store or the disk.
    pub served: Bytes,
}

/// The state of the ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceiling {
    /// `None`: no ceiling but what was asked for.
    limit: Option<Bytes>,
    /// When it fell last.
    fell: Option<Duration>,
    calm: Duration,
    rose: bool,
    /// Refaults among what the mount serves, in thousandths.
    own_refaults: u64,
    last: Option<(Duration, DiskReads)>,
}

impl Ceiling {
    /// The ceiling after a reading at `now`, for a store that may have `asked`.
    pub fn step(&self, now: Duration, machine: &Machine, own: &OwnUse, asked: Bytes) -> Self {
        let reads =
            DiskReads { all: machine.read, refaulted: machine.refaulted, own: own.read, served: own.served };
        let floor = machine.total.scaled(FLOOR).min(asked);
        let Some((then, before)) = self.last else { return Self { last: Some((now, reads)), ..*self } };
        if now.saturating_sub(then) < LEAST_APART {
            return *self;
        }
        let seconds = now.saturating_sub(then).as_secs_f64();
        let since = reads.since(&before);
        let noise = Bytes(NOISE).scaled(seconds).max(Bytes(since.own.0 / OWN_SHARE));
        let own_refaults = self.own_refaults(&since, noise);
        let next = Self { last: Some((now, reads)), own_refaults, ..*self };
        if !machine.is_full() || since.reread_by_others(own_refaults) <= noise {
            next.risen(now, seconds, floor, asked)
        } else if own.held > floor {
            next.fallen(now, seconds, floor, own.held)
        } else {
            Self { fell: next.fell.map(|_| now), ..next }
        }
    }

    /// Learned while nobody else reads.
    fn own_refaults(&self, since: &DiskReads, noise: Bytes) -> u64 {
        if since.by_others() > noise || since.served.0 < NOISE {
            return self.own_refaults;
        }
        let now = (1000 * since.refaulted.0 / since.served.0).min(1000);
        (7 * self.own_refaults + now).div_ceil(8)
    }

    /// The most that the store may have.
    pub fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    fn fallen(self, now: Duration, seconds: f64, floor: Bytes, held: Bytes) -> Self {
        let from = self.limit.map_or(held, |limit| limit.min(held));
        let calm = if self.rose { (self.calm * 2).min(CALM.1) } else { self.calm.max(CALM.0) };
        let to = from.scaled((1.0 - FALL * seconds).max(0.0)).max(floor);
        Self { limit: Some(to), fell: Some(now), calm, rose: false, ..self }
    }

    fn risen(self, now: Duration, seconds: f64, floor: Bytes, asked: Bytes) -> Self {
        let is_calm = self.fell.is_none_or(|fell| now.saturating_sub(fell) >= self.calm);
        let Some(limit) = self.limit.filter(|_| is_calm) else { return self };
        let to = limit.max(floor) + asked.scaled((RISE * seconds).min(1.0));
        Self { limit: (to < asked).then_some(to), rose: true, ..self }
    }
}

impl DiskReads {
    fn since(&self, before: &Self) -> Self {
        let since = |of: fn(&Self) -> Bytes| of(self).saturating_sub(of(before));
        Self {
            all: since(|r| r.all),
            refaulted: since(|r| r.refaulted),
            own: since(|r| r.own),
            served: since(|r| r.served),
        }
    }

    fn by_others(&self) -> Bytes {
        self.all.saturating_sub(self.own)
    }

    /// What others read again.
    fn reread_by_others(&self, own_refaults: u64) -> Bytes {
        let own = Bytes(self.served.0.saturating_mul(own_refaults) / 1000);
        self.by_others().min(self.refaulted.saturating_sub(own))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: Bytes = Bytes(850 << 20);

    /// A machine of 1000 MiB without free memory, whose store is full.
    struct Fake {
        ceiling: Ceiling,
        at: Duration,
        machine: Machine,
        own: Bytes,
        served: Bytes,
        /// Hits in MiB a second.
        hits: u64,
    }

    impl Fake {
        fn new() -> Self {
            let machine = Machine { total: Bytes::mib(1000), ..Machine::default() };
            let mut fake = Self {
                ceiling: Ceiling::default(),
                at: Duration::ZERO,
                machine,
                own: Bytes(0),
                served: Bytes(0),
                hits: 0,
            };
            fake.run(1, (0, 0, 0));
            fake
        }

        /// MiB a second: all reads, refaults, own reads.
        fn run(&mut self, seconds: u64, (all, refaulted, own): (u64, u64, u64)) {
            for _ in 0..seconds {
                self.at += Duration::from_secs(1);
                self.served = self.served + Bytes::mib(own + self.hits);
                self.machine.read = self.machine.read + Bytes::mib(all);
                self.machine.refaulted = self.machine.refaulted + Bytes::mib(refaulted);
                self.own = self.own + Bytes::mib(own);
                let held = self.ceiling.limit().unwrap_or(ASKED);
                let own = OwnUse { held, read: self.own, served: self.served, ..OwnUse::default() };
                self.ceiling = self.ceiling.step(self.at, &self.machine, &own, ASKED);
            }
        }

        fn mib(&self) -> Option<u64> {
            self.ceiling.limit().map(|limit| limit.0 >> 20)
        }
    }

    #[test]
    fn own_reads_and_refaults_that_cost_no_read_are_nobody_elses() {
        let mut fake = Fake::new();
        fake.run(60, (40, 30, 40));
        assert_eq!(fake.mib(), None);
        fake.run(60, (40, 0, 0));
        assert_eq!(fake.mib(), None, "new reads are no refaults");
    }

    #[test]
    fn refaults_beside_free_memory_or_a_small_store_have_another_cause() {
        let mut fake = Fake::new();
        fake.machine.free = Bytes::mib(200);
        fake.run(60, (40, 30, 0));
        assert_eq!(fake.mib(), None);
        let small = OwnUse { held: Bytes::mib(200), ..OwnUse::default() };
        let mut machine = Machine { free: Bytes(0), ..fake.machine };
        machine.read = machine.read + Bytes::mib(40);
        machine.refaulted = machine.refaulted + Bytes::mib(40);
        let next = fake.ceiling.step(fake.at + Duration::from_secs(1), &machine, &small, ASKED);
        assert_eq!(next.limit(), None);
    }

    #[test]
    fn it_falls_to_a_quarter_and_rises_again_after_calm() {
        let mut fake = Fake::new();
        fake.run(5, (40, 30, 20));
        let five = fake.mib().unwrap();
        assert!((600..650).contains(&five), "{five}");
        fake.run(60, (40, 30, 20));
        assert_eq!(fake.mib(), Some(250));
        fake.run(29, (0, 0, 0));
        assert_eq!(fake.mib(), Some(250));
        fake.run(60, (0, 0, 0));
        assert_eq!(fake.mib(), None);
    }

    #[test]
    fn after_each_rise_that_others_paid_for_it_waits_twice_as_long() {
        let mut fake = Fake::new();
        let mut waits = Vec::new();
        for _ in 0..4 {
            fake.run(40, (40, 30, 20));
            let low = fake.mib();
            let mut wait = 0;
            while fake.mib() == low {
                fake.run(1, (0, 0, 0));
                wait += 1;
            }
            waits.push(wait);
        }
        assert_eq!(waits, [30, 60, 120, 240]);
    }

    /// The governor looks five times a second, and own reads are counted when they end: they must not look like others' for that.
    #[test]
    fn own_reads_do_not_count_however_often_it_looks() {
        let mut fake = Fake::new();
        let own = |read| OwnUse { held: ASKED, read, served: read, ..OwnUse::default() };
        for look in 0..500_u64 {
            fake.at += Duration::from_millis(200);
            fake.machine.read = fake.machine.read + Bytes::mib(4);
            fake.machine.refaulted = fake.machine.refaulted + Bytes::mib(3);
            fake.ceiling = fake.ceiling.step(fake.at, &fake.machine, &own(Bytes::mib(look / 5 * 20)), ASKED);
        }
        assert_eq!(fake.mib(), None);
    }

    #[test]
    fn a_backup_of_other_files_does_not_count_beside_own_refaults_and_files_that_are_read_again_do() {
        let mut fake = Fake::new();
        fake.hits = 20;
        fake.run(60, (10, 30, 10));
        fake.run(60, (110, 30, 10));
        assert_eq!(fake.mib(), None);
        fake.run(5, (110, 60, 10));
        assert!(fake.mib().is_some_and(|mib| mib < 700), "{:?}", fake.mib());
    }

    proptest! {
        #[test]
        fn never_below_a_quarter_nor_above_what_was_asked(
            rates in proptest::collection::vec((1u64..40, 0u64..200, 0u64..200, 0u64..200), 1..20),
        ) {
            let mut fake = Fake::new();
            for (seconds, all, refaulted, own) in rates {
                fake.run(seconds, (all, refaulted, own));
                prop_assert!(fake.ceiling.limit().is_none_or(|limit| (Bytes::mib(250)..ASKED).contains(&limit)));
            }
        }
    }
}
