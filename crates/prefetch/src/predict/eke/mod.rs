//! eke's own predictor.
//!
//! For each user nine experts say which program is next ([`habits`]): counts that fade with three half-lives, what follows the last program
//! (slowly and quickly fading) and the one before it, the time of day and of week, and the place in the session. Their weights
//! are learned online by what each had given to what came ([`mix`]). A program's share in being next becomes a probability to start within a
//! horizon by how many start in that time, and is calibrated by how such probabilities turned out ([`forecast`], [`calibration`]).
//!
//! It speaks for the user who started something or logged in last. All counts fade by events, not by time. Memory is bounded: 2000 programs
//! and 8 users, the longest unused go first.

pub mod calibration;
mod circle;
mod forecast;
mod habits;
mod mix;
mod row;
mod state;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use forecast::HORIZON_S;
pub use state::StateError;

use self::calibration::Reliability;
use self::forecast::Forecasts;
use self::habits::Habits;
use self::row::Row;
use super::clock::Clock;
use super::running::Running;
use super::{Chance, Predictor, sort};
use crate::happened::{Event, Happened};
use crate::program::ProgramId;

/// The most programs that are known.
pub const PROGRAMS: usize = 2000;

/// The most users.
pub const USERS: usize = 8;

/// Half-life, in starts, of what all users do.
const EVERYBODY: f64 = 600.0;

/// eke's predictor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Eke {
    clock: Clock,
    #[serde(skip)]
    running: Running,
    /// When each program started last, by the clock.
    known: BTreeMap<ProgramId, f64>,
    everybody: Row,
    users: BTreeMap<u32, User>,
    /// Whose programs are predicted.
    user: u32,
    forecasts: Forecasts,
}

/// A user, and when there was a sign of that one last, by the clock.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct User {
    seen_s: f64,
    habits: Habits,
}

/// Which programs may start, and the share of each in being next.
struct Shares {
    candidates: Vec<ProgramId>,
    told: Vec<Vec<f64>>,
    mixed: Vec<f64>,
}

impl Eke {
    /// What it knows, as bytes for [`Self::from_state`]; which programs run is not in it.
    ///
    /// # Errors
    /// As [`StateError`] says; none for what it knows by events.
    pub fn to_state(&self) -> Result<Vec<u8>, StateError> {
        state::to_state(self)
    }

    /// The predictor that had these bytes.
    ///
    /// # Errors
    /// The bytes are no state of this version; begin with `Eke::default()` then.
    pub fn from_state(bytes: &[u8]) -> Result<Self, StateError> {
        state::from_state(bytes)
    }

    /// A program is found running, at the start of whoever feeds this: nothing is learned of it.
    pub fn found_running(&mut self, program: ProgramId, now_s: f64) {
        self.running.observe(&Happened { at_s: now_s, user: self.user, event: Event::Start(program) });
    }

