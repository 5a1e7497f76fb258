//! Latencies of disk requests, and the settings changed for them. Absent unless `eke-io` runs.

use eke_model::snapshot::IoState;

use crate::histogram;
use crate::metric::{Kind, Metric, Sample, maybe};
use crate::reading::Reading;

pub const METRICS: [Metric; 4] = [
    Metric {
        name: "eke_io_latency_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &["operation"],
        help: "Latency of completed disk requests (read, write, discard, flush) since eke-io started, over all disks but those in memory. Updated every 10 s. Absent unless eke-io runs (sudo eke up --govern-io). Without BPF only averages are known: the one bucket holds all requests.",
        get: |r| {
            let all = r.snapshot.io.iter().flat_map(|io| &io.latencies);
            all.flat_map(|l| histogram::samples("operation", &l.operation, &l.all)).collect()
        },
    },
    Metric::gauge(
        "eke_io_governed_disks",
        "",
        "Disks whose writers eke-io throttles when reads wait too long.",
        |r| of(r, |io| io.disks.len() as f64),
    ),
    Metric::gauge(
        "eke_io_changed_settings",
        "",
        "Disk settings that are changed now to throttle writers.",
        |r| of(r, |io| io.disks.iter().map(|disk| disk.changed.len()).sum::<usize>() as f64),
    ),
    Metric::counter("eke_io_changes", "", "Changes of such settings since eke-io started.", |r| {
        of(r, |io| io.changes as f64)
    }),
];

fn of(reading: &Reading, value: fn(&IoState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.io.as_ref().map(value))
}
