//! A reading as text.
//!
//! OpenMetrics is the specification 1.0.0 of prometheus/OpenMetrics; the older format is "Text-based format" in Prometheus'
//! "Exposition formats", which `promtool check metrics` and the text-file collector of node_exporter read.

use std::fmt::Write as _;

use eke_model::text::harmless;

use crate::metric::{Kind, Metric, Sample};
use crate::reading::Reading;
use crate::table;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    #[default]
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// The media type of an answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The format for a scraper that sends this `Accept` header: OpenMetrics if it names it, else the older format.
    pub fn accepted(accept: Option<&str>) -> Self {
        let names_it = accept.is_some_and(|a| a.contains("application/openmetrics-text"));
        if names_it { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// All metrics of this reading.
pub fn text(reading: &Reading, format: Format) -> String {
    let mut out = String::new();
    for metric in table::all() {
        let samples = (metric.get)(reading);
        if !samples.is_empty() {
            family(&mut out, metric, &samples, format);
        }
    }
    if format == Format::OpenMetrics {
        out += "# EOF\n";
    }
    out
}

/// The name of a family. OpenMetrics omits the suffix of the samples; the older format has neither families nor infos.
fn family(out: &mut String, metric: &Metric, samples: &[Sample], format: Format) {
    let full = format!("{}{}", metric.name, metric.kind.suffix());
    let (name, kind) = match (format, metric.kind) {
        (Format::OpenMetrics, kind) => (metric.name, kind),
        (Format::Prometheus, Kind::Info) => (full.as_str(), Kind::Gauge),
        (Format::Prometheus, kind) => (full.as_str(), kind),
    };
    let _ = writeln!(out, "# TYPE {name} {}", kind.name());
    if format == Format::OpenMetrics && !metric.unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {}", metric.unit);
    }
    let _ = writeln!(out, "# HELP {name} {}", escape(metric.help));
    for sample in samples {
        let _ = writeln!(out, "{full}{}{} {}", sample.part, labels(sample), number(sample.value));
    }
}

fn labels(sample: &Sample) -> String {
    if sample.labels.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> = sample
        .labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escape(&harmless(value))))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

/// Escapes a label value or (without quotes in it) a help text: both formats have the same three escapes.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

