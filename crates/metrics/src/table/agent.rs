//! The agent, and the exporting program.

use eke_model::snapshot::AgentState;

use crate::metric::{Kind, Metric, Sample, maybe, one};
use crate::reading::Reading;

pub const METRICS: [Metric; 6] = [
    Metric {
        name: "eke_build",
        kind: Kind::Info,
        unit: "",
        labels: &["version"],
        help: "Version of the program that exports these metrics.",
        get: |_| vec![Sample::of("version", env!("CARGO_PKG_VERSION"), 1.0)],
    },
    Metric::gauge(
        "eke_agent_up",
        "",
        "1 where the agent answers, else 0. Without the agent rates are since the last reading, or over half a second.",
        |r| one(f64::from(u8::from(r.snapshot.agent.is_some()))),
    ),
    Metric::gauge(
        "eke_agent_uptime_seconds",
        "seconds",
        "Seconds since the agent started. Absent without an agent.",
        |r| of(r, |a| a.up_s as f64),
    ),
    Metric::gauge(
        "eke_agent_resident_bytes",
        "bytes",
        "The agent's own resident set. Absent without an agent.",
        |r| of(r, |a| a.resident.0 as f64),
    ),
    Metric::counter(
        "eke_agent_cpu_seconds",
        "seconds",
        "The agent's own CPU time. Absent without an agent.",
        |r| of(r, |a| a.cpu_ms as f64 / 1e3),
    ),
    Metric::gauge(
        "eke_last_event_timestamp_seconds",
        "seconds",
        "Time of the agent's last event in seconds since 1970. Absent before the first.",
        |r| maybe(r.snapshot.events.last().map(|e| e.unix_s as f64)),
    ),
];

fn of(reading: &Reading, value: fn(&AgentState) -> f64) -> Vec<Sample> {
    maybe(reading.snapshot.agent.as_ref().map(value))
}
