//! Categories in rows, each with its name and numbers above its bar, strokes or difference.

use std::fmt::Write;

use eke_statistics::quantile;

use super::frame::{cut, dot, frame, text, width};
use super::scale::{Scale, span};
use super::{Category, Chart};
use crate::svg::{Size, escape};

const TOP: f64 = 6.0;
const ROW: f64 = 47.0;
/// Within a row: the text's base line, the middle of the bar, half its height.
const NAME: f64 = 14.0;
const MIDDLE: f64 = 30.0;
const HALF: f64 = 9.0;
const EDGE: f64 = 14.0;

/// What is drawn in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bar from the base to the median, a dot for each sample.
    Bars,
    /// A stroke for each sample, a box around the middle half.
    Strips,
    /// A line from zero to the median, a dot for each sample.
    Differences,
}

/// The chart as an element.
pub fn draw(chart: &Chart, categories: &[Category], kind: Kind, size: Size, id: &str) -> String {
    let values = categories.iter().flat_map(|l| l.samples.iter().chain(&l.median).copied());
    let ends = (EDGE, size.width - EDGE);
    let scale = Scale::new(span(values, chart.logarithmic), chart.logarithmic, ends);
    let bottom = (categories.len() as f64).mul_add(ROW, TOP);
    let mut out = String::new();
    axis(&mut out, chart, &scale, bottom);
    for (i, category) in categories.iter().enumerate() {
        let top = (i as f64).mul_add(ROW, TOP);
        names(&mut out, category, top, size);
        match kind {
            Kind::Strips => strokes(&mut out, category, &scale, top + MIDDLE),
            _ => bar(&mut out, category, &scale, top + MIDDLE, kind),
        }
        if kind != Kind::Strips {
            dots(&mut out, category, &scale, top + MIDDLE, &chart.unit);
        }
        median(&mut out, category, &scale, top + MIDDLE);
    }
    let description: Vec<String> = categories.iter().map(|l| format!("{}: {}", l.name, l.text)).collect();
    frame(chart, size, bottom + 40.0, id, &description.join("; "), &out)
}

fn axis(out: &mut String, chart: &Chart, scale: &Scale, bottom: f64) {
    for (x, label) in scale.ticks() {
        let _ = write!(out, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>");
        text(out, (x, bottom + 16.0), "middle", "", label);
    }
    let zero = scale.base();
    let _ = write!(out, "<path class=\"axis\" d=\"M{zero:.1} {TOP}V{bottom:.1}\"/>");
    let kind = if chart.logarithmic { ", logarithmic" } else { "" };
    text(out, (EDGE, bottom + 34.0), "start", "", &format!("{}{kind}", chart.unit));
}

fn names(out: &mut String, category: &Category, top: f64, size: Size) {
    let room = size.width - 2.0 * EDGE - width(&category.text) - 12.0;
    let (name, y) = (cut(&category.name, room), top + NAME);
    // a background covers the grid behind the text
    for (x, text) in [(EDGE + 3.0, &name), (size.width - EDGE - width(&category.text), &category.text)] {
        let (x, y, w) = (x - 2.0, y - 11.0, width(text) + 4.0);
        let _ =
            write!(out, "<rect class=\"paper\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"15\"/>");
    }
    text(out, (EDGE + 3.0, y), "start", &format!("name {}", category.class), &name);
    text(out, (size.width - EDGE, y), "end", "name", &category.text);
}

fn bar(out: &mut String, category: &Category, scale: &Scale, y: f64, kind: Kind) {
    let Some(median) = category.median else { return };
    let (a, b) = (scale.base(), scale.at(median));
    let (x, width) = (a.min(b), (a - b).abs());
    let half = if kind == Kind::Bars { HALF } else { 2.0 };
    let _ = write!(
        out,
        "<rect class=\"bar {}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
        category.class,
        y - half,
        2.0 * half
    );
}

/// Dots are in three rows, so that near ones stay apart.
fn dots(out: &mut String, category: &Category, scale: &Scale, y: f64, unit: &str) {
    for (i, value) in category.samples.iter().enumerate() {
        let aside = ((i % 3) as f64 - 1.0) * 5.0;
        dot(out, (scale.at(*value), y + aside), &category.name, *value, unit);
    }
}

fn strokes(out: &mut String, category: &Category, scale: &Scale, y: f64) {
    let class = category.class;
    if let (Some(low), Some(high)) = (quantile(&category.samples, 0.25), quantile(&category.samples, 0.75)) {
        let (a, b) = (scale.at(low), scale.at(high));
        let _ = write!(
            out,
            "<rect class=\"box {class}\" x=\"{a:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            y - HALF,
            b - a,
            2.0 * HALF
        );
    }
    let path: String =
        category.samples.iter().map(|v| format!("M{:.1} {:.1}v10", scale.at(*v), y - 5.0)).collect();
    let _ = write!(
        out,
        "<path class=\"strokes {class}\" data-variant=\"{}\" data-samples=\"{}\" d=\"{path}\"/>",
        escape(&category.name),
        category.samples.len()
    );
}

fn median(out: &mut String, category: &Category, scale: &Scale, y: f64) {
    let Some(median) = category.median else { return };
    let _ = write!(
        out,
        "<path class=\"median\" data-variant=\"{}\" data-median=\"{median}\" d=\"M{:.1} {:.1}v{:.1}\"/>",
        escape(&category.name),
        scale.at(median),
        y - HALF - 2.0,
        2.0 * HALF + 4.0
    );
}
