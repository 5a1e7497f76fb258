//! `io watch` as text.

use std::fmt::Write as _;

use eke_io::counters::{ClassLatency, Device, Requester, Window};
use eke_model::text::one_line;
use eke_model::units::{Bytes, Nanos};
use eke_present::table::Table;

use super::histogram::{one, time};
use crate::documents::io::{Judged, Watch};

/// The most processes or groups shown.
const MOST: usize = 10;

/// The latencies of one interval.
pub fn text(document: &Watch, only: Option<&str>) -> String {
    let window = &document.window;
    let mut out = String::new();
    for device in window.devices.iter().filter(|d| only.is_none_or(|only| only == d.name)) {
        let judged = document.verdicts.iter().find(|judged| judged.verdict.device == device.name);
        if device.classes.is_empty() && only.is_none() && judged.is_none() {
            continue;
        }
        out += &disk(device, window.seconds, &window.source, judged);
    }
    if out.is_empty() {
        let _ = writeln!(out, "No disk was used in {:.1} s.", window.seconds);
    }
    out += &whose(window, only);
    out
}

fn disk(device: &Device, seconds: f64, source: &str, judged: Option<&Judged>) -> String {
    let busy = device.busy.map_or(String::new(), |busy| format!(", busy {:.0} % of the time", 100.0 * busy));
    let waiting = match (device.reads_in_flight, device.writes_in_flight) {
        (Some(reads), Some(writes)) if reads + writes > 0 => {
            format!(", {reads} reads and {writes} writes under way")
        }
        _ => String::new(),
    };
    let mut out =
        format!("{}: {seconds:.1} s{busy}{waiting} (by {})\n", one_line(&device.name), one_line(source));
    for figures in device.classes.iter().filter(|f| f.latency.whole.has_buckets()) {
        let _ = writeln!(out, "\n  {}", figures.class);
        out += &one(&figures.latency.whole);
    }
    if device.classes.is_empty() {
        out += "  no requests\n";
    } else {
        let _ = write!(out, "\n{}", table(device, seconds));
    }
    if let Some(Judged { verdict, target }) = judged {
        let _ =
            writeln!(out, "\n  {} (reads within {target}): {}", verdict.kind.name(), one_line(&verdict.why));
    }
    out + "\n"
}

fn table(device: &Device, seconds: f64) -> Table {
    let mut table = Table::new(&[
        "",
        "count",
        "average",
        "deviation",
        "p50",
        "p99",
        "p99.9",
        "a second",
        "bytes/s",
        "in queue",
        "its p99",
        "in device",
    ]);
    for figures in &device.classes {
        table.row(row(figures, seconds));
    }
    table
}

fn row(ClassLatency { class, latency }: &ClassLatency, seconds: f64) -> [String; 12] {
    let whole = &latency.whole;
    let rate = |count: u64| count as f64 / seconds.max(1e-9);
    let errors = if latency.errors > 0 { format!(" ({} failed)", latency.errors) } else { String::new() };
    [
        class.to_string(),
        format!("{}{errors}", whole.count),
        time(whole.mean_ns()),
        time(whole.deviation_ns()),
        time(whole.quantile_ns(0.5)),
        time(whole.quantile_ns(0.99)),
        time(whole.quantile_ns(0.999)),
        format!("{:.1}", rate(whole.count)),
        Bytes(rate(latency.bytes.0) as u64).to_string(),
        time(latency.queue.mean_ns()),
        time(latency.queue.quantile_ns(0.99)),
        time(latency.device.mean_ns()),
    ]
}

fn whose(window: &Window, only: Option<&str>) -> String {
    let mut table =
        Table::new(&["who", "number", "disk", "class", "a second", "bytes/s", "average", "longest so far"]);
    let shown: Vec<&Requester> =
        window.requesters.iter().filter(|w| only.is_none_or(|only| only == w.device)).take(MOST).collect();
    for who in &shown {
        let rate = |count: u64| count as f64 / window.seconds.max(1e-9);
        table.row([
            who.name.clone(),
            who.id.to_string(),
            who.device.clone(),
            who.operation.name().to_owned(),
            format!("{:.1}", rate(who.count)),
            Bytes(rate(who.bytes.0) as u64).to_string(),
            time(Some(who.sum_ns as f64 / who.count.max(1) as f64)),
            Nanos(who.most_ns).to_string(),
        ]);
    }
    if shown.is_empty() { String::new() } else { format!("{table}\n") }
}
