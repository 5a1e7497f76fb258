//! A report as one page, without scripts and without files or fonts from elsewhere.
//!
//! - [`charts`]: the charts of each group, as data for [`eke_plot::chart`]
//! - `histograms`: latencies by class
//! - `tables`: the numbers below each chart, and all samples

pub mod charts;
mod histograms;
mod tables;

use std::fmt::Write;

use eke_plot::chart;
use eke_plot::page::beginning;
use eke_plot::svg::{NARROW, WIDE, escape};

use crate::report::groups::{Group, groups, variants};
use crate::report::{Machine, Report, Role};

/// The style sheet of a report, beside those of all pages and of charts.
const STYLE: &str = include_str!("page.css");
/// What the colours mean.
const KEY: [(Role, &str); 4] = [
    (Role::Ours, "eke"),
    (Role::Peer, "what people use today"),
    (Role::Baseline, "no remedy, or memory to spare"),
    (Role::Variation, "eke with one thing changed"),
];

/// The whole page.
pub fn page(report: &Report) -> String {
    // `eke io compare` is not of `eke bench`, and compares values, not programs
    let is_bench = !["io ", "prefetch "].iter().any(|verb| report.experiment.starts_with(verb));
    let title = escape(&format!("eke {}{}", if is_bench { "bench " } else { "" }, report.experiment));
    let mut out = beginning(&title, &format!("{}{STYLE}", chart::STYLE));
    let _ =
        write!(out, "<h1>{title}</h1>\n<p class=\"muted\">{}</p>\n", escape(&machine_line(&report.machine)));
    if !report.command.is_empty() {
        // no line break at the hyphens of options
        let words = report.command.split(' ').map(|w| format!("<span>{}</span>", escape(w)));
        let _ = writeln!(
            out,
            "<p class=\"muted\">Made by:</p><pre>{}</pre>",
            words.collect::<Vec<_>>().join(" ")
        );
    }
    add_notes(&mut out, report);
    if is_bench {
        add_key(&mut out, report);
    }
    for (i, group) in groups(report).iter().enumerate() {
        add_group(&mut out, group, i + 1);
    }
    report.tables.iter().for_each(|table| tables::data(&mut out, table));
    histograms::add(&mut out, report);
    add_set_up(&mut out, report);
    add_machine(&mut out, report);
    add_samples(&mut out, report);
    out += "</main></body></html>\n";
    out
}

fn machine_line(machine: &Machine) -> String {
    let Machine { kernel, architecture, cpus, ram, .. } = machine;
    format!("Linux {kernel}, {architecture}, {cpus} CPUs, {ram} of RAM")
}

fn add_notes(out: &mut String, report: &Report) {
    if report.notes.is_empty() {
        return;
    }
    *out += "<section id=\"notes\"><h2>What to know</h2><ul>";
    for note in &report.notes {
        let _ = write!(out, "<li>{}</li>", escape(note));
    }
    *out += "</ul></section>\n";
}

fn add_key(out: &mut String, report: &Report) {
    let variants = variants(report);
    let present = |role: Role| variants.iter().any(|v| v.role == role);
    *out += "<ul class=\"key\" aria-label=\"What the colours mean\">";
    for (role, words) in KEY.into_iter().filter(|(role, _)| present(*role)) {
        let _ = write!(out, "<li><i class=\"{}\"></i>{words}</li>", role.class());
    }
    *out += "</ul>\n";
}

fn add_group(out: &mut String, group: &Group<'_>, number: usize) {
    let _ = write!(out, "<section id=\"group-{number}\"><h2>{}", escape(&group.metric.name));
    if !group.conditions.is_empty() {
        let _ = write!(out, ", {}", escape(&group.conditions));
    }
    let _ = writeln!(out, "</h2><p class=\"muted\">{}</p>", escape(&group.metric.about));
    if let Some(verdict) = group.verdict() {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&verdict));
    }
    for (i, drawn) in charts::charts(group).iter().enumerate() {
        let id = format!("f{number}-{}-", i + 1);
        if i > 0 {
            let _ = write!(out, "<h3>{}</h3>", escape(&drawn.title));
        }
        let _ = writeln!(
            out,
            "<figure>{}{}<figcaption>{}</figcaption></figure>",
            chart::draw(drawn, WIDE, &id),
            chart::draw(drawn, NARROW, &id),
            drawn.about
        );
    }
    tables::numbers(out, group);
    *out += "</section>\n";
}

fn add_set_up(out: &mut String, report: &Report) {
    let variants = variants(report);
    if variants.iter().all(|v| v.set_up.is_empty()) {
        return;
    }
    *out += "<section id=\"set-up\"><h2>How each was set up</h2><dl class=\"set-up\">";
    for variant in variants.iter().filter(|v| !v.set_up.is_empty()) {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(&variant.name), escape(&variant.set_up));
    }
    *out += "</dl></section>\n";
}

fn add_machine(out: &mut String, report: &Report) {
    let (machine, from) = (&report.machine, report.provenance.clone().unwrap_or_default());
    let commits =
        Some(report.commits().join(", ")).filter(|_| report.provenance.is_some()).unwrap_or_default();
    let facts = [
        ("Kernel", machine.kernel.clone()),
        ("Architecture", machine.architecture.clone()),
        ("Processor", machine.processor.clone()),
        ("CPUs", machine.cpus.to_string()),
        ("RAM", machine.ram.to_string()),
        ("Kernel command line", from.kernel_command_line),
        ("eke", from.version),
        ("Written by commit", from.commit),
        ("Commits of the measurements", commits),
        ("Started", from.started),
    ];
    let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(from.settings);
    *out += "<section id=\"machine\"><h2>The machine</h2><dl>";
    for (name, value) in facts.filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
    }
    *out += "</dl></section>\n";
}

fn add_samples(out: &mut String, report: &Report) {
    *out += "<section id=\"samples\"><h2>The data</h2>";
    if let Ok(json) = serde_json::to_string(report) {
        let name = report.experiment.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let _ = write!(
            out,
            "<p><a id=\"json\" download=\"{name}.json\" href=\"data:application/json,{}\">This report as JSON</a></p>",
            percent_encoded(&json)
        );
    }
    *out += "<details><summary>Every sample</summary>";
    tables::samples(out, report);
    *out += "</details></section>\n";
}

/// Text for a quoted `data:` address (RFC 2397): encodes characters that have a meaning in an address or attribute, and non-ASCII.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b','
            | b':'
            | b'/'
            | b'['
            | b']' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Row, Variant};

    #[test]
    fn names_are_text_and_nothing_comes_from_elsewhere() {
        let evil = "</script><img src=x onerror=alert(1)>\"'";
        let params = [("document".to_owned(), evil.into())].into();
        let report = Report {
            experiment: evil.into(),
            command: evil.into(),
            notes: vec![evil.into()],
            variants: vec![Variant { name: evil.into(), role: Role::Ours, set_up: evil.into() }],
            rows: vec![
                Row::new(evil, &params, evil, evil, vec![1.0, 2.0]),
                Row::new(evil, &params, "many", evil, (1..99).map(f64::from).collect()),
            ],
            ..Report::default()
        };
        let page = page(&report);
        for outside in
            ["<img", "<script", "http://", "https://", "src=x onerror=alert(1)>\"", "@import", "url("]
        {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("href=").count(), 1);
    }

    #[test]
    fn addresses_are_plain() {
        assert_eq!(percent_encoded("{\"a\":[1.5,\"µ&'\"]}"), "%7B%22a%22:[1.5,%22%C2%B5%26%27%22]%7D");
    }
}
