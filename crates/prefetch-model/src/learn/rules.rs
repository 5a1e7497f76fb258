//! The rules of learning: which execs are recorded, and which launches are stored.

use std::collections::HashMap;
use std::hash::Hash;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use eke_statistics::random::Random;

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
    /// The most launches recorded at once; one user may have three quarters of them, one process group half.
    pub at_once: usize,
    /// While a user's session begins, this many are recorded of such users, in addition: a log-in starts them once a day, and at the same time.
    pub at_once_in_session: usize,
    /// This many launches of one process group may begin in a row, and half as many more of its user: a build must not use up the starts beside it ...
    pub burst: f64,
    /// ... and this many per second in the long run.
    pub begins_per_s: f64,
    /// The same bounds for starts by a recorded launch: a wrapper must not use up the start of its program.
    pub burst_within: f64,
    /// Per second in the long run.
    pub begins_within_per_s: f64,
    /// As [`Self::burst`], while a user's session begins.
    pub burst_in_session: f64,
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
    /// ... and later one in this many, by chance: of a program that starts once a day, too ...
    pub every: u32,
    /// ... and of a minor program ([`ProgramState::is_minor`]) one in this many.
    pub every_minor: u32,
    /// Any number that differs between runs, for that chance.
    pub seed: u64,
    /// A first launch is stored if it read more than this from a cold disk.
    pub least_cold_bytes: u64,
    /// Who shares the bounds of a user.
    pub owners: Owners,
    /// Whether the tracer reports uses of pages. Otherwise what enters memory counts, too.
    pub sees_uses: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(2),
            limit: Duration::from_secs(30),
            at_once: 8,
            at_once_in_session: 48,
            burst: 8.0,
            begins_per_s: 0.5,
            burst_within: 32.0,
            begins_within_per_s: 1.0,
            burst_in_session: 64.0,
            short: Duration::from_millis(500),
            short_per_s: 4.0,
            files: 4096,
            bytes: 1 << 30,
            first: 3,
            every: 8,
            every_minor: 64,
            seed: 0,
            least_cold_bytes: 64 << 10,
            owners: Owners::default(),
            sees_uses: true,
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
    /// Whether a process of it already runs for the starter. Then the exec is a child of that process (browsers start themselves for each tab) or hands
    /// over to it, and uses only a part of what a launch uses.
    pub runs: bool,
    /// Whether it only starts others, or is so brief that nothing is read ahead for it. Such programs start most often, and little is gained by learning
    /// more of them.
    pub is_minor: bool,
    /// Whether others' launches are learned and none of the starter's account: those do not show which files of the starter it uses.
    pub is_first_of_user: bool,
    /// Whether the starter's session has just begun.
    pub in_session: bool,
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

/// Who starts a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Starter {
    /// The user, or the owner of a subordinate one.
    pub(super) account: u32,
    /// The process group.
    pub(super) group: u32,
}

/// A token bucket per process group, and one per user, which is half as large again: neither does one user's exec storm use up the launches of others,
/// nor a build those that its user starts beside it.
#[derive(Debug)]
pub(super) struct LaunchRate {
    groups: Buckets<Starter>,
    users: Buckets<u32>,
}

impl LaunchRate {
    pub(super) fn new(burst: f64, per_s: f64) -> Self {
        Self { groups: Buckets::new(burst, per_s), users: Buckets::new(burst * 1.5, per_s * 1.5) }
    }

    /// Takes a token, if the group and the user have one left.
    pub(super) fn take(&mut self, of: Starter, now: Duration) -> bool {
        let has = self.groups.has(of, now) && self.users.has(of.account, now);
        if has {
            self.groups.add(of, -1.0);
            self.users.add(of.account, -1.0);
        }
        has
    }

    /// Gives a token back.
    pub(super) fn give(&mut self, of: Starter) {
        self.groups.add(of, 1.0);
        self.users.add(of.account, 1.0);
    }
}

/// The most buckets of a kind.
const BUCKETS: usize = 256;

