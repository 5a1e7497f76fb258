//! Turns "which program is next" into "does it start soon": learns how many programs start within a horizon, which start there in any order, and how
//! predictions turned out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::calibration::{Calibration, PARTS, Reliability};
use super::context_counts::ContextCounts;
use super::isotone::Isotone;
use crate::program::ProgramId;

/// The most forecasts that wait for their outcome.
const PENDING: usize = 64;

/// Programs per forecast whose outcome is checked: the likeliest.
const WATCHED: usize = 32;

/// The least distance between checked forecasts, as a share of the horizon.
const APART: f64 = 1.0 / 32.0;

/// The number of positions in a session with means of their own.
const PLACES: usize = 8;

/// The mean of starts within the horizon adapts at this rate after this many.
const MEMORY: f64 = 50.0;

/// A running mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Mean {
    value: f64,
    count: f64,
}

const ONE: Mean = Mean { value: 1.0, count: 1.0 };

/// The situation of a forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// A hash of the user and the program started last in this session, if any.
    pub key: ProgramId,
    /// Starts since the session began.
    pub place: usize,
}

impl Context {
    /// A user's context after a start or a log-in.
    pub fn new(user: u32, last: Option<ProgramId>, place: usize) -> Self {
        let last = last.map_or([0; 8], |last| last.0.to_le_bytes());
        Self { key: ProgramId::of_name(&[&user.to_le_bytes()[..], &last].concat()), place }
    }
}

/// A prediction that waits for its outcome.
#[derive(Debug, Clone, PartialEq)]
struct Forecast {
    at_s: f64,
    context: Context,
    starts: u32,
    started: BTreeSet<ProgramId>,
    /// Programs with the probabilities to combine.
    programs: Vec<(ProgramId, [f64; PARTS])>,
}

/// Learns how programs start within one horizon from the outcomes of forecasts. Times are those of [`crate::predict::clock::Clock`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecasts {
    horizon_s: f64,
    starts: Vec<Mean>,
    contexts: BTreeMap<ProgramId, ContextCounts>,
    calibration: Calibration,
    isotone: Isotone,
    reliability: Reliability,
    #[serde(skip)]
    pending: VecDeque<Forecast>,
}

impl Forecasts {
    /// For a horizon in seconds.
    pub fn new(horizon_s: f64) -> Self {
        Self {
            horizon_s,
            starts: vec![ONE; PLACES],
            contexts: BTreeMap::new(),
            calibration: Calibration::default(),
            isotone: Isotone::default(),
            reliability: Reliability::default(),
            pending: VecDeque::new(),
        }
    }

    /// The horizon in seconds.
    pub fn horizon_s(&self) -> f64 {
        self.horizon_s
    }

    /// Two probabilities that a program with this share of being next starts within the horizon: one as if all starts were drawn like the next one,
    /// one from how often it started in this context.
    fn parts(&self, context: Context, program: ProgramId, share: f64) -> [f64; PARTS] {
        let starts = self.starts.get(context.place).map_or(1.0, |mean| mean.value);
        let drawn = 1.0 - (-starts * share).exp();
        let seen = self.contexts.get(&context.key).map_or(drawn, |within| within.probability(program, drawn));
        [drawn, seen]
    }

    /// The probability that a program starts within `horizon_s`: combined and calibrated for the learned horizon, and scaled to others as if starts
    /// were evenly distributed, 1 - (1 - p)^(horizon / learned).
    pub fn probability(&self, context: Context, program: ProgramId, share: f64, horizon_s: f64) -> f64 {
        let not = 1.0 - self.isotone.of(self.calibration.of(self.parts(context, program, share)));
        let horizons = (horizon_s / self.horizon_s).clamp(0.0, 1e6);
        if horizons.is_finite() { 1.0 - not.powf(horizons) } else { 0.0 }
    }

    /// The reliability of calibrated probabilities.
    pub fn reliability(&self) -> &Reliability {
        &self.reliability
    }

    /// Whether to keep a forecast now: not right after another of the same context, and not while too many are pending.
    pub fn accepts(&self, now_s: f64, context: Context) -> bool {
        let apart_s = APART * self.horizon_s;
        let soon =
            self.pending.back().is_some_and(|last| now_s - last.at_s < apart_s && last.context == context);
        !soon && self.pending.len() < PENDING
    }

