//! A recording as one page without external files, fonts or scripts. Without JavaScript only the values under the pointer are missing.

use std::fmt::Write;

use eke_model::date;
use eke_model::units::Bytes;
use eke_plot::lines::{LinePlot, Mark, STYLE, draw};
use eke_plot::page::beginning;
use eke_plot::svg::{NARROW, WIDE, escape};

use crate::load::Recording;
use crate::plots::{marks, plots, span};
use crate::steps::{Memory, Step, steps};

const JS: &str = include_str!("page.js");
/// The most values for the pointer: more than its resolution.
const MOST_VALUES: usize = 600;

/// The whole page.
pub fn page(recording: &Recording) -> String {
    let title = escape(recording.note("subject"));
    let mut out = beginning(&format!("{title}: eke report"), STYLE);
    let _ = write!(out, "<h1>{title}</h1>\n{}", summary(recording));
    let (marks, span) = (marks(recording), span(recording));
    for plot in plots(recording) {
        add_plot(&mut out, &plot, &marks, span);
    }
    add_steps(&mut out, &steps(recording));
    add_facts(&mut out, recording);
    let _ = writeln!(out, "</main><script>{JS}</script></body></html>");
    out
}

/// What was recorded, when, and whether it is complete.
fn summary(recording: &Recording) -> String {
    let (from, to) = recording.span_ms();
    let when = recording.number("started_unix_ms").map(|ms| date::time(ms as u64 / 1000)).unwrap_or_default();
    let mut out = format!(
        "<p class=\"muted\">{when}; {:.1} s, {} samples, {} named steps</p>\n",
        (to - from) as f64 / 1e3,
        recording.rows.len(),
        recording.marks.len()
    );
    if !recording.is_complete() {
        out += "<p class=\"warn\">The recorder was killed or is still running: the last second may be missing.</p>\n";
    }
    if let Some(kills) = recording.rows.last().and_then(|r| r.oom_kills).filter(|n| *n > 0) {
        let _ = writeln!(
            out,
            "<p class=\"warn\">Processes that the kernel killed for lack of memory: {kills}.</p>"
        );
    }
    out
}

fn add_plot(out: &mut String, plot: &LinePlot, marks: &[Mark], span: (f64, f64)) {
    let _ = writeln!(
        out,
        "<section id=\"{}\"><h2>{}</h2><p class=\"muted\">{}</p><figure>{}{}<output></output><script type=\"application/json\">{}</script></figure></section>",
        plot.id,
        escape(plot.title),
        escape(plot.note),
        draw(plot, marks, span, WIDE),
        draw(plot, marks, span, NARROW),
        values(plot)
    );
}

/// The values for the script. It holds no foreign names.
fn values(plot: &LinePlot) -> String {
    let every = plot.series.first().map_or(1, |s| s.points.len().div_ceil(MOST_VALUES).max(1));
    let list = |values: Vec<String>| format!("[{}]", values.join(","));
    let number = |v: Option<f64>| v.filter(|v| v.is_finite()).map_or("null".into(), |v| format!("{v:.2}"));
    let times = plot.series.first().into_iter().flat_map(|s| s.points.iter().step_by(every));
    let series = plot.series.iter().map(|s| {
        let values = s.points.iter().step_by(every).map(|(_, v)| number(*v)).collect();
        format!("{{\"l\":\"{}\",\"v\":{}}}", s.label, list(values))
    });
    let series = list(series.collect());
    let times = list(times.map(|(t, _)| format!("{t:.3}")).collect());
    format!("{{\"u\":\"{:?}\",\"t\":{times},\"s\":{series}}}", plot.unit)
}

