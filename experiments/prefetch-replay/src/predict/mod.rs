//! Predicts the next programs. Pure: predictors get events, and queries for a time; they have no clock and no files.
//!
//! # Layout
//! - [`maps`]: the parts of files that programs use, each part once
//! - [`naive`], [`recency`]: baselines with one number per program
//! - [`preload`]: release 0.6.4, as shipped and repaired; [`thesis`]: the model of the thesis behind it
//! - [`eke`]: eke's own predictor, from the product: a calibrated mixture with online weights
//!
//! # Times
//! Events are in the order of observation. Their times may jump (a clock that is set), back or by years; no predictor
//! fails then. Naive, recency and eke count events, so they lose nothing. preload and the thesis's model work in
//! cycles, and lose the time of a jump, as the originals do.
//!
//! # Determinism
//! Nothing here reads files, and nothing depends on the order of a hash table: the same events give the same
//! probabilities.

pub mod maps;
pub mod naive;
pub mod preload;
pub mod recency;
pub mod thesis;

pub use eke_prefetch_model::predict::{Chance, Eke, eke, sort};
use eke_prefetch_model::user_event::UserEvent;

pub use maps::{Map, Maps, MapsBuilder};
pub use naive::Naive;
pub use preload::{Preload, Variant};
pub use recency::Recency;
pub use thesis::Thesis;

/// A predictor's own bid for a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bid {
    /// The map, an index of [`Maps::all`].
    pub map: usize,
    /// Maps with lower values are read first; at 0 and above not at all. preload's value is the logarithm of the
    /// probability that the map is not needed, plus 1 for each running program that uses it.
    pub lnprob: f64,
}

/// A predictor.
pub trait Predictor {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Learns from an event.
    fn observe(&mut self, happened: &UserEvent);

    /// The probabilities that known programs which do not run start between `now_s` (seconds since 1970, as in events)
    /// and `horizon_s` seconds later. The likeliest come first, ties are sorted by number, each program occurs once.
    /// Programs that are missing have none.
    fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance>;

    /// Its cycle in seconds; `None` if it decides at every event.
    fn cycle_s(&self) -> Option<f64> {
        None
    }

    /// Whether it ranks maps itself.
    fn ranks_maps(&self) -> bool {
        false
    }

    /// Its ranking of maps at `now_s`, lowest `lnprob` first; `None` if it ranks programs.
    fn bids(&mut self, _now_s: f64) -> Option<Vec<Bid>> {
        None
    }

    /// Limits on reading its choice.
    fn reading(&self) -> Reading {
        Reading::default()
    }
}

/// How maps chosen by bids are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Whether choosing ends at the first map that exceeds the remaining budget; otherwise smaller ones may follow.
    pub stops_at_first: bool,
    /// Bytes read of each range of adjacent maps; `None` for all.
    pub range_cap_bytes: Option<u64>,
}

impl Predictor for Eke {
    fn name(&self) -> &'static str {
        "eke"
    }

    fn observe(&mut self, happened: &UserEvent) {
        Eke::observe(self, happened);
    }

    fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance> {
        Eke::chances(self, now_s, horizon_s)
    }
}
