//! The rules of learning: which execs are recorded, and which launches are stored.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::owners::Owners;
use crate::launch::Launch;
use crate::program::ProgramId;

/// One time on two clocks.
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
    /// A launch that touched nothing new for this long has ended.
    pub quiet: Duration,
    /// The longest recording of a launch.
    pub limit: Duration,
    /// The most launches recorded at once; one user may have three quarters of them.
    pub at_once: usize,
    /// This many launches of one user may begin in a row ...
    pub burst: f64,
    /// ... and this many per second in the long run.
    pub begins_per_s: f64,
    /// The same bounds for starts by a recorded launch: a wrapper must not use up the start of its program.
    pub burst_within: f64,
    /// Per second in the long run.
    pub begins_within_per_s: f64,
    /// A launch that ended sooner, and is not stored, does not count in these bounds: short programs must not use up the start of one that matters. This
    /// many of a user do not, in a row and per second.
    pub short: Duration,
    /// See [`Self::short`].
    pub short_per_s: f64,
    /// The most files per launch; others are ignored.
    pub files: usize,
    /// The most bytes of pages per launch; others are ignored.
    pub bytes: u64,
    /// This many first launches of a program are recorded ...
    pub first: u32,
    /// ... and later one in this many.
    pub every: u32,
    /// A first launch is stored if it read more than this from a cold disk.
    pub least_cold_bytes: u64,
    /// Who shares the bounds of a user.
    pub owners: Owners,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(2),
            limit: Duration::from_secs(30),
            at_once: 8,
            burst: 8.0,
            begins_per_s: 0.5,
            burst_within: 32.0,
            begins_within_per_s: 1.0,
            short: Duration::from_millis(500),
            short_per_s: 4.0,
            files: 4096,
            bytes: 1 << 30,
            first: 3,
            every: 8,
            least_cold_bytes: 64 << 10,
            owners: Owners::default(),
        }
    }
}

/// The state of a program at its exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramState {
    /// Launches that were learned and stored.
    pub learned: u32,
    /// Whether this start is left alone to measure the others, and must be recorded for that.
    pub is_control: bool,
    /// Whether files of its set have changed, so it must be learned again.
    pub changed: bool,
    /// Whether a process of it already runs. Then the exec is a child of that process (browsers start themselves for each tab) or hands over to it,
    /// and uses only a part of what a launch uses.
    pub runs: bool,
}

/// Whether to store this launch: any launch of a learned program; otherwise one that read enough from a cold disk. No file of a package has control
/// characters in its name, but the text of a program has line breaks: so such a script is not stored.
pub fn should_store(launch: &Launch, known: ProgramState, settings: &Settings) -> bool {
    let is_name =
        !launch.program.script.as_ref().is_some_and(|script| has_control(script.as_os_str().as_bytes()));
    let is_worth = known.learned > 0 || launch.cold_bytes > settings.least_cold_bytes;
    is_name && !launch.set.files.is_empty() && is_worth
}

fn has_control(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_control)
}

/// The most users with a bucket of their own.
const USERS: usize = 256;

/// A token bucket per user, so that one user's exec storm does not use up the launches of others.
#[derive(Debug)]
pub(super) struct LaunchRate {
    burst: f64,
    per_s: f64,
    users: HashMap<u32, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl LaunchRate {
    pub(super) fn new(burst: f64, per_s: f64) -> Self {
        Self { burst, per_s, users: HashMap::new() }
    }

    /// Takes a token of a user, if one is left.
    pub(super) fn take(&mut self, user: u32, now: Duration) -> bool {
        if self.users.len() >= USERS && !self.users.contains_key(&user) {
            self.users.clear();
        }
        let full = Bucket { tokens: self.burst, at: now };
        self.users.entry(user).or_insert(full).take(self.burst, self.per_s, now)
    }

    /// Gives a token of a user back.
    pub(super) fn give(&mut self, user: u32) {
        if let Some(bucket) = self.users.get_mut(&user) {
            bucket.give(self.burst);
        }
    }
}

impl Bucket {
    fn give(&mut self, burst: f64) {
        self.tokens = (self.tokens + 1.0).min(burst);
    }

    fn take(&mut self, burst: f64, per_s: f64, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * per_s).min(burst);
        let has = self.tokens >= 1.0;
        self.tokens -= if has { 1.0 } else { 0.0 };
        has
    }
}

/// The most programs with an attempt count. Without the counts, programs that are never stored would be recorded at each exec.
const TRIED_PROGRAMS: usize = 4096;

/// Counts execs and recordings per program.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<ProgramId, ProgramAttempts>);

