//! A sensor in this process.

use std::time::Instant;

use eke_linux::Root;

use super::stat::Stat;
use super::{Attribution, Refused, Sensor, SensorOptions, WindowSource, zpool};
use crate::counters::{Counters, DeviceCounters, Window};

/// A sensor, with its last counters.
pub struct LocalSensor {
    root: Root,
    sensor: Box<dyn Sensor>,
    has_pools: bool,
    before: Counters,
    at: Instant,
}

impl LocalSensor {
    /// Measures by `sensor`; the first window begins now.
    ///
    /// # Errors
    /// Its counters cannot be read.
    pub fn start(root: &Root, options: SensorOptions, sensor: Box<dyn Sensor>) -> Result<Self, Refused> {
        let (root, before, at) = (root.clone(), Counters::default(), Instant::now());
        let mut local = Self { root, sensor, has_pools: !options.no_pools, before, at };
        local.before = local.counters()?;
        local.at = Instant::now();
        Ok(local)
    }

    /// Measures from the kernel's averages. `why_no_bpf` stands in each window.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn averages(root: &Root, options: SensorOptions, why_no_bpf: String) -> Result<Self, Refused> {
        let mut why = vec![why_no_bpf];
        if options.attribution != Attribution::None {
            why.push("only BPF can count by process or group".to_owned());
        }
        Self::start(root, options, Box::new(Stat::new(root, why)))
    }

    /// `bpf` or `stat`.
    pub fn name(&self) -> &'static str {
        self.sensor.name()
    }

    fn counters(&mut self) -> Result<Counters, Refused> {
        let mut counters = self.sensor.read()?;
        match zpool::read(self.has_pools && self.root.exists("sys/module/zfs")) {
            None => {}
            Some(Ok(pools)) if pools.is_empty() => {}
            Some(Ok(pools)) => {
                counters.missing.push(zpool::NO_BYTES.to_owned());
                let pools = pools
                    .into_iter()
                    .map(|(name, classes)| (name, DeviceCounters { classes, ..DeviceCounters::default() }));
                counters.devices.extend(pools);
            }
            Some(Err(refused)) => counters.missing.push(refused.to_string()),
        }
        Ok(counters)
    }
}

impl WindowSource for LocalSensor {
    fn window(&mut self) -> Result<Window, Refused> {
        let now = self.counters()?;
        let seconds = self.at.elapsed().as_secs_f64();
        let window = Window::between(&self.before, &now, seconds, self.sensor.name());
        (self.before, self.at) = (now, Instant::now());
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn pools_are_asked_for_only_where_they_are_wanted() {
        let machine = FakeKernel::new();
        machine.put("sys/module/zfs/version", "2.2\n");
        machine.put("sys/block/sda/size", "100\n");
        let asks = |no_pools| {
            let options = SensorOptions { no_pools, ..SensorOptions::default() };
            let mut local = LocalSensor::averages(&machine.root(), options, String::new()).unwrap();
            local.window().unwrap().missing.join(" ").contains("zpool")
        };
        assert!(!asks(true));
        assert!(asks(false) || std::path::Path::new("/sys/module/zfs").exists());
    }
}
