//! Sets knobs, through the journal.

use std::collections::BTreeMap;

use eke_apply::session::{AppliedStep, Session};
use eke_apply::write::read_value;
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step};

use super::OWNER;
use crate::governor::TunedKnob;

/// Why a knob was not set.
#[derive(Debug, thiserror::Error)]
pub enum NotSet {
    /// Another eke holds the journal just now; later.
    #[error("{0}")]
    Later(eke_linux::Error),
    /// Somebody else changed it since: it is theirs.
    #[error("{knob} reads {found}, but eke had set {set}: somebody else changed it, and it is left alone")]
    Theirs {
        /// The setting.
        knob: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        set: u64,
    },
    /// The kernel refused.
    #[error("{0}")]
    Kernel(#[from] eke_linux::Error),
}

/// The number of each change in the journal, by knob and disk.
#[derive(Debug)]
pub struct Hand {
    root: Root,
    made: BTreeMap<(&'static str, String), u64>,
}

impl Hand {
    /// Undoes what a dead one left.
    ///
    /// # Errors
    /// It cannot be undone.
    pub fn new(root: &Root) -> Result<Self, eke_linux::Error> {
        Session::open(root, OWNER)?.undo_own()?;
        Ok(Self { root: root.clone(), made: BTreeMap::new() })
    }

    /// Sets `knob` (as it was before the change) to `value`. At most one change of it is in the journal at any time.
    ///
    /// # Errors
    /// See [`NotSet`]; it is then as it was, or as it was before all.
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

    /// What somebody else has now is closed in the journal: undoing it notes that it is theirs.
    fn forget(&mut self, knob: &TunedKnob) {
        let Some(seq) = self.made.remove(&(knob.name, knob.target.clone())) else { return };
        if let Ok(mut session) = Session::open(&self.root, OWNER) {
            let _ = session.undo(seq);
        }
    }

    /// Everything as it was.
    ///
    /// # Errors
    /// What cannot be undone stays in the journal, for `eke down`.
    pub fn open(&mut self) -> Result<(), eke_linux::Error> {
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
    fn a_knob_is_set_and_let_go_with_one_change_in_the_journal() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut hand = Hand::new(&root).unwrap();
        for (from, to) in [(64, 32), (32, 16), (16, 24)] {
            hand.set(&knob(from), to, "a test").unwrap();
            assert_eq!(now(&root), to.to_string());
            assert_eq!(journal::entries(&root).unwrap().len(), 1);
        }
        hand.set(&knob(24), 64, "a test").unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("64", 0));
        hand.set(&knob(64), 8, "a test").unwrap();
        hand.open().unwrap();
        assert_eq!(now(&root), "64");
    }

    #[test]
    fn what_a_dead_one_left_is_undone_at_the_start() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut dead = Hand::new(&root).unwrap();
        dead.set(&knob(64), 8, "a test").unwrap();
        std::mem::forget(dead);
        Hand::new(&root).unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("64", 0));
    }

    #[test]
    fn what_somebody_else_set_is_left_alone() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let mut hand = Hand::new(&root).unwrap();
        hand.set(&knob(64), 32, "a test").unwrap();
        machine.put("sys/block/sda/queue/nr_requests", "100\n");
        let refused = hand.set(&knob(32), 16, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Theirs { found, .. } if found == "100"), "{refused}");
        hand.open().unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("100", 0));
    }
}
