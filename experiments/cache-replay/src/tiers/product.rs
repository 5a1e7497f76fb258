//! The product's own decisions, driven by the model's clock: admission and passthrough of each file, and the store's size.

use std::collections::HashMap;
use std::time::Duration;

use eke_cache_policy::admission::{Admission, Content, DataPath, OpenDecision, PassthroughMode};
use eke_cache_policy::size::decide::GovernorState;
use eke_cache_policy::size::{
    Group, MOST_PERCENT, Machine as Memory, Memory as Asked, OwnUse, Signals, decide,
};
use eke_cache_store::FileId;
use eke_model::units::Bytes;

use super::time::Work;

/// The governor decides so often.
const TICK_S: f64 = 0.5;
/// No processor is idle if the disk works for less than this share of the time that the processors need.
const BUSY: f64 = 0.9;
/// A block's weight in the share of blocks that do not compress (`cache-store/compressibility`).
const WEIGHT: f32 = 1.0 / 256.0;
/// The machine around the group whose memory the model divides.
const MACHINE: Bytes = Bytes::mib(64 << 10);

/// The decisions of one mount, in a group with the machine's memory as its limit.
#[derive(Debug)]
pub struct Product {
    admission: Admission,
    /// Blocks of each file that were tried and did not compress; 0: the last one did.
    failed: HashMap<u32, u64>,
    /// The share of blocks that do not compress.
    failing: f32,
    state: GovernorState,
    memory: Bytes,
    /// Each file stands for so many.
    scale: f64,
    now_s: f64,
    next_s: f64,
    /// Since the last decision.
    disk_s: f64,
    cpu_s: f64,
}

impl Product {
    /// A new mount with at most the default share of `memory`, of which a sample is replayed.
    pub fn new(memory: Bytes, scale: u64) -> Self {
        Self {
            admission: Admission::new(PassthroughMode::Auto),
            failed: HashMap::new(),
            failing: 0.0,
            state: GovernorState::default(),
            memory,
            scale: scale as f64,
            now_s: 0.0,
            next_s: 0.0,
            disk_s: 0.0,
            cpu_s: 0.0,
        }
    }

    /// Opens a file. Returns its path, and whether what is stored of it is to be dropped.
    pub fn open(&self, file: u32, bytes: u64) -> (DataPath, bool) {
        let id = hash(file);
        let content = Content::of(self.failed.get(&file).copied());
        let drops = self.admission.decide_at_open(id, true, || Some(bytes), content);
        (self.admission.data_path(id, false), drops == OpenDecision::NowPassthrough)
    }

    /// A run was read from the disk in `seconds`. Returns whether to store it.
    pub fn read(&self, file: u32, block: u64, bytes: u64, seconds: f64) -> bool {
        let admits = self.admission.admit(hash(file), block);
        self.admission.note_backing_read(hash(file), to_usize(bytes), Duration::from_secs_f64(seconds));
        admits
    }

    /// Bytes were found in the store.
    pub fn hit(&self, file: u32, bytes: u64, seconds: f64) {
        self.admission.note_hit(hash(file), to_usize(bytes), Duration::from_secs_f64(seconds));
    }

    /// Bytes of a file were compressed; `pays`: well enough.
    pub fn compressed(&mut self, file: u32, bytes: u64, seconds: f64, pays: bool) {
        let blocks = bytes.div_ceil(65_536);
        let failed = self.failed.entry(file).or_default();
        *failed = if pays { 0 } else { *failed + blocks };
        let value = if pays { 0.0 } else { 1.0 };
        (0..blocks).for_each(|_| self.failing += (value - self.failing) * WEIGHT);
        self.admission.blocks_fail(self.failing);
        self.admission.note_compressed(to_usize(blocks), Duration::from_secs_f64(seconds));
    }

    /// A request was served while the store held `stored` bytes of the sample. Returns the store's new limit in the sample, if it was decided on.
    pub fn served(&mut self, work: &Work, cpus: f64, stored: u64, ratio: f64) -> Option<u64> {
        self.now_s += self.scale * work.clock_s(cpus);
        self.disk_s += work.disk_s;
        self.cpu_s += work.cpu_s / cpus;
        if self.now_s < self.next_s {
            return None;
        }
        self.next_s = self.now_s + TICK_S;
        self.admission.processors_are_busy(self.disk_s < BUSY * self.cpu_s);
        (self.disk_s, self.cpu_s) = (0.0, 0.0);
        let held = Bytes(stored).scaled(self.scale);
        let limit = self.decide(held);
        self.admission.has_room_for(limit.scaled(ratio));
        Some((limit.0 as f64 / self.scale) as u64)
    }

    /// Its time.
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// The mount is back: the store grows anew.
    pub fn has_returned(&mut self) {
        self.state = GovernorState::default();
    }

    fn decide(&mut self, held: Bytes) -> Bytes {
        let machine = Memory { total: MACHINE, available: MACHINE, free: MACHINE, ..Memory::default() };
        let group = Group { path: "/".into(), limit: self.memory, used: held, usage: held };
        let signals = Signals { machine, groups: vec![group] };
        let own = OwnUse { held, ..OwnUse::default() };
        let now = Duration::from_secs_f64(self.now_s);
        self.state = decide(Asked::Percent(MOST_PERCENT), &self.state, now, &signals, &own).state;
        self.state.limit
    }
}

fn hash(file: u32) -> u64 {
    FileId(file.into()).hash()
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_grows_to_the_default_share_of_its_group() {
        let memory = Bytes::mib(1024);
        let mut product = Product::new(memory, 4);
        let mut limit = 0;
        for _ in 0..1000 {
            let work = Work { disk_s: 0.1, ..Work::default() };
            limit = product.served(&work, 2.0, limit, 2.0).unwrap_or(limit);
        }
        let percent = 100 * limit * 4 / memory.0;
        assert!((84..=85).contains(&percent), "{percent}");
    }

    #[test]
    fn what_does_not_compress_passes_through_on_a_fast_disk_after_it_was_read_and_then_at_once() {
        let mut product = Product::new(Bytes::mib(1024), 1);
        let mut read_in = |file: u32, seconds: f64| {
            let opened = product.open(file, 1 << 20);
            if opened.0 == DataPath::Cached {
                product.read(file, 0, 1 << 20, seconds);
                product.compressed(file, 1 << 20, 0.001, false);
            }
            opened
        };
        for _ in 0..3 {
            assert_eq!(read_in(99, 0.03), (DataPath::Cached, false), "a slow disk");
        }
        let mut read = |file| read_in(file, 0.003);
        for file in 200..260 {
            read(file);
        }
        assert_eq!(read(1), (DataPath::Cached, false));
        assert_eq!(read(1), (DataPath::Passthrough, true));
        for file in 2..60 {
            read(file);
        }
        assert_eq!(read(60), (DataPath::Passthrough, true), "as all others");
    }
}