/// Token buckets of one size.
#[derive(Debug)]
struct Buckets<K> {
    burst: f64,
    per_s: f64,
    of: HashMap<K, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl<K: Eq + Hash> Buckets<K> {
    fn new(burst: f64, per_s: f64) -> Self {
        Self { burst, per_s, of: HashMap::new() }
    }

    /// Whether a token is left by now.
    fn has(&mut self, key: K, now: Duration) -> bool {
        if self.of.len() >= BUCKETS && !self.of.contains_key(&key) {
            self.of.clear();
        }
        let bucket = self.of.entry(key).or_insert(Bucket { tokens: self.burst, at: now });
        let passed = now.saturating_sub(bucket.at).as_secs_f64();
        bucket.at = bucket.at.max(now);
        bucket.tokens = (bucket.tokens + passed * self.per_s).min(self.burst);
        bucket.tokens >= 1.0
    }

    fn add(&mut self, key: K, tokens: f64) {
        if let Some(bucket) = self.of.get_mut(&key) {
            bucket.tokens = (bucket.tokens + tokens).min(self.burst);
        }
    }
}

/// The most programs with an attempt count. Without the counts, programs that are never stored would be recorded at each exec. They end with the process:
/// a program that is stored does not depend on them.
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
    /// Counts an exec and decides whether to record it. Pauses double while recordings are not stored, also of a program whose files have changed: only a
    /// stored launch says that they were learned.
    pub(super) fn is_due(
        &mut self,
        program: ProgramId,
        known: ProgramState,
        settings: &Settings,
        random: &mut Random,
    ) -> bool {
        if self.0.len() >= TRIED_PROGRAMS && !self.0.contains_key(&program) {
            self.0.clear();
        }
        let tries = self.0.entry(program).or_default();
        tries.since = tries.since.saturating_add(1);
        let every = if known.is_minor { settings.every_minor } else { settings.every };
        let wait = every << tries.not_stored.saturating_sub(settings.first).min(6);
        let is_stored = known.learned > 0;
        (known.changed || known.is_first_of_user) && tries.not_stored < settings.first
            || known.is_control
            || known.learned.max(tries.learned) < settings.first
            || is_stored && random.below(wait.into()) == 0
            || !is_stored && tries.since >= wait
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
        let mut random = Random::new(1);
        (0..execs)
            .filter(|_| {
                let due = tried.is_due(PROGRAM, known, &settings, &mut random);
                if due {
                    tried.learned(PROGRAM, worth);
                }
                due
            })
            .collect()
    }

    #[test]
    fn a_script_with_control_characters_is_not_stored() {
        use crate::file_set::{FileSet, Kind, Stamp, Touched, UsedBy};
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
            used_by: UsedBy::Unknown,
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
    fn the_first_three_are_learned_and_then_one_in_eight_also_after_each_boot() {
        assert_eq!(learned(30, ProgramState::default(), true), [0, 1, 2, 10, 18, 26], "nothing is stored");
        let of_boot = |learned| {
            let (settings, known) =
                (Settings::default(), ProgramState { learned, ..ProgramState::default() });
            move |random: &mut Random| Attempts::default().is_due(PROGRAM, known, &settings, random)
        };
        let mut random = Random::new(1);
        let due = (0..8000).filter(|_| of_boot(9)(&mut random)).count();
        assert!((900..1100).contains(&due), "{due}");
        assert!((0..20).all(|_| of_boot(2)(&mut random)));
    }

    #[test]
    fn a_minor_program_is_recorded_more_seldom_once_it_is_learned() {
        let due = |learned, is_minor| {
            let known = ProgramState { learned, is_minor, ..ProgramState::default() };
            let (settings, mut random) = (Settings::default(), Random::new(1));
            let mut is_due = || Attempts::default().is_due(PROGRAM, known, &settings, &mut random);
            (0..6400).filter(|_| is_due()).count()
        };
        assert!((60..140).contains(&due(3, true)), "{}", due(3, true));
        assert!((700..900).contains(&due(3, false)), "{}", due(3, false));
        assert_eq!(due(2, true), 6400);
    }

    #[test]
    fn the_first_launch_of_another_user_is_learned_at_once() {
        let known = ProgramState { learned: 9, is_first_of_user: true, ..ProgramState::default() };
        assert_eq!(learned(3, known, true), [0, 1, 2]);
        assert!(learned(200, known, false).len() < 20);
    }

    #[test]
    fn a_changed_program_is_learned_at_once() {
        let changed = ProgramState { learned: 9, changed: true, ..ProgramState::default() };
        assert_eq!(learned(3, changed, true), [0, 1, 2]);
    }

    #[test]
    fn a_changed_program_whose_launches_are_not_stored_is_recorded_less_and_less() {
        let changed = ProgramState { learned: 9, changed: true, ..ProgramState::default() };
        let recorded = learned(200, changed, false);
        assert_eq!(recorded[..3], [0, 1, 2]);
        assert!(recorded.len() < 20, "{recorded:?}");
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
            tried.is_due(ProgramId(id), ProgramState::default(), &Settings::default(), &mut Random::new(1));
        }
        assert!(tried.0.len() <= TRIED_PROGRAMS);
    }

    #[test]
    fn begins_are_bounded_in_time() {
        let settings = Settings::default();
        let mut begins = LaunchRate::new(settings.burst, settings.begins_per_s);
        let of = |account, group| Starter { account, group };
        let in_a_minute = (0..10_000).filter(|n| begins.take(of(7, 1), Duration::from_millis(n * 6))).count();
        assert!((35..=38).contains(&in_a_minute), "{in_a_minute}");
        assert!(!begins.take(of(7, 1), Duration::ZERO), "a clock that jumps back gives nothing");
        let beside = (2..1000).filter(|group| begins.take(of(7, *group), Duration::from_secs(60))).count();
        assert_eq!(beside, 12, "a third is left to the user's other groups, and half as much came meanwhile");
        assert!(begins.take(of(8, 1), Duration::ZERO), "another user is not held up");
        (0..10_000).for_each(|user| _ = begins.take(of(user, 1), Duration::ZERO));
        assert!(begins.users.of.len() <= BUCKETS && begins.groups.of.len() <= BUCKETS);
    }
}