fn number(value: f64) -> String {
    match value {
        v if v.is_nan() => "NaN".to_owned(),
        v if v.is_infinite() => if v > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        v => v.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use eke_model::histogram::Histogram;
    use eke_model::model::Model;
    use eke_model::sample::{Memory, Pressure, VmCounters};
    use eke_model::snapshot::{
        AgentState, Event, GuardState, IoLatency, IoState, Machine, PrefetchState, Snapshot,
    };
    use eke_model::step::Prediction;
    use eke_model::units::{Bytes, Nanos};

    use super::*;
    use crate::reading::{Cache, SharedTier};

    /// A machine that has everything.
    pub(crate) fn full() -> Reading {
        let pressure = Some(Pressure { some_total_us: 1_500_000, ..Pressure::default() });
        let machine = Machine {
            memory: Memory {
                total: Bytes::mib(1000),
                anonymous: Bytes::mib(400),
                file_cache: Bytes::mib(200),
                shared: Bytes::mib(50),
                free: Bytes::mib(100),
                ..Memory::default()
            },
            vm: VmCounters { pswpin: 3, zswpin: 2, ..VmCounters::default() },
            memory_pressure: pressure,
            io_pressure: pressure,
            cpu_pressure: pressure,
            page_bytes: 4096,
            written_back: Some(Bytes::mib(1)),
        };
        let model = Model {
            ram: Bytes::mib(1000),
            pool: Bytes::mib(100),
            held: Bytes::mib(310),
            effective_ratio: Some(3.1),
            incompressible_share: Some(0.02),
            interval_s: 1.0,
            ..Model::default()
        };
        let snapshot = Snapshot {
            agent: Some(AgentState { pid: 1, up_s: 60, cpu_ms: 250, ..AgentState::default() }),
            applied: true,
            backend: "zram (zstd)".into(),
            prediction: Some(Prediction { load_p50_ns: 5_700, ..Prediction::default() }),
            model,
            machine,
            prefetch: Some(PrefetchState::default()),
            guard: Some(GuardState::default()),
            io: Some(io()),
            events: vec![Event { unix_s: 1_000_000, text: "Adopted.".into(), ..Event::default() }],
            ..Snapshot::default()
        };
        let cache = Cache {
            place: "/srv/a \"b\"\\\n".into(),
            store_cost: Some(Nanos(54_000)),
            backing_cost: Some(Nanos(6_000_000)),
            from_spill: Some(Bytes::mib(7)),
            spilled: Some(Bytes::mib(9)),
            from_shared: Some(Bytes::mib(5)),
            shared: Some(SharedTier { hits: 8, misses: 2, connected: 6, ..SharedTier::default() }),
            ..Cache::default()
        };
        Reading { snapshot, caches: vec![cache] }
    }

    /// A read of 100 µs, and two flushes of which only the average is known.
    fn io() -> IoState {
        let mut reads = Histogram::default();
        reads.record(100_000);
        let kind =
            |operation: &str, all| IoLatency { operation: operation.into(), all, ..IoLatency::default() };
        let latencies = vec![kind("read", reads), kind("flush", Histogram::of_average(2, 3_000_000))];
        IoState { latencies, ..IoState::default() }
    }

    fn lines(format: Format) -> Vec<String> {
        text(&full(), format).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_counter_is_written_in_the_form_of_each_format() {
        let open = lines(Format::OpenMetrics);
        for line in [
            "# TYPE eke_pressure_seconds counter",
            "# UNIT eke_pressure_seconds seconds",
            "eke_pressure_seconds_total{resource=\"memory\",tasks=\"some\"} 1.5",
            "eke_swap_in_bytes_total{through=\"area\"} 12288",
            "eke_swap_in_bytes_total{through=\"zswap\"} 8192",
            "# TYPE eke_backend info",
            "eke_backend_info{backend=\"zram (zstd)\"} 1",
            "eke_predicted_load_seconds{percentile=\"50\"} 0.0000057",
            "# TYPE eke_io_latency_seconds histogram",
            "eke_io_latency_seconds_bucket{operation=\"read\",le=\"0.000065536\"} 0",
            "eke_io_latency_seconds_bucket{operation=\"read\",le=\"0.000131072\"} 1",
            "eke_io_latency_seconds_bucket{operation=\"flush\",le=\"+Inf\"} 2",
            "eke_io_latency_seconds_sum{operation=\"flush\"} 0.003",
            "# EOF",
        ] {
            assert!(open.iter().any(|l| l == line), "{line} lacks in:\n{}", open.join("\n"));
        }
        assert_eq!(open.last().map(String::as_str), Some("# EOF"));
        let old = lines(Format::Prometheus);
        for line in ["# TYPE eke_pressure_seconds_total counter", "# TYPE eke_backend_info gauge"] {
            assert!(old.iter().any(|l| l == line), "{line}");
        }
        assert!(!old.iter().any(|l| l.starts_with("# EOF") || l.starts_with("# UNIT")));
    }

    #[test]
    fn what_a_user_called_a_directory_stays_inside_its_quotes() {
        let text = text(&full(), Format::OpenMetrics);
        assert!(text.contains("eke_cache_hits_total{place=\"/srv/a \\\"b\\\"\\\\\\n\"} 0\n"), "{text}");
    }

    /// Both formats have three escapes: a fourth, added for a terminal, would make the whole text invalid.
    #[test]
    fn control_characters_are_escaped_as_in_both_formats() {
        let mut reading = full();
        reading.caches[0].place = "/srv/\u{1b}[2J\u{9b}\u{202e}\r".into();
        for format in [Format::OpenMetrics, Format::Prometheus] {
            let text = text(&reading, format);
            assert!(text.contains(r#"{place="/srv/\\u001b[2J\\u009b\\u202e\\u000d"}"#), "{text}");
            assert!(harmless(&text) == text);
        }
    }

    #[test]
    fn the_parts_of_ram_are_all_of_it() {
        let text = text(&full(), Format::OpenMetrics);
        let parts = text.lines().filter_map(|l| l.strip_prefix("eke_memory_bytes{")?.split(' ').next_back());
        let sum: f64 = parts.map(|v| v.parse::<f64>().unwrap()).sum();
        assert_eq!(sum, Bytes::mib(1000).0 as f64);
    }

    #[test]
    fn what_a_machine_lacks_is_absent() {
        let text = text(&Reading::default(), Format::OpenMetrics);
        for absent in
            ["eke_prefetch", "eke_cache", "eke_io", "eke_pressure", "eke_predicted", "eke_agent_uptime"]
        {
            assert!(!text.contains(absent), "{absent} in\n{text}");
        }
        assert!(text.contains("eke_agent_up 0\n") && text.contains("eke_plan_applied 0\n"));
    }

    #[test]
    fn scrapers_get_what_they_ask_for() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        assert_eq!(Format::accepted(Some("*/*")), Format::Prometheus);
        assert_eq!(Format::accepted(None), Format::Prometheus);
    }

    #[test]
    fn infinities_and_nan_have_their_names() {
        assert_eq!([f64::NAN, f64::INFINITY, 0.25].map(number), ["NaN", "+Inf", "0.25"]);
    }

    proptest::proptest! {
        #[test]
        fn any_name_leaves_one_sample_a_line(place in "(?s).{0,20}", backend in "(?s).{0,20}") {
            let mut reading = full();
            reading.caches[0].place = place;
            reading.snapshot.backend = backend;
            let count = text(&full(), Format::OpenMetrics).split('\n').count();
            assert_eq!(text(&reading, Format::OpenMetrics).split('\n').count(), count);
        }
    }
}
