//! Sets knobs, through the journal.

use std::collections::BTreeMap;

use eke_apply::journal;
use eke_apply::journal::record::Undo;
use eke_apply::session::{AppliedStep, Session};
use eke_apply::write::read_value;
use eke_io::governor::TunedKnob;
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step};

use super::{OWNER, tunable};

/// Why a knob was not set.
#[derive(Debug, thiserror::Error)]
pub enum NotSet {
    /// Another eke holds the journal or the setting now: try later.
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
    /// Somebody set it before eke ever did.
    #[error("{knob} has been set to {found}, and eke begins there")]
    Began {
        /// The setting.
        knob: &'static str,
        /// Its value.
        found: u64,
    },
    /// The disk has got another scheduler, or another use.
    #[error("{knob} is left alone: this disk has another scheduler or another use by now")]
    Void {
        /// The setting.
        knob: &'static str,
    },
    /// An earlier change of it could not be undone, so its present value is no place to begin at.
    #[error("{knob} is left alone: an earlier change of it could not be undone; see `eke down`")]
    Left {
        /// The setting.
        knob: &'static str,
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
    left: Option<eke_linux::Error>,
}

impl KnobWriter {
    /// Undoes what a killed process left.
    ///
    /// # Errors
    /// The journal cannot be opened.
    pub fn new(root: &Root) -> Result<Self, eke_linux::Error> {
        let left = Session::open(root, OWNER)?.undo_own().err();
        Ok(Self { root: root.clone(), made: BTreeMap::new(), left })
    }

    /// The first change of a killed process that could not be undone. Its knob is left alone.
    pub fn left(&self) -> Option<&eke_linux::Error> {
        self.left.as_ref()
    }

    /// Sets `knob`, given with its present value, to `value`. At most one change of it is in the journal at any time.
    ///
    /// # Errors
    /// See [`NotSet`]; the knob then has its value from before this change, or from before all changes.
    pub fn set(&mut self, knob: &TunedKnob, value: u64, why: &str) -> Result<(), NotSet> {
        self.check_journal(knob)?;
        self.check(knob)?;
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

    /// Whether it may still be changed, and still has the value that eke knows.
    fn check(&mut self, knob: &TunedKnob) -> Result<(), NotSet> {
        if !tunable::is_allowed(&self.root, knob.name, &knob.target) {
            self.undo(knob);
            return Err(NotSet::Void { knob: knob.name });
        }
        let found = read_value(&self.root, knob.name, &knob.target)?;
        if found == knob.now.to_string() {
            return Ok(());
        }
        let is_ours = self.made.contains_key(&(knob.name, knob.target.clone()));
        self.undo(knob);
        Err(match found.parse() {
            Ok(found) if !is_ours => NotSet::Began { knob: knob.name, found },
            _ => NotSet::Theirs { knob: knob.name, found, set: knob.now },
        })
    }

    /// A comparison changes a knob for a while and then restores what it found. Nobody has chosen its value, and a change meanwhile would remain.
    fn check_journal(&self, knob: &TunedKnob) -> Result<(), NotSet> {
        let entries = journal::entries(&self.root).map_err(NotSet::Later)?;
        let ours = self.made.get(&(knob.name, knob.target.clone()));
        let other = entries.iter().find(|e| Some(&e.seq) != ours && changes(&e.intent.undo, knob));
        let Some(other) = other else { return Ok(()) };
        if other.intent.owner == OWNER {
            return Err(NotSet::Left { knob: knob.name });
        }
        let why = format!("{} is changed by eke ({}) now: eke tries later", knob.name, other.intent.owner);
        Err(NotSet::Later(eke_linux::Error::Refused(why)))
    }

    /// Undoes the change of a knob, if there is one. A value that somebody else set is left alone; the journal's entry ends in either case.
    pub fn undo(&mut self, knob: &TunedKnob) {
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

/// Whether a change covers a knob, itself or together with another one.
fn changes(undo: &Undo, of: &TunedKnob) -> bool {
    let Undo::Write { knob, target, beside, .. } = undo else { return false };
    let is_same = knob == of.name || beside.iter().any(|(name, _)| name == of.name);
    is_same && *target == of.target
}

#[cfg(test)]
mod tests {
    use eke_io::compare::setting::Setting;
    use eke_io::knobs::named;
    use eke_testkit::fake_kernel::{FakeKernel, Faults};

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

    /// The governor lowers, a comparison runs, the governor wants to lower further, the comparison ends.
    fn beside_a_comparison(compared: &'static str, values: [&str; 2]) {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
        let mut writer = KnobWriter::new(&root).unwrap();
        writer.set(&knob(64), 32, "a test").unwrap();
        let setting = Setting::new(&root, named(compared).unwrap(), "sda").unwrap();
        for value in values {
            setting.set(value).unwrap();
            let refused = writer.set(&knob(32), 16, "a test").unwrap_err();
            assert!(matches!(refused, NotSet::Later(_)), "{refused}");
        }
        drop(setting);
        assert_eq!(now(&root), "32");
        writer.set(&knob(32), 16, "a test").unwrap();
        writer.restore_all().unwrap();
        assert_eq!((now(&root).as_str(), journal::entries(&root).unwrap().len()), ("64", 0));
    }

    #[test]
    fn a_knob_that_a_comparison_changes_is_set_later_and_its_undo_stays() {
        beside_a_comparison("nr_requests", ["256", "100"]);
    }

    #[test]
    fn a_scheduler_that_a_comparison_changes_holds_its_knobs_too() {
        beside_a_comparison("scheduler", ["none", "none"]);
    }

    #[test]
    fn what_somebody_set_before_the_first_change_is_where_it_begins() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "100\n");
        let mut writer = KnobWriter::new(&root).unwrap();
        let refused = writer.set(&knob(64), 32, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Began { found: 100, .. }), "{refused}");
        writer.set(&knob(100), 50, "a test").unwrap();
        writer.restore_all().unwrap();
        assert_eq!(now(&root), "100");
    }

