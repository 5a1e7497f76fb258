//! Learned launches and prefetched files. Absent unless eke-prefetch runs.

use eke_model::snapshot::PrefetchState;

use crate::metric::{Metric, Sample, maybe};
use crate::reading::Reading;

pub const METRICS: [Metric; 8] = [
    Metric::gauge(
        "eke_prefetch_reading_ahead",
        "",
        "1 while eke-prefetch may read files ahead of starts, else 0 (eke status shows the reason).",
        |r| of(r, |p| f64::from(u8::from(p.off.is_none()))),
    ),
    Metric::gauge("eke_prefetch_programs", "", "Programs with a known set of pages.", |r| {
        of(r, |p| p.programs as f64)
    }),
    Metric::counter("eke_prefetch_launches", "", "Program starts that eke-prefetch saw.", |r| {
        of(r, |p| p.launches as f64)
    }),
    Metric::counter("eke_prefetch_learned", "", "Program starts that eke-prefetch learned from.", |r| {
        of(r, |p| p.learned as f64)
    }),
    Metric::counter("eke_prefetch_predicted", "", "Program starts that eke-prefetch predicted.", |r| {
        of(r, |p| p.predicted as f64)
    }),
    Metric::counter("eke_prefetch_ahead_bytes", "bytes", "Bytes read ahead of predicted starts.", |r| {
        of(r, |p| p.ahead.0 as f64)
    }),
    Metric::counter(
        "eke_prefetch_used_bytes",
        "bytes",
        "Bytes chosen for programs that started in time; an upper bound of what was used.",
        |r| of(r, |p| p.used.0 as f64),
    ),
    Metric::counter("eke_prefetch_at_start_bytes", "bytes", "Bytes read at the moment of a start.", |r| {
        of(r, |p| p.at_exec.0 as f64)
    }),
];

fn of(reading: &Reading, value: fn(&PrefetchState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.prefetch.as_ref().map(value))
}
