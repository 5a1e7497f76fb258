//! What is learned of launches and read before them. Absent where nothing does that.

use eke_model::snapshot::PrefetchState;

use crate::metric::{Metric, Sample, maybe};
use crate::reading::Reading;

pub const METRICS: [Metric; 8] = [
    Metric::gauge(
        "eke_prefetch_reading_ahead",
        "",
        "1 while files may be read ahead of starts, 0 while there is a reason not to (eke status says it).",
        |r| of(r, |p| f64::from(u8::from(p.off.is_none()))),
    ),
    Metric::gauge("eke_prefetch_programs", "", "Programs of which it is known what they read.", |r| {
        of(r, |p| p.programs as f64)
    }),
    Metric::counter("eke_prefetch_launches", "", "Starts of programs that were seen.", |r| {
        of(r, |p| p.launches as f64)
    }),
    Metric::counter("eke_prefetch_learned", "", "Starts that were learned from.", |r| {
        of(r, |p| p.learned as f64)
    }),
    Metric::counter("eke_prefetch_foreseen", "", "Starts of programs that had been read in before.", |r| {
        of(r, |p| p.foreseen as f64)
    }),
    Metric::counter("eke_prefetch_ahead_bytes", "bytes", "What was read ahead by prediction.", |r| {
        of(r, |p| p.ahead.0 as f64)
    }),
    Metric::counter(
        "eke_prefetch_used_bytes",
        "bytes",
        "What of it a start used within the time for which it was read.",
        |r| of(r, |p| p.used.0 as f64),
    ),
    Metric::counter("eke_prefetch_at_start_bytes", "bytes", "What was read at the moment of a start.", |r| {
        of(r, |p| p.at_exec.0 as f64)
    }),
];

fn of(reading: &Reading, value: fn(&PrefetchState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.prefetch.as_ref().map(value))
}
