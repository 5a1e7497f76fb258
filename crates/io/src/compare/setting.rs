//! Changes a setting, and restores it.

use eke_apply::journal;
use eke_apply::journal::replay::Entry;
use eke_apply::knob::Knob;
use eke_apply::session::Session;
use eke_apply::write::read_value;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_model::step::{PlannedStep, Reason, Step};

use super::{Error, OWNER};
use crate::knobs;

/// The value that stands for the original one.
const DEFAULT: &str = "default";

/// A setting of the machine, or of one disk.
#[derive(Debug, Clone)]
pub struct Setting {
    root: Root,
    knob: &'static Knob,
    target: String,
    before: String,
}

impl Setting {
    /// Reads it, after undoing what a killed comparison left.
    ///
    /// # Errors
    /// It cannot be read (this machine does not have it), it has no effect on this disk, or another comparison runs.
    pub fn new(root: &Root, knob: &'static Knob, target: &str) -> Result<Self, Error> {
        undo_leftovers(root)?;
        if !knobs::is_effective(root, knob.name, target) {
            return Err(Error::Off { knob: knob.name, disk: target.to_owned() });
        }
        let before = read_value(root, knob.name, target)?;
        Ok(Self { root: root.clone(), knob, target: target.to_owned(), before })
    }

    /// Its original value.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Its name, with the disk it belongs to.
    pub fn name(&self) -> String {
        if self.target.is_empty() {
            self.knob.name.to_owned()
        } else {
            format!("{} of {}", self.knob.name, self.target)
        }
    }

    /// Whether it can have this value, as far as the word shows.
    ///
    /// # Errors
    /// `default`, for a setting with lines per disk.
    pub fn check(&self, value: &str) -> Result<(), Error> {
        let is_refused = value == DEFAULT && self.knob.codec.is_per_disk();
        if is_refused { Err(Error::NoDefault(self.knob.name)) } else { Ok(()) }
    }

    /// Sets it; the word [`DEFAULT`] is its original value. At most one change of it is in the journal at any time.
    ///
    /// # Errors
    /// The kernel's answer, or as in [`Self::check`]; it then has its original value.
    pub fn set(&self, value: &str) -> Result<(), Error> {
        // restore first, so that the journal is empty and starts anew
        self.restore()?;
        let mut session = Session::open(&self.root, OWNER)?;
        self.check(value)?;
        let value = if value == DEFAULT { &self.before } else { value };
        let step = Step::set_at(self.knob.name, &self.target, value);
        session.apply(&PlannedStep { step, reason: Reason::new("compared with other values by eke io") })?;
        Ok(())
    }

    /// Restores the original value.
    ///
    /// # Errors
    /// The kernel's answer; the change then stays in the journal, for `eke down`.
    pub fn restore(&self) -> Result<(), Error> {
        Ok(Session::open(&self.root, OWNER)?.undo_own()?)
    }
}

/// Restores it if `restore` was not called.
impl Drop for Setting {
    fn drop(&mut self) {
        if let Ok(mut session) = Session::open(&self.root, OWNER) {
            let _ = session.undo_own();
        }
    }
}

/// Undoes what a killed comparison left.
///
/// # Errors
/// A comparison runs, or the journal cannot be read or written.
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
    fn it_is_restored_and_at_most_one_change_is_in_the_journal() {
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
    fn a_setting_with_lines_per_disk_has_no_default() {
        let machine = FakeKernel::new();
        machine.put("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=user\n8:16 enable=0 ctrl=auto\n");
        let setting = Setting::new(&machine.root(), named("io.cost.qos").unwrap(), "").unwrap();
        setting.check("8:0 enable=0").unwrap();
        let refused = setting.set("default").unwrap_err().to_string();
        assert!(refused.contains("name the disk"), "{refused}");
    }

    #[test]
    fn the_throttle_of_a_disk_with_bfq_is_not_compared() {
        let machine = FakeKernel::new();
        machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
        machine.put("sys/block/sda/queue/scheduler", "none [bfq]\n");
        let refused = Setting::new(&machine.root(), named("wbt_lat_usec").unwrap(), "sda").unwrap_err();
        assert!(refused.to_string().contains("bfq"), "{refused}");
    }

    #[test]
    fn the_error_for_a_missing_setting_has_its_path() {
        let machine = FakeKernel::new();
        let refused =
            Setting::new(&machine.root(), named("wbt_lat_usec").unwrap(), "sda").unwrap_err().to_string();
        assert!(refused.contains("sys/block/sda/queue/wbt_lat_usec"), "{refused}");
    }
}
