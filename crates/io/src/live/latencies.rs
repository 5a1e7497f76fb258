//! How long requests took, by kind: since the process began, and since it was told last. Pure.

use eke_model::histogram::Histogram;
use eke_model::snapshot::IoLatency;

use crate::class::Operation;
use crate::figures::Device;

/// The kinds that are told; what drivers do for themselves is not among them.
const KINDS: [Operation; 4] = [Operation::Read, Operation::Write, Operation::Discard, Operation::Flush];

/// Of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    all: Histogram,
    late: Histogram,
}

/// Of all kinds.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    kinds: [Kind; KINDS.len()],
    late_s: f64,
}

impl Latencies {
    /// A window of so many seconds passed.
    pub fn pass(&mut self, seconds: f64) {
        self.late_s += seconds;
    }

    /// Adds what a device did in it.
    pub fn add(&mut self, device: &Device) {
        for (kind, operation) in self.kinds.iter_mut().zip(KINDS) {
            let whole = device.of(operation).whole;
            kind.all.merge(&whole);
            kind.late.merge(&whole);
        }
    }

    /// Kinds that had requests since it began, and how many milliseconds `late` is about, which begins anew.
    pub fn take(&mut self) -> (Vec<IoLatency>, u64) {
        let late_ms = (std::mem::take(&mut self.late_s) * 1e3) as u64;
        let kinds = self.kinds.iter_mut().zip(KINDS).map(|(kind, operation)| IoLatency {
            operation: operation.name().to_owned(),
            all: kind.all,
            late: std::mem::take(&mut kind.late),
        });
        (kinds.filter(|kind| !kind.all.is_empty()).collect(), late_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Class, Mode};
    use crate::figures::{Figures, Latency};

    fn device(requests: &[(Operation, Mode, u64)]) -> Device {
        let figures = |(operation, mode, ns): &(Operation, Mode, u64)| {
            let mut latency = Latency::default();
            latency.whole.record(*ns);
            Figures { class: Class::new(*operation, *mode), latency }
        };
        Device { classes: requests.iter().map(figures).collect(), ..Device::default() }
    }

    #[test]
    fn what_is_late_begins_anew_and_the_rest_adds_up() {
        let mut latencies = Latencies::default();
        latencies.pass(1.5);
        latencies.add(&device(&[
            (Operation::Read, Mode::Sync, 100_000),
            (Operation::Read, Mode::Async, 200_000),
            (Operation::Other, Mode::Async, 5),
        ]));
        latencies.add(&device(&[(Operation::Flush, Mode::Any, 3_000_000)]));
        let (kinds, late_ms) = latencies.take();
        let counts = |kinds: &[IoLatency]| -> Vec<(String, u64, u64)> {
            kinds.iter().map(|k| (k.operation.clone(), k.all.count, k.late.count)).collect()
        };
        assert_eq!((counts(&kinds), late_ms), (vec![("read".into(), 2, 2), ("flush".into(), 1, 1)], 1_500));
        latencies.pass(1.0);
        latencies.add(&device(&[(Operation::Read, Mode::Sync, 9)]));
        let (kinds, late_ms) = latencies.take();
        assert_eq!((counts(&kinds), late_ms), (vec![("read".into(), 3, 1), ("flush".into(), 1, 0)], 1_000));
        assert_eq!(latencies.take().1, 0);
    }
}
