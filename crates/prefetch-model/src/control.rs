//! Is prefetch of use on this machine? A randomised trial: of each program, some starts by chance are left alone, as a control, and their durations are
//! compared with those of the others. Pure.
//!
//! Whether a start is left alone does not depend on anything that makes it slow or fast (what is in memory, the hour), so the difference of the means
//! is the effect of prefetch, whatever else happens on the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_model::snapshot::PrefetchEffect;
use eke_statistics::random::Random;
use serde::{Deserialize, Serialize};

use crate::program::ProgramId;

/// The most programs that take part. Further ones are not left alone, and of those with recorded starts the one with the fewest goes.
const PROGRAMS: usize = 256;
/// The fewest starts in each arm of a program whose difference counts: a variance needs two.
const LEAST: f64 = 2.0;
/// At this many starts a program's sums are halved, so that an old disk or an old version is forgotten.
const MOST: f64 = 400.0;

/// Chooses the control starts.
#[derive(Debug, Clone)]
pub struct Control {
    share: f64,
    random: Random,
    next: BTreeMap<ProgramId, bool>,
}

impl Control {
    /// Leaves `percent` of the starts alone; `seed` is any number that differs between runs.
    pub fn new(percent: u32, seed: u64) -> Self {
        Self { share: f64::from(percent) / 100.0, random: Random::new(seed), next: BTreeMap::new() }
    }

    /// Whether the next start of this program is left alone. The answer stays until [`Self::started`].
    pub fn is_left_alone(&mut self, program: ProgramId) -> bool {
        if let Some(known) = self.next.get(&program) {
            return *known;
        }
        if self.next.len() >= PROGRAMS {
            return false;
        }
        let drawn = self.random.share() < self.share;
        self.next.insert(program, drawn);
        drawn
    }

    /// The program has started; returns whether it was left alone.
    pub fn started(&mut self, program: ProgramId) -> bool {
        self.next.remove(&program).unwrap_or(false)
    }

    /// Forgets a program: it may never start again.
    pub fn forget(&mut self, program: ProgramId) {
        self.next.remove(&program);
    }
}

/// Durations of starts: their number, sum and sum of squares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Durations {
    n: f64,
    sum_s: f64,
    squares: f64,
}

impl Durations {
    fn add(&mut self, s: f64) {
        self.n += 1.0;
        self.sum_s += s;
        self.squares += s * s;
    }

    fn halve(&mut self) {
        for part in [&mut self.n, &mut self.sum_s, &mut self.squares] {
            *part /= 2.0;
        }
    }

    fn mean(&self) -> f64 {
        self.sum_s / self.n
    }

    /// The variance of the mean.
    fn uncertainty(&self) -> f64 {
        let variance = (self.squares - self.sum_s * self.mean()) / (self.n - 1.0);
        variance.max(0.0) / self.n
    }
}

/// The two arms of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Arms {
    alone: Durations,
    usual: Durations,
}

impl Arms {
    fn starts(&self) -> f64 {
        self.alone.n + self.usual.n
    }
}

/// The recorded starts of both arms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trial {
    programs: BTreeMap<ProgramId, Arms>,
}

impl Trial {
    /// Adds a recorded start.
    pub fn add(&mut self, program: ProgramId, was_left_alone: bool, took: Duration) {
        if self.programs.len() >= PROGRAMS && !self.programs.contains_key(&program) {
            let fewest = self.programs.iter().min_by(|a, b| a.1.starts().total_cmp(&b.1.starts()));
            fewest.map(|(fewest, _)| *fewest).into_iter().for_each(|fewest| self.forget(fewest));
        }
        let arms = self.programs.entry(program).or_default();
        let arm = if was_left_alone { &mut arms.alone } else { &mut arms.usual };
        arm.add(took.as_secs_f64());
        if arms.starts() >= MOST {
            arms.alone.halve();
            arms.usual.halve();
        }
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
    }

