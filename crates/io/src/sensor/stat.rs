//! Averages from `/sys/block/*/stat`, which every kernel has and any user may read.

use std::collections::BTreeMap;

use eke_linux::Root;
use eke_linux::parse::disk_stat::{self, Requests};
use eke_model::units::Bytes;

use super::devices;
use super::{Refused, Sensor};
use crate::class::{Class, Mode, Operation};
use crate::counters::{Classes, Counters, DeviceCounters, Latency};
use crate::histogram::Histogram;

/// The counters of one file; `None` if its format is another one.
pub fn parse(text: &str) -> Option<DeviceCounters> {
    let stat = disk_stat::parse(text)?;
    let requests = [
        (Operation::Read, Some(stat.reads)),
        (Operation::Write, Some(stat.writes)),
        (Operation::Discard, stat.discards),
        (Operation::Flush, stat.flushes),
    ];
    let known = requests.into_iter().filter_map(|(operation, requests)| Some((operation, requests?)));
    let classes: Classes =
        known.map(|(operation, requests)| (Class::new(operation, Mode::Any), average(requests))).collect();
    Some(DeviceCounters { classes, busy_ms: Some(stat.busy_ms), ..DeviceCounters::default() })
}

fn average(requests: Requests) -> Latency {
    Latency {
        whole: Histogram::of_average(requests.count, requests.ms.saturating_mul(1_000_000)),
        bytes: Bytes(requests.bytes),
        ..Latency::default()
    }
}

/// Reads and writes in flight, from `/sys/block/*/inflight`.
pub fn parse_inflight(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// Every device, with the counters of its files.
///
/// # Errors
/// Devices cannot be listed.
pub fn all(root: &Root) -> Result<BTreeMap<String, DeviceCounters>, Refused> {
    let names = root.list("sys/block").map_err(|e| Refused::new("list block devices", e))?;
    Ok(names.iter().filter_map(|name| Some((name.replace('!', "/"), read(root, name)?))).collect())
}

/// Skips a device without a size (a loop device without a file).
fn read(root: &Root, directory: &str) -> Option<DeviceCounters> {
    let text = |file: &str| root.read(format!("sys/block/{directory}/{file}")).ok();
    if text("size").is_some_and(|size| size.trim() == "0") {
        return None;
    }
    let mut counted = parse(&text("stat")?)?;
    let in_flight = text("inflight").as_deref().and_then(parse_inflight);
    (counted.reads_in_flight, counted.writes_in_flight) =
        (in_flight.map(|(reads, _)| reads), in_flight.map(|(_, writes)| writes));
    Some(counted)
}

/// A sensor of averages.
#[derive(Debug, Clone)]
pub struct Stat {
    root: Root,
    why: Vec<String>,
}

impl Stat {
    /// `why`: the reasons why BPF is not used.
    pub fn new(root: &Root, why: Vec<String>) -> Self {
        Self { root: root.clone(), why }
    }
}

impl Sensor for Stat {
    fn name(&self) -> &'static str {
        "stat"
    }

    fn read(&mut self) -> Result<Counters, Refused> {
        let devices = all(&self.root)?;
        let mut reading = Counters { devices, missing: self.why.clone(), ..Counters::default() };
        reading.missing.push(
            "averages only, in milliseconds: no percentiles, no queue time, sync and async together"
                .to_owned(),
        );
        for (name, device) in &reading.devices {
            let off = self.root.read(format!("sys/block/{}/queue/iostats", devices::directory(name)));
            let is_used = device.classes.values().any(|l| !l.whole.is_empty());
            if is_used && off.is_ok_and(|off| off.trim() == "0") {
                reading.missing.push(format!("{name} counts nothing: its queue/iostats is 0"));
            }
        }
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn files_of_all_kernels_are_read() {
        let old = parse("100 5 2048 300  50 6 4096 700  2 900 1000\n").unwrap();
        let read = &old.classes[&Class::new(Operation::Read, Mode::Any)];
        assert_eq!((read.whole.mean_ns(), read.bytes, old.busy_ms), (Some(3e6), Bytes(1 << 20), Some(900)));
        assert_eq!(old.classes.len(), 2, "no discards before 4.18");
        let new = parse("1 0 8 2 3 0 8 4 0 5 6 7 0 16 8 9 18").unwrap();
        let of = |operation| new.classes[&Class::new(operation, Mode::Any)];
        assert_eq!((of(Operation::Discard).whole.count, of(Operation::Discard).bytes), (7, Bytes(8192)));
        assert_eq!(of(Operation::Flush).whole.mean_ns(), Some(2e6));
        assert_eq!((parse(""), parse("1 2 3"), parse("a b c d e f g h i j k")), (None, None, None));
        assert_eq!((parse_inflight("   3    17\n"), parse_inflight("3")), (Some((3, 17)), None));
    }

    #[test]
    fn a_device_without_a_size_is_skipped() {
        let machine = FakeKernel::new();
        for (name, size) in [("sda", "100\n"), ("loop0", "0\n")] {
            machine.put(&format!("sys/block/{name}/size"), size);
            machine.put(&format!("sys/block/{name}/stat"), "1 0 8 2 3 0 8 4 0 5 6\n");
        }
        let reading = Stat::new(&machine.root(), vec!["no BPF".into()]).read().unwrap();
        assert_eq!(reading.devices.keys().collect::<Vec<_>>(), ["sda"]);
        assert!(reading.missing[0] == "no BPF" && reading.missing[1].starts_with("averages only"));
    }
}
