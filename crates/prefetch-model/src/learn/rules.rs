//! The rules of learning: which execs begin a launch that is learned, what is left out, what is worth keeping.

use std::collections::HashMap;
use std::time::Duration;

use crate::launch::Launch;
use crate::program::ProgramId;

/// A moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// CLOCK_MONOTONIC.
    pub mono: Duration,
    /// Nanoseconds since 1970.
    pub real_ns: i64,
}

/// The bounds of learning.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// A launch that touched nothing new for so long is over.
    pub quiet: Duration,
    /// A launch is over after so long in any case.
    pub limit: Duration,
    /// At most so many launches are learned at once, of one user three quarters of that.
    pub at_once: usize,
    /// So many launches of one user may begin one after the other ...
    pub burst: f64,
    /// ... and so many in a second on and on.
    pub begins_per_s: f64,
    /// Files of a launch; more are not looked at.
    pub files: usize,
    /// Bytes of pages of a launch; more are not looked at.
    pub bytes: u64,
    /// The first launches of a program, so many, are all learned ...
    pub first: u32,
    /// ... and then one in so many.
    pub every: u32,
    /// What a launch must have found cold to be worth keeping.
    pub worth_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(2),
            limit: Duration::from_secs(30),
            at_once: 8,
            burst: 8.0,
            begins_per_s: 0.5,
            files: 4096,
            bytes: 1 << 30,
            first: 3,
            every: 8,
            worth_bytes: 64 << 10,
        }
    }
}

impl Settings {
    /// Where programs lie on a slow disk launches take longer, and pauses in them too.
    pub fn for_slow_disk() -> Self {
        Self { quiet: Duration::from_secs(4), limit: Duration::from_secs(60), ..Self::default() }
    }
}

/// What is known of a program that is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// Launches that were learned and kept.
    pub learned: u32,
    /// Files of its set were changed since: learn it again.
    pub changed: bool,
    /// A process of it runs already. Then an exec of it is that one's child (browsers start themselves again for each tab), or hands over to
    /// it: it shows a part of what a launch uses.
    pub runs: bool,
}

/// Is this launch worth keeping? One of a program that is known already is; of others those that found something cold.
pub fn is_worth(launch: &Launch, known: Known, settings: &Settings) -> bool {
    !launch.set.files.is_empty() && (known.learned > 0 || launch.cold_bytes > settings.worth_bytes)
}

/// Users whose begins are counted apart.
const USERS: usize = 256;

/// How many launches may begin: a token bucket for each user, so that one who starts programs without end takes nothing from others.
#[derive(Debug, Default)]
pub(super) struct Begins(HashMap<u32, Bucket>);

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Begins {
    /// Takes one of a user's tokens, if there is one.
    pub(super) fn take(&mut self, user: u32, settings: &Settings, now: Duration) -> bool {
        if self.0.len() >= USERS && !self.0.contains_key(&user) {
            self.0.clear();
        }
        let full = Bucket { tokens: settings.burst, at: now };
        self.0.entry(user).or_insert(full).take(settings, now)
    }
}

impl Bucket {
    fn take(&mut self, settings: &Settings, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * settings.begins_per_s).min(settings.burst);
        let has = self.tokens >= 1.0;
        self.tokens -= if has { 1.0 } else { 0.0 };
        has
    }
}

/// Programs of which is remembered how often they were tried: those not worth keeping would be learned at each exec otherwise.
const TRIED_PROGRAMS: usize = 4096;

/// How often programs were learned and executed, worth it or not.
#[derive(Debug, Default)]
pub(super) struct Tried(HashMap<ProgramId, Tries>);

#[derive(Debug, Clone, Copy, Default)]
struct Tries {
    /// Launches that were learned.
    learned: u32,
    /// Of them those in a row that were not worth it.
    in_vain: u32,
    /// Execs since the last of them.
    since: u32,
}

impl Tried {
    /// Counts an exec. Is it one to be learned? Doubling pauses for what was in vain.
    pub(super) fn is_due(&mut self, program: ProgramId, known: Known, settings: &Settings) -> bool {
        if self.0.len() >= TRIED_PROGRAMS && !self.0.contains_key(&program) {
            self.0.clear();
        }
        let tries = self.0.entry(program).or_default();
        tries.since = tries.since.saturating_add(1);
        let wait = settings.every << tries.in_vain.saturating_sub(settings.first).min(6);
        known.changed || known.learned.max(tries.learned) < settings.first || tries.since >= wait
    }

    /// One was learned.
    pub(super) fn learned(&mut self, program: ProgramId, was_worth: bool) {
        let tries = self.0.entry(program).or_default();
        tries.learned = tries.learned.saturating_add(1);
        tries.in_vain = if was_worth { 0 } else { tries.in_vain.saturating_add(1) };
        tries.since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: ProgramId = ProgramId(7);

    /// Which of so many execs are learned, all with this outcome.
    fn learned(execs: u32, known: Known, worth: bool) -> Vec<u32> {
        let (settings, mut tried) = (Settings::default(), Tried::default());
        (0..execs)
            .filter(|_| {
                let due = tried.is_due(PROGRAM, known, &settings);
                if due {
                    tried.learned(PROGRAM, worth);
                }
                due
            })
            .collect()
    }

    #[test]
    fn the_first_three_are_learned_and_then_each_eighth() {
        assert_eq!(learned(30, Known::default(), true), [0, 1, 2, 10, 18, 26]);
        let known = Known { learned: 9, ..Known::default() };
        assert_eq!(learned(20, known, true), [7, 15]);
    }

    #[test]
    fn what_changed_is_learned_at_once() {
        let changed = Known { learned: 9, changed: true, ..Known::default() };
        assert_eq!(learned(3, changed, true), [0, 1, 2]);
    }

    #[test]
    fn what_is_not_worth_it_is_tried_less_and_less() {
        assert_eq!(learned(200, Known::default(), false), [0, 1, 2, 10, 26, 58, 122]);
    }

    #[test]
    fn programs_without_end_take_no_memory_without_end() {
        let mut tried = Tried::default();
        for id in 0..100_000 {
            tried.is_due(ProgramId(id), Known::default(), &Settings::default());
        }
        assert!(tried.0.len() <= TRIED_PROGRAMS);
    }

    #[test]
    fn begins_are_bounded_in_time() {
        let settings = Settings::default();
        let mut begins = Begins::default();
        let in_a_minute =
            (0..10_000).filter(|n| begins.take(7, &settings, Duration::from_millis(n * 6))).count();
        assert!((35..=38).contains(&in_a_minute), "{in_a_minute}");
        assert!(!begins.take(7, &settings, Duration::ZERO), "a clock that jumps back gives nothing");
        assert!(begins.take(8, &settings, Duration::ZERO), "another user is not held up");
        (0..10_000).for_each(|user| _ = begins.take(user, &settings, Duration::ZERO));
        assert!(begins.0.len() <= USERS);
    }
}
