//! Sets a setting, and brings it back.

use eke_apply::journal;
use eke_apply::journal::replay::Entry;
use eke_apply::knob::Knob;
use eke_apply::session::Session;
use eke_apply::write::read_value;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_model::step::{PlannedStep, Reason, Step};

use super::{Error, OWNER};

/// A setting of a machine, or of one disk of it.
#[derive(Debug, Clone)]
pub struct Setting {
    root: Root,
    knob: &'static Knob,
    target: String,
    before: String,
}

impl Setting {
    /// Reads it. What a dead comparison left is undone first; a living one is not disturbed.
    ///
    /// # Errors
    /// It cannot be read (there is no such setting here), or another eke is at work.
    pub fn new(root: &Root, knob: &'static Knob, target: &str) -> Result<Self, Error> {
        undo_leftovers(root)?;
        let before = read_value(root, knob.name, target)?;
        Ok(Self { root: root.clone(), knob, target: target.to_owned(), before })
    }

    /// What it was.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Its name, with whose it is.
    pub fn name(&self) -> String {
        if self.target.is_empty() {
            self.knob.name.to_owned()
        } else {
            format!("{} of {}", self.knob.name, self.target)
        }
    }

    /// Sets it; the word `default` is what it was. At no time stands more than one change of it in the journal.
    ///
    /// # Errors
    /// The kernel's answer; it is then as before.
    pub fn set(&self, value: &str) -> Result<(), Error> {
        // an empty journal is closed, and begun anew
        self.restore()?;
        let mut session = Session::open(&self.root, OWNER)?;
        let value = if value == "default" { &self.before } else { value };
        let step = Step::set_at(self.knob.name, &self.target, value);
        session.apply(&PlannedStep { step, reason: Reason::new("compared with other values by eke io") })?;
        Ok(())
    }

    /// As it was.
    ///
    /// # Errors
    /// The kernel's answer; it then stands in the journal, for `eke down`.
    pub fn restore(&self) -> Result<(), Error> {
        Ok(Session::open(&self.root, OWNER)?.undo_own()?)
    }
}

/// Whoever forgets to restore.
impl Drop for Setting {
    fn drop(&mut self) {
        if let Ok(mut session) = Session::open(&self.root, OWNER) {
            let _ = session.undo_own();
        }
    }
}

/// Undoes what a dead one left.
///
/// # Errors
/// A comparison is under way, or the journal cannot be read or written.
pub fn undo_leftovers(root: &Root) -> Result<(), Error> {
    let left = |root: &Root| {
        Ok::<Vec<Entry>, Error>(
            journal::entries(root)?.into_iter().filter(|e| e.intent.owner == OWNER).collect(),
        )
    };
    if left(root)?.is_empty() {
        return Ok(());
    }
    let mut session = Session::open(root, OWNER)?;
    let alive = |e: &Entry| e.intent.made_by.is_some_and(|owner| name::is_alive(root, owner).unwrap_or(true));
    if left(root)?.iter().any(alive) {
        return Err(Error::Busy(OWNER.to_owned()));
    }
    Ok(session.undo_own()?)
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;
    use crate::knobs::named;

    fn now(root: &Root) -> String {
        root.read("sys/block/sda/queue/nr_requests").unwrap().trim().to_owned()
    }

    #[test]
    fn it_comes_back_and_one_change_at_most_is_in_force() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "256\n");
        let setting = Setting::new(&root, named("nr_requests").unwrap(), "sda").unwrap();
        assert_eq!((setting.name().as_str(), setting.before()), ("queue.nr_requests of sda", "256"));
        for value in ["32", "64", "default", "32"] {
            setting.set(value).unwrap();
            assert_eq!(now(&root), if value == "default" { "256" } else { value });
            assert!(journal::entries(&root).unwrap().len() <= 1);
        }
        setting.restore().unwrap();
        assert_eq!(now(&root), "256");
        setting.set("8").unwrap();
        drop(setting);
        assert_eq!(now(&root), "256", "dropped");
        assert!(journal::entries(&root).unwrap().is_empty());
    }

    #[test]
    fn a_setting_that_is_not_there_says_where_it_was_looked_for() {
        let machine = FakeKernel::new();
        let refused =
            Setting::new(&machine.root(), named("wbt_lat_usec").unwrap(), "sda").unwrap_err().to_string();
        assert!(refused.contains("sys/block/sda/queue/wbt_lat_usec"), "{refused}");
    }
}
