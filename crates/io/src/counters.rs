//! Counters of devices by class, and windows between two readings of them. Pure.

use std::collections::BTreeMap;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::class::{Class, Operation};
use crate::histogram::Histogram;

/// Latencies of one class of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// From making the request to its completion.
    pub whole: Histogram,
    /// Its first part, until the driver got the request; empty if the source does not measure it.
    pub queue: Histogram,
    /// Its second part, in the driver and the device; empty if the source does not measure it.
    pub device: Histogram,
    /// Bytes that were read, written or discarded.
    pub bytes: Bytes,
    /// Requests that failed; 0 if the source does not count them.
    pub errors: u64,
}

impl Latency {
    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.whole.merge(&other.whole);
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
        self.bytes = self.bytes + other.bytes;
        self.errors = self.errors.saturating_add(other.errors);
    }

    /// The difference since `before`.
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

/// Counters since any start, by the device's name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// Every device, used or not.
    pub devices: BTreeMap<String, DeviceCounters>,
    /// By process or group, if requested.
    pub requesters: BTreeMap<RequesterKey, RequesterCounters>,
    /// What is missing or coarser than it could be, each with its reason.
    pub missing: Vec<String>,
}

/// A device's counters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceCounters {
    /// By class.
    pub classes: Classes,
    /// Reads in flight now; `None` if the source does not count them.
    pub reads_in_flight: Option<u64>,
    /// Writes in flight now.
    pub writes_in_flight: Option<u64>,
    /// Milliseconds with a request in flight, since the device appeared.
    pub busy_ms: Option<u64>,
}

/// A process or group, with a device and an operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequesterKey {
    /// The device.
    pub device: String,
    /// The number of the process or group.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
}

/// The requests of a process or group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequesterCounters {
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

/// The requests of all disks in a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// Its length, in seconds.
    pub seconds: f64,
    /// The source of the measurements: `bpf` or `stat`.
    pub source: String,
    /// What is missing or coarser than it could be, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// By name; idle ones too.
    pub devices: Vec<Device>,
    /// Devices that disappeared since the window before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// By process or group, most bytes first, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requesters: Vec<Requester>,
}

/// A device in a window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// The kernel's name (`sda`), or the name of a ZFS pool.
    pub name: String,
    /// Classes that had requests.
    pub classes: Vec<ClassLatency>,
    /// Reads in flight at the end.
    pub reads_in_flight: Option<u64>,
    /// Writes in flight at the end.
    pub writes_in_flight: Option<u64>,
    /// The share of the time (0 to 1) with a request in flight.
    pub busy: Option<f64>,
}

/// A class in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassLatency {
    /// The class.
    #[serde(flatten)]
    pub class: Class,
    /// Its latencies.
    #[serde(flatten)]
    pub latency: Latency,
}

/// The requests of a process or group in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requester {
    /// The process' or group's name.
    pub name: String,
    /// The number of the process or group.
    pub id: u64,
    /// The device.
    pub device: String,
    /// The operation.
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
    /// The sum of all classes for which `is` holds.
    pub fn sum(&self, is: impl Fn(Class) -> bool) -> Latency {
        let mut all = Latency::default();
        self.classes.iter().filter(|f| is(f.class)).for_each(|f| all.merge(&f.latency));
        all
    }

    /// Reads that a process waits for.
    pub fn awaited_reads(&self) -> Latency {
        self.sum(Class::is_awaited_read)
    }

    /// All requests of an operation.
    pub fn of(&self, operation: Operation) -> Latency {
        self.sum(|class| class.operation == operation)
    }

    /// Adds a later window of the same device; requests in flight are those of the later one.
    pub fn merge(&mut self, other: &Self) {
        for class in &other.classes {
            match self.classes.iter_mut().find(|f| f.class == class.class) {
                Some(mine) => mine.latency.merge(&class.latency),
                None => self.classes.push(class.clone()),
            }
        }
        self.classes.sort_by_key(|f| f.class);
        (self.reads_in_flight, self.writes_in_flight) = (other.reads_in_flight, other.writes_in_flight);
    }
}

impl Window {
    /// The window between two readings that are `seconds` apart.
    pub fn between(before: &Counters, now: &Counters, seconds: f64, source: &str) -> Self {
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
            requesters: requesters(&before.requesters, &now.requesters),
        }
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.name == name)
    }

    /// Adds the window that followed.
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

fn device(name: &str, before: &DeviceCounters, now: &DeviceCounters, seconds: f64) -> Device {
    let none = Latency::default();
    let classes = now.classes.iter().map(|(class, latency)| ClassLatency {
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

fn requesters(
    before: &BTreeMap<RequesterKey, RequesterCounters>,
    now: &BTreeMap<RequesterKey, RequesterCounters>,
) -> Vec<Requester> {
    let none = RequesterCounters::default();
    let requester = |(key, count): (&RequesterKey, &RequesterCounters)| {
        let then = before.get(key).unwrap_or(&none);
        Requester {
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
    let mut all: Vec<Requester> = now.iter().map(requester).filter(|r| r.count > 0).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(b.count.cmp(&a.count)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Mode;

    const READ: Class = Class::new(Operation::Read, Mode::Sync);

    fn counted(latencies: &[u64], busy_ms: u64) -> DeviceCounters {
        let mut latency = Latency::default();
        for ns in latencies {
            latency.whole.record(*ns);
            latency.bytes = latency.bytes + Bytes(4096);
        }
        DeviceCounters {
            classes: Classes::from([(READ, latency)]),
            busy_ms: Some(busy_ms),
            ..DeviceCounters::default()
        }
    }

    fn reading(devices: &[(&str, DeviceCounters)]) -> Counters {
        let devices = devices.iter().map(|(name, counted)| ((*name).to_owned(), counted.clone()));
        Counters { devices: devices.collect(), ..Counters::default() }
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let before = reading(&[("sda", counted(&[100], 10)), ("sdb", DeviceCounters::default())]);
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
            "a new device has no earlier busy time"
        );
    }

    #[test]
    fn consecutive_windows_merge_into_one() {
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
