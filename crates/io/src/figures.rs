//! Counters of devices by class, and what came between two readings of them. Pure.

use std::collections::BTreeMap;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::class::{Class, Operation};
use crate::histogram::Histogram;

/// Latencies of one class of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// From the making of the request to its completion.
    pub whole: Histogram,
    /// Of that, until the driver got it; empty where the source does not tell.
    pub queue: Histogram,
    /// Of that, in the driver and the device; empty where the source does not tell.
    pub device: Histogram,
    /// Bytes that were read, written or discarded.
    pub bytes: Bytes,
    /// Requests that failed; 0 where the source does not tell.
    pub errors: u64,
}

impl Latency {
    /// Adds another's.
    pub fn merge(&mut self, other: &Self) {
        self.whole.merge(&other.whole);
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
        self.bytes = self.bytes + other.bytes;
        self.errors = self.errors.saturating_add(other.errors);
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            whole: self.whole.since(&before.whole),
            queue: self.queue.since(&before.queue),
            device: self.device.since(&before.device),
            bytes: self.bytes.saturating_sub(before.bytes),
            errors: self.errors.saturating_sub(before.errors),
        }
    }
}

/// Latencies by class.
pub type Classes = BTreeMap<Class, Latency>;

/// Counters since some beginning, by the device's name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// Every device that is there, whether it was used or not.
    pub devices: BTreeMap<String, Counted>,
    /// By whom, where that was asked for.
    pub whose: BTreeMap<WhoKey, WhoCount>,
    /// What could not be read, with its reason.
    pub missing: Vec<String>,
}

/// A device's counters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counted {
    /// By class.
    pub classes: Classes,
    /// Reads under way now; `None` where that is not told.
    pub reads_in_flight: Option<u64>,
    /// Writes under way now.
    pub writes_in_flight: Option<u64>,
    /// Milliseconds in which something was under way, since the device came.
    pub busy_ms: Option<u64>,
}

/// Who asked for what, of which device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WhoKey {
    /// The device.
    pub device: String,
    /// The process, or the group's number.
    pub id: u64,
    /// What was asked.
    pub operation: Operation,
}

/// How much.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhoCount {
    /// The process' or group's name.
    pub name: String,
    /// Requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Their latencies' sum, in nanoseconds.
    pub sum_ns: u64,
    /// The longest one since the sensor began, in nanoseconds.
    pub most_ns: u64,
}

/// What happened in a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// Where the figures are from: `bpf` or `stat`.
    pub source: String,
    /// What is missing or coarser than it could be, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// By name; also those that did nothing.
    pub devices: Vec<Device>,
    /// Devices that went away since the window before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// By whom, most bytes first, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whose: Vec<Who>,
}

/// A device in a window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// The kernel's name (`sda`), or a pool's of ZFS.
    pub name: String,
    /// Classes that had requests.
    pub classes: Vec<Figures>,
    /// Reads under way at the end.
    pub reads_in_flight: Option<u64>,
    /// Writes under way at the end.
    pub writes_in_flight: Option<u64>,
    /// The share of the time (0 to 1) in which something was under way.
    pub busy: Option<f64>,
}

/// A class in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Which.
    #[serde(flatten)]
    pub class: Class,
    /// Its latencies.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Who did what in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Who {
    /// The process' or group's name.
    pub name: String,
    /// The process, or the group's number.
    pub id: u64,
    /// Of which device.
    pub device: String,
    /// What was asked.
    pub operation: Operation,
    /// Requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Their latencies' sum, in nanoseconds.
    pub sum_ns: u64,
    /// The longest one since the sensor began, in nanoseconds.
    pub most_ns: u64,
}

impl Device {
    /// All classes of which `is` says so, as one.
    pub fn sum(&self, is: impl Fn(Class) -> bool) -> Latency {
        let mut all = Latency::default();
        self.classes.iter().filter(|f| is(f.class)).for_each(|f| all.merge(&f.latency));
        all
    }

    /// Reads that somebody waits for.
    pub fn awaited_reads(&self) -> Latency {
        self.sum(Class::is_awaited_read)
    }

    /// All of an operation.
    pub fn of(&self, operation: Operation) -> Latency {
        self.sum(|class| class.operation == operation)
    }

    /// Adds what another window of the same device had; what is under way is the other's.
    pub fn merge(&mut self, other: &Self) {
        for figures in &other.classes {
            match self.classes.iter_mut().find(|f| f.class == figures.class) {
                Some(mine) => mine.latency.merge(&figures.latency),
                None => self.classes.push(figures.clone()),
            }
        }
        self.classes.sort_by_key(|f| f.class);
        (self.reads_in_flight, self.writes_in_flight) = (other.reads_in_flight, other.writes_in_flight);
    }
}

