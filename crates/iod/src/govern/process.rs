//! The loop: sample, decide, change.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use eke_apply::state;
use eke_io::Histogram;
use eke_io::class::Operation;
use eke_io::counters::{Device, Window};
use eke_io::governor::{Change, Governor, Observation, Rules, TunedKnob};
use eke_io::sensor::devices::directory;
use eke_io::sensor::{Refused, WindowSource};
use eke_io::target;
use eke_linux::Root;
use eke_model::config::IoSettings;
use eke_model::snapshot::{IoDisk, IoState};
use eke_model::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use super::knob_writer::{KnobWriter, NotSet};
use super::latencies::Latencies;
use super::tunable;

/// The longest time between two reports to the agent.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How to govern.
#[derive(Debug, Clone)]
pub struct Options {
    /// `[io]`.
    pub settings: IoSettings,
    /// Govern only this disk.
    pub only: Option<String>,
    /// The time between two samples.
    pub every: Duration,
    /// Write the state to `/run/eke`, for the agent.
    pub reports_to_agent: bool,
}

/// Why governing ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// poll(2) failed.
    #[error("cannot wait: {0}")]
    Wait(#[source] Errno),
    /// A change of this process cannot be undone, or the journal cannot be opened.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// Latencies cannot be measured any more.
    #[error(transparent)]
    Sensor(#[from] Refused),
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// It measures.
    Ready {
        /// `bpf` or `stat`.
        source: String,
    },
    /// The governor changed a knob.
    Changed {
        /// The disk.
        disk: String,
        /// The change and its reason.
        what: String,
    },
    /// Something failed.
    Trouble {
        /// A sentence.
        what: String,
    },
}

struct Process<'a> {
    root: &'a Root,
    options: &'a Options,
    writer: KnobWriter,
    governors: BTreeMap<String, Governor>,
    state: IoState,
    /// Of all disks, since the last report.
    reads: Histogram,
    latencies: Latencies,
    reported: Option<Instant>,
    begun: Instant,
    troubles: BTreeSet<String>,
    print: &'a mut dyn FnMut(Event),
}

/// Governs until `shutdown` is readable, then restores every knob.
///
/// # Errors
/// See [`Error`]. What could not be undone stays in the journal.
pub fn run(
    root: &Root,
    options: &Options,
    windows: &mut dyn WindowSource,
    shutdown: BorrowedFd<'_>,
    print: &mut dyn FnMut(Event),
) -> Result<(), Error> {
    let mut process = Process::new(root, options, print)?;
    let source = windows.window()?.source;
    process.state.source.clone_from(&source);
    (process.print)(Event::Ready { source });
    process.report();
    let ended = loop {
        if is_readable(shutdown, options.every)? {
            break Ok(());
        }
        match windows.window() {
            Ok(window) => process.sample(&window),
            Err(refused) => break Err(refused.into()),
        }
    };
    process.writer.restore_all()?;
    ended
}

/// Waits at most so long for `fd`; `true`: it is readable.
fn is_readable(fd: BorrowedFd<'_>, at_most: Duration) -> Result<bool, Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let time = Timespec::try_from(at_most).unwrap_or_default();
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(Error::Wait(e)),
    }
}

impl<'a> Process<'a> {
    fn new(root: &'a Root, options: &'a Options, print: &'a mut dyn FnMut(Event)) -> Result<Self, Error> {
        let writer = KnobWriter::new(root)?;
        let left = writer.left().map(ToString::to_string);
        let mut process = Self {
            root,
            options,
            writer,
            governors: BTreeMap::new(),
            reads: Histogram::default(),
            latencies: Latencies::default(),
            state: IoState { pid: std::process::id(), ..IoState::default() },
            reported: None,
            begun: Instant::now(),
            troubles: BTreeSet::new(),
            print,
        };
        left.into_iter().for_each(|what| process.trouble(what));
        Ok(process)
    }

