//! Sets knobs, through the journal.

use std::collections::BTreeMap;

use eke_apply::session::{AppliedStep, Session};
use eke_apply::write::read_value;
use eke_io::governor::TunedKnob;
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step};

use super::OWNER;

/// Why a knob was not set.
#[derive(Debug, thiserror::Error)]
pub enum NotSet {
    /// Another eke holds the journal now: try later.
    #[error("{0}")]
    Later(eke_linux::Error),
    /// Somebody else changed it: it is left alone.
    #[error("{knob} is {found}, but eke had set {set}: somebody else changed it, and it is left alone")]
    Theirs {
        /// The setting.
        knob: &'static str,
        /// Its value.
        found: String,
        /// The value that eke set last.
        set: u64,
    },
    /// The kernel refused.
    #[error("{0}")]
    Kernel(#[from] eke_linux::Error),
}

/// Sets knobs. Holds the journal's number of each change, by knob and disk.
#[derive(Debug)]
pub struct KnobWriter {
    root: Root,
    made: BTreeMap<(&'static str, String), u64>,
}

impl KnobWriter {
    /// Undoes what a killed process left.
    ///
    /// # Errors
    /// It cannot be undone.
    pub fn new(root: &Root) -> Result<Self, eke_linux::Error> {
        Session::open(root, OWNER)?.undo_own()?;
        Ok(Self { root: root.clone(), made: BTreeMap::new() })
    }

    /// Sets `knob`, given with its present value, to `value`. At most one change of it is in the journal at any time.
    ///
    /// # Errors
    /// See [`NotSet`]; the knob then has its value from before this change, or from before all changes.
    pub fn set(&mut self, knob: &TunedKnob, value: u64, why: &str) -> Result<(), NotSet> {
        let found = read_value(&self.root, knob.name, &knob.target)?;
        if found != knob.now.to_string() {
            self.forget(knob);
            return Err(NotSet::Theirs { knob: knob.name, found, set: knob.now });
        }
        let key = (knob.name, knob.target.clone());
        let mut session = Session::try_open(&self.root, OWNER).map_err(NotSet::Later)?;
        if let Some(seq) = self.made.remove(&key) {
            session.undo(seq)?;
        }
        let step = Step::set_at(knob.name, &knob.target, value);
        if let AppliedStep::Made { seq, .. } =
            session.apply(&PlannedStep { step, reason: Reason::new(why) })?
        {
            self.made.insert(key, seq);
        }
        if session.journal().entries()?.is_empty() {
            session.journal().clear()?;
        }
        Ok(())
    }

    /// Closes the journal's entry of a knob that somebody else changed. Undo leaves the value alone and notes it.
    fn forget(&mut self, knob: &TunedKnob) {
        let Some(seq) = self.made.remove(&(knob.name, knob.target.clone())) else { return };
        if let Ok(mut session) = Session::open(&self.root, OWNER) {
            let _ = session.undo(seq);
        }
    }

    /// Restores every knob.
    ///
    /// # Errors
    /// What cannot be undone stays in the journal, for `eke down`.
    pub fn restore_all(&mut self) -> Result<(), eke_linux::Error> {
        self.made.clear();
        Session::open(&self.root, OWNER)?.undo_own()
    }
}

#[cfg(test)]
mod tests {
    use eke_apply::journal;
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    fn knob(now: u64) -> TunedKnob {
        TunedKnob {
            name: "queue.nr_requests",
            target: "sda".into(),
            start: 64,
            now,
            floor: 4,
            unit: 1,
            window_s: 1.0,
        }
    }

    fn now(root: &Root) -> String {
        root.read("sys/block/sda/queue/nr_requests").unwrap().trim().to_owned()
    }

    #[test]
    fn a_knob_is_set_and_restored_with_one_change_in_the_journal() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut writer = KnobWriter::new(&root).unwrap();
        for (from, to) in [(64, 32), (32, 16), (16, 24)] {
            writer.set(&knob(from), to, "a test").unwrap();
            assert_eq!(now(&root), to.to_string());
            assert_eq!(journal::entries(&root).unwrap().len(), 1);
        }
        writer.set(&knob(24), 64, "a test").unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("64", 0));
        writer.set(&knob(64), 8, "a test").unwrap();
        writer.restore_all().unwrap();
        assert_eq!(now(&root), "64");
    }

    #[test]
    fn what_a_killed_process_left_is_undone_at_the_start() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut dead = KnobWriter::new(&root).unwrap();
        dead.set(&knob(64), 8, "a test").unwrap();
        std::mem::forget(dead);
        KnobWriter::new(&root).unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("64", 0));
    }

    #[test]
    fn what_somebody_else_set_is_left_alone() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut writer = KnobWriter::new(&root).unwrap();
        writer.set(&knob(64), 32, "a test").unwrap();
        machine.put("sys/block/sda/queue/nr_requests", "100\n");
        let refused = writer.set(&knob(32), 16, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Theirs { found, .. } if found == "100"), "{refused}");
        writer.restore_all().unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("100", 0));
    }
}
