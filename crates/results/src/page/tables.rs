//! The table below each chart, and the table of all samples.

use std::fmt::Write;

use eke_plot::svg::escape;
use eke_statistics::{quantile, range};

use crate::report::groups::{Group, Member};
use crate::report::words::{key_words, parameter, shown};
use crate::report::{Better, DataTable, Report};

/// One row for each row of the group.
pub fn numbers(out: &mut String, group: &Group<'_>) {
    let many = group.members.iter().any(|m| m.row.is_distribution());
    let better = if group.metric.better == Better::Less { "less" } else { "more" };
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"numbers\"><caption>In {}; {better} is better</caption><thead><tr><th scope=\"col\">variant</th>",
        escape(group.unit)
    );
    if let Some(sweep) = &group.sweep {
        let (name, unit) = key_words(&sweep.key);
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(format!("{name} {unit}").trim_end()));
    }
    *out += "<th scope=\"col\">median</th>";
    if is_compared(group) {
        *out += "<th scope=\"col\" class=\"words\">beside the best peer</th>";
    }
    *out += "<th scope=\"col\">min</th>";
    if many {
        *out += "<th scope=\"col\">p99</th>";
    }
    *out += "<th scope=\"col\">max</th><th scope=\"col\">samples</th></tr></thead><tbody>\n";
    for member in group.in_table() {
        numbers_row(out, group, member, many);
    }
    *out += "</tbody></table></div>\n";
    let noise = group.noise();
    if noise > 0.0 {
        let percent = shown(100.0 * noise);
        let _ =
            writeln!(out, "<p class=\"muted\">Noise: an arm differs from itself by up to {percent} %.</p>");
    }
}

fn numbers_row(out: &mut String, group: &Group<'_>, member: &Member<'_>, many: bool) {
    let samples = &member.row.samples;
    let (low, high) = range(samples);
    let number = |v: f64| if samples.is_empty() { "-".to_owned() } else { shown(v) };
    let cell = |out: &mut String, class: &str, text: &str| {
        let _ = write!(out, "<td{class}>{}</td>", escape(text));
    };
    let _ =
        write!(out, "<tr class=\"{}\"><th scope=\"row\">{}</th>", member.role.class(), escape(&member.label));
    if group.sweep.is_some() {
        cell(out, "", &group.place(member.row).map_or("-".into(), shown));
    }
    cell(out, "", &number(member.row.median));
    if is_compared(group) {
        let sentence = group.beside(member).map(|b| b.sentence(member.role)).unwrap_or_default();
        cell(out, " class=\"words\"", &sentence);
    }
    cell(out, "", &number(low));
    if many {
        cell(out, "", &quantile(samples, 0.99).map_or("-".into(), shown));
    }
    cell(out, "", &number(high));
    cell(out, "", &samples.len().to_string());
    *out += "</tr>\n";
}

fn is_compared(group: &Group<'_>) -> bool {
    group.members.iter().any(|m| group.beside(m).is_some())
}

/// A table that the report brings along. A long one is folded.
pub fn data(out: &mut String, table: &DataTable) {
    let title = escape(&table.title);
    let (open, close) = if table.is_long {
        (format!("<details><summary>{title}</summary>"), "</details>")
    } else {
        (format!("<h2>{title}</h2>"), "")
    };
    let _ = write!(
        out,
        "<section>{open}<div class=\"scroll\" tabindex=\"0\"><table class=\"numbers\"><thead><tr>"
    );
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
    }
    *out += "</tr></thead><tbody>\n";
    for line in &table.lines {
        *out += "<tr>";
        for cell in line.split('\t') {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        *out += "</tr>\n";
    }
    let _ = writeln!(out, "</tbody></table></div>{close}</section>");
}

/// All samples in their order.
pub fn samples(out: &mut String, report: &Report) {
    *out += "<div class=\"scroll\" tabindex=\"0\"><table class=\"raw\"><thead><tr><th scope=\"col\">variant</th><th scope=\"col\">conditions</th>\
             <th scope=\"col\">metric</th><th scope=\"col\">unit</th><th scope=\"col\">samples</th></tr></thead><tbody>\n";
    for row in &report.rows {
        let conditions: Vec<String> = row.params.iter().map(|(k, v)| parameter(k, v)).collect();
        let samples: Vec<String> = row.samples.iter().map(f64::to_string).collect();
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.variant));
        for cell in [&conditions.join(", "), &row.metric, &row.unit, &samples.join(" ")] {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div>\n";
}