    fn sample(&mut self, window: &Window) {
        window.gone.iter().for_each(|name| self.end_governor(name));
        self.latencies.pass(window.seconds);
        for device in window.devices.iter().filter(|device| !is_in_memory(device)) {
            self.reads.merge(&device.awaited_reads().whole);
            self.latencies.add(device);
        }
        let devices = window.devices.iter().filter(|device| self.is_governed(device));
        for device in devices.collect::<Vec<_>>() {
            self.govern(device, window.seconds);
        }
        if self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_EVERY) {
            self.report();
        }
    }

    /// Skips disks in memory, which have no queue to govern, disks that nobody writes to, and, unless they are selected, devices that lie on others.
    fn is_governed(&self, device: &Device) -> bool {
        let is_selected = self.options.only.as_ref().is_none_or(|only| *only == device.name);
        let is_written = !device.of(Operation::Write).whole.is_empty();
        let is_found =
            || is_written && (self.options.only.is_some() || !lies_on_others(self.root, &device.name));
        is_selected && !is_in_memory(device) && (self.governors.contains_key(&device.name) || is_found())
    }

    /// A disk is gone, perhaps with its knobs. Those of a card reader or a loop device stay, for the next card; one of the machine is free for the
    /// next governor.
    fn end_governor(&mut self, name: &str) {
        let Some(governor) = self.governors.remove(name) else { return };
        governor.knobs().iter().for_each(|knob| self.writer.undo(knob));
    }

    fn govern(&mut self, device: &Device, seconds: f64) {
        let now_s = self.begun.elapsed().as_secs_f64();
        let knobs = match self.governors.get(&device.name) {
            Some(_) => Vec::new(),
            None => without_shared(tunable::of(self.root, &device.name), self.governors.values()),
        };
        let governor = self.governors.entry(device.name.clone()).or_insert_with(|| {
            let target = target::of(self.root, &device.name, self.options.settings.read_target_ms);
            let seek = target::seek(self.root, &device.name, self.options.settings.read_target_ms);
            Governor::new(Rules { seek, ..Rules::new(target) }, knobs)
        });
        let before = governor.clone();
        let Some(change) = governor.observe(now_s, &Observation::of(device, seconds)) else { return };
        let Some(knob) = before.knobs().get(change.knob) else { return };
        match self.writer.set(knob, change.value, &change.text) {
            Ok(()) => self.report_change(&device.name, &change),
            Err(NotSet::Later(e)) => {
                // forget the decision; the next windows repeat it
                *governor = before;
                self.trouble(e.to_string());
            }
            Err(NotSet::Began { found, .. }) => governor.start_knob_at(change.knob, found),
            Err(why) => {
                governor.give_up_knob(change.knob);
                self.trouble(format!("{}: {why}", device.name));
            }
        }
    }

    fn report_change(&mut self, disk: &str, change: &Change) {
        self.state.changes += 1;
        self.state.last = Some(format!("{disk}: {}", change.text));
        (self.print)(Event::Changed { disk: disk.to_owned(), what: change.text.clone() });
        self.report();
    }

    /// Prints each message once.
    fn trouble(&mut self, what: String) {
        if self.troubles.insert(what.clone()) {
            (self.print)(Event::Trouble { what });
        }
    }

    fn report(&mut self) {
        self.reported = Some(Instant::now());
        if !self.options.reports_to_agent {
            return;
        }
        self.state.up_s = self.begun.elapsed().as_secs();
        let reads = std::mem::take(&mut self.reads);
        let within = |share| reads.quantile_ns(share).map(|ns| Nanos(ns as u64));
        (self.state.reads_p50, self.state.reads_p99) = (within(0.5), within(0.99));
        (self.state.latencies, self.state.late_ms) = self.latencies.take();
        self.state.disks =
            self.governors.iter().map(|(name, governor)| disk(name, governor, self.begun)).collect();
        if let Err(e) = state::save(self.root, state::IO, &self.state) {
            self.trouble(e.to_string());
        }
    }
}

/// A setting of the machine belongs to one governor only: each takes the value of another one for a stranger's.
fn without_shared<'a>(
    mut knobs: Vec<TunedKnob>,
    others: impl Iterator<Item = &'a Governor> + Clone,
) -> Vec<TunedKnob> {
    let has =
        |knob: &TunedKnob| others.clone().flat_map(Governor::knobs).any(|other| other.name == knob.name);
    knobs.retain(|knob| !knob.target.is_empty() || !has(knob));
    knobs
}

/// Whether a device's blocks are on other devices (dm, md, a loop device over a file). Its requests are theirs too: two governors would lower settings
/// for the same reads.
fn lies_on_others(root: &Root, name: &str) -> bool {
    let dir = format!("sys/block/{}", directory(name));
    !root.list(format!("{dir}/slaves")).unwrap_or_default().is_empty()
        || root.read(format!("{dir}/loop/backing_file")).is_ok()
}

fn is_in_memory(device: &Device) -> bool {
    ["zram", "ram"].iter().any(|kind| device.name.starts_with(kind))
}

fn disk(name: &str, governor: &Governor, begun: Instant) -> IoDisk {
    let changed = governor.knobs().iter().filter(|knob| knob.now != knob.start);
    let rests = governor.rests_until_s().map(|until| until - begun.elapsed().as_secs_f64());
    IoDisk {
        name: name.to_owned(),
        target: governor.rules().target,
        changed: changed.map(|knob| format!("{} {} (was {})", knob.name, knob.now, knob.start)).collect(),
        rests_s: rests.filter(|s| *s > 0.0).map(|s| s as u64),
    }
}

#[cfg(test)]
mod tests {
    use eke_io::counters::{ClassLatency, Latency};
    use eke_io::{Class, Mode};
    use eke_testkit::fake_kernel::{FakeKernel, Faults};

