//! Variants below each other, each with its name and figures above what is drawn of it: bars, strokes, differences.

use std::fmt::Write;

use eke_plot::svg::{Size, escape};

use super::axis::{Scale, span};
use super::draw::{class, cut, dot, frame, text, width};
use super::figures::{Figure, Lane};
use crate::report::groups::quantile;

const TOP: f64 = 6.0;
const LANE: f64 = 47.0;
/// Within a lane: the text's base line, the middle of what is drawn, half its height.
const NAME: f64 = 14.0;
const MIDDLE: f64 = 30.0;
const HALF: f64 = 9.0;
const EDGE: f64 = 14.0;

/// What is drawn in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bar from the base to the median, a dot for each sample.
    Bars,
    /// A stroke for each sample, a box around the middle half.
    Strips,
    /// A line from zero to the median, a dot for each sample.
    Differences,
}

/// The plot as an element.
pub fn draw(figure: &Figure, lanes: &[Lane], kind: Kind, size: Size, id: &str) -> String {
    let values = lanes.iter().flat_map(|l| l.samples.iter().copied());
    let ends = (EDGE, size.width - EDGE);
    let scale = Scale::new(span(values, figure.logarithmic), figure.logarithmic, ends);
    let bottom = (lanes.len() as f64).mul_add(LANE, TOP);
    let mut out = String::new();
    axis(&mut out, figure, &scale, bottom);
    for (i, lane) in lanes.iter().enumerate() {
        let top = (i as f64).mul_add(LANE, TOP);
        names(&mut out, lane, top, size);
        match kind {
            Kind::Strips => strokes(&mut out, lane, &scale, top + MIDDLE),
            _ => bar(&mut out, lane, &scale, top + MIDDLE, kind),
        }
        if kind != Kind::Strips {
            dots(&mut out, lane, &scale, top + MIDDLE, &figure.unit);
        }
        median(&mut out, lane, &scale, top + MIDDLE);
    }
    let says: Vec<String> = lanes.iter().map(|l| format!("{}: {}", l.name, l.text)).collect();
    frame(figure, size, bottom + 40.0, id, &says.join("; "), &out)
}

fn axis(out: &mut String, figure: &Figure, scale: &Scale, bottom: f64) {
    for (x, label) in scale.ticks() {
        let _ = write!(out, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>");
        text(out, (x, bottom + 16.0), "middle", "", label);
    }
    let zero = scale.base();
    let _ = write!(out, "<path class=\"axis\" d=\"M{zero:.1} {TOP}V{bottom:.1}\"/>");
    let kind = if figure.logarithmic { ", logarithmic" } else { "" };
    text(out, (EDGE, bottom + 34.0), "start", "", &format!("{}{kind}", figure.unit));
}

fn names(out: &mut String, lane: &Lane, top: f64, size: Size) {
    let room = size.width - 2.0 * EDGE - width(&lane.text) - 12.0;
    let role = class(lane.role);
    let (name, y) = (cut(&lane.name, room), top + NAME);
    // behind the letters the grid is covered
    for (x, text) in [(EDGE + 3.0, &name), (size.width - EDGE - width(&lane.text), &lane.text)] {
        let (x, y, w) = (x - 2.0, y - 11.0, width(text) + 4.0);
        let _ =
            write!(out, "<rect class=\"paper\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"15\"/>");
    }
    text(out, (EDGE + 3.0, y), "start", &format!("name {role}"), &name);
    text(out, (size.width - EDGE, y), "end", "name", &lane.text);
}

fn bar(out: &mut String, lane: &Lane, scale: &Scale, y: f64, kind: Kind) {
    let Some(median) = lane.median else { return };
    let (a, b) = (scale.base(), scale.at(median));
    let (x, width) = (a.min(b), (a - b).abs());
    let half = if kind == Kind::Bars { HALF } else { 2.0 };
    let _ = write!(
        out,
        "<rect class=\"bar {}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
        class(lane.role),
        y - half,
        2.0 * half
    );
}

/// Dots beside each other stay apart: one a little above, one a little below.
fn dots(out: &mut String, lane: &Lane, scale: &Scale, y: f64, unit: &str) {
    for (i, value) in lane.samples.iter().enumerate() {
        let aside = ((i % 3) as f64 - 1.0) * 5.0;
        dot(out, (scale.at(*value), y + aside), &lane.name, *value, unit);
    }
}

fn strokes(out: &mut String, lane: &Lane, scale: &Scale, y: f64) {
    let role = class(lane.role);
    if let (Some(low), Some(high)) = (quantile(&lane.samples, 0.25), quantile(&lane.samples, 0.75)) {
        let (a, b) = (scale.at(low), scale.at(high));
        let _ = write!(
            out,
            "<rect class=\"box {role}\" x=\"{a:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            y - HALF,
            b - a,
            2.0 * HALF
        );
    }
    let path: String =
        lane.samples.iter().map(|v| format!("M{:.1} {:.1}v10", scale.at(*v), y - 5.0)).collect();
    let _ = write!(
        out,
        "<path class=\"strokes {role}\" data-variant=\"{}\" data-samples=\"{}\" d=\"{path}\"/>",
        escape(&lane.name),
        lane.samples.len()
    );
}

fn median(out: &mut String, lane: &Lane, scale: &Scale, y: f64) {
    let Some(median) = lane.median else { return };
    let _ = write!(
        out,
        "<path class=\"median\" data-variant=\"{}\" data-median=\"{median}\" d=\"M{:.1} {:.1}v{:.1}\"/>",
        escape(&lane.name),
        scale.at(median),
        y - HALF - 2.0,
        2.0 * HALF + 4.0
    );
}
