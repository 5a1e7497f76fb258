//! How long requests of disks took, and what is turned for them. Absent where `eke-io` does not run.

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
        help: "How long requests took that disks completed since eke-io began (read, write, discard, flush), all disks together but those in memory. Brought up to date every 10 s. Absent where eke-io does not run (sudo eke up --govern-io); without BPF only averages are known, and the one bucket is that of all.",
        get: |r| {
            let all = r.snapshot.io.iter().flat_map(|io| &io.latencies);
            all.flat_map(|l| histogram::samples("operation", &l.operation, &l.all)).collect()
        },
    },
    Metric::gauge(
        "eke_io_governed_disks",
        "",
        "Disks whose writers are held back when reads wait for too long.",
        |r| of(r, |io| io.disks.len() as f64),
    ),
    Metric::gauge(
        "eke_io_turned_settings",
        "",
        "Settings of disks that are turned now to hold writers back.",
        |r| of(r, |io| io.disks.iter().map(|disk| disk.turned.len()).sum::<usize>() as f64),
    ),
    Metric::counter("eke_io_changes", "", "Changes of such settings since eke-io began.", |r| {
        of(r, |io| io.changes as f64)
    }),
];

fn of(reading: &Reading, value: fn(&IoState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.io.as_ref().map(value))
}