    use super::*;

    #[test]
    fn a_setting_of_the_machine_belongs_to_one_governor() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_max_active", "10\n");
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_min_active", "2\n");
        for disk in ["sda", "sdb"] {
            machine.put(&format!("sys/block/{disk}/queue/nr_requests"), "64\n");
        }
        let of = |disk: &str, others: &[Governor]| without_shared(tunable::of(&root, disk), others.iter());
        let names = |knobs: &[TunedKnob]| knobs.iter().map(|knob| knob.name).collect::<Vec<_>>();
        let first = Governor::new(Rules::new(Nanos(1)), of("sda", &[]));
        assert_eq!(names(first.knobs()), ["zfs.async_write_max_active", "queue.nr_requests"]);
        assert_eq!(names(&of("sdb", &[first])), ["queue.nr_requests"]);
    }

    #[test]
    fn the_next_card_in_a_reader_finds_the_settings_as_they_were() {
        let machine = FakeKernel::new();
        let root = machine.root();
        let now = || root.read("sys/block/sda/queue/nr_requests").unwrap();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        let options = Options {
            settings: IoSettings::default(),
            only: None,
            every: Duration::from_secs(1),
            reports_to_agent: false,
        };
        let mut ignored = |_| {};
        let mut process = Process::new(&root, &options, &mut ignored).unwrap();
        let knobs = tunable::of(&root, "sda");
        process.writer.set(&knobs[0], 8, "a test").unwrap();
        process.governors.insert("sda".to_owned(), Governor::new(Rules::new(Nanos(1)), knobs));
        assert_eq!(now(), "8\n");
        process.sample(&Window { gone: vec!["sda".to_owned()], ..Window::default() });
        assert_eq!(now(), "64\n");
        assert!(eke_apply::journal::entries(&root).unwrap().is_empty());
    }

    #[test]
    fn what_a_killed_process_left_and_cannot_be_undone_is_reported() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        KnobWriter::new(&root).unwrap().set(&tunable::of(&root, "sda")[0], 8, "a test").unwrap();
        let errors = vec![("sda/queue/nr_requests".to_owned(), 22, usize::MAX)];
        machine.set_faults(Faults { errors, ..Faults::default() });
        let options = Options {
            settings: IoSettings::default(),
            only: None,
            every: Duration::from_secs(1),
            reports_to_agent: false,
        };
        let mut printed = Vec::new();
        let mut print = |event| printed.push(event);
        Process::new(&root, &options, &mut print).unwrap();
        let [Event::Trouble { what }] = &printed[..] else { panic!("{printed:?}") };
        assert!(what.contains("sda/queue/nr_requests"), "{what}");
    }

    #[test]
    fn of_devices_on_others_only_the_selected_one_is_governed() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/dm-0/slaves/sda/dev", "8:0\n");
        machine.put("sys/block/loop0/loop/backing_file", "/image\n");
        machine.put("sys/block/sda/dev", "8:0\n");
        let governed = |only: Option<&str>| {
            let options = Options {
                settings: IoSettings::default(),
                only: only.map(str::to_owned),
                every: Duration::from_secs(1),
                reports_to_agent: false,
            };
            let mut ignored = |_| {};
            let process = Process::new(&root, &options, &mut ignored).unwrap();
            ["sda", "dm-0", "loop0", "loop1"].map(|name| {
                let mut latency = Latency::default();
                latency.whole.count = 1;
                let class = Class::new(Operation::Write, Mode::Sync);
                let classes = vec![ClassLatency { class, latency }];
                process.is_governed(&Device { name: name.to_owned(), classes, ..Device::default() })
            })
        };
        assert_eq!(governed(None), [true, false, false, true]);
        assert_eq!(governed(Some("loop0")), [false, false, true, false]);
    }

    #[test]
    fn zfs_setting_belongs_to_the_disk_with_the_pool() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_max_active", "10\n");
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_min_active", "2\n");
        for disk in ["sda", "sdb", "sdc"] {
            machine.put(&format!("sys/block/{disk}/queue/nr_requests"), "64\n");
        }
        let has_zfs = || ["sda", "sdb", "sdc"].map(|disk| tunable::of(&root, disk).len() == 2);
        assert_eq!(has_zfs(), [true; 3], "udev tells nothing");
        machine.put("sys/block/sdb/sdb1/dev", "8:17\n");
        machine.put("run/udev/data/b8:17", "E:ID_FS_TYPE=zfs_member\n");
        assert_eq!(has_zfs(), [false, true, false]);
        machine.put("sys/block/sdc/holders/dm-0/name", "");
        machine.put("sys/block/dm-0/dev", "253:0\n");
        machine.put("run/udev/data/b253:0", "E:ID_FS_TYPE=zfs_member\n");
        assert_eq!(has_zfs(), [false, true, true], "through dm-crypt");
    }
}
