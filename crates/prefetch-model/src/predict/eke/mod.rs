//! eke's own predictor.
//!
//! For each user nine experts predict the next program (`habits`): counts that fade with three half-lives, what follows the last program (fading
//! slowly and quickly) and the one before it, the time of day and of week, and the position in the session. Their weights are learned online from how
//! each predicted the outcomes (`mix`). A program's share of being next becomes a probability to start within a horizon: from the number of starts in
//! that time, combined with how often it started within the horizon after the same log-in or start, in any order (`context_counts`), and calibrated by
//! earlier outcomes (`forecast`, [`calibration`], `isotone`).
//!
//! It predicts for the person who started something or logged in last. User 0 stands for root and services, and is predicted only while no person was
//! seen within a week. All counts fade by events, not by time. Memory is bounded to 2000 programs and 32 users; the longest unused go first.

pub mod calibration;
mod circle;
mod context_counts;
mod fading_counts;
mod forecast;
mod habits;
mod isotone;
mod mix;
mod state;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use state::StateError;

use self::calibration::Reliability;
use self::fading_counts::FadingCounts;
use self::forecast::Forecasts;
use self::habits::Habits;
use super::clock::Clock;
use super::running::Running;
use super::{Chance, sort};
use crate::program::ProgramId;
use crate::user_event::{Event, UserEvent};

/// The learned horizons in seconds: until about the next decision, and a while.
pub const HORIZONS_S: [f64; 2] = [60.0, 600.0];

/// The most programs.
pub const PROGRAMS: usize = 2000;

/// The most users, and how many stay where the state has no room for as many.
pub const USERS: usize = 32;
const LEAST_USERS: usize = 8;

/// A person who starts nothing for so long (a week) no longer keeps root from being predicted.
const FORGOTTEN_S: f64 = 604_800.0;

/// Half-life, in starts, of the counts over all users.
const ALL_USERS: f64 = 600.0;

/// eke's predictor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Eke {
    clock: Clock,
    /// When each program started last, by the clock.
    known: BTreeMap<ProgramId, f64>,
    all_users: FadingCounts,
    users: BTreeMap<u32, User>,
    /// See [`Eke::user`].
    user: u32,
    /// One for each of [`HORIZONS_S`].
    forecasts: Vec<Forecasts>,
}

/// A user, and the time of the user's last event by the clock.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct User {
    seen_s: f64,
    habits: Habits,
    /// What runs for this user: another one's process does not keep a program from being started.
    #[serde(skip)]
    running: Running,
}

/// The programs that may start, and the share of each of being next.
struct Shares {
    candidates: Vec<ProgramId>,
    by_expert: Vec<Vec<f64>>,
    mixed: Vec<f64>,
}

impl Default for Eke {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            known: BTreeMap::new(),
            all_users: FadingCounts::default(),
            users: BTreeMap::new(),
            user: 0,
            forecasts: HORIZONS_S.map(Forecasts::new).into(),
        }
    }
}

impl Eke {
    /// Learns from an event.
    pub fn observe(&mut self, happened: &UserEvent) {
        let now_s = self.clock.advance(happened.at_s);
        self.forecasts.iter_mut().for_each(|forecasts| forecasts.pass(now_s));
        if !matches!(happened.event, Event::Stop(_)) {
            let seen_s = self.users.get(&self.user).map_or(f64::MIN, |user| user.seen_s);
            // Root's starts are usually no person's, but a person may always work as root.
            if happened.user != 0 || now_s - seen_s > FORGOTTEN_S {
                self.user = happened.user;
            }
            self.users.entry(happened.user).or_default().seen_s = now_s;
        }
        match happened.event {
            Event::Session => self.users.entry(happened.user).or_default().habits.begin(),
            Event::Start(program) => {
                self.learn(happened.user, program, happened.at_s);
                self.forecasts.iter_mut().for_each(|forecasts| forecasts.started(program));
            }
            Event::Stop(_) => {}
        }
        let user = self.users.get_mut(&happened.user);
        user.into_iter().for_each(|user| _ = user.running.observe(happened));
        self.forecast(happened.at_s);
    }

