//! From "which is next" to "does it start soon": how many programs start within the horizon, and what probabilities turned out to mean.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::calibration::{Calibration, Reliability};
use crate::program::ProgramId;

/// Seconds of the horizon by which probabilities are learned: ten minutes.
pub const HORIZON_S: f64 = 600.0;

/// Forecasts that wait to be seen true or not.
const PENDING: usize = 64;

/// Programs of a forecast that are looked at again: the likeliest.
const WATCHED: usize = 32;

/// Seconds between forecasts that are looked at again.
const APART_S: f64 = HORIZON_S / 32.0;

/// The number of places in a session with means of their own.
const PLACES: usize = 8;

/// After so many the mean of starts within the horizon follows what is new.
const MEMORY: f64 = 50.0;

/// A running mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Mean {
    value: f64,
    count: f64,
}

/// What is forecast.
#[derive(Debug, Clone, PartialEq)]
struct Forecast {
    at_s: f64,
    place: usize,
    starts: u32,
    /// Program, raw probability, and did it start?
    programs: Vec<(ProgramId, f64, bool)>,
}

/// How starts come, learned by looking at forecasts again. Times are those of [`crate::predict::clock::Clock`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecasts {
    starts: Vec<Mean>,
    calibration: Calibration,
    reliability: Reliability,
    #[serde(skip)]
    pending: VecDeque<Forecast>,
}

impl Default for Forecasts {
    fn default() -> Self {
        Self {
            starts: vec![Mean { value: 1.0, count: 1.0 }; PLACES],
            calibration: Calibration::default(),
            reliability: Reliability::default(),
            pending: VecDeque::new(),
        }
    }
}

impl Forecasts {
    /// The probability that a program with this share in being next starts within a horizon, as starts come evenly, at this place in a session.
    pub fn raw(&self, share: f64, place: usize, horizon_s: f64) -> f64 {
        let starts = self.starts.get(place).map_or(1.0, |mean| mean.value);
        let scale = (horizon_s / HORIZON_S).clamp(0.0, 1e6);
        1.0 - (-starts * scale * share).exp()
    }

    /// The same, as such probabilities turned out.
    pub fn calibrated(&self, raw: f64) -> f64 {
        self.calibration.of(raw)
    }

    /// What calibrated probabilities turned out to mean.
    pub fn reliability(&self) -> &Reliability {
        &self.reliability
    }

    /// Keeps a forecast, to be looked at again. `likeliest` are programs with their raw probabilities, likeliest first.
    pub fn keep(&mut self, now_s: f64, place: usize, likeliest: &[(ProgramId, f64)]) {
        if self.pending.back().is_some_and(|last| now_s - last.at_s < APART_S)
            || self.pending.len() >= PENDING
        {
            return;
        }
        let programs = likeliest.iter().take(WATCHED).map(|(program, raw)| (*program, *raw, false)).collect();
        self.pending.push_back(Forecast { at_s: now_s, place, starts: 0, programs });
    }

    /// A program started.
    pub fn started(&mut self, program: ProgramId, now_s: f64) {
        self.pass(now_s);
        for forecast in &mut self.pending {
            forecast.starts += 1;
            forecast
                .programs
                .iter_mut()
                .filter(|(p, ..)| *p == program)
                .for_each(|(.., started)| *started = true);
        }
    }

    /// Looks again at forecasts whose horizon is over.
    pub fn pass(&mut self, now_s: f64) {
        let over = self.pending.iter().take_while(|forecast| now_s - forecast.at_s > HORIZON_S).count();
        for over in self.pending.drain(..over) {
            if let Some(mean) = self.starts.get_mut(over.place) {
                mean.count = (mean.count + 1.0).min(MEMORY);
                mean.value += (f64::from(over.starts) - mean.value) / mean.count;
            }
            for (_, raw, started) in &over.programs {
                self.reliability.add(self.calibration.of(*raw), *started);
            }
            self.calibration.learn(over.programs.iter().map(|(_, raw, started)| (*raw, *started)));
        }
    }

    /// Puts right what a foreign state may have.
    pub fn mend(&mut self) {
        self.starts.resize(PLACES, Mean { value: 1.0, count: 1.0 });
        for mean in &mut self.starts {
            let sound =
                mean.value.is_finite() && mean.count.is_finite() && mean.value >= 0.0 && mean.count >= 1.0;
            *mean = if sound { *mean } else { Mean { value: 1.0, count: 1.0 } };
        }
        self.calibration.mend();
        self.reliability.mend();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_within_the_horizon_are_counted_and_later_ones_not() {
        let mut forecasts = Forecasts::default();
        let (a, b) = (ProgramId(1), ProgramId(2));
        for round in 0..200 {
            let from = f64::from(round) * 10.0 * HORIZON_S;
            forecasts.keep(from, 0, &[(a, 0.9), (b, 0.05)]);
            (1..=3).for_each(|i| forecasts.started(a, from + f64::from(i) * 10.0));
            forecasts.started(b, from + HORIZON_S + 1.0);
        }
        assert!((forecasts.starts[0].value - 3.0).abs() < 0.1, "{:?}", forecasts.starts[0]);
        assert!(forecasts.calibrated(0.9) > 0.93 && forecasts.calibrated(0.05) < 0.03);
    }
}