    /// Keeps a forecast to check later. `shares` are programs with their shares of being next.
    pub fn keep(&mut self, now_s: f64, context: Context, shares: &[(ProgramId, f64)]) {
        let parts = |(program, share): &(ProgramId, f64)| (*program, self.parts(context, *program, *share));
        let mut programs: Vec<(ProgramId, [f64; PARTS])> = shares.iter().map(parts).collect();
        let sum = |parts: [f64; PARTS]| parts.iter().sum::<f64>();
        programs.sort_by(|a, b| sum(b.1).total_cmp(&sum(a.1)).then(a.0.cmp(&b.0)));
        programs.truncate(WATCHED);
        self.pending.push_back(Forecast {
            at_s: now_s,
            context,
            starts: 0,
            started: BTreeSet::new(),
            programs,
        });
    }

    /// Counts a program's start.
    pub fn started(&mut self, program: ProgramId) {
        for forecast in &mut self.pending {
            forecast.starts += 1;
            forecast.started.insert(program);
        }
    }

    /// Learns from forecasts whose horizon is over.
    pub fn pass(&mut self, now_s: f64) {
        let over = self.pending.iter().take_while(|forecast| now_s - forecast.at_s > self.horizon_s).count();
        for over in self.pending.drain(..over).collect::<Vec<_>>() {
            self.learn(&over);
        }
    }

    fn learn(&mut self, over: &Forecast) {
        if let Some(mean) = self.starts.get_mut(over.context.place) {
            mean.count = (mean.count + 1.0).min(MEMORY);
            mean.value += (f64::from(over.starts) - mean.value) / mean.count;
        }
        self.contexts.entry(over.context.key).or_default().learn(over.started.iter().copied());
        let outcome = |(program, parts): &(ProgramId, [f64; PARTS])| (*parts, over.started.contains(program));
        let predicted: Vec<(f64, bool)> = over
            .programs
            .iter()
            .map(outcome)
            .map(|(parts, started)| (self.calibration.of(parts), started))
            .collect();
        predicted.iter().for_each(|(p, started)| self.reliability.add(self.isotone.of(*p), *started));
        self.isotone.learn(predicted.into_iter());
        self.calibration.learn(over.programs.iter().map(outcome));
    }

    /// Forgets a program, also in contexts where these users started it last.
    pub fn forget(&mut self, program: ProgramId, users: impl Iterator<Item = u32>) {
        users.for_each(|user| drop(self.contexts.remove(&Context::new(user, Some(program), 0).key)));
        self.contexts.values_mut().for_each(|within| within.forget(program));
    }

    /// A program goes on under another id, also in contexts where these users started it last.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId, users: impl Iterator<Item = u32>) {
        for user in users {
            let key = |last| Context::new(user, Some(last), 0).key;
            let within = self.contexts.remove(&key(old));
            within.map(|within| self.contexts.insert(key(new), within));
        }
        self.contexts.values_mut().for_each(|within| within.rename(old, new));
    }

    /// Resets invalid numbers and keeps at most `limit` contexts.
    pub fn sanitize(&mut self, horizon_s: f64, limit: usize) {
        self.horizon_s = horizon_s;
        self.starts.resize(PLACES, ONE);
        for mean in &mut self.starts {
            let sound =
                mean.value.is_finite() && mean.count.is_finite() && mean.value >= 0.0 && mean.count >= 1.0;
            *mean = if sound { *mean } else { ONE };
        }
        self.contexts.retain(|_, within| within.is_sound());
        while self.contexts.len() > limit {
            self.contexts.pop_last();
        }
        self.calibration.sanitize();
        self.isotone.sanitize();
        self.reliability.sanitize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON_S: f64 = 600.0;

    #[test]
    fn starts_within_the_horizon_are_counted_and_later_ones_not() {
        let mut forecasts = Forecasts::new(HORIZON_S);
        let (a, b, c) = (ProgramId(1), ProgramId(2), ProgramId(3));
        let context = Context::new(1, None, 0);
        for round in 0..200 {
            let from = f64::from(round) * 10.0 * HORIZON_S;
            forecasts.keep(from, context, &[(a, 0.9), (b, 0.05), (c, 0.05)]);
            [a, a, b].into_iter().for_each(|program| forecasts.started(program));
            forecasts.pass(from + HORIZON_S + 1.0);
            forecasts.started(c);
        }
        assert!((forecasts.starts[0].value - 3.0).abs() < 0.1, "{:?}", forecasts.starts[0]);
        let predicted = [a, b, c].map(|program| forecasts.probability(context, program, 0.3, HORIZON_S));
        assert!(
            predicted[0] > 0.8 && predicted[1] > 0.8 && predicted[2] < 0.2,
            "b is rarely next, but soon: {predicted:?}"
        );
        let sooner = forecasts.probability(context, a, 0.3, HORIZON_S / 2.0);
        assert!((1.0 - (1.0 - sooner).powi(2) - predicted[0]).abs() < 1e-9);
        assert_eq!(forecasts.probability(context, a, 0.3, 0.0), 0.0);
    }
}
