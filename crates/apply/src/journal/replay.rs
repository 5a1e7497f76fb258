//! Finds the changes in force, from the records alone.

use std::collections::BTreeMap;

use super::record::{Intent, Phase, Record};

/// A change that is or may be in force: a crash can come between its intent and its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its sequence number.
    pub seq: u64,
    /// The change and its inverse.
    pub intent: Intent,
    /// The device that the kernel added for it.
    pub made: Option<String>,
    /// Whether it was recorded as done.
    pub done: bool,
    /// Whether its device is being removed for good, so that nobody swaps it on again.
    pub draining: bool,
}

/// The changes that were neither undone, nor kept, nor failed, oldest first.
pub fn in_force(records: &[Record]) -> Vec<Entry> {
    let mut open = BTreeMap::new();
    for Record { seq, phase } in records {
        match phase {
            Phase::Begun { .. } => {}
            Phase::Intent(intent) => {
                let intent = intent.as_ref().clone();
                open.insert(*seq, Entry { seq: *seq, intent, made: None, done: false, draining: false });
            }
            Phase::Made { device } => {
                open.entry(*seq).and_modify(|e| e.made = Some(device.clone()));
            }
            Phase::Done { draining } => {
                open.entry(*seq).and_modify(|e| (e.done, e.draining) = (true, *draining));
            }
            Phase::Failed { .. } | Phase::Reverted | Phase::Kept { .. } => {
                open.remove(seq);
            }
        }
    }
    open.into_values().collect()
}

/// The shortest records with the same changes in force. The first one has the largest number so far, so that no later change gets
/// a number that somebody remembers.
pub fn compacted(records: &[Record]) -> Vec<Record> {
    let seq = records.iter().map(|record| record.seq).max().unwrap_or(0);
    let begun = records.first().map(|first| Record { seq, phase: first.phase.clone() });
    begun.into_iter().chain(in_force(records).into_iter().flat_map(phases)).collect()
}

fn phases(entry: Entry) -> impl Iterator<Item = Record> {
    let intent = Phase::Intent(Box::new(entry.intent));
    let made = entry.made.map(|device| Phase::Made { device });
    let done = entry.done.then_some(Phase::Done { draining: entry.draining });
    let phases = [Some(intent), made, done].into_iter().flatten();
    phases.map(move |phase| Record { seq: entry.seq, phase })
}

#[cfg(test)]
mod tests {
    use eke_model::step::Step;

    use super::super::record::Undo;
    use super::*;

    const DONE: Phase = Phase::Done { draining: false };

    fn intent() -> Phase {
        let undo = Undo::Write {
            knob: "vm.swappiness".into(),
            target: String::new(),
            old: "60".into(),
            new: "180".into(),
            had_it: vec![],
            beside: Vec::new(),
        };
        Phase::Intent(Box::new(Intent {
            owner: "swap".into(),
            step: Step::set("vm.swappiness", 180),
            undo,
            reason: "why".into(),
            made_by: None,
        }))
    }

    fn record(seq: u64, phase: Phase) -> Record {
        Record { seq, phase }
    }

    #[test]
    fn undone_changes_are_not_in_force() {
        let records = [
            record(1, intent()),
            record(1, DONE),
            record(2, intent()),
            record(3, intent()),
            record(3, Phase::Reverted),
        ];
        let entries = in_force(&records);
        assert_eq!(entries.iter().map(|e| (e.seq, e.done)).collect::<Vec<_>>(), [(1, true), (2, false)]);
    }

    #[test]
    fn compacted_records_have_the_same_changes_in_force_and_the_same_next_number() {
        let begun = Phase::Begun { boot_id: "a".into(), version: 1 };
        let made = Phase::Made { device: "zram1".into() };
        let records = [
            record(0, begun.clone()),
            record(1, intent()),
            record(1, made),
            record(1, DONE),
            record(1, Phase::Done { draining: true }),
            record(2, intent()),
            record(3, intent()),
            record(3, DONE),
            record(3, Phase::Reverted),
        ];
        let short = compacted(&records);
        assert_eq!(in_force(&short), in_force(&records));
        assert_eq!((short.len(), &short[0]), (5, &record(3, begun)));
    }

    #[test]
    fn records_survive_the_file_and_partial_lines_do_not() {
        let line = record(7, intent()).to_line();
        assert_eq!(Record::from_line(&line), Ok(Some(record(7, intent()))));
        assert_eq!(Record::from_line(&line[..line.len() / 2]), Ok(None));
    }

    /// The phases of an eke that knew no draining.
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "snake_case", tag = "phase")]
    enum Older {
        Done,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct OlderRecord {
        seq: u64,
        #[serde(flatten)]
        phase: Older,
    }

    #[test]
    fn an_older_eke_undoes_a_device_that_was_being_removed_as_any_other() {
        assert_eq!(record(7, DONE).to_line(), r#"{"seq":7,"phase":"done"}"#);
        let line = record(7, Phase::Done { draining: true }).to_line();
        let older: OlderRecord = serde_json::from_str(&line).unwrap();
        assert_eq!(older, OlderRecord { seq: 7, phase: Older::Done }, "{line}");
    }

    #[test]
    fn a_complete_line_of_another_version_is_not_skipped() {
        let line = record(7, DONE).to_line().replace("done", "done_twice");
        assert!(Record::from_line(&line).is_err());
    }
}
