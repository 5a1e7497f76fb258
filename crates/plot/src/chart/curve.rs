//! Values over a number: a line through rings at the medians; a single ring for one point.

use std::fmt::Write;

use super::frame::{dot, frame, text, width};
use super::labels::{Area, place};
use super::scale::{Scale, span};
use super::{Chart, Curve, Line, Point};
use crate::number::shown;
use crate::svg::{Size, escape};

const RIGHT: f64 = 16.0;
const LINE: f64 = 17.0;
/// Points nearer than this share a name, in pixels.
const NEAR: f64 = 7.0;

/// The positions in the chart.
struct Plot<'a> {
    chart: &'a Chart,
    curve: &'a Curve,
    x: Scale,
    y: Scale,
    area: Area,
    /// On a phone points have numbers; a legend above has the names.
    numbered: bool,
}

/// The chart as an element.
pub fn draw(chart: &Chart, curve: &Curve, size: Size, id: &str) -> String {
    let numbered = size.width < 500.0;
    let mut out = String::new();
    let top = if numbered { legend(&mut out, curve, size) } else { 0.0 } + 34.0;
    let area = Area { left: 46.0, top, width: size.width - 46.0 - RIGHT, height: 260.0 };
    let points = || curve.lines.iter().flat_map(|l| &l.points);
    let values = span(points().flat_map(|p| p.samples.iter().copied()), chart.logarithmic);
    let places = span(points().map(|p| p.at), false);
    let bottom = area.top + area.height;
    let x = Scale::new(places, false, (area.left, area.left + area.width));
    let y = Scale::new(values, chart.logarithmic, (bottom, area.top));
    let plot = Plot { chart, curve, x, y, area, numbered };
    plot.axes(&mut out);
    // ours above the others
    let (ours, others): (Vec<&Line>, Vec<&Line>) = curve.lines.iter().partition(|l| l.class == "ours");
    for line in others.into_iter().chain(ours) {
        plot.line(&mut out, line);
    }
    plot.names(&mut out);
    frame(chart, size, bottom + 42.0, id, &plot.description(), &out)
}

/// Adds numbers and names above the chart; returns the height.
fn legend(out: &mut String, curve: &Curve, size: Size) -> f64 {
    let (mut x, mut y) = (2.0, 14.0);
    for (i, line) in curve.lines.iter().enumerate() {
        let name = format!("{} {}", i + 1, line.name);
        let room = width(&name) + 16.0;
        if x > 2.0 && x + room > size.width {
            (x, y) = (2.0, y + LINE);
        }
        text(out, (x, y), "start", &format!("name {}", line.class), &name);
        x += room;
    }
    y
}

impl Plot<'_> {
    fn axes(&self, out: &mut String) {
        let Area { left, top, width, height } = self.area;
        let (right, bottom) = (left + width, top + height);
        for (y, label) in self.y.ticks() {
            let _ = write!(out, "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>");
            text(out, (left - 7.0, y + 4.0), "end", "", label);
        }
        for (x, label) in self.x.ticks() {
            let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/>");
            text(out, (x, bottom + 18.0), "middle", "", label);
        }
        let _ = write!(out, "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/>");
        let kind = if self.chart.logarithmic { ", logarithmic" } else { "" };
        text(out, (2.0, top - 14.0), "start", "", &format!("{}{kind}", self.chart.unit));
        text(out, (right, bottom + 36.0), "end", "", &self.curve.over);
    }

    fn at(&self, place: f64, value: f64) -> (f64, f64) {
        (self.x.at(place), self.y.at(value))
    }

    fn line(&self, out: &mut String, line: &Line) {
        let (class, name) = (line.class, escape(&line.name));
        let mut path = String::new();
        for (i, point) in line.points.iter().enumerate() {
            let (x, y) = self.at(point.at, point.median);
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        let _ = write!(out, "<path class=\"curve {class}\" d=\"{path}\"/>");
        for point in &line.points {
            let (x, y) = self.at(point.at, point.median);
            for sample in &point.samples {
                dot(out, self.at(point.at, *sample), &line.name, *sample, &self.chart.unit);
            }
            let _ = write!(
                out,
                "<circle class=\"ring {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" data-variant=\"{name}\" data-at=\"{}\" data-median=\"{}\"><title>{name}, {} {}: {} {}</title></circle>",
                point.at,
                point.median,
                escape(&self.curve.over),
                shown(point.at),
                shown(point.median),
                escape(&self.chart.unit)
            );
        }
    }

    /// Adds a name beside the last point of each line; points at the same position share one.
    fn names(&self, out: &mut String) {
        let mut names: Vec<((f64, f64), String, &str)> = Vec::new();
        for (i, line) in self.curve.lines.iter().enumerate() {
            let Some(last) = line.points.last() else { continue };
            let (x, y) = self.at(last.at, last.median);
            let name = if self.numbered { (i + 1).to_string() } else { line.name.clone() };
            match names.iter_mut().find(|((a, b), ..)| (a - x).abs() < NEAR && (b - y).abs() < NEAR) {
                Some((_, text, _)) => *text = format!("{text}, {name}"),
                None => names.push(((x, y), name, line.class)),
            }
        }
        let sizes: Vec<_> = names.iter().map(|(at, name, _)| (*at, width(name) + 4.0)).collect();
        for ((_, name, class), area) in names.iter().zip(place(&sizes, self.area, &self.taken())) {
            let middle = (area.left + area.width / 2.0, area.top + 11.5);
            text(out, middle, "middle", &format!("name {class}"), name);
        }
    }

    /// The areas of points and of the lines between them.
    fn taken(&self) -> Vec<Area> {
        let mut taken = Vec::new();
        for line in &self.curve.lines {
            let points: Vec<(f64, f64)> = line.points.iter().map(|p| self.at(p.at, p.median)).collect();
            taken.extend(points.iter().map(|p| Area::around(*p, 6.0)));
            for pair in points.windows(2) {
                let ((a, b), (c, d)) = (pair[0], pair[1]);
                let on = |i: i32| f64::from(i) / 16.0;
                let between = (1..16).map(|i| ((c - a).mul_add(on(i), a), (d - b).mul_add(on(i), b)));
                taken.extend(between.map(|p| Area::around(p, 3.0)));
            }
        }
        taken
    }

    fn description(&self) -> String {
        let point = |p: &Point| format!("{} at {}", shown(p.median), shown(p.at));
        let lines = self.curve.lines.iter().map(|l| {
            let points: Vec<String> = l.points.iter().map(point).collect();
            format!("{}: {}", l.name, points.join(", "))
        });
        format!("{} over {}. {}", self.chart.unit, self.curve.over, lines.collect::<Vec<_>>().join("; "))
    }
}
