//! What reads cost where a file is. Each disk that is asked about is measured once, when it is quiet, by a thread of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::{Mount, mount_of};
use serde::{Deserialize, Serialize};

use crate::disk::{Block, DiskProfile, Measured, Target, below, decide, measure};
use eke_prefetch_model::choose::{Environment, Resident};
use eke_prefetch_model::cost::DiskCost;
use eke_prefetch_model::file_set::{Kind, Touched};

/// A disk that was busy is measured again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// What is reckoned with until a disk is measured, whatever it says of itself: a laptop's. To read before what would have come
/// as quickly harms less than to leave a slow disk's launches alone.
const UNKNOWN: DiskCost = DiskCost { request_s: 0.010, near_request_s: 0.005, byte_s: 1.0 / 100e6 };

/// A measurement, by what is the same after the next boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    name: String,
    size_bytes: u64,
    measured: Measured,
}

/// The outcome of a measurement, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskReport {
    /// The disk, by its kernel's name.
    pub disk: String,
    /// Its kind, its costs and why; or why it was not measured.
    pub why: String,
}

/// The answer of a measurement's thread.
type Answer = (u64, Result<Measured, measure::Error>);

/// The disks below what is mounted.
#[derive(Debug)]
pub(crate) struct Disks {
    root: Root,
    text: Vec<u8>,
    mounts: Vec<Mount>,
    /// By the number of the file system.
    profiles: BTreeMap<u64, DiskProfile>,
    kept: Vec<Kept>,
    /// File systems that somebody asked about, with the largest file there and its bytes.
    asked: RefCell<BTreeMap<u64, (u64, PathBuf)>>,
    /// Of these, those whose device may not be read: a file is read instead.
    by_file: BTreeSet<u64>,
    measuring: Option<Receiver<Answer>>,
    tried: BTreeMap<u64, Duration>,
}

impl Disks {
    /// As they are mounted now; `state` is what [`Self::to_state`] gave once.
    pub fn new(root: &Root, state: Option<&[u8]>) -> Self {
        let kept = state.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        let mut disks = Self {
            root: root.clone(),
            text: Vec::new(),
            mounts: Vec::new(),
            profiles: BTreeMap::new(),
            kept,
            asked: RefCell::default(),
            by_file: BTreeSet::new(),
            measuring: None,
            tried: BTreeMap::new(),
        };
        disks.refresh();
        disks
    }

    /// The measurements, for the next process.
    pub fn to_state(&self) -> Vec<u8> {
        serde_json::to_vec(&self.kept).unwrap_or_default()
    }

    /// Looks at what is mounted, if that has changed.
    pub fn refresh(&mut self) {
        let text = std::fs::read(self.root.path("proc/self/mountinfo")).unwrap_or_default();
        if text == self.text {
            return;
        }
        self.mounts = mountinfo::parse(&text);
        self.text = text;
        let profiles = self.mounts.iter().map(|mount| {
            let below = below(&self.root, mount, &self.mounts);
            let measured = own(&below).and_then(|own| self.kept_of(own));
            (below.dev, decide(below, measured))
        });
        self.profiles = profiles.collect();
    }

    /// All that is known.
    pub fn profiles(&self) -> Vec<DiskProfile> {
        self.profiles.values().cloned().collect()
    }

