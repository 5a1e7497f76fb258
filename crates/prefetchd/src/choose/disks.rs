//! The costs of the disks. Each disk in use is measured once, when it is quiet, in a thread of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::device::{self, Device};
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::{Mount, mount_of};

use super::last_use::LastUse;
use super::measurements::Measurements;
use crate::file::file_system;
use crate::read::job::disks;
use eke_prefetch_disk::decide::ASSUMED_ROTATING;
use eke_prefetch_disk::{
    Backing, Block, DiskIdentity, DiskKind, DiskProfile, Measured, Target, backing, counters, decide,
    identity, measure,
};
use eke_prefetch_model::choose::{Environment, Resident};
use eke_prefetch_model::cost::DiskCost;
use eke_prefetch_model::file_set::{FileSet, Kind, Touched};

/// A busy disk is measured again after this; one that is too small is not.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The reads of a launch are observed for this long.
const WATCH: Duration = Duration::from_secs(2);

/// The disks' counters at the beginning of a launch.
#[derive(Debug)]
struct Watched {
    began: Duration,
    diskstats: String,
}

/// The result of a measurement, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskReport {
    /// The disk's kernel name.
    pub disk: String,
    /// Its kind, costs and reasons; or why it was not measured.
    pub why: String,
    /// Whether its costs are new.
    pub is_new: bool,
}

/// The largest requested file of a file system.
#[derive(Debug, Default)]
struct Requested {
    bytes: u64,
    path: PathBuf,
    ino: u64,
}

/// The result from the measuring thread.
type Answer = (u64, Result<Measured, measure::Error>);

/// The disks of all mounts.
#[derive(Debug)]
pub(crate) struct Disks {
    root: Root,
    text: Vec<u8>,
    mounts: Vec<Mount>,
    /// By the file system's device number.
    profiles: BTreeMap<u64, DiskProfile>,
    /// By the same number.
    identities: BTreeMap<u64, DiskIdentity>,
    stored: Measurements,
    /// Requested file systems, each with its largest requested file.
    requested: RefCell<BTreeMap<u64, Requested>>,
    /// The subset whose device cannot be read, so that a file is measured instead.
    by_file: BTreeSet<u64>,
    measuring: Option<Receiver<Answer>>,
    tried: BTreeMap<u64, Duration>,
    /// The targets that were too small for a measurement, with their files' sizes; 0 for a device.
    small: BTreeMap<u64, u64>,
    watched: Option<Watched>,
    last_use: LastUse,
}

impl Disks {
    /// Reads the mounts; `state` is a result of [`Self::to_state`].
    pub fn new(root: &Root, state: Option<&[u8]>) -> Self {
        let stored = state.map(Measurements::from_state).unwrap_or_default();
        let mut disks = Self {
            root: root.clone(),
            text: Vec::new(),
            mounts: Vec::new(),
            profiles: BTreeMap::new(),
            identities: BTreeMap::new(),
            stored,
            requested: RefCell::default(),
            by_file: BTreeSet::new(),
            measuring: None,
            tried: BTreeMap::new(),
            small: BTreeMap::new(),
            watched: None,
            last_use: LastUse::default(),
        };
        disks.refresh();
        disks
    }

    /// The measurements, for the next process.
    pub fn to_state(&self) -> Vec<u8> {
        self.stored.to_state()
    }

    /// Reads the mounts again if they changed. What cannot be read now, as without a free descriptor, stays as it was.
    pub fn refresh(&mut self) {
        let Ok(text) = self.root.read_bytes("proc/self/mountinfo") else { return };
        if text == self.text {
            return;
        }
        self.mounts = mountinfo::parse(&text);
        self.text = text;
        let backings: Vec<Backing> =
            self.mounts.iter().map(|mount| backing(&self.root, mount, &self.mounts)).collect();
        let identities = backings.iter().filter_map(|of| Some((of.dev, identity(&self.root, of)?)));
        self.identities = identities.collect();
        self.decide(backings);
    }

    fn decide(&mut self, backings: Vec<Backing>) {
        let profiles = backings.into_iter().map(|backing| (backing.dev, self.profile(backing)));
        self.profiles = profiles.collect();
    }

    /// Several file systems may be on the disks of one measurement.
    fn decide_again(&mut self) {
        self.decide(self.profiles.values().map(|profile| profile.backing.clone()).collect());
    }

    /// The profiles of all disks.
    pub fn profiles(&self) -> Vec<DiskProfile> {
        self.profiles.values().cloned().collect()
    }

