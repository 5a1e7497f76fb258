//! The report on a terminal of 80 columns.

use std::fmt::{self, Write};

use eke_statistics::range;

use super::groups::{Group, Member, groups, variants};
use super::words::{self, shown};
use super::{Better, DataTable, Machine, Provenance, Report, Role};

const COLUMNS: usize = 80;
/// The width of names; longer ones are wrapped.
const NAME: usize = 22;
/// Before the names.
const OURS: &str = "* ";
const OTHERS: &str = "  ";
/// The least width of the sentence column.
const SENTENCE: usize = 16;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        render(self, &mut out)?;
        // a saved report is foreign: escape what a terminal obeys
        f.write_str(&out.replace(|c: char| c.is_control() && c != '\n', " "))
    }
}

fn render(report: &Report, out: &mut String) -> fmt::Result {
    let Machine { kernel, architecture, cpus, ram, .. } = &report.machine;
    writeln!(out, "{} on Linux {kernel}, {architecture}, {cpus} CPUs, {ram}", report.experiment)?;
    if !report.command.is_empty() {
        writeln!(out, "{}", wrapped(&report.command, "  ", "      "))?;
    }
    if let Some(provenance) = &report.provenance {
        render_provenance(report, provenance, out)?;
    }
    for group in groups(report) {
        render_group(&group, out)?;
    }
    report.tables.iter().try_for_each(|table| render_data(table, out))?;
    let set_ups: Vec<String> = variants(report)
        .into_iter()
        .filter(|v| !v.set_up.is_empty())
        .map(|v| format!("{}: {}", v.name, v.set_up))
        .collect();
    list("How each was set up", &set_ups, out)?;
    list("Notes", &report.notes, out)
}

/// Version, commits, time and settings.
fn render_provenance(report: &Report, provenance: &Provenance, out: &mut String) -> fmt::Result {
    let Provenance { version, commit, started, settings, .. } = provenance;
    let commits = match &report.commits()[..] {
        [only] if only == commit => commit.clone(),
        [] => commit.clone(),
        commits => format!("of {}, written by {commit}", commits.join(" and ")),
    };
    writeln!(out, "{}", wrapped(&format!("eke {version} ({commits}), {started}"), "  ", "      "))?;
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if settings.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", wrapped(&settings.join("; "), "  ", "      "))
}

fn list(title: &str, lines: &[String], out: &mut String) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}:")?;
    lines.iter().try_for_each(|line| writeln!(out, "{}", wrapped(line, "  - ", "    ")))
}

fn render_group(group: &Group<'_>, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}", wrapped(&heading(group), "", "  "))?;
    let compared = group.members.iter().any(|m| group.beside(m).is_some());
    let mut header = vec!["variant".to_owned()];
    header.extend(group.sweep.as_ref().map(|s| {
        let (name, unit) = words::key_words(&s.key);
        if unit.is_empty() { name } else { format!("{name}, {unit}") }
    }));
    header.extend(["median".into(), "min to max".into(), "n".into()]);
    if compared {
        header[0].insert_str(0, OTHERS);
        header.push("beside the best peer".into());
    }
    let rows = group.in_table().into_iter().map(|m| cells(group, m, compared));
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    lay_out(&rows, compared, out)?;
    let noise = group.noise();
    if noise > 0.0 {
        writeln!(out, "  Noise: an arm differs from itself by up to {} %.", shown(100.0 * noise))?;
    }
    match group.verdict() {
        Some(verdict) => writeln!(out, "{}", wrapped(&verdict, "  ", "  ")),
        None => Ok(()),
    }
}

/// A table that the report brings along; its columns are as wide as they need.
fn render_data(table: &DataTable, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}", wrapped(&table.title, "", "  "))?;
    if table.is_long {
        return writeln!(out, "  {} lines: in the JSON and on the page", table.lines.len());
    }
    let lines = table.lines.iter().map(|line| line.split('\t').collect::<Vec<_>>());
    let rows: Vec<Vec<&str>> =
        std::iter::once(table.columns.iter().map(String::as_str).collect()).chain(lines).collect();
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..table.columns.len()).filter_map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:>width$}"));
        writeln!(out, " {}", cells.collect::<String>())?;
    }
    Ok(())
}

/// `total, document A: seconds for all pages; in s, less is better`.
fn heading(group: &Group<'_>) -> String {
    let better = match group.metric.better {
        Better::Less => "less is better",
        Better::More => "more is better",
    };
    let mut text = group.metric.name.clone();
    if !group.conditions.is_empty() {
        text = format!("{text}, {}", group.conditions);
    }
    if group.metric.about.is_empty() {
        return format!("{text} ({})", group.unit);
    }
    format!("{text}: {} ({}; {better})", group.metric.about.trim_end_matches('.'), group.unit)
}

fn cells(group: &Group<'_>, member: &Member<'_>, compared: bool) -> Vec<String> {
    let row = member.row;
    let mut cells = vec![member.label.clone()];
    if group.sweep.is_some() {
        cells.push(group.place(row).map_or("-".into(), shown));
    }
    let (low, high) = range(&row.samples);
    let none = row.samples.is_empty();
    cells.push(if none { "-".into() } else { shown(row.median) });
    cells.push(if none { "-".into() } else { format!("{} to {}", shown(low), shown(high)) });
    cells.push(row.samples.len().to_string());
    if compared {
        let sentence = group.beside(member).map(|b| b.sentence(member.role));
        cells[0].insert_str(0, if member.role == Role::Ours { OURS } else { OTHERS });
        cells.push(sentence.unwrap_or_else(|| if none { "no samples".into() } else { String::new() }));
    }
    cells
}

/// Aligns names to the left and numbers to the right; a sentence gets the rest of the line.
fn lay_out(rows: &[Vec<String>], sentences: bool, out: &mut String) -> fmt::Result {
    let columns = rows.first().map_or(0, Vec::len);
    let numbers = 1..columns - usize::from(sentences);
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = numbers.clone().map(width).collect();
    let taken: usize = widths.iter().map(|w| w + 2).sum();
    let name = width(0).min(NAME);
    let rest = COLUMNS.saturating_sub(2 + name + taken + 2).max(SENTENCE);
    for row in rows {
        let names = textwrap::wrap(&row[0], textwrap::Options::new(name).subsequent_indent("    "));
        let sentence = if sentences { row[columns - 1].as_str() } else { "" };
        let sentence = textwrap::wrap(sentence, rest);
        for i in 0..names.len().max(sentence.len()) {
            let mut line = format!("  {:<name$}", names.get(i).map_or("", |n| n.trim_end()));
            for (cell, width) in row[numbers.clone()].iter().zip(&widths) {
                let cell = if i == 0 { cell } else { "" };
                write!(line, "  {cell:>width$}")?;
            }
            write!(line, "  {}", sentence.get(i).map_or("", |s| s.trim_end()))?;
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

fn wrapped(text: &str, first: &str, rest: &str) -> String {
    textwrap::fill(text, textwrap::Options::new(COLUMNS).initial_indent(first).subsequent_indent(rest))
}
