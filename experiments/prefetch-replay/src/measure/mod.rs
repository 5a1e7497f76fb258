//! Replays a trace through predictors: counts how much of what programs needed each of them would have prefetched.
//!
//! # Metrics
//! - *Hit, maps*: of the maps that starting programs needed, the share prefetched by the last decision before (thesis,
//!   section 6.3.2: "in the previous cycle"). A map that is in memory only because another program uses it is a miss.
//! - *Hit, bytes*: the same in bytes; only bytes that were read count (the kernel limits preload's reads).
//! - *Waste*: of the prefetched bytes, the share that no start used until the choice changed.
//! - *Rank*: how often the next program was the first, or among the first three or five, of the programs that do not
//!   run.
//!
//! Predictors start without knowledge, and results count from the first start: learning has its cost.
//!
//! # Time
//! - A decision takes effect `lead_s` seconds later for every predictor, because reading takes time. Until then the
//!   previous one is in effect.
//! - *Events*: naive, recency, eke and the oracle decide at each event (simultaneous events are one), as eke's remedy
//!   does.
//! - *Cycles*: preload and the thesis's model decide every 20 s, at multiples of it, from the scan at that time. Only
//!   the first three cycles after an event and the last before the next are replayed: the models learn from an event
//!   within two cycles; in all others only preload's correlation changes, by little.
//! - A session that begins while no program runs follows a boot: memory is empty.
//!
//! # Choice
//! Predictors of programs share one choice of maps. A map is needed with probability 1 - Π (1 - P) over the programs that
//! use it. Maps are taken in the order of this probability (`probability`, the thesis's order) or of this probability per
//! byte (`per byte`, which is best if requests are expensive and bytes cheap) while they fit the budget. preload ranks
//! maps itself (`own`); so does the oracle: it knows the next starts, and takes the maps of the next one first, small
//! before large. Their probabilities of programs also go through the common choice, to separate preload's model from its
//! choice.
//!
//! For comparison, the page cache alone: the hits of an LRU cache of the same size.

mod choose;
mod lru;
mod memory;
mod oracle;
mod rank;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use choose::Order;
pub use oracle::Oracle;
pub use run::{run, run_with_progress};

use super::trace::Trace;
use crate::predict::{Eke, Naive, Predictor, Preload, Recency, Thesis, Variant};
use eke_prefetch_model::predict::eke::calibration::{Bin, Reliability};

/// Settings of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The prefetch budgets in bytes; each is a run of its own.
    pub budgets_bytes: Vec<u64>,
    /// Seconds from a decision until its choice is in memory.
    pub lead_s: f64,
    /// Seconds for which starts are predicted: about the time between decisions, because hits belong to the last one.
    pub horizon_s: f64,
}

impl Settings {
    /// Budgets of a twentieth, a tenth and a fifth of all bytes used by the trace's programs (none if it names no
    /// files), five seconds to read, and a horizon of a minute.
    pub fn of(trace: &Trace) -> Self {
        let budgets = [20, 10, 5].map(|part| trace.maps.bytes() / part);
        let budgets_bytes = budgets.into_iter().filter(|bytes| *bytes > 0).collect();
        Self { budgets_bytes, lead_s: 5.0, horizon_s: 60.0 }
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The predictor, `oracle` or `page cache`.
    pub variant: String,
    /// The conditions: `budget` in bytes, `order` of choice, `k` of ranks, `horizon` in seconds, `from` and `to` of
    /// reliability bins.
    pub params: BTreeMap<String, String>,
    /// The metric: `hit maps`, `hit bytes`, `waste`, `fetched per start`, `bound`, `hit at`, `predicted`, `observed`,
    /// `count`, `starts`.
    pub metric: String,
    /// Its unit: `%`, `bytes`, or none.
    pub unit: String,
    /// The value.
    pub value: f64,
}

impl Row {
    fn new(variant: &str, params: &[(&str, String)], metric: &str, unit: &str, value: f64) -> Self {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { variant: variant.to_owned(), params, metric: metric.to_owned(), unit: unit.to_owned(), value }
    }
}

/// Number of predictors for which a trace is replayed.
const PREDICTORS: u64 = 7;

/// All results of a trace. If `bound` is 0, the budget covered every requested map, and its hits show nothing.
pub fn replay(trace: &Trace, settings: &Settings) -> Vec<Row> {
    replay_with_progress(trace, settings, &mut |_, _| {})
}

/// The same; calls `progress` after each event of a predictor with the number of events done and in total.
pub fn replay_with_progress(
    trace: &Trace,
    settings: &Settings,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<Row> {
    let (mut done, whole) = (0, PREDICTORS * trace.happened.len() as u64);
    let mut one = || {
        done += 1;
        progress(done, whole);
    };
    let maps = Arc::new(trace.maps.clone());
    let mut rows = vec![Row::new("trace", &[], "starts", "", trace.starts() as f64)];
    let others: [&mut dyn Predictor; 6] = [
        &mut Naive::default(),
        &mut Recency::default(),
        &mut Preload::new(Variant::Shipped, Arc::clone(&maps)),
        &mut Preload::new(Variant::Repaired, Arc::clone(&maps)),
        &mut Thesis::default(),
        &mut Oracle::new(trace),
    ];
    for predictor in others {
        rows.extend(run::run_with_progress(predictor, trace, settings, &mut one));
    }
    let mut eke = Eke::default();
    rows.extend(run::run_with_progress(&mut eke, trace, settings, &mut one));
    rows.extend(reliability(&eke));
    rows.extend(lru::rows(trace, settings));
    rows
}

fn reliability(eke: &Eke) -> Vec<Row> {
    eke.reliability().flat_map(|(horizon_s, table)| of_horizon(horizon_s, table)).collect()
}

fn of_horizon(horizon_s: f64, table: &Reliability) -> Vec<Row> {
    let horizon = ("horizon", horizon_s.to_string());
    let of_bin = |(from, to, bin): (f64, f64, Bin)| {
        let params = [horizon.clone(), ("from", from.to_string()), ("to", to.to_string())];
        let row = |metric, unit, value| Row::new("eke", &params, metric, unit, value);
        [
            row("predicted", "%", 100.0 * bin.mean_predicted()),
            row("observed", "%", 100.0 * bin.observed()),
            row("count", "", bin.count),
        ]
    };
    let mut rows: Vec<Row> = table.bins().flat_map(of_bin).collect();
    let error = table.error().map(|error| 100.0 * error);
    rows.extend(
        error.map(|error| Row::new("eke", std::slice::from_ref(&horizon), "calibration error", "%", error)),
    );
    rows
}
