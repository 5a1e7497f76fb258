//! Which programs start next. Pure: predictors are told what happened and asked about a time; they own no clock and no file.
//!
//! # Layout
//! - [`maps`]: which parts of which files programs use, each part once
//! - [`naive`], [`recency`]: baselines that need one number a program
//! - [`preload`]: the release 0.6.4 as shipped and repaired; [`thesis`]: the model of the thesis that it came from
//! - [`eke`]: eke's own, of the product: a mixture with online weights, calibrated
//!
//! # Times
//! Events come in the order in which they were seen. Their times may jump (a clock that is set), back or years ahead; no predictor
//! fails for that. Naive, recency and eke count events, so that nothing is lost; preload and the thesis's model live by cycles and lose
//! what a jump takes, as those do.
//!
//! # Absent
//! Nothing here reads or fetches, and nothing depends on the order of a hash table: the same events give the same chances.

pub mod maps;
pub mod naive;
pub mod preload;
pub mod recency;
pub mod thesis;

use eke_prefetch_model::happened::Happened;
pub use eke_prefetch_model::predict::{Chance, Eke, eke, sort};

pub use maps::{Map, Maps, MapsBuilder};
pub use naive::Naive;
pub use preload::{Preload, Variant};
pub use recency::Recency;
pub use thesis::Thesis;

/// What a predictor that ranks maps itself says for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bid {
    /// The map, by its place in [`Maps::all`].
    pub map: usize,
    /// The less the sooner it is read; at 0 and above not at all. preload's is the logarithm of the probability that the map
    /// is not needed, plus 1 for each running program that uses it.
    pub lnprob: f64,
}

/// What predicts.
pub trait Predictor {
    /// Its name in figures.
    fn name(&self) -> &'static str;

    /// Learns from an event.
    fn observe(&mut self, happened: &Happened);

    /// The chances of programs that are known and do not run to start from `now_s` (seconds since 1970, as events have) until `horizon_s`
    /// seconds later, likeliest first, those alike by their number; each program once. What is not named has none.
    fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance>;

    /// How often it decides, in seconds; at once on every event if it has no cycle.
    fn cycle_s(&self) -> Option<f64> {
        None
    }

    /// Does it rank maps itself?
    fn ranks_maps(&self) -> bool {
        false
    }

    /// Its own ranking of maps at `now_s`, least `lnprob` first; none if it does not rank maps, which are chosen by the chances of programs then.
    fn bids(&mut self, _now_s: f64) -> Option<Vec<Bid>> {
        None
    }

    /// How the reading of what it chose is cut short.
    fn reading(&self) -> Reading {
        Reading::default()
    }
}

/// How what was chosen by bids is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Is choosing over at the first map that does not fit into what is left of the budget? Else smaller ones may follow.
    pub stops_at_first: bool,
    /// The bytes that are read of each range of neighbouring maps; all if none.
    pub range_cap_bytes: Option<u64>,
}

impl Predictor for Eke {
    fn name(&self) -> &'static str {
        "eke"
    }

    fn observe(&mut self, happened: &Happened) {
        Eke::observe(self, happened);
    }

    fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance> {
        Eke::chances(self, now_s, horizon_s)
    }
}