#[derive(Debug, Clone, Copy, Default)]
struct ProgramAttempts {
    /// Recorded launches.
    learned: u32,
    /// Recorded launches in a row that were not stored.
    not_stored: u32,
    /// Execs since the last recording.
    since: u32,
}

impl Attempts {
    /// Counts an exec and decides whether to record it. Pauses double while recordings are not stored.
    pub(super) fn is_due(&mut self, program: ProgramId, known: ProgramState, settings: &Settings) -> bool {
        if self.0.len() >= TRIED_PROGRAMS && !self.0.contains_key(&program) {
            self.0.clear();
        }
        let tries = self.0.entry(program).or_default();
        tries.since = tries.since.saturating_add(1);
        let wait = settings.every << tries.not_stored.saturating_sub(settings.first).min(6);
        known.changed
            || known.is_control
            || known.learned.max(tries.learned) < settings.first
            || tries.since >= wait
    }

    /// Counts a recording.
    pub(super) fn learned(&mut self, program: ProgramId, was_stored: bool) {
        let tries = self.0.entry(program).or_default();
        tries.learned = tries.learned.saturating_add(1);
        tries.not_stored = if was_stored { 0 } else { tries.not_stored.saturating_add(1) };
        tries.since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: ProgramId = ProgramId(7);

    /// The indexes of the recorded execs, if every recording has this result.
    fn learned(execs: u32, known: ProgramState, worth: bool) -> Vec<u32> {
        let (settings, mut tried) = (Settings::default(), Attempts::default());
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
    fn a_script_with_control_characters_is_not_stored() {
        use crate::file_set::{FileSet, Kind, Stamp, Touched};
        use crate::launch::LaunchEnd;
        use crate::pages::{Pages, Span};
        use crate::program::Program;
        let file = Touched {
            path: "/usr/bin/python3".into(),
            kind: Kind::File,
            stamp: Stamp::default(),
            pages: Pages::from_iter(Span::new(0, 100)),
            stale: Pages::default(),
            weight: 1.0,
        };
        let mut launch = Launch {
            program: Program { script: Some("/usr/bin/meld".into()), ..Program::of_exe("/usr/bin/python3") },
            uid: 0,
            began_ns: 0,
            took: Duration::ZERO,
            ended: LaunchEnd::Quiet,
            set: FileSet { files: vec![file] },
            cold_bytes: 1 << 20,
        };
        let stores = |launch: &Launch| should_store(launch, ProgramState::default(), &Settings::default());
        assert!(stores(&launch));
        launch.program.script = Some("/home/u/import os\nprint()".into());
        assert!(!stores(&launch));
    }

    #[test]
    fn the_first_three_are_learned_and_then_each_eighth() {
        assert_eq!(learned(30, ProgramState::default(), true), [0, 1, 2, 10, 18, 26]);
        let known = ProgramState { learned: 9, ..ProgramState::default() };
        assert_eq!(learned(20, known, true), [7, 15]);
    }

    #[test]
    fn a_changed_program_is_learned_at_once() {
        let changed = ProgramState { learned: 9, changed: true, ..ProgramState::default() };
        assert_eq!(learned(3, changed, true), [0, 1, 2]);
    }

    #[test]
    fn a_start_that_is_left_alone_is_recorded() {
        let control = ProgramState { learned: 9, is_control: true, ..ProgramState::default() };
        assert_eq!(learned(2, control, true), [0, 1]);
    }

    #[test]
    fn programs_that_are_not_stored_are_recorded_less_and_less() {
        assert_eq!(learned(200, ProgramState::default(), false), [0, 1, 2, 10, 26, 58, 122]);
    }

    #[test]
    fn programs_without_end_take_no_memory_without_end() {
        let mut tried = Attempts::default();
        for id in 0..100_000 {
            tried.is_due(ProgramId(id), ProgramState::default(), &Settings::default());
        }
        assert!(tried.0.len() <= TRIED_PROGRAMS);
    }

    #[test]
    fn begins_are_bounded_in_time() {
        let settings = Settings::default();
        let mut begins = LaunchRate::new(settings.burst, settings.begins_per_s);
        let in_a_minute = (0..10_000).filter(|n| begins.take(7, Duration::from_millis(n * 6))).count();
        assert!((35..=38).contains(&in_a_minute), "{in_a_minute}");
        assert!(!begins.take(7, Duration::ZERO), "a clock that jumps back gives nothing");
        assert!(begins.take(8, Duration::ZERO), "another user is not held up");
        (0..10_000).for_each(|user| _ = begins.take(user, Duration::ZERO));
        assert!(begins.users.len() <= USERS);
    }
}