type Gauge = (&'static str, fn(&Memory) -> Option<Bytes>);
type Count = (&'static str, fn(&Step) -> Option<String>);

const GAUGES: [Gauge; 7] = [
    ("available", |m| m.available),
    ("free", |m| m.free),
    ("swapped", |m| m.swapped),
    ("pool", |m| m.pool),
    ("page cache", |m| m.file_cache),
    ("anonymous", |m| m.anonymous),
    ("processes", |m| m.tree_rss),
];

const COUNTS: [Count; 7] = [
    ("pages in", |s| Some(s.pages_in.to_string())),
    ("pages out", |s| Some(s.pages_out.to_string())),
    ("major faults", |s| Some(s.major_faults.to_string())),
    ("waited for memory", |s| s.memory_waiting_ms.map(seconds)),
    ("waited for I/O", |s| s.io_waiting_ms.map(seconds)),
    ("CPU", |s| s.cpu_ms.map(seconds)),
    ("processes' CPU", |s| s.tree_cpu_ms.map(seconds)),
];

fn seconds(ms: u64) -> String {
    format!("{:.2} s", ms as f64 / 1e3)
}

fn add_steps(out: &mut String, steps: &[Step]) {
    let gauges: Vec<&Gauge> =
        GAUGES.iter().filter(|(_, of)| steps.iter().any(|s| of(&s.end).is_some())).collect();
    let counts: Vec<&Count> = COUNTS.iter().filter(|(_, of)| steps.iter().any(|s| of(s).is_some())).collect();
    *out += "<section id=\"steps\"><h2>Step by step</h2>\
             <p class=\"muted\">Memory: from, to and the difference; the rest: what happened during the step.</p>\
             <div class=\"scroll\"><table><thead><tr><th>step</th><th>from</th><th>lasted</th>";
    for name in gauges.iter().map(|g| g.0).chain(counts.iter().map(|c| c.0)) {
        let _ = write!(out, "<th>{}</th>", escape(name));
    }
    *out += "</tr></thead><tbody>\n";
    let unnamed = steps.first().is_some_and(|s| s.name == "(start)");
    for (i, step) in steps.iter().enumerate() {
        let number = if unnamed { i } else { i + 1 };
        let number = if number == 0 { String::new() } else { format!("{number} ") };
        let lasted = step.to_s - step.from_s;
        let _ = write!(
            out,
            "<tr><td>{number}{}</td><td>{:.1} s</td><td>{lasted:.1} s</td>",
            escape(&step.name),
            step.from_s
        );
        for (_, of) in &gauges {
            let _ = write!(out, "<td>{}</td>", change(of(&step.start), of(&step.end)));
        }
        for (_, of) in &counts {
            let _ = write!(out, "<td>{}</td>", of(step).unwrap_or_default());
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div></section>\n";
}

fn change(start: Option<Bytes>, end: Option<Bytes>) -> String {
    let Some(end) = end else { return String::new() };
    let start = start.unwrap_or_default();
    let difference = if end >= start {
        format!("+{}", end.saturating_sub(start))
    } else {
        format!("−{}", start.saturating_sub(end))
    };
    format!("{end}<small>from {start}</small><small>{difference}</small>")
}

fn add_facts(out: &mut String, recording: &Recording) {
    let bytes = |key: &str| recording.number(key).map(|n| Bytes(n as u64).to_string());
    let text = |key: &str| recording.notes.get(key).cloned();
    let cost = recording.number("recorder_cpu_percent").map(|p| format!("{p:.2} % of one CPU"));
    let facts = [
        ("Kernel", text("kernel")),
        ("CPUs", text("cpus")),
        ("RAM", bytes("ram_bytes")),
        ("Swap", text("swap")),
        ("zram", text("zram")),
        ("zswap", text("zswap")),
        ("Swappiness", text("swappiness")),
        ("A sample every", text("every_ms").map(|ms| format!("{ms} ms"))),
        ("What was recorded", text("end")),
        ("The recording cost", cost),
        ("eke", text("eke_version")),
    ];
    *out += "<section id=\"machine\"><h2>The machine</h2><dl>";
    for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    *out += "</dl></section>\n";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Mark, Row};

    fn recording() -> Recording {
        let row = |i: u64| Row {
            time_ms: i * 100,
            free_bytes: Some(1000 * i),
            pages_in: Some(i),
            oom_kills: Some(1),
            ..Row::default()
        };
        Recording {
            notes: [("subject".to_owned(), "sh -c '<b>\"&'".to_owned())].into(),
            rows: (0..2000).map(row).collect(),
            marks: vec![Mark { time_ms: 300, name: "</script><img src=x onerror=alert(1)>".into() }],
        }
    }

    #[test]
    fn no_name_becomes_markup() {
        let html = page(&recording());
        assert!(html.contains("<h1>sh -c &#39;&lt;b&gt;&quot;&amp;&#39;</h1>"));
        assert!(!html.contains("<img") && !html.contains("<b>"));
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
        assert!(html.contains("was killed or is still running") && html.contains("for lack of memory: 1."));
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let html = page(&recording());
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!html.replace("src=x", "").contains(outside), "{outside}");
        }
        assert!(html.len() < 250_000, "{}", html.len());
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(
            change(Some(Bytes(2048)), Some(Bytes(1024))),
            "1.0 KiB<small>from 2.0 KiB</small><small>−1.0 KiB</small>"
        );
        assert_eq!(change(None, None), "");
    }
}