    /// Drops all that is known of a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.known.remove(&program);
        self.everybody.forget(program);
        self.users.values_mut().for_each(|user| user.habits.forget(program));
    }

    /// What its probabilities for [`HORIZON_S`] turned out to mean.
    pub fn reliability(&self) -> &Reliability {
        self.forecasts.reliability()
    }

    /// The weights of the experts for the user whose programs are predicted: lasting, late, now, after, after (quick), after the one
    /// before, day, week, opening.
    pub fn weights(&self) -> Vec<f64> {
        self.users.get(&self.user).map_or_else(Vec::new, |user| user.habits.weights().to_vec())
    }

    fn shares(&self, habits: &Habits, now_s: f64) -> Shares {
        let candidates: Vec<ProgramId> =
            self.known.keys().filter(|p| !self.running.has(**p)).copied().collect();
        let even = 1.0 / candidates.len().max(1) as f64;
        let mut counts = vec![even; candidates.len()];
        self.everybody.add_to(&candidates, 1.0, &mut counts);
        let total: f64 = counts.iter().sum();
        counts.iter_mut().for_each(|count| *count /= total);
        let told = habits.told(&candidates, &counts, now_s);
        let mixed = habits.mixed(&told, candidates.len());
        Shares { candidates, told, mixed }
    }

    fn learn(&mut self, program: ProgramId, at_s: f64) {
        let mut user = self.users.remove(&self.user).unwrap_or_default();
        let shares = self.shares(&user.habits, at_s);
        let given = shares.candidates.binary_search(&program).ok();
        let given: Option<Vec<f64>> = given.map(|at| shares.told.iter().map(|told| told[at]).collect());
        user.habits.learn(program, at_s, given.as_deref());
        self.users.insert(self.user, user);
        self.everybody.add(program, EVERYBODY, usize::MAX);
        self.known.insert(program, self.clock.counted_s());
        self.bound();
    }

    /// Keeps to the bounds: the longest unused go, a sixteenth at once, so that it is seldom.
    fn bound(&mut self) {
        if self.known.len() > PROGRAMS {
            for program in oldest(self.known.iter().map(|(p, at)| (*at, *p)), PROGRAMS / 16) {
                self.forget(program);
            }
        }
        if self.users.len() > USERS {
            let others = self.users.iter().filter(|(number, _)| **number != self.user);
            for number in oldest(others.map(|(number, user)| (user.seen_s, *number)), 1) {
                self.users.remove(&number);
            }
        }
    }

    fn forecast(&mut self, at_s: f64) {
        let Some(user) = self.users.get(&self.user) else { return };
        let shares = self.shares(&user.habits, at_s);
        let place = user.habits.started();
        let raw = shares.mixed.iter().map(|share| self.forecasts.raw(*share, place, HORIZON_S));
        let mut likeliest: Vec<(ProgramId, f64)> = shares.candidates.iter().copied().zip(raw).collect();
        likeliest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.forecasts.keep(self.clock.counted_s(), place, &likeliest);
    }

    /// Puts right what a foreign state may have.
    fn mend(&mut self) {
        self.everybody.mend(usize::MAX);
        self.users.values_mut().for_each(|user| user.habits.mend());
        self.forecasts.mend();
        let users: Vec<ProgramId> = self.users.values().flat_map(|user| user.habits.programs()).collect();
        for program in users {
            self.known.entry(program).or_insert(0.0);
        }
        self.known.values_mut().filter(|at| !at.is_finite()).for_each(|at| *at = 0.0);
        while self.known.len() > PROGRAMS || self.users.len() > USERS {
            self.bound();
        }
    }
}

/// Those with the least time, so many; alike by their number.
fn oldest<T: Ord + Copy>(all: impl Iterator<Item = (f64, T)>, count: usize) -> Vec<T> {
    let mut all: Vec<(f64, T)> = all.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(count).map(|(_, item)| item).collect()
}

impl Predictor for Eke {
    fn name(&self) -> &'static str {
        "eke"
    }

    fn observe(&mut self, happened: &Happened) {
        let now_s = self.clock.advance(happened.at_s);
        self.forecasts.pass(now_s);
        if !matches!(happened.event, Event::Stop(_)) {
            self.user = happened.user;
            self.users.entry(happened.user).or_default().seen_s = now_s;
        }
        match happened.event {
            Event::Session => self.users.entry(happened.user).or_default().habits.begin(),
            Event::Start(program) => {
                self.learn(program, happened.at_s);
                self.forecasts.started(program, now_s);
            }
            Event::Stop(_) => {}
        }
        self.running.observe(happened);
        self.forecast(happened.at_s);
    }

    fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance> {
        let nobody = Habits::default();
        let habits = self.users.get(&self.user).map_or(&nobody, |user| &user.habits);
        let shares = self.shares(habits, now_s);
        let probability =
            |share: f64| self.forecasts.calibrated(self.forecasts.raw(share, habits.started(), horizon_s));
        let all = shares.candidates.iter().zip(&shares.mixed);
        let mut chances: Vec<Chance> = all
            .map(|(program, share)| Chance { program: *program, probability: probability(*share) })
            .collect();
        sort(&mut chances);
        chances
    }
}
