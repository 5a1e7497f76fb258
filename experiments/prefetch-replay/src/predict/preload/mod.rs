//! preload 0.6.4, the release in Debian (2009), after its description: as shipped, and repaired.
//!
//! Every 20 s it scans the running programs and predicts, using what it learned 10 s after the previous scan; 10 s
//! later it learns from this scan. So a start affects predictions 20 to 40 s later, and a program that lives between
//! two scans is never seen. It bids for maps, not for programs: each program adds the logarithm of the probability that
//! it does not start, and each running program adds 1 (so a map used by a running program is hardly ever chosen). It
//! does not distinguish users.
//!
//! # As shipped
//! - Choosing ends at the first map that does not fit.
//! - Each range of adjacent maps is one readahead(2), of which the kernel reads 1280 KiB (Debian 12 and 13;
//!   `mm/readahead.c`).
//! - After a restart, the time of the last change of every pair is uninitialized memory: the first dwell time is noise,
//!   often negative, and disables the state. Means of -88.3 and -7340.67 s were observed after one restart. The replay
//!   uses a hash in 0 to 20,000 s.
//!
//! # Repaired
//! Without the last two: everything is read, and after a restart each pair has changed now. (Its sorting by inode
//! instead of block does not affect hits.)
//!
//! # In a replay
//! - A session that begins while no program runs follows a boot, and so a start of preload, which loads its state. Its
//!   own clock stands still before that.
//! - Rules by path prefix admit everything, because names in a trace may be hashed. The minimum of 2,000,000 bytes of
//!   maps applies.
//! - Stop events end a run; a real scan sees nothing else.

mod model;
mod pair;
mod steps;

use std::collections::BTreeSet;
use std::sync::Arc;

use twox_hash::XxHash3_64;

pub use model::Model;
pub use pair::{CYCLE_S, Pair, correlation, lnprob};
pub(crate) use steps::Steps;

use super::maps::Maps;
use super::{Bid, Chance, Predictor, Reading, sort};
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Programs with fewer bytes of maps are ignored (`model.minsize`).
const LEAST_BYTES: u64 = 2_000_000;

/// Most bytes of one readahead(2) with Debian's defaults: the maximum of read_ahead_kb (128) and max_sectors_kb (1280).
const READAHEAD_CAP_BYTES: u64 = 1280 * 1024;

/// Range of the simulated uninitialized time, in seconds.
const GARBAGE_S: u64 = 20_000;

/// The variant of preload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As released, with its defects.
    Shipped,
    /// Without the defects of the implementation.
    Repaired,
}

/// preload 0.6.4.
#[derive(Debug, Clone)]
pub struct Preload {
    variant: Variant,
    maps: Arc<Maps>,
    model: Model,
    steps: Steps,
    running: Running,
    scanned: BTreeSet<ProgramId>,
    loads: u64,
}

impl Preload {
    /// A predictor without knowledge. When it first sees a program, it learns the program's maps from `maps`, which do
    /// not change.
    pub fn new(variant: Variant, maps: Arc<Maps>) -> Self {
        Self {
            variant,
            maps,
            model: Model::default(),
            steps: Steps::new(CYCLE_S as f64 / 2.0),
            running: Running::default(),
            scanned: BTreeSet::new(),
            loads: 0,
        }
    }

    fn advance(&mut self, to_s: f64) {
        while let Some(step) = self.steps.due(to_s) {
            self.model.pass(CYCLE_S / 2);
            if step % 2 == 0 {
                self.scanned = self.running.all().collect();
                self.model.scan(&self.scanned);
            } else {
                let maps = &self.maps;
                self.model.update(|program| maps.bytes_of(program) >= LEAST_BYTES);
            }
        }
    }

    fn restart(&mut self, at_s: f64) {
        self.loads += 1;
        self.scanned.clear();
        let (variant, loads) = (self.variant, self.loads);
        self.model.load(|pair, now_s| match variant {
            Variant::Shipped => garbage_s(pair, loads),
            Variant::Repaired => now_s,
        });
        self.steps.begin(at_s);
    }
}

/// Stands for uninitialized memory.
fn garbage_s(pair: u64, loads: u64) -> i64 {
    let hash = XxHash3_64::oneshot(&[pair.to_le_bytes(), loads.to_le_bytes()].concat());
    (hash % GARBAGE_S) as i64
}

impl Predictor for Preload {
    fn name(&self) -> &'static str {
        match self.variant {
            Variant::Shipped => "preload 0.6.4",
            Variant::Repaired => "preload repaired",
        }
    }

    fn observe(&mut self, happened: &UserEvent) {
        if happened.event == Event::Session && self.running.all().next().is_none() {
            self.restart(happened.at_s);
        } else {
            self.advance(happened.at_s);
        }
        self.running.observe(happened);
    }

    /// Uses the last scan; its horizon is always a cycle and a half.
    fn chances(&mut self, now_s: f64, _horizon_s: f64) -> Vec<Chance> {
        self.advance(now_s);
        let lnprobs = self.model.lnprobs().into_iter();
        let idle = lnprobs.filter_map(|(program, lnprob)| Some((program, lnprob?)));
        let mut chances: Vec<Chance> =
            idle.map(|(program, lnprob)| Chance { program, probability: 1.0 - lnprob.exp() }).collect();
        sort(&mut chances);
        chances
    }

    fn cycle_s(&self) -> Option<f64> {
        Some(CYCLE_S as f64)
    }

    fn ranks_maps(&self) -> bool {
        true
    }

    fn bids(&mut self, now_s: f64) -> Option<Vec<Bid>> {
        self.advance(now_s);
        let mut sums = vec![0.0; self.maps.all().len()];
        for (program, lnprob) in self.model.lnprobs() {
            self.maps.of(program).iter().for_each(|map| sums[*map] += lnprob.unwrap_or(1.0));
        }
        let bids = sums.into_iter().enumerate().filter(|(_, sum)| *sum < 0.0);
        let mut bids: Vec<Bid> = bids.map(|(map, lnprob)| Bid { map, lnprob }).collect();
        bids.sort_by(|a, b| a.lnprob.total_cmp(&b.lnprob).then(a.map.cmp(&b.map)));
        Some(bids)
    }

    fn reading(&self) -> Reading {
        let range_cap_bytes = (self.variant == Variant::Shipped).then_some(READAHEAD_CAP_BYTES);
        Reading { stops_at_first: true, range_cap_bytes }
    }
}