    /// The user whose programs are predicted: a person, or 0 while none was seen within a week.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The probabilities that known, not running programs start from `now_s` (in the time of events) until `horizon_s` seconds later: likeliest
    /// first, ties by id, each program once. Programs that are absent have probability 0.
    pub fn chances(&mut self, now_s: f64, horizon_s: f64) -> Vec<Chance> {
        let nobody = User::default();
        let user = self.users.get(&self.user).unwrap_or(&nobody);
        let shares = self.shares(user, now_s);
        let context = user.habits.context(self.user);
        let learned = nearest(&self.forecasts, horizon_s);
        let probability = |program: ProgramId, share: f64| {
            learned.map_or(0.0, |forecasts| forecasts.probability(context, program, share, horizon_s))
        };
        let all = shares.candidates.iter().zip(&shares.mixed);
        let mut chances: Vec<Chance> = all
            .map(|(program, share)| Chance { program: *program, probability: probability(*program, *share) })
            .collect();
        sort(&mut chances);
        chances
    }

    /// Its state as bytes for [`Self::from_state`], without the running programs.
    ///
    /// # Errors
    /// [`StateError::Form`]; states that events produce can always be written.
    pub fn to_state(&self) -> Result<Vec<u8>, StateError> {
        state::to_state(self)
    }

    /// Restores a predictor from these bytes.
    ///
    /// # Errors
    /// The bytes are not a state of this version; start from `Eke::default()` then.
    pub fn from_state(bytes: &[u8]) -> Result<Self, StateError> {
        state::from_state(bytes)
    }

    /// Marks a user's program as running without learning from it, for programs that run before this process starts.
    pub fn found_running(&mut self, program: ProgramId, user: u32, now_s: f64) {
        let found = UserEvent { at_s: now_s, user, event: Event::Start(program) };
        self.users.entry(user).or_default().running.observe(&found);
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.known.remove(&program);
        self.all_users.forget(program);
        self.users.values_mut().for_each(|user| user.habits.forget(program));
        self.forecasts.iter_mut().for_each(|forecasts| forecasts.forget(program, self.users.keys().copied()));
    }

