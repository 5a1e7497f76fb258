//! A report as one page: no script at all, and no file or font from elsewhere.
//!
//! - [`figures`]: which plots, as data; pure
//! - [`lanes`], [`curve`]: how they are drawn; `axis`, `labels`, `draw`: what they share
//! - `histograms`: how long single requests took, by class
//! - `tables`: the figures below each plot, and every sample

mod axis;
mod curve;
mod draw;
pub mod figures;
mod histograms;
mod labels;
mod lanes;
mod tables;

use std::fmt::Write;

use eke_plot::page::beginning;
use eke_plot::svg::{NARROW, Size, WIDE, escape};

use crate::report::groups::{Group, groups, variants};
use crate::report::{Machine, Report, Role};
use figures::{Figure, Shape};
use lanes::Kind;

/// The style sheet of a page, beside the one that all pages share.
pub const STYLE: &str = include_str!("page.css");
/// What the colours mean.
const KEY: [(Role, &str); 4] = [
    (Role::Ours, "eke"),
    (Role::Peer, "what people use today"),
    (Role::Baseline, "no remedy, or memory to spare"),
    (Role::Lever, "eke with one thing changed"),
];

/// The whole page.
pub fn page(report: &Report) -> String {
    // `eke io compare` has two words, is none of `eke bench`, and compares values, not programs
    let is_bench = !["io ", "prefetch "].iter().any(|verb| report.experiment.starts_with(verb));
    let title = escape(&format!("eke {}{}", if is_bench { "bench " } else { "" }, report.experiment));
    let mut out = beginning(&title, STYLE);
    let _ =
        write!(out, "<h1>{title}</h1>\n<p class=\"muted\">{}</p>\n", escape(&machine_line(&report.machine)));
    if !report.command.is_empty() {
        // an option is not broken at its hyphens
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
    histograms::add(&mut out, report);
    add_set_up(&mut out, report);
    add_machine(&mut out, &report.machine);
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
        let _ = write!(out, "<li><i class=\"{}\"></i>{words}</li>", draw::class(role));
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
    for (i, figure) in figures::figures(group).iter().enumerate() {
        let id = format!("f{number}-{}-", i + 1);
        if i > 0 {
            let _ = write!(out, "<h3>{}</h3>", escape(&figure.title));
        }
        let _ = writeln!(
            out,
            "<figure>{}{}<figcaption>{}</figcaption></figure>",
            drawn(figure, WIDE, &id),
            drawn(figure, NARROW, &id),
            figure.about
        );
    }
    tables::figures(out, group);
    *out += "</section>\n";
}

/// A figure as an SVG element; `id` begins the names of its parts.
pub fn drawn(figure: &Figure, size: Size, id: &str) -> String {
    match &figure.shape {
        Shape::Bars(lanes) => lanes::draw(figure, lanes, Kind::Bars, size, id),
        Shape::Strips(lanes) => lanes::draw(figure, lanes, Kind::Strips, size, id),
        Shape::Differences(lanes) => lanes::draw(figure, lanes, Kind::Differences, size, id),
        Shape::Curve(curve) => curve::draw(figure, curve, size, id),
    }
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

fn add_machine(out: &mut String, machine: &Machine) {
    let facts = [
        ("Kernel", machine.kernel.clone()),
        ("Architecture", machine.architecture.clone()),
        ("Processor", machine.processor.clone()),
        ("CPUs", machine.cpus.to_string()),
        ("RAM", machine.ram.to_string()),
    ];
    *out += "<section id=\"machine\"><h2>The machine</h2><dl>";
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escape(value));
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

/// For a quoted `data:` address (RFC 2397): what an address or an attribute could take for its own, and what is not ASCII.
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