    /// Takes the result of a finished measurement, or starts one that is due at `now`. `Some` if a disk was measured.
    pub fn poll(&mut self, now: Duration) -> Option<DiskReport> {
        match self.measuring.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return None,
            Some(Ok((dev, answer))) => {
                self.measuring = None;
                return Some(self.measured(dev, answer, now));
            }
            Some(Err(TryRecvError::Disconnected)) => self.measuring = None,
            None => {}
        }
        let is_due = |dev: &u64| self.is_due(*dev, now) && !self.may_sleep(*dev, now);
        let due = self.requested.borrow().keys().copied().find(is_due)?;
        self.begin(due, now);
        None
    }

    /// Whether a measurement is running.
    pub fn is_measuring(&self) -> bool {
        self.measuring.is_some()
    }

    fn is_due(&self, dev: u64, now: Duration) -> bool {
        let is_doubtful = self.identities.get(&dev).is_some_and(|disk| self.stored.is_doubtful(disk));
        let is_open = |of: &DiskProfile| of.measured.is_none() || is_doubtful;
        let unknown =
            self.profiles.get(&dev).is_some_and(|of| is_open(of) && Target::of(&of.backing).is_some());
        let is_small = self.small.get(&dev).is_some_and(|bytes| *bytes == self.target_bytes(dev));
        unknown && !is_small && self.tried.get(&dev).is_none_or(|at| now.saturating_sub(*at) >= RETRY_AFTER)
    }

    /// The size of the file that is measured instead of the device; 0 if the device is.
    fn target_bytes(&self, dev: u64) -> u64 {
        let by_file = self.by_file.contains(&dev);
        self.requested.borrow().get(&dev).filter(|_| by_file).map_or(0, |largest| largest.bytes)
    }

    fn begin(&mut self, dev: u64, now: Duration) {
        self.tried.insert(dev, now);
        let Some(mut target) = self.profiles.get(&dev).and_then(|f| Target::of(&f.backing)) else { return };
        if let Some(largest) = self.requested.borrow().get(&dev).filter(|_| self.by_file.contains(&dev)) {
            target = target.by_file(&largest.path, largest.ino);
        }
        let (root, (answer, answers)) = (self.root.clone(), channel());
        let seed = now.subsec_nanos().into();
        let thread = std::thread::Builder::new().name("measure".to_owned());
        let begun = thread.spawn(move || {
            let measured = measure(&root, &target, seed);
            // Nobody receives it if the process is ending.
            let _ = answer.send((dev, measured));
        });
        self.measuring = begun.is_ok().then_some(answers);
        self.stop_watching();
    }

    fn measured(&mut self, dev: u64, answer: Result<Measured, measure::Error>, now: Duration) -> DiskReport {
        let measured = match answer {
            Ok(measured) => measured,
            Err(e) => {
                // Retry at once with a file, but only once: the file may be too small, or its disk busy.
                let first = matches!(e, measure::Error::Io { .. }) && self.by_file.insert(dev);
                self.tried.insert(dev, now);
                if matches!(e, measure::Error::Small { .. }) {
                    self.small.insert(dev, self.target_bytes(dev));
                }
                if first {
                    self.tried.remove(&dev);
                }
                return self.unmeasured(dev, e.to_string());
            }
        };
        let Some(disk) = self.identities.get(&dev).filter(|_| self.profiles.contains_key(&dev)) else {
            return self.unmeasured(dev, "it is not mounted any more".to_owned());
        };
        self.stored.put(disk, measured);
        self.decide_again();
        self.report(dev)
    }

    fn report(&self, dev: u64) -> DiskReport {
        let text = |profile: &DiskProfile| {
            format!(
                "{:?}: {:.2} ms for a request, {:.0} MB/s; {}",
                profile.kind,
                profile.cost.request_s * 1e3,
                1e-6 / profile.cost.byte_s.max(1e-12),
                profile.why.join("; ")
            )
        };
        let why = self.profiles.get(&dev).map(text).unwrap_or_default();
        DiskReport { disk: self.name(dev), why, is_new: true }
    }

    fn unmeasured(&self, dev: u64, why: String) -> DiskReport {
        DiskReport { disk: self.name(dev), why, is_new: false }
    }

    /// Notes which disks were used since the last time.
    pub fn note_use(&mut self, now: Duration) {
        if let Ok(text) = self.root.read("proc/diskstats") {
            self.last_use.sample(now, counters::parse(&text));
        }
    }

    /// These disks without the rotating ones that may sleep: a prediction wakes none.
    pub fn awake(&self, now: Duration) -> AwakeDisks<'_> {
        AwakeDisks { disks: self, now }
    }

    /// Whether a file system is on a rotating disk that nobody has used for minutes.
    fn may_sleep(&self, dev: u64, now: Duration) -> bool {
        let profile = self.profiles.get(&dev).filter(|profile| profile.kind == DiskKind::Rotating);
        profile.is_some_and(|of| disks(of).into_iter().any(|disk| self.last_use.may_sleep(disk, now)))
    }

    /// A program has started that eke does not read for: its reads show what the disks' reads cost.
    pub fn watch_launch(&mut self, now: Duration) {
        if self.watched.is_none() && self.measuring.is_none() && !self.stored.is_empty() {
            let diskstats = self.root.read("proc/diskstats").unwrap_or_default();
            self.watched = Some(Watched { began: now, diskstats });
        }
    }

    /// From now on eke reads itself, so that its reads would count as the launch's.
    pub fn stop_watching(&mut self) {
        self.watched = None;
    }

    /// Corrects the disks' costs by the reads of a launch that has been watched for long enough. Returns the disks whose costs changed.
    pub fn take_watched(&mut self, now: Duration) -> Vec<DiskReport> {
        let is_over = |watched: &mut Watched| now.saturating_sub(watched.began) >= WATCH;
        let Some(watched) = self.watched.take_if(is_over) else { return Vec::new() };
        let window = now.saturating_sub(watched.began);
        let diskstats = self.root.read("proc/diskstats").unwrap_or_default();
        let (mut seen, mut changed): (Vec<&DiskIdentity>, Vec<u64>) = (Vec::new(), Vec::new());
        for (dev, disk) in &self.identities {
            let target = self.profiles.get(dev).and_then(|profile| Target::of(&profile.backing));
            let Some(target) = target.filter(|_| !seen.contains(&disk)) else { continue };
            seen.push(disk);
            let before = counters::sum(&watched.diskstats, &target.disks);
            let did = counters::sum(&diskstats, &target.disks).since(before);
            if self.stored.launched(disk, did, window) {
                changed.push(*dev);
            }
        }
        if !changed.is_empty() {
            self.decide_again();
        }
        changed.into_iter().map(|dev| self.report(dev)).collect()
    }

    /// The profile by the stored measurement and what launches saw since.
    fn profile(&self, backing: Backing) -> DiskProfile {
        let kept = self.identities.get(&backing.dev).and_then(|disk| self.stored.of(disk));
        let Some(kept) = kept else { return decide(backing, None) };
        let factor = kept.slowdowns.factor();
        let mut profile = decide(backing, Some(kept.measured.slower(factor)));
        if factor > 1.0 {
            let why = format!(
                "launches waited {factor:.0} times as long for reads as measured, and the costs are corrected by that"
            );
            profile.why.insert(0, why);
        }
        profile
    }

    fn name(&self, dev: u64) -> String {
        let through = self.profiles.get(&dev).map(|f| f.backing.through.join(" over "));
        through.filter(|through| !through.is_empty()).unwrap_or_else(|| Device::of(dev).to_string())
    }

    /// Gives devices their present names: one that was learned by its file system may have another name at each boot. One that is not here is left out.
    pub fn locate(&self, set: &mut FileSet) {
        let mut found = BTreeSet::new();
        set.files.retain_mut(|file| {
            if file.kind != Kind::Device {
                return true;
            }
            if file_system::is_by_uuid(&file.path) {
                let Some(node) = file_system::node(&self.root, &file.path) else { return false };
                (file.path, file.stamp.dev) = (node, 0);
            }
            // An earlier eke may have learned it by that name.
            found.insert(file.path.clone())
        });
    }

    fn note_request(&self, dev: u64, file: &Touched) {
        let mut requested = self.requested.borrow_mut();
        let largest = requested.entry(dev).or_default();
        if file.kind == Kind::File && file.stamp.size > largest.bytes {
            *largest = Requested { bytes: file.stamp.size, path: file.path.clone(), ino: file.stamp.ino };
        }
    }

    fn profile_of(&self, file: &Touched) -> Option<&DiskProfile> {
        let dev = self.number(&file.path, file.kind)?;
        self.note_request(dev, file);
        self.profiles.get(&dev)
    }

    /// The number of a file's file system.
    fn number(&self, path: &Path, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Device => {
                let name = path.file_name()?;
                let mut all = self.profiles.values();
                let of_it = all.find(|f| own(&f.backing).is_some_and(|own| Path::new(&own.name) == name));
                Some(of_it?.backing.dev)
            }
            Kind::File | Kind::Directory => device::number(&mount_of(path, &self.mounts)?.device),
        }
    }
}

