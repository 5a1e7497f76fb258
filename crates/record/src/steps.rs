//! Steps: memory and counters between two marks.

use std::collections::BTreeMap;

use eke_model::units::Bytes;
use serde::Serialize;

use crate::load::Recording;
use crate::row::Row;

/// The summary of a recording, for `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Notes on the whole recording (keys in docs/recording.md).
    pub notes: BTreeMap<String, String>,
    /// The number of samples.
    pub samples: usize,
    /// Its duration.
    pub seconds: f64,
    /// True if its recorder ended it; false if that was killed or still runs.
    pub complete: bool,
    /// The steps between the marks.
    pub steps: Vec<Step>,
}

impl From<&Recording> for Document {
    fn from(recording: &Recording) -> Self {
        let (from, to) = recording.span_ms();
        Self {
            notes: recording.notes.clone(),
            samples: recording.rows.len(),
            seconds: (to - from) as f64 / 1e3,
            complete: recording.is_complete(),
            steps: steps(recording),
        }
    }
}

/// One step: from its mark to the next one, or to the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its name; before the first mark it is `(start)`.
    pub name: String,
    /// When it began, in seconds since the recording started.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Memory at its start.
    pub start: Memory,
    /// Memory at its end.
    pub end: Memory,
    /// Pages swapped in during the step.
    pub pages_in: u64,
    /// Pages swapped out during the step.
    pub pages_out: u64,
    /// Major faults of the machine during the step.
    pub major_faults: u64,
    /// Processes killed for lack of memory during the step.
    pub oom_kills: u64,
    /// Milliseconds in which some task waited for memory; `None` if the kernel does not count it.
    pub memory_waiting_ms: Option<u64>,
    /// Milliseconds in which some task waited for I/O.
    pub io_waiting_ms: Option<u64>,
    /// Milliseconds of CPU time of the machine.
    pub cpu_ms: Option<u64>,
    /// Milliseconds of CPU time of the recorded processes.
    pub tree_cpu_ms: Option<u64>,
}

/// Memory at one instant; `None` was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Free RAM.
    pub free: Option<Bytes>,
    /// RAM that programs could still get.
    pub available: Option<Bytes>,
    /// Anonymous pages in RAM.
    pub anonymous: Option<Bytes>,
    /// Page cache.
    pub file_cache: Option<Bytes>,
    /// Swapped data, uncompressed.
    pub swapped: Option<Bytes>,
    /// The part of it that is compressed, uncompressed.
    pub held: Option<Bytes>,
    /// The RAM of these compressed pages.
    pub pool: Option<Bytes>,
    /// Resident pages of the recorded processes.
    pub tree_rss: Option<Bytes>,
}

impl From<&Row> for Memory {
    fn from(row: &Row) -> Self {
        Self {
            free: row.free_bytes.map(Bytes),
            available: row.available_bytes.map(Bytes),
            anonymous: row.anonymous_bytes.map(Bytes),
            file_cache: row.file_cache_bytes.map(Bytes),
            swapped: row.swapped_bytes.map(Bytes),
            held: row.held_bytes.map(Bytes),
            pool: row.pool_bytes.map(Bytes),
            tree_rss: row.tree_rss_bytes.map(Bytes),
        }
    }
}

/// The steps of a recording; without marks it is one step.
pub fn steps(recording: &Recording) -> Vec<Step> {
    let (from, to) = recording.span_ms();
    let marks = recording.marks.iter().map(|m| (m.time_ms.clamp(from, to), m.name.as_str()));
    let mut starts: Vec<(u64, &str)> = marks.collect();
    if starts.first().is_none_or(|(time, _)| *time > from) {
        starts.insert(0, (from, "(start)"));
    }
    let ends = starts.iter().skip(1).map(|(time, _)| *time).chain([to]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|((start, name), end)| step(&recording.rows, name, *start, end))
        .collect()
}

fn step(rows: &[Row], name: &str, from_ms: u64, to_ms: u64) -> Option<Step> {
    let (start, end) = (at(rows, from_ms)?, at(rows, to_ms)?);
    let grown = |of: fn(&Row) -> Option<u64>| Some(of(end)?.saturating_sub(of(start).unwrap_or(0)));
    Some(Step {
        name: name.to_owned(),
        from_s: from_ms as f64 / 1e3,
        to_s: to_ms as f64 / 1e3,
        start: start.into(),
        end: end.into(),
        pages_in: grown(|r| r.pages_in).unwrap_or(0),
        pages_out: grown(|r| r.pages_out).unwrap_or(0),
        major_faults: grown(|r| r.major_faults).unwrap_or(0),
        oom_kills: grown(|r| r.oom_kills).unwrap_or(0),
        memory_waiting_ms: grown(|r| r.memory_some_us).map(|us| us / 1000),
        io_waiting_ms: grown(|r| r.io_some_us).map(|us| us / 1000),
        cpu_ms: grown(|r| r.cpu_busy_ms),
        tree_cpu_ms: grown(|r| r.tree_cpu_ms),
    })
}

/// The last row up to `time_ms`, else the first one.
fn at(rows: &[Row], time_ms: u64) -> Option<&Row> {
    let after = rows.partition_point(|r| r.time_ms <= time_ms);
    rows.get(after.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Mark;

    fn recording(marks: &[(u64, &str)]) -> Recording {
        let row = |s: u64| Row {
            time_ms: s * 1000,
            free_bytes: Some(1000 - 100 * s),
            pages_in: Some(10 * s),
            memory_some_us: Some(1500 * s),
            ..Row::default()
        };
        let marks = marks.iter().map(|(time_ms, name)| Mark { time_ms: *time_ms, name: (*name).into() });
        Recording { rows: (0..=5).map(row).collect(), marks: marks.collect(), ..Recording::default() }
    }

    #[test]
    fn each_mark_begins_a_step_and_what_is_before_is_one_too() {
        let found = steps(&recording(&[(2000, "a"), (4100, "b")]));
        let seen: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.from_s, s.to_s, s.pages_in)).collect();
        assert_eq!(seen, [("(start)", 0.0, 2.0, 20), ("a", 2.0, 4.1, 20), ("b", 4.1, 5.0, 10)]);
        assert_eq!((found[1].start.free, found[1].end.free), (Some(Bytes(800)), Some(Bytes(600))));
        assert_eq!((found[1].memory_waiting_ms, found[1].tree_cpu_ms), (Some(3), None));
    }

    #[test]
    fn without_marks_the_whole_is_one_step_and_late_marks_are_at_the_end() {
        assert_eq!(steps(&recording(&[])).len(), 1);
        let found = steps(&recording(&[(0, "at once"), (99_000, "late")]));
        assert_eq!((found[0].name.as_str(), found[1].from_s, found[1].to_s), ("at once", 5.0, 5.0));
        assert!(steps(&Recording::default()).is_empty());
    }
}