    /// The effect so far: each program's difference of means, weighted by its starts; the interval is 1.96 standard errors wide on each side (95 %).
    pub fn effect(&self) -> PrefetchEffect {
        let whole = |of: fn(&Arms) -> f64| self.programs.values().map(of).sum::<f64>() as u64;
        let counts = |arms: &&Arms| arms.alone.n >= LEAST && arms.usual.n >= LEAST;
        let counted: Vec<&Arms> = self.programs.values().filter(counts).collect();
        let starts: f64 = counted.iter().map(|arms| arms.starts()).sum();
        let (mut saved_s, mut variance) = (0.0, 0.0);
        for arms in &counted {
            let weight = arms.starts() / starts;
            saved_s += weight * (arms.alone.mean() - arms.usual.mean());
            variance += weight * weight * (arms.alone.uncertainty() + arms.usual.uncertainty());
        }
        let half = 1.96 * variance.sqrt();
        PrefetchEffect {
            left_alone: whole(|arms| arms.alone.n),
            others: whole(|arms| arms.usual.n),
            saved_s: (!counted.is_empty()).then_some([saved_s - half, saved_s, saved_s + half]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramId = ProgramId(1);
    const B: ProgramId = ProgramId(2);

    #[test]
    fn the_answer_stays_until_the_start() {
        let mut control = Control::new(50, 7);
        let first = control.is_left_alone(A);
        assert!((0..9).all(|_| control.is_left_alone(A) == first));
        assert_eq!(control.started(A), first);
        assert!(!control.started(A), "nobody asked before this start");
    }

    #[test]
    fn about_the_share_is_left_alone() {
        for (percent, expected) in [(0, 0..=0), (5, 380..=620), (50, 4800..=5200)] {
            let mut control = Control::new(percent, 42);
            let alone = (0..10_000).filter(|_| (control.is_left_alone(A), control.started(A)).0).count();
            assert!(expected.contains(&alone), "{percent} %: {alone}");
        }
    }

    #[test]
    fn a_crowd_of_programs_takes_no_memory_without_end() {
        let (mut control, mut trial) = (Control::new(100, 1), Trial::default());
        for id in 0..10_000 {
            control.is_left_alone(ProgramId(id));
            trial.add(ProgramId(id), true, Duration::from_secs(1));
        }
        assert_eq!((control.next.len(), trial.programs.len()), (PROGRAMS, PROGRAMS));
    }

    #[test]
    fn a_program_with_few_starts_makes_room() {
        let mut trial = Trial::default();
        (0..PROGRAMS as u64).for_each(|id| {
            (0..2).for_each(|_| trial.add(ProgramId(id), true, Duration::from_secs(1)));
        });
        trial.add(ProgramId(7), true, Duration::from_secs(1));
        (1000..1010).for_each(|id| trial.add(ProgramId(id), true, Duration::from_secs(1)));
        let has = |id| trial.programs.contains_key(&ProgramId(id));
        assert!(has(7) && has(1009) && !has(1008), "the newest one has the fewest starts");
        assert_eq!((trial.programs.len(), has(0), has(1)), (PROGRAMS, false, true));
    }

    #[test]
    fn a_forgotten_program_takes_no_room() {
        let mut control = Control::new(100, 1);
        (0..PROGRAMS as u64).for_each(|id| assert!(control.is_left_alone(ProgramId(id))));
        assert!(!control.is_left_alone(ProgramId(1000)));
        control.forget(ProgramId(0));
        assert!(control.is_left_alone(ProgramId(1000)));
    }

    #[test]
    fn the_effect_is_the_difference_within_each_program() {
        let mut trial = Trial::default();
        assert_eq!(trial.effect(), PrefetchEffect::default());
        // The slow program is seldom in the control: a plain mean would show a loss.
        for (program, alone, ms) in [
            (A, true, 9000),
            (A, false, 8000),
            (B, true, 200),
            (B, true, 220),
            (B, false, 100),
            (B, false, 120),
        ] {
            let times = if program == A { 2 } else { 1 };
            (0..times).for_each(|n| trial.add(program, alone, Duration::from_millis(ms + n)));
        }
        let effect = trial.effect();
        let [low, mean, high] = effect.saved_s.unwrap();
        assert_eq!((effect.left_alone, effect.others), (4, 4));
        assert!((mean - 0.55).abs() < 1e-9, "{mean}");
        assert!(low < mean && mean < high);
    }

    #[test]
    fn one_start_of_an_arm_shows_nothing() {
        let mut trial = Trial::default();
        (0..9).for_each(|_| trial.add(A, false, Duration::from_secs(1)));
        trial.add(A, true, Duration::from_secs(9));
        assert_eq!(trial.effect().saved_s, None);
    }

    #[test]
    fn old_starts_count_less_and_less() {
        let mut trial = Trial::default();
        for n in 0..2_000_u64 {
            trial.add(A, n % 2 == 0, Duration::from_secs(if n < 1000 { 100 } else { 1 }));
        }
        let arms = trial.programs[&A];
        assert!(arms.starts() < MOST && arms.usual.mean() < 30.0, "{arms:?}");
    }

    proptest::proptest! {
        #[test]
        fn the_interval_holds_its_mean(starts in proptest::collection::vec((0u64..3, proptest::bool::ANY, 0u64..100_000), 0..80)) {
            let mut trial = Trial::default();
            for (id, alone, ms) in starts {
                trial.add(ProgramId(id), alone, Duration::from_millis(ms));
            }
            if let Some([low, mean, high]) = trial.effect().saved_s {
                proptest::prop_assert!(low <= mean && mean <= high && low.is_finite() && high.is_finite());
            }
            let stored = serde_json::to_vec(&trial).unwrap();
            proptest::prop_assert_eq!(serde_json::from_slice::<Trial>(&stored).unwrap().programs.len(), trial.programs.len());
        }
    }
}
