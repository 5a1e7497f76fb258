//! The table of series that the history keeps.

use eke_metrics::reading::other_ram;
use eke_model::sample::Pressure;
use eke_model::units::Bytes;

use crate::view::View;

/// One line of a plot.
#[derive(Debug, Clone, Copy)]
pub struct Series {
    /// Its name in the file and on the page.
    pub key: &'static str,
    /// Its value, in the unit that [`SERIES`] documents; `None` if this machine lacks it.
    pub get: fn(&Step<'_>) -> Option<f64>,
}

/// A reading, the one before it, and the time between them.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The reading of now.
    pub now: &'a View,
    /// The reading before; `None` for the first.
    pub before: Option<&'a View>,
    /// Seconds between them.
    pub seconds: f64,
}

/// The number of series.
pub const COUNT: usize = 22;

/// A value for each of [`SERIES`], in its order.
pub type Values = [Option<f64>; COUNT];

/// Memory in bytes, in disjoint parts; shares in percent; the rest per second, launches per minute.
pub const SERIES: [Series; COUNT] = [
    Series { key: "anonymous", get: |s| memory(s, |v| v.snapshot.machine.memory.anonymous) },
    Series { key: "shared", get: |s| memory(s, |v| v.snapshot.machine.memory.shared) },
    Series { key: "pool", get: |s| memory(s, |v| v.snapshot.model.pool) },
    Series {
        key: "other",
        get: |s| memory(s, |v| other_ram(&v.snapshot.machine.memory, v.snapshot.model.pool)),
    },
    Series { key: "file_cache", get: |s| memory(s, |v| v.snapshot.machine.memory.file_cache) },
    Series { key: "free", get: |s| memory(s, |v| v.snapshot.machine.memory.free) },
    Series { key: "held", get: |s| Some(s.now.snapshot.model.held.0 as f64) },
    Series { key: "memory_some", get: |s| percent(s.now.snapshot.machine.memory_pressure, |p| p.some_avg10) },
    Series { key: "memory_full", get: |s| percent(s.now.snapshot.machine.memory_pressure, |p| p.full_avg10) },
    Series { key: "io_some", get: |s| percent(s.now.snapshot.machine.io_pressure, |p| p.some_avg10) },
    Series { key: "cpu_some", get: |s| percent(s.now.snapshot.machine.cpu_pressure, |p| p.some_avg10) },
    Series { key: "pages_in", get: |s| Some(s.now.snapshot.model.pages_in_per_s) },
    Series { key: "pages_out", get: |s| Some(s.now.snapshot.model.pages_out_per_s) },
    Series { key: "major_faults", get: |s| Some(s.now.snapshot.model.major_faults_per_s) },
    Series { key: "kswapd", get: |s| Some(100.0 * s.now.snapshot.model.kswapd_cpu_share) },
    Series { key: "from_store", get: |s| rate(s, |v| Some(v.caches?.from_store.0)) },
    Series { key: "from_backing", get: |s| rate(s, |v| Some(v.caches?.from_backing.0)) },
    Series {
        key: "launches",
        get: |s| rate(s, |v| Some(v.snapshot.prefetch.as_ref()?.launches)).map(by_minute),
    },
    Series {
        key: "predicted",
        get: |s| rate(s, |v| Some(v.snapshot.prefetch.as_ref()?.predicted)).map(by_minute),
    },
    Series { key: "ahead", get: |s| rate(s, |v| Some(v.snapshot.prefetch.as_ref()?.ahead.0)) },
    Series { key: "used", get: |s| rate(s, |v| Some(v.snapshot.prefetch.as_ref()?.used.0)) },
    Series { key: "at_exec", get: |s| rate(s, |v| Some(v.snapshot.prefetch.as_ref()?.at_exec.0)) },
];

/// The values of a reading.
pub fn values(step: &Step<'_>) -> Values {
    SERIES.map(|series| (series.get)(step).filter(|v| v.is_finite()))
}

/// The parts of memory; an older agent does not send them.
fn memory(step: &Step<'_>, part: fn(&View) -> Bytes) -> Option<f64> {
    (step.now.snapshot.machine.memory.total.0 > 0).then(|| part(step.now).0 as f64)
}

fn percent(pressure: Option<Pressure>, of: fn(&Pressure) -> f64) -> Option<f64> {
    pressure.as_ref().map(of)
}

/// The rate of a counter; `None` if it restarted in between.
fn rate(step: &Step<'_>, of: fn(&View) -> Option<u64>) -> Option<f64> {
    let (now, before) = (of(step.now)?, of(step.before?)?);
    (step.seconds > 0.0).then_some(now.checked_sub(before)? as f64 / step.seconds)
}

fn by_minute(per_second: f64) -> f64 {
    per_second * 60.0
}

#[cfg(test)]
mod tests {
    use eke_model::sample::Memory;
    use eke_model::snapshot::{Machine, PrefetchState, Snapshot};

    use super::*;
    use crate::view::Caches;

    fn view(launches: u64, from_store: u64) -> View {
        let memory = Memory {
            total: Bytes(1000),
            anonymous: Bytes(400),
            shared: Bytes(50),
            file_cache: Bytes(200),
            free: Bytes(100),
            ..Memory::default()
        };
        let pressure = Some(Pressure { some_avg10: 12.5, ..Pressure::default() });
        View {
            snapshot: Snapshot {
                machine: Machine { memory, memory_pressure: pressure, ..Machine::default() },
                prefetch: Some(PrefetchState { launches, ..PrefetchState::default() }),
                ..Snapshot::default()
            },
            caches: Some(Caches { from_store: Bytes(from_store), ..Caches::default() }),
            ..View::default()
        }
    }

    fn value(values: &Values, key: &str) -> Option<f64> {
        values[SERIES.iter().position(|s| s.key == key).unwrap()]
    }

    #[test]
    fn the_parts_of_memory_are_all_of_it() {
        let now = view(0, 0);
        let values = values(&Step { now: &now, before: None, seconds: 0.0 });
        let parts = ["anonymous", "shared", "pool", "other", "file_cache", "free"];
        assert_eq!(parts.iter().filter_map(|k| value(&values, k)).sum::<f64>(), 1000.0);
        assert_eq!((value(&values, "memory_some"), value(&values, "io_some")), (Some(12.5), None));
    }

    #[test]
    fn counters_are_rates_and_nothing_after_a_restart() {
        let (before, now) = (view(3, 5000), view(5, 1000));
        let values = values(&Step { now: &now, before: Some(&before), seconds: 2.0 });
        assert_eq!(value(&values, "launches"), Some(60.0));
        assert_eq!(value(&values, "from_store"), None);
        let first = super::values(&Step { now: &now, before: None, seconds: 0.0 });
        assert_eq!(value(&first, "launches"), None);
    }

    #[test]
    fn names_are_columns() {
        let mut keys: Vec<&str> = SERIES.iter().map(|s| s.key).collect();
        assert!(keys.iter().all(|k| k.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), COUNT);
    }
}
