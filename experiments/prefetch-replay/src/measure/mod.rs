//! A trace lived through again by predictors: what they would have had in memory when it was needed.
//!
//! # Measures
//! - *Hit, maps*: of the maps that starting programs needed, the share that had been prefetched by the last decision before (thesis, section
//!   6.3.2: "in the previous cycle"). A map that is in memory for another reason, because another program uses it, is a miss.
//! - *Hit, bytes*: the same in bytes, of which only those count that were read (a kernel cuts preload's reads short).
//! - *Waste*: of the bytes that were prefetched, the share that no start used until the choice changed.
//! - *Rank*: how often the next program was the first, or among the first three or five, of those that do not run.
//!
//! All begins with nothing known and counts from the first start on: what is learned is paid for.
//!
//! # Time
//! - A decision is what is in memory `lead_s` seconds later, whoever decides: reading takes time. Until then the one before is.
//! - *Events*: naive, recency, eke and the oracle decide at once when something happens (all that happens at one instant is one
//!   event), as eke's remedy does.
//! - *Cycles*: preload and the thesis's model decide every 20 s, at multiples of it, by what they looked at then. Of the cycles between two
//!   events the first three and the last are decided, since their models learn from an event within two; in all
//!   others only preload's correlation moves, by little.
//! - A session that begins while no program runs follows a start of the machine: memory is empty.
//!
//! # Choice
//! Predictors of programs share one choice: a map is needed with 1 - Π (1 - P) over the programs that use it, and maps are taken by that
//! (`probability`, the thesis's order) or by that per byte (`per byte`, which is best where a request costs much and bytes little) while they fit the
//! budget. preload ranks maps itself (`own`: that is preload), as does the oracle: it knows what starts, and takes the maps of the next start first,
//! small before large. Their chances of programs go through the common choice as well, so that preload's model is told apart from its choice.
//!
//! The bare page cache is beside them: what of the launches' maps a cache of the same size has, that drops the least recently used.

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
pub use run::{run, run_told};

use super::trace::Trace;
use crate::predict::{Eke, Naive, Predictor, Preload, Recency, Thesis, Variant};
use eke_prefetch_model::predict::eke::calibration::{Bin, Reliability};

/// How it is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The bytes that may be prefetched at a time; each is a run of its own.
    pub budgets_bytes: Vec<u64>,
    /// Seconds from a decision until what it chose is in memory.
    pub lead_s: f64,
    /// Seconds for which programs' starts are predicted: about the time between decisions, since hits are of the last one.
    pub horizon_s: f64,
}

impl Settings {
    /// Budgets of a twentieth, a tenth and a fifth of all that the trace's programs use, none where it names no files; five seconds to read;
    /// a minute ahead.
    pub fn of(trace: &Trace) -> Self {
        let budgets = [20, 10, 5].map(|part| trace.maps.bytes() / part);
        let budgets_bytes = budgets.into_iter().filter(|bytes| *bytes > 0).collect();
        Self { budgets_bytes, lead_s: 5.0, horizon_s: 60.0 }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Whose: a predictor, `oracle`, `page cache`.
    pub variant: String,
    /// Under which conditions: `budget` in bytes, `order` of choice, `k` of ranks, `horizon` in seconds, `from` and `to` of reliability bins.
    pub params: BTreeMap<String, String>,
    /// Of what: `hit maps`, `hit bytes`, `waste`, `fetched per start`, `bound`, `hit at`, `predicted`, `observed`, `count`, `starts`.
    pub metric: String,
    /// Its unit: `%`, `bytes`, or none.
    pub unit: String,
    /// The figure.
    pub value: f64,
}

impl Row {
    fn new(variant: &str, params: &[(&str, String)], metric: &str, unit: &str, value: f64) -> Self {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { variant: variant.to_owned(), params, metric: metric.to_owned(), unit: unit.to_owned(), value }
    }
}

/// Those that a trace is replayed for.
const PREDICTORS: u64 = 7;

/// All figures of a trace. Where `bound` is 0, a budget held all that was wanted, and nothing can be told from its hits.
pub fn replay(trace: &Trace, settings: &Settings) -> Vec<Row> {
    replay_told(trace, settings, &mut |_, _| {})
}

/// The same; `tell` hears of each event that a predictor has lived through: how many are done, of how many.
pub fn replay_told(trace: &Trace, settings: &Settings, tell: &mut dyn FnMut(u64, u64)) -> Vec<Row> {
    let (mut done, whole) = (0, PREDICTORS * trace.happened.len() as u64);
    let mut one = || {
        done += 1;
        tell(done, whole);
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
        rows.extend(run::run_told(predictor, trace, settings, &mut one));
    }
    let mut eke = Eke::default();
    rows.extend(run::run_told(&mut eke, trace, settings, &mut one));
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