    /// An upgrade gave a program another id, which inherits its habits.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId) {
        let Some(started_s) = self.known.remove(&old) else { return };
        self.known.entry(new).or_insert(started_s);
        self.all_users.rename(old, new);
        self.users.values_mut().for_each(|user| user.habits.rename(old, new));
        for forecasts in &mut self.forecasts {
            forecasts.rename(old, new, self.users.keys().copied());
        }
    }

    /// Forgets the longest unseen of many users, or else the longest unused programs, a sixteenth of all, so that its state gets smaller; returns whether
    /// there were any.
    pub fn forget_longest_unused(&mut self) -> bool {
        if self.users.len() > LEAST_USERS {
            self.forget_longest_unseen();
            return true;
        }
        let unused = oldest(self.known.iter().map(|(p, at)| (*at, *p)), self.known.len().div_ceil(16));
        unused.iter().for_each(|program| self.forget(*program));
        !unused.is_empty()
    }

    /// Forgets the other users: an earlier eke kept services, too. Of those that stay, the one seen last is predicted.
    pub fn keep_users(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.users.retain(|number, _| *number == 0 || is_kept(*number));
        if self.user == 0 || !self.users.contains_key(&self.user) {
            let people = self.users.iter().filter(|(number, _)| **number != 0);
            let last = people.max_by(|a, b| a.1.seen_s.total_cmp(&b.1.seen_s));
            self.user = last.map_or(0, |(number, _)| *number);
        }
    }

    /// Forgets a user's habits with a program.
    pub fn forget_of(&mut self, user: u32, program: ProgramId) {
        self.users.get_mut(&user).into_iter().for_each(|user| user.habits.forget(program));
    }

    /// The reliability of its predictions, with the horizon in seconds of each table.
    pub fn reliability(&self) -> impl Iterator<Item = (f64, &Reliability)> + '_ {
        self.forecasts.iter().map(|forecasts| (forecasts.horizon_s(), forecasts.reliability()))
    }

    /// The experts' weights for the predicted user, in this order: long, medium and short half-life, after the last program (slow, quick), after the
    /// one before it, day, week, opening.
    pub fn weights(&self) -> Vec<f64> {
        self.users.get(&self.user).map_or_else(Vec::new, |user| user.habits.weights().to_vec())
    }

    fn shares(&self, user: &User, now_s: f64) -> Shares {
        let candidates: Vec<ProgramId> =
            self.known.keys().filter(|p| !user.running.has(**p)).copied().collect();
        let even = 1.0 / candidates.len().max(1) as f64;
        let mut counts = vec![even; candidates.len()];
        self.all_users.add_to(&candidates, 1.0, &mut counts);
        let total: f64 = counts.iter().sum();
        counts.iter_mut().for_each(|count| *count /= total);
        let by_expert = user.habits.predictions(&candidates, &counts, now_s);
        let mixed = user.habits.mixed(&by_expert, candidates.len());
        Shares { candidates, by_expert, mixed }
    }

    fn learn(&mut self, by: u32, program: ProgramId, at_s: f64) {
        let mut user = self.users.remove(&by).unwrap_or_default();
        let shares = self.shares(&user, at_s);
        let given = shares.candidates.binary_search(&program).ok();
        let given: Option<Vec<f64>> =
            given.map(|at| shares.by_expert.iter().map(|shares| shares[at]).collect());
        user.habits.learn(program, at_s, given.as_deref());
        self.users.insert(by, user);
        self.all_users.add(program, ALL_USERS, usize::MAX);
        self.known.insert(program, self.clock.counted_s());
        self.bound();
    }

    /// Enforces the bounds: drops the longest unused, a sixteenth at once so that this is rare.
    fn bound(&mut self) {
        if self.known.len() > PROGRAMS {
            for program in oldest(self.known.iter().map(|(p, at)| (*at, *p)), PROGRAMS / 16) {
                self.forget(program);
            }
        }
        if self.users.len() > USERS {
            self.forget_longest_unseen();
        }
    }

    /// The predicted user stays.
    fn forget_longest_unseen(&mut self) {
        let others = self.users.iter().filter(|(number, _)| **number != self.user);
        for number in oldest(others.map(|(number, user)| (user.seen_s, *number)), 1) {
            self.users.remove(&number);
        }
    }

    fn forecast(&mut self, at_s: f64) {
        let Some(user) = self.users.get(&self.user) else { return };
        let (now_s, context) = (self.clock.counted_s(), user.habits.context(self.user));
        if !self.forecasts.iter().any(|forecasts| forecasts.accepts(now_s, context)) {
            return;
        }
        let Shares { candidates, mixed, .. } = self.shares(user, at_s);
        let shares: Vec<(ProgramId, f64)> = candidates.into_iter().zip(mixed).collect();
        for forecasts in self.forecasts.iter_mut().filter(|forecasts| forecasts.accepts(now_s, context)) {
            forecasts.keep(now_s, context, &shares);
        }
    }

    /// Resets invalid numbers of a stored state.
    fn sanitize(&mut self) {
        self.all_users.sanitize(usize::MAX);
        self.users.values_mut().for_each(|user| user.habits.sanitize());
        self.forecasts.resize_with(HORIZONS_S.len(), || Forecasts::new(HORIZONS_S[0]));
        for (forecasts, horizon_s) in self.forecasts.iter_mut().zip(HORIZONS_S) {
            forecasts.sanitize(horizon_s, PROGRAMS + USERS);
        }
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

/// The `count` items with the lowest times, ties by item.
fn oldest<T: Ord + Copy>(all: impl Iterator<Item = (f64, T)>, count: usize) -> Vec<T> {
    let mut all: Vec<(f64, T)> = all.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(count).map(|(_, item)| item).collect()
}

/// The forecasts with the nearest horizon, by ratio.
fn nearest(all: &[Forecasts], horizon_s: f64) -> Option<&Forecasts> {
    let far = |forecasts: &Forecasts| (horizon_s.max(1.0) / forecasts.horizon_s()).ln().abs();
    all.iter().min_by(|a, b| far(a).total_cmp(&far(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERSON: u32 = 1000;

    fn start(eke: &mut Eke, at_s: f64, user: u32, program: u64) {
        let program = ProgramId(program);
        eke.observe(&UserEvent { at_s, user, event: Event::Start(program) });
        eke.observe(&UserEvent { at_s: at_s + 1.0, user, event: Event::Stop(program) });
    }

    #[test]
    fn root_and_services_do_not_replace_the_person() {
        let mut eke = Eke::default();
        start(&mut eke, 0.0, 0, 9);
        assert_eq!(eke.user(), 0, "no person was seen");
        for round in 1..100 {
            let at_s = f64::from(round) * 1e4;
            start(&mut eke, at_s, PERSON, 1);
            start(&mut eke, at_s + 10.0, 0, 9);
            start(&mut eke, at_s + 20.0, PERSON, 2);
        }
        start(&mut eke, 2e6, PERSON, 1);
        start(&mut eke, 2e6 + 10.0, 0, 9);
        assert_eq!(eke.user(), PERSON);
        assert_eq!(eke.users[&PERSON].habits.programs().collect::<Vec<_>>(), [1, 2].map(ProgramId));
        assert_eq!(
            eke.chances(2e6 + 11.0, 60.0)[0].program,
            ProgramId(2),
            "it follows what the person started"
        );
    }

    #[test]
    fn what_runs_for_another_user_is_predicted() {
        let (mut eke, greeter, shell) = (Eke::default(), 0, ProgramId(1));
        (0..9).for_each(|n| start(&mut eke, f64::from(n) * 100.0, PERSON, shell.0));
        let mut event = |at_s, user, event| {
            eke.observe(&UserEvent { at_s, user, event });
            eke.chances(at_s, 60.0).iter().any(|chance| chance.program == shell)
        };
        assert!(event(1000.0, greeter, Event::Start(shell)), "the greeter's runs");
        assert!(!event(1001.0, PERSON, Event::Start(shell)), "the person's runs");
        assert!(!event(1002.0, greeter, Event::Stop(shell)));
        assert!(event(1003.0, PERSON, Event::Stop(shell)));
        eke.found_running(shell, greeter, 1004.0);
        assert!(eke.chances(1004.0, 60.0).iter().any(|chance| chance.program == shell));
        eke.found_running(shell, PERSON, 1004.0);
        assert!(eke.chances(1004.0, 60.0).is_empty());
    }

    #[test]
    fn a_renamed_program_keeps_its_habits() {
        let habits_with = |program: u64| {
            let mut eke = Eke::default();
            for round in 0..30 {
                let at_s = f64::from(round) * 1e4;
                eke.observe(&UserEvent { at_s, user: PERSON, event: Event::Session });
                start(&mut eke, at_s + 10.0, PERSON, program);
                start(&mut eke, at_s + 20.0, PERSON, 9);
            }
            start(&mut eke, 3e5, PERSON, program);
            eke
        };
        let (mut renamed, mut other) = (habits_with(2), habits_with(3));
        renamed.rename(ProgramId(2), ProgramId(3));
        renamed.rename(ProgramId(2), ProgramId(9));
        assert_eq!(renamed.chances(3.001e5, 600.0), other.chances(3.001e5, 600.0));
        assert_eq!(renamed.to_state().unwrap(), other.to_state().unwrap(), "nothing of the old id stays");
        assert!(renamed.chances(3.001e5, 600.0)[0].probability > 0.5);
    }

    #[test]
    fn a_person_who_started_nothing_for_a_week_gives_way_to_root() {
        let mut eke = Eke::default();
        start(&mut eke, 0.0, PERSON, 1);
        let mut at_s = 0.0;
        while eke.user() == PERSON && at_s < 1e8 {
            at_s += 3_600.0;
            start(&mut eke, at_s, 0, 9);
        }
        assert!((FORGOTTEN_S..1e8).contains(&at_s), "{at_s}");
        start(&mut eke, at_s + 60.0, PERSON, 1);
        assert_eq!(eke.user(), PERSON);
    }

    #[test]
    fn the_longest_unseen_users_go() {
        let mut eke = Eke::default();
        (0..100).for_each(|n| start(&mut eke, f64::from(n) * 100.0, PERSON + n, 1));
        assert!(eke.users.keys().copied().eq(PERSON + 100 - USERS as u32..PERSON + 100));
        while eke.users.len() > LEAST_USERS {
            assert!(eke.forget_longest_unused());
        }
        assert_eq!((eke.known.len(), eke.user()), (1, PERSON + 99), "users go before programs");
    }

    #[test]
    fn users_that_are_no_people_are_forgotten() {
        let mut eke = Eke::default();
        [0, PERSON, PERSON + 1, 33]
            .iter()
            .enumerate()
            .for_each(|(n, user)| start(&mut eke, n as f64, *user, 1));
        eke.keep_users(|user| user >= PERSON);
        assert_eq!((eke.users.len(), eke.user()), (3, PERSON + 1));
        eke.keep_users(|_| false);
        assert_eq!((eke.users.len(), eke.user()), (1, 0));
    }
}