/// The disks from which may be read ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AwakeDisks<'a> {
    disks: &'a Disks,
    now: Duration,
}

impl AwakeDisks<'_> {
    /// Whether a file is on one of them.
    pub fn have(&self, path: &Path, kind: Kind) -> bool {
        self.disks.number(path, kind).is_none_or(|dev| !self.disks.may_sleep(dev, self.now))
    }
}

impl Environment for AwakeDisks<'_> {
    fn cost(&self, file: &Touched) -> Option<DiskCost> {
        self.have(&file.path, file.kind).then(|| self.disks.cost(file))?
    }

    fn resident(&self, file: &Touched) -> Resident {
        self.disks.resident(file)
    }

    fn is_pinned(&self, path: &Path) -> bool {
        self.disks.is_pinned(path)
    }
}

fn own(backing: &Backing) -> Option<&Block> {
    backing.own.as_ref()
}

impl Environment for Disks {
    fn cost(&self, file: &Touched) -> Option<DiskCost> {
        let profile = self.profile_of(file)?;
        // Whatever the disk reports: prefetching from a fast one harms less than ignoring a slow one.
        let cost = if profile.measured.is_some() { profile.cost } else { ASSUMED_ROTATING };
        profile.strategy.is_enabled.then_some(cost)
    }

    /// Unknown here: only workers open files, and they skip resident pages.
    fn resident(&self, _: &Touched) -> Resident {
        Resident::Unknown
    }

    fn is_pinned(&self, _: &Path) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "disks_tests.rs"]
mod tests;
