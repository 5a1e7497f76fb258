//! A snapshot as text.

use std::fmt::Write as _;

use eke_core::snapshot::{IoState, PrefetchState, Snapshot};
use eke_core::units::Nanos;

use super::table::Table;
use crate::documents::Status;

/// `eke status`.
pub fn text(document: &Status) -> String {
    let s = &document.snapshot;
    let mut out = String::new();
    let m = &s.model;
    let _ = writeln!(out, "{}", headline(s));
    let _ = writeln!(out, "\nmemory      {} of RAM, {} available", m.ram, m.available);
    if m.effective_ratio.is_some() {
        let _ = writeln!(out, "held        {} in {} of pool: {} saved net", m.held, m.pool, m.saved);
    } else {
        let _ = writeln!(out, "held        nothing yet: no page had to leave RAM");
    }
    let _ = writeln!(
        out,
        "traffic     {:.0} pages/s in, {:.0} pages/s out, {:.0} major faults/s",
        m.pages_in_per_s, m.pages_out_per_s, m.major_faults_per_s
    );
    let waiting = m
        .waiting_share
        .map_or("not counted by this kernel".to_owned(), |w| format!("{:.1} % of the time", 100.0 * w));
    let _ = writeln!(out, "waiting     {waiting} (some task waited for memory)");
    let _ = writeln!(
        out,
        "CPU spent   {:.1} % of one CPU by kswapd; {:.0} % of all CPUs idle",
        100.0 * m.kswapd_cpu_share,
        100.0 * m.idle_cpu_share
    );
    let _ = writeln!(out, "OOM kills   {} since boot", m.oom_kills);
    out += &s.prefetch.as_ref().map(prefetch).unwrap_or_default();
    out += &s.io.as_ref().map(io).unwrap_or_default();
    out += &super::cache::lines(&document.caches);
    out += &predicted(s);
    for event in s.events.iter().rev().take(5).rev() {
        let _ = writeln!(out, "event       {}", event.text);
    }
    out
}

fn headline(s: &Snapshot) -> String {
    let what = match (s.applied, s.backend.as_str()) {
        (true, backend) => format!("eke's plan is applied: {backend}"),
        (false, "none") => "nothing is applied, and there is no compressed swap".into(),
        (false, backend) => {
            format!("nothing of eke's is applied; compressed swap of somebody else: {backend}")
        }
    };
    let agent = s.agent.as_ref().map_or_else(
        || "the agent is not running".to_owned(),
        |a| format!("agent {} up {} s, resident {}, {} ms CPU", a.pid, a.up_s, a.resident, a.cpu_ms),
    );
    format!("{what}; {agent}")
}

fn prefetch(p: &PrefetchState) -> String {
    let mut text = format!(
        "prefetch    {} programs known; {} starts seen, {} foreseen; {} read ahead, {} of that used; {} read at starts\n",
        p.programs, p.launches, p.foreseen, p.ahead, p.used, p.at_exec
    );
    if let Some(why) = &p.off {
        let _ = writeln!(text, "            reads nothing ahead now: {why}");
    }
    text
}

/// What holds writers back, disk by disk.
fn io(io: &IoState) -> String {
    let mut text = format!(
        "disks       {} governed, {} changes so far (latencies by {})\n",
        io.disks.len(),
        io.changes,
        io.source
    );
    for disk in io.disks.iter().filter(|d| !d.turned.is_empty() || d.rests_s.is_some()) {
        let rests = disk.rests_s.map(|s| format!("gave up for {s} s more"));
        let now: Vec<String> = disk.turned.iter().cloned().chain(rests).collect();
        let _ = writeln!(text, "            {}: {}", disk.name, now.join(", "));
    }
    text
}

fn predicted(s: &Snapshot) -> String {
    let Some(p) = &s.prediction else { return String::new() };
    let m = &s.model;
    let or_dash = |v: Option<f64>, digits: usize| v.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    let mut table = Table::new(&["", "predicted", "now"]);
    table.row(["ratio".into(), format!("{:.2}", p.ratio), or_dash(m.effective_ratio, 2)]);
    table.row([
        "incompressible pages, %".into(),
        format!("{:.1}", 100.0 * p.incompressible_share),
        or_dash(m.incompressible_share.map(|s| 100.0 * s), 1),
    ]);
    let holds = (m.ram.0 > 0).then(|| (m.ram.0 + m.saved.0) as f64 / m.ram.0 as f64);
    table.row(["holds, times its RAM".into(), format!("up to {:.2}", p.holds_times_ram), or_dash(holds, 2)]);
    table.row([
        "a page comes back in".into(),
        format!("{} (p99 {})", Nanos(p.load_p50_ns), Nanos(p.load_p99_ns)),
        "-".into(),
    ]);
    format!("\n{table}")
}

/// Above the lines of `eke run`.
pub fn live_header() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>6} {:>9} {:>9} {:>8}",
        "available", "held", "saved", "ratio", "in/s", "out/s", "waiting"
    )
}

/// The swap header and the allocator's first pages are not worth a word.
fn held(bytes: eke_core::units::Bytes) -> String {
    if bytes.0 < eke_core::units::MIB { "-".into() } else { bytes.to_string() }
}

/// One line of `eke run`.
pub fn live_line(s: &Snapshot) -> String {
    let m = &s.model;
    let ratio = m.effective_ratio.map_or("-".into(), |r| format!("{r:.2}"));
    let waiting = m.waiting_share.map_or("-".into(), |w| format!("{:.1} %", 100.0 * w));
    format!(
        "{:>10} {:>10} {:>10} {ratio:>6} {:>9.0} {:>9.0} {waiting:>8}",
        m.available.to_string(),
        held(m.held),
        held(m.saved),
        m.pages_in_per_s,
        m.pages_out_per_s
    )
}

#[cfg(test)]
mod tests {
    use eke_core::model::Model;
    use eke_core::step::Prediction;
    use eke_core::units::Bytes;

    use super::*;

    #[test]
    fn a_busy_machine_reads_well() {
        let snapshot = Snapshot {
            applied: true,
            backend: "zram (zstd)".into(),
            prediction: Some(Prediction {
                ratio: 3.1,
                holds_times_ram: 2.05,
                load_p50_ns: 5_700,
                load_p99_ns: 13_100,
                incompressible_share: 0.02,
            }),
            model: Model {
                ram: Bytes::mib(1024),
                available: Bytes::mib(300),
                held: Bytes::mib(310),
                pool: Bytes::mib(100),
                saved: Bytes::mib(210),
                effective_ratio: Some(3.1),
                incompressible_share: Some(0.03),
                pages_in_per_s: 120.0,
                waiting_share: Some(0.013),
                ..Model::default()
            },
            ..Snapshot::default()
        };
        insta::assert_snapshot!(text(&Status { snapshot, caches: Vec::new() }));
    }

    #[test]
    fn an_untouched_machine_says_so() {
        let snapshot = Snapshot { backend: "none".into(), ..Snapshot::default() };
        insta::assert_snapshot!(text(&Status { snapshot, caches: Vec::new() }));
    }
}
