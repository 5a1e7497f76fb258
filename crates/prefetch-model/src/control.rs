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
/// The fewest starts in each arm of a program whose difference counts.
const LEAST: f64 = PrefetchEffect::LEAST as f64;
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
    /// All starts that eke read for, recorded or not.
    #[serde(default)]
    read_for: u64,
}

impl Arms {
    /// Whether the difference of its means counts.
    fn is_known(&self) -> bool {
        self.alone.n >= LEAST && self.usual.n >= LEAST
    }

    /// Seconds that a start takes less than one that was left alone, and the variance of that.
    fn saved_s(&self) -> (f64, f64) {
        (self.alone.mean() - self.usual.mean(), self.alone.uncertainty() + self.usual.uncertainty())
    }

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
        let arms = self.arms(program);
        let arm = if was_left_alone { &mut arms.alone } else { &mut arms.usual };
        arm.add(took.as_secs_f64());
        if arms.starts() >= MOST {
            arms.alone.halve();
            arms.usual.halve();
        }
    }

    /// Counts a start that eke read for, whether or not it is recorded.
    pub fn read_for(&mut self, program: ProgramId) {
        let arms = self.arms(program);
        arms.read_for = arms.read_for.saturating_add(1);
    }

    /// A program's arms. A new one makes room for itself.
    fn arms(&mut self, program: ProgramId) -> &mut Arms {
        if self.programs.len() >= PROGRAMS && !self.programs.contains_key(&program) {
            let fewest = self.programs.iter().min_by(|a, b| a.1.starts().total_cmp(&b.1.starts()));
            fewest.map(|(fewest, _)| *fewest).into_iter().for_each(|fewest| self.forget(fewest));
        }
        self.programs.entry(program).or_default()
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
    }

    /// The effect so far: each program's difference of means, weighted by its recorded starts; in all, weighted by the starts that eke read for.
    pub fn effect(&self) -> PrefetchEffect {
        let all = || self.programs.values();
        let whole = |of: fn(&Arms) -> f64| all().map(of).sum::<f64>() as u64;
        let known: Vec<&Arms> = all().filter(|arms| arms.is_known()).collect();
        let starts: f64 = known.iter().map(|arms| arms.starts()).sum();
        let read_for =
            |arms: &[&Arms]| arms.iter().fold(0, |sum: u64, arms| sum.saturating_add(arms.read_for));
        let is_known = !known.is_empty();
        PrefetchEffect {
            left_alone: whole(|arms| arms.alone.n),
            others: whole(|arms| arms.usual.n),
            saved_s: is_known.then(|| weighted(&known, |arms| arms.starts() / starts)),
            read_for: read_for(&all().collect::<Vec<_>>()),
            summed: read_for(&known),
            total_s: is_known.then(|| weighted(&known, |arms| arms.read_for as f64)),
            nearest: all().map(|arms| arms.alone.n.min(arms.usual.n)).fold(0.0, f64::max) as u64,
        }
    }
}

/// The weighted sum of what programs save, between the ends of its interval: 1.96 standard errors wide on each side (95 %).
fn weighted(known: &[&Arms], weight: impl Fn(&Arms) -> f64) -> [f64; 3] {
    let (mut sum, mut variance) = (0.0, 0.0);
    for arms in known {
        let (weight, (saved_s, uncertainty)) = (weight(arms), arms.saved_s());
        sum += weight * saved_s;
        variance += weight * weight * uncertainty;
    }
    let half = 1.96 * variance.sqrt();
    [sum - half, sum, sum + half]
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
        let effect = trial.effect();
        assert_eq!((effect.saved_s, effect.total_s, effect.nearest), (None, None, 1));
    }

    #[test]
    fn the_sum_has_all_starts_of_programs_whose_difference_is_known() {
        let mut trial = Trial::default();
        for (alone, s) in [(true, 5), (true, 7), (false, 2), (false, 4)] {
            trial.add(A, alone, Duration::from_secs(s));
        }
        (0..10).for_each(|_| trial.read_for(A));
        (0..5).for_each(|_| trial.read_for(B));
        let effect = trial.effect();
        assert_eq!((effect.read_for, effect.summed, effect.nearest), (15, 10, 2));
        let [low, sum, high] = effect.total_s.unwrap();
        // Each mean has a variance of 1.
        let half = 1.96 * 10.0 * 2f64.sqrt();
        assert!(
            (sum - 30.0).abs() < 1e-9 && (sum - low - half).abs() < 1e-9 && (high - sum - half).abs() < 1e-9
        );
    }

    #[test]
    fn a_stored_trial_without_the_count_is_taken() {
        let arm = r#"{"n":2.0,"sum_s":2.0,"squares":2.0}"#;
        let stored = format!(r#"{{"1":{{"alone":{arm},"usual":{arm}}}}}"#);
        let trial: Trial = serde_json::from_str(&stored).unwrap();
        assert_eq!((trial.effect().read_for, trial.effect().left_alone), (0, 2));
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