impl Window {
    /// What happened between two readings that are `seconds` apart.
    pub fn between(before: &Reading, now: &Reading, seconds: f64, source: &str) -> Self {
        let devices = now.devices.iter().map(|(name, counted)| {
            let earlier = before.devices.get(name).cloned().unwrap_or_default();
            device(name, &earlier, counted, seconds)
        });
        let gone = before.devices.keys().filter(|name| !now.devices.contains_key(*name)).cloned();
        Self {
            seconds,
            source: source.to_owned(),
            missing: now.missing.clone(),
            devices: devices.collect(),
            gone: gone.collect(),
            whose: whose(&before.whose, &now.whose),
        }
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.name == name)
    }

    /// Adds a window that followed.
    pub fn merge(&mut self, next: &Self) {
        let busy = |a: Option<f64>, b: Option<f64>| {
            Some((a? * self.seconds + b? * next.seconds) / (self.seconds + next.seconds))
        };
        for device in &next.devices {
            match self.devices.iter_mut().find(|d| d.name == device.name) {
                Some(mine) => {
                    mine.busy = busy(mine.busy, device.busy);
                    mine.merge(device);
                }
                None => self.devices.push(device.clone()),
            }
        }
        self.seconds += next.seconds;
        self.missing.clone_from(&next.missing);
        self.gone.extend(next.gone.iter().cloned());
    }
}

fn device(name: &str, before: &Counted, now: &Counted, seconds: f64) -> Device {
    let none = Latency::default();
    let classes = now.classes.iter().map(|(class, latency)| Figures {
        class: *class,
        latency: latency.since(before.classes.get(class).unwrap_or(&none)),
    });
    let busy_ms = now.busy_ms.map(|ms| ms.saturating_sub(before.busy_ms.unwrap_or(ms)));
    Device {
        name: name.to_owned(),
        classes: classes.filter(|f| !f.latency.whole.is_empty()).collect(),
        reads_in_flight: now.reads_in_flight,
        writes_in_flight: now.writes_in_flight,
        busy: busy_ms.filter(|_| seconds > 0.0).map(|ms| (ms as f64 / 1e3 / seconds).min(1.0)),
    }
}

fn whose(before: &BTreeMap<WhoKey, WhoCount>, now: &BTreeMap<WhoKey, WhoCount>) -> Vec<Who> {
    let none = WhoCount::default();
    let who = |(key, count): (&WhoKey, &WhoCount)| {
        let then = before.get(key).unwrap_or(&none);
        Who {
            name: count.name.clone(),
            id: key.id,
            device: key.device.clone(),
            operation: key.operation,
            count: count.count.saturating_sub(then.count),
            bytes: count.bytes.saturating_sub(then.bytes),
            sum_ns: count.sum_ns.saturating_sub(then.sum_ns),
            most_ns: count.most_ns,
        }
    };
    let mut all: Vec<Who> = now.iter().map(who).filter(|who| who.count > 0).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(b.count.cmp(&a.count)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Mode;

    const READ: Class = Class::new(Operation::Read, Mode::Sync);

    fn counted(latencies: &[u64], busy_ms: u64) -> Counted {
        let mut latency = Latency::default();
        for ns in latencies {
            latency.whole.record(*ns);
            latency.bytes = latency.bytes + Bytes(4096);
        }
        Counted { classes: Classes::from([(READ, latency)]), busy_ms: Some(busy_ms), ..Counted::default() }
    }

    fn reading(devices: &[(&str, Counted)]) -> Reading {
        let devices = devices.iter().map(|(name, counted)| ((*name).to_owned(), counted.clone()));
        Reading { devices: devices.collect(), ..Reading::default() }
    }

    #[test]
    fn a_window_is_what_came_between() {
        let before = reading(&[("sda", counted(&[100], 10)), ("sdb", Counted::default())]);
        let now = reading(&[("sda", counted(&[100, 200, 300], 510)), ("sdc", counted(&[7], 100))]);
        let window = Window::between(&before, &now, 2.0, "bpf");
        let sda = window.device("sda").unwrap();
        let read = sda.awaited_reads();
        assert_eq!((read.whole.count, read.whole.sum_ns, read.bytes), (2, 500, Bytes(8192)));
        assert_eq!((sda.busy, window.gone.as_slice()), (Some(0.25), &["sdb".to_owned()][..]));
        let new = window.device("sdc").unwrap();
        assert_eq!(
            (new.awaited_reads().whole.count, new.busy),
            (1, Some(0.0)),
            "busy since when is not known"
        );
    }

    #[test]
    fn windows_that_follow_are_one() {
        let (a, b, c) = (
            reading(&[("sda", counted(&[1], 0))]),
            reading(&[("sda", counted(&[1, 2], 1_000))]),
            reading(&[("sda", counted(&[1, 2, 3, 4], 1_000))]),
        );
        let mut both = Window::between(&a, &b, 1.0, "bpf");
        both.merge(&Window::between(&b, &c, 3.0, "bpf"));
        let mut whole = Window::between(&a, &c, 4.0, "bpf");
        assert_eq!(both, whole);
        whole.merge(&Window::default());
        assert_eq!(whole.seconds, 4.0);
    }

    #[test]
    fn a_window_is_a_line_of_json() {
        let window = Window::between(&reading(&[]), &reading(&[("sda", counted(&[9, 99], 5))]), 1.0, "bpf");
        let line = serde_json::to_string(&window).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Window>(&line).unwrap(), window);
    }
}
