//! Changes that are reported a second time.
//!
//! The server may have looked at a name just before its change, and its answer may reach the kernel just after the report.
//! Then the kernel would believe the old answer for as long as the answer says. The second report ends that.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::Change;

/// Much longer than a request takes between its look at the backing directory and its answer.
const LATER: Duration = Duration::from_secs(1);
/// With more waiting changes, everything is reported.
const MOST: usize = 1 << 16;

/// Changes that wait for their second report. Pure.
#[derive(Debug, Default)]
pub struct Again {
    rounds: VecDeque<(Instant, HashSet<Change>)>,
    waiting: usize,
}

impl Again {
    /// Adds the changes of one round.
    pub fn note(&mut self, now: Instant, changes: &[Change]) {
        // Reads compare the file with its former state, so a change of content is only repeated for its attributes.
        let attributes = |change: &Change| match change {
            Change::File { dev, ino } => Change::Attributes { dev: *dev, ino: *ino },
            other => other.clone(),
        };
        let mut changes: HashSet<Change> = changes.iter().map(attributes).collect();
        if self.waiting + changes.len() > MOST {
            self.rounds.clear();
            self.waiting = 0;
            changes = HashSet::from([Change::Everything]);
        }
        if !changes.is_empty() {
            self.waiting += changes.len();
            self.rounds.push_back((now + LATER, changes));
        }
    }

    /// Takes the changes whose time has come.
    pub fn due(&mut self, now: Instant) -> HashSet<Change> {
        let mut due = HashSet::new();
        while self.rounds.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, changes)) = self.rounds.pop_front() else { break };
            self.waiting -= changes.len();
            due.extend(changes);
        }
        due
    }

    /// The time until the next ones are due. `None`: nothing waits.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.rounds.front().map(|(at, _)| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ino: u64) -> Change {
        Change::File { dev: 1, ino }
    }

    fn attributes(ino: u64) -> Change {
        Change::Attributes { dev: 1, ino }
    }

    #[test]
    fn each_change_is_due_once_more_a_second_later() {
        let (mut again, start) = (Again::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(again.wait(start), None);
        again.note(at(0), &[file(1), attributes(2)]);
        again.note(at(500), &[file(1), file(3)]);
        again.note(at(600), &[]);
        assert_eq!(again.wait(at(400)), Some(Duration::from_millis(600)));
        assert!(again.due(at(999)).is_empty());
        assert_eq!(again.due(at(1000)), HashSet::from([attributes(1), attributes(2)]));
        assert_eq!(again.wait(at(1100)), Some(Duration::from_millis(400)));
        assert_eq!(again.due(at(9000)), HashSet::from([attributes(1), attributes(3)]));
        assert_eq!(again.wait(at(9000)), None);
    }

    #[test]
    fn too_many_changes_are_everything() {
        let (mut again, now) = (Again::default(), Instant::now());
        let many: Vec<Change> = (0..MOST as u64).map(file).collect();
        again.note(now, &many);
        again.note(now, &[file(MOST as u64)]);
        assert_eq!(again.due(now + LATER), HashSet::from([Change::Everything]));
        again.note(now, &many);
        assert_eq!(again.due(now + LATER).len(), MOST, "and counts from the beginning");
    }
}