    /// Takes in a measurement that is done, and begins one that is due at `now`. `Some` if a disk was measured.
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
        let due = self.asked.borrow().keys().copied().find(|dev| self.is_due(*dev, now))?;
        self.begin(due, now);
        None
    }

    /// Is one being measured?
    pub fn is_measuring(&self) -> bool {
        self.measuring.is_some()
    }

    fn is_due(&self, dev: u64, now: Duration) -> bool {
        let unknown =
            self.profiles.get(&dev).is_some_and(|f| f.measured.is_none() && Target::of(&f.below).is_some());
        unknown && self.tried.get(&dev).is_none_or(|at| now.saturating_sub(*at) >= AGAIN)
    }

    fn begin(&mut self, dev: u64, now: Duration) {
        self.tried.insert(dev, now);
        let Some(mut target) = self.profiles.get(&dev).and_then(|f| Target::of(&f.below)) else { return };
        if let Some((_, largest)) = self.asked.borrow().get(&dev).filter(|_| self.by_file.contains(&dev)) {
            target = target.by_file(largest);
        }
        let (root, (answer, answers)) = (self.root.clone(), channel());
        let seed = now.subsec_nanos().into();
        let thread = std::thread::Builder::new().name("measure".to_owned());
        let begun = thread.spawn(move || {
            let measured = measure(&root, &target, seed);
            // Nobody waits for it any more when the process ends.
            let _ = answer.send((dev, measured));
        });
        self.measuring = begun.is_ok().then_some(answers);
    }

    fn measured(&mut self, dev: u64, answer: Result<Measured, measure::Error>, now: Duration) -> DiskReport {
        let measured = match answer {
            Ok(measured) => measured,
            Err(e) => {
                // Once by a file at once; that may be too small, or busy as well.
                let first = matches!(e, measure::Error::Io { .. }) && self.by_file.insert(dev);
                self.tried.insert(dev, now);
                if first {
                    self.tried.remove(&dev);
                }
                return DiskReport { disk: self.name(dev), why: e.to_string() };
            }
        };
        let Some(profile) = self.profiles.get(&dev) else {
            return DiskReport { disk: self.name(dev), why: "it is mounted no more".to_owned() };
        };
        if let Some(own) = own(&profile.below) {
            let kept = Kept { name: own.name.clone(), size_bytes: own.size_bytes, measured };
            self.kept.retain(|other| (&other.name, other.size_bytes) != (&kept.name, kept.size_bytes));
            self.kept.push(kept);
        }
        let decided = decide(profile.below.clone(), Some(measured));
        let why = format!(
            "{:?}: {:.2} ms for a request, {:.0} MB/s; {}",
            decided.kind,
            decided.cost.request_s * 1e3,
            1e-6 / decided.cost.byte_s.max(1e-12),
            decided.why.join("; ")
        );
        self.profiles.insert(dev, decided);
        DiskReport { disk: self.name(dev), why }
    }

    fn kept_of(&self, own: &Block) -> Option<Measured> {
        let kept = self.kept.iter().find(|kept| (&kept.name, kept.size_bytes) == (&own.name, own.size_bytes));
        kept.map(|kept| kept.measured)
    }

    fn name(&self, dev: u64) -> String {
        let through = self.profiles.get(&dev).map(|f| f.below.through.join(" over "));
        through.filter(|through| !through.is_empty()).unwrap_or_else(|| crate::disk::number::text(dev))
    }

    fn note_asked(&self, dev: u64, file: &Touched) {
        let mut asked = self.asked.borrow_mut();
        let largest = asked.entry(dev).or_default();
        if file.kind == Kind::File && file.stamp.size > largest.0 {
            *largest = (file.stamp.size, file.path.clone());
        }
    }

    fn profile_of(&self, file: &Touched) -> Option<&DiskProfile> {
        let dev = match file.kind {
            Kind::Device => {
                let name = file.path.file_name()?;
                let mut all = self.profiles.values();
                all.find(|f| own(&f.below).is_some_and(|own| Path::new(&own.name) == name))?.below.dev
            }
            Kind::File | Kind::Directory => {
                crate::disk::number::parse(&mount_of(&file.path, &self.mounts)?.device)?
            }
        };
        self.note_asked(dev, file);
        self.profiles.get(&dev)
    }
}

fn own(below: &crate::disk::Below) -> Option<&Block> {
    below.own.as_ref()
}

impl Environment for Disks {
    fn cost(&self, file: &Touched) -> Option<DiskCost> {
        let profile = self.profile_of(file)?;
        let cost = if profile.measured.is_some() { profile.cost } else { UNKNOWN };
        profile.way.on.then_some(cost)
    }

    /// Only workers open files; they skip resident pages.
    fn resident(&self, _: &Touched) -> Resident {
        Resident::Unknown
    }

    fn is_pinned(&self, _: &Path) -> bool {
        false
    }
}
