//! What the guard did when memory was short. Absent unless an agent runs with a plan.

use eke_model::snapshot::GuardState;

use crate::metric::{Metric, Sample, maybe};
use crate::reading::Reading;

pub const METRICS: [Metric; 3] = [
    Metric::gauge(
        "eke_guard_on",
        "",
        "1 while the guard may stop and end programs, else 0 (eke status shows the reason).",
        |r| of(r, |g| f64::from(u8::from(g.off.is_none()))),
    ),
    Metric::counter("eke_guard_stops", "", "How often the guard stopped a program for a moment.", |r| {
        of(r, |g| g.stops as f64)
    }),
    Metric::counter("eke_guard_ended", "", "Programs that the guard ended.", |r| of(r, |g| g.ended as f64)),
];

fn of(reading: &Reading, value: fn(&GuardState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.guard.as_ref().map(value))
}
