//! Request latencies by operation: since the process started, and since its last report. Pure.

use eke_io::class::Operation;
use eke_io::counters::Device;
use eke_model::histogram::Histogram;
use eke_model::snapshot::IoLatency;

/// The operations that are reported; a driver's own commands are not.
const OPERATIONS: [Operation; 4] = [Operation::Read, Operation::Write, Operation::Discard, Operation::Flush];

/// Of one operation.
#[derive(Debug, Clone, Copy, Default)]
struct OperationLatency {
    all: Histogram,
    late: Histogram,
}

/// Of all operations.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    operations: [OperationLatency; OPERATIONS.len()],
    late_s: f64,
}

impl Latencies {
    /// Adds the length of a window, in seconds.
    pub fn pass(&mut self, seconds: f64) {
        self.late_s += seconds;
    }

    /// Adds the requests of a device in that window.
    pub fn add(&mut self, device: &Device) {
        for (mine, operation) in self.operations.iter_mut().zip(OPERATIONS) {
            let whole = device.of(operation).whole;
            mine.all.merge(&whole);
            mine.late.merge(&whole);
        }
    }

    /// The operations that had requests since the start, and the milliseconds that `late` covers. `late` starts again at 0.
    pub fn take(&mut self) -> (Vec<IoLatency>, u64) {
        let late_ms = (std::mem::take(&mut self.late_s) * 1e3) as u64;
        let all = self.operations.iter_mut().zip(OPERATIONS).map(|(mine, operation)| IoLatency {
            operation: operation.name().to_owned(),
            all: mine.all,
            late: std::mem::take(&mut mine.late),
        });
        (all.filter(|latency| !latency.all.is_empty()).collect(), late_ms)
    }
}

#[cfg(test)]
mod tests {
    use eke_io::class::{Class, Mode};
    use eke_io::counters::{ClassLatency, Latency};

    use super::*;

    fn device(requests: &[(Operation, Mode, u64)]) -> Device {
        let class = |(operation, mode, ns): &(Operation, Mode, u64)| {
            let mut latency = Latency::default();
            latency.whole.record(*ns);
            ClassLatency { class: Class::new(*operation, *mode), latency }
        };
        Device { classes: requests.iter().map(class).collect(), ..Device::default() }
    }

    #[test]
    fn late_restarts_with_each_report_and_all_adds_up() {
        let mut latencies = Latencies::default();
        latencies.pass(1.5);
        latencies.add(&device(&[
            (Operation::Read, Mode::Sync, 100_000),
            (Operation::Read, Mode::Async, 200_000),
            (Operation::Other, Mode::Async, 5),
        ]));
        latencies.add(&device(&[(Operation::Flush, Mode::Any, 3_000_000)]));
        let (all, late_ms) = latencies.take();
        let counts = |all: &[IoLatency]| -> Vec<(String, u64, u64)> {
            all.iter().map(|k| (k.operation.clone(), k.all.count, k.late.count)).collect()
        };
        assert_eq!((counts(&all), late_ms), (vec![("read".into(), 2, 2), ("flush".into(), 1, 1)], 1_500));
        latencies.pass(1.0);
        latencies.add(&device(&[(Operation::Read, Mode::Sync, 9)]));
        let (all, late_ms) = latencies.take();
        assert_eq!((counts(&all), late_ms), (vec![("read".into(), 3, 1), ("flush".into(), 1, 0)], 1_000));
        assert_eq!(latencies.take().1, 0);
    }
}