    #[test]
    fn a_throttle_that_bfq_switched_off_is_not_written() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        let throttle = TunedKnob { name: "queue.wbt_lat_usec", start: 75_000, floor: 18_750, ..knob(75_000) };
        let mut writer = KnobWriter::new(&root).unwrap();
        machine.put("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]\n");
        let refused = writer.set(&throttle, 37_500, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Void { .. }), "{refused}");
        assert_eq!(root.read("sys/block/sda/queue/wbt_lat_usec").unwrap(), "75000\n");
    }

    #[test]
    fn a_throttle_that_was_lowered_before_bfq_came_is_switched_off() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        let throttle =
            |now| TunedKnob { name: "queue.wbt_lat_usec", start: 75_000, floor: 18_750, ..knob(now) };
        let mut writer = KnobWriter::new(&root).unwrap();
        writer.set(&throttle(75_000), 37_500, "a test").unwrap();
        machine.put("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]\n");
        let refused = writer.set(&throttle(37_500), 18_750, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Void { .. }), "{refused}");
        assert_eq!(root.read("sys/block/sda/queue/wbt_lat_usec").unwrap(), "0\n");
        assert!(journal::entries(&root).unwrap().is_empty());
    }

    #[test]
    fn requests_that_became_those_of_a_whole_host_are_left_alone() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
        machine.put("sys/block/sda/device/scsi_device/0:0:0:0/dev", "");
        let mut writer = KnobWriter::new(&root).unwrap();
        machine.put("sys/block/sda/queue/scheduler", "[none] mq-deadline\n");
        machine.put("sys/block/sda/queue/nr_requests", "32\n");
        for at in [64, 32] {
            let refused = writer.set(&knob(at), 16, "a test").unwrap_err();
            assert!(matches!(&refused, NotSet::Void { .. }), "{refused}");
        }
        assert_eq!(now(&root), "32");
    }

    #[test]
    fn a_disk_that_became_a_path_gets_its_request_size_back() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/max_sectors_kb", "1280\n");
        let size = |now| TunedKnob { name: "queue.max_sectors_kb", start: 1280, floor: 64, ..knob(now) };
        let mut writer = KnobWriter::new(&root).unwrap();
        writer.set(&size(1280), 160, "a test").unwrap();
        machine.put("sys/block/sda/holders/dm-0", "");
        machine.put("sys/block/dm-0/dm/uuid", "mpath-360000\n");
        let refused = writer.set(&size(160), 64, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Void { .. }), "{refused}");
        assert_eq!(root.read("sys/block/sda/queue/max_sectors_kb").unwrap(), "1280\n");
    }

    #[test]
    fn what_an_earlier_process_cannot_get_back_leaves_the_other_disks_governed() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        machine.put("sys/block/sdb/queue/nr_requests", "64\n");
        KnobWriter::new(&root).unwrap().set(&knob(64), 8, "a test").unwrap();
        let errors = vec![("sda/queue/nr_requests".to_owned(), 22, usize::MAX)];
        machine.set_faults(Faults { errors, ..Faults::default() });
        let mut writer = KnobWriter::new(&root).unwrap();
        assert!(writer.left().unwrap().to_string().contains("sda/queue/nr_requests"));
        machine.set_faults(Faults::default());
        let refused = writer.set(&knob(8), 4, "a test").unwrap_err();
        assert!(matches!(&refused, NotSet::Left { .. }), "{refused}");
        writer.set(&TunedKnob { target: "sdb".into(), ..knob(64) }, 32, "a test").unwrap();
        writer.restore_all().unwrap();
        assert_eq!(now(&root), "64");
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
