//! Values over time as lines. Colours are CSS variables: the page around a plot, or its own style, makes it light or dark.

use std::fmt::Write;

use crate::axis::{self, Axis, Unit};
use crate::svg::{COLOURS, LETTER, Size, WIDE, escape};
use crate::thin::thin;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: &'static str,
    /// Seconds and values; a missing one interrupts the line.
    pub points: Vec<(f64, Option<f64>)>,
}

/// One plot.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePlot {
    /// Its name in files and links.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How to read it.
    pub note: &'static str,
    /// Its axis.
    pub unit: Unit,
    /// Its lines.
    pub series: Vec<Series>,
}

/// The start of a named step.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When, in seconds.
    pub time_s: f64,
    /// Its name.
    pub name: String,
}

/// The style sheet of plots.
pub const STYLE: &str = "svg text{font:12px system-ui,sans-serif;fill:var(--muted)}svg .name{fill:var(--fg)}\
svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--muted)}svg .mark{stroke:var(--mark);stroke-dasharray:4 3}svg .step{fill:var(--mark)}\
svg .line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\
svg .s1{stroke:var(--s1);stroke-width:2}svg .s2{stroke:var(--s2)}svg .s3{stroke:var(--s3)}svg.swap .s2{stroke-dasharray:5 6}svg .cursor{stroke:var(--fg);stroke-opacity:.5}";

const LINE: f64 = 18.0;

/// The plot as an element for a page; `span_s` are the ends of its time.
pub fn draw(plot: &LinePlot, marks: &[Mark], span_s: (f64, f64), size: Size) -> String {
    Layout::new(plot, span_s, size).svg(plot, marks, size, "")
}

/// The plot as a file of its own.
pub fn file(plot: &LinePlot, marks: &[Mark], span_s: (f64, f64)) -> String {
    let inside = format!(
        "<style>{COLOURS}{STYLE}</style><rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>"
    );
    let svg = Layout::new(plot, span_s, WIDE).svg(plot, marks, WIDE, &inside);
    svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1)
}

/// The positions in a plot.
struct Layout {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    legend: Vec<(f64, f64)>,
    x: Axis,
    y: Axis,
}

impl Layout {
    fn new(plot: &LinePlot, (from, to): (f64, f64), size: Size) -> Self {
        let values = || plot.series.iter().flat_map(|s| s.points.iter().filter_map(|p| p.1));
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        let y = axis::values(plot.unit, least, most, 5);
        let widest = y.ticks.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
        let left = (widest as f64).mul_add(LETTER, 14.0).max(34.0);
        let right = size.width - 14.0;
        let legend = legend(plot, size.width);
        let rows = legend.last().map_or(0.0, |(_, y)| *y);
        let x = axis::time(from, to, (size.width / 70.0) as usize);
        Self { left, right, top: rows + 40.0, bottom: size.height - 26.0, legend, x, y }
    }

    fn at_x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    fn svg(&self, plot: &LinePlot, marks: &[Mark], size: Size, inside: &str) -> String {
        let mut out = format!(
            "<svg class=\"{} {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" data-left=\"{:.1}\" data-right=\"{:.1}\" data-from=\"{}\" data-to=\"{}\">{inside}",
            size.class,
            plot.id,
            size.width,
            size.height,
            escape(plot.title),
            self.left,
            self.right,
            self.x.low,
            self.x.high
        );
        self.axes(&mut out);
        self.marks(&mut out, marks);
        for (i, series) in plot.series.iter().enumerate() {
            self.line(&mut out, series, i);
            self.name(&mut out, series, i);
        }
        let (top, bottom) = (self.top, self.bottom);
        let _ = write!(
            out,
            "<line class=\"cursor\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" visibility=\"hidden\"/></svg>"
        );
        out
    }

    fn axes(&self, out: &mut String) {
        let (left, right, bottom) = (self.left, self.right, self.bottom);
        for (value, label) in &self.y.ticks {
            let y = self.at_y(*value);
            let _ = write!(out, "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>");
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        let cut = if self.y.is_cut() { " (not from 0)" } else { "" };
        let _ = write!(out, "<text x=\"2\" y=\"{:.1}\">{}{cut}</text>", self.top - 24.0, self.y.unit);
        let _ = write!(out, "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/>");
        let last = self.x.ticks.len().saturating_sub(1);
        for (i, (time, label)) in self.x.ticks.iter().enumerate() {
            let x = self.at_x(self.x.share(*time));
            let unit = if i == last { format!(" {}", self.x.unit) } else { String::new() };
            let anchor = if x + 20.0 > right { "end" } else { "middle" };
            let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/>");
            let _ = write!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}{unit}</text>",
                bottom + 18.0
            );
        }
    }

    /// A line for each mark. Its label fits before the next mark: number and name, the number only, or nothing.
    fn marks(&self, out: &mut String, marks: &[Mark]) {
        let at = |mark: &Mark| self.at_x(self.x.share(mark.time_s));
        for (i, mark) in marks.iter().enumerate() {
            let x = at(mark);
            let end = marks.get(i + 1).map_or(self.right + 10.0, at);
            let label = shortened(&format!("{} {}", i + 1, mark.name), ((end - x - 4.0) / LETTER) as usize);
            let (top, bottom) = (self.top, self.bottom);
            let _ = write!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {:.1}V{bottom:.1}\"><title>{}</title></path>",
                top - 14.0,
                escape(&mark.name)
            );
            let _ = write!(
                out,
                "<text class=\"step\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                top - 6.0,
                escape(&label)
            );
        }
    }

    fn line(&self, out: &mut String, series: &Series, index: usize) {
        let columns = (self.right - self.left) as usize;
        let (mut path, mut points) = (String::new(), 0);
        for line in thin(&series.points, &self.x, columns) {
            points += line.len();
            for (i, (share, value)) in line.iter().enumerate() {
                let command = if i == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", self.at_x(*share), self.at_y(*value));
            }
            if line.len() == 1 {
                path += "h.1";
            }
        }
        let _ = write!(out, "<path class=\"line s{}\" data-points=\"{points}\" d=\"{path}\"/>", index + 1);
    }

    fn name(&self, out: &mut String, series: &Series, index: usize) {
        let Some((x, y)) = self.legend.get(index) else { return };
        let _ = write!(out, "<path class=\"line s{}\" d=\"M{x:.1} {:.1}h22\"/>", index + 1, y - 4.0);
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 28.0,
            escape(series.label)
        );
    }
}

/// The position of each name; a name that does not fit begins a new line.
fn legend(plot: &LinePlot, width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (2.0, 14.0);
    let mut places = Vec::new();
    for series in &plot.series {
        let room = (series.label.len() as f64).mul_add(LETTER, 46.0);
        if x > 2.0 && x + room - 18.0 > width {
            (x, y) = (2.0, y + LINE);
        }
        places.push((x, y));
        x += room;
    }
    places
}

/// At most `room` letters: the text cut with an ellipsis, else the number that it begins with, else nothing.
fn shortened(label: &str, room: usize) -> String {
    if label.chars().count() <= room {
        return label.to_owned();
    }
    let number = label.split(' ').next().unwrap_or_default();
    match room {
        room if room >= number.len() + 4 => label.chars().take(room - 1).chain(['…']).collect(),
        room if room >= number.len() => number.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> LinePlot {
        let points = (0..100).map(|i| (f64::from(i), Some(f64::from(i * i)))).collect();
        let series = vec![Series { label: "pages in", points }];
        LinePlot { id: "traffic", title: "Traffic", note: "", unit: Unit::PerSecond, series }
    }

    #[test]
    fn names_of_users_are_text_and_nothing_else() {
        let marks = [Mark { time_s: 5.0, name: "</svg><script>alert(1)</script>".into() }];
        let svg = draw(&plot(), &marks, (0.0, 99.0), WIDE);
        assert!(!svg.contains("<script") && svg.contains("&lt;/svg&gt;"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn every_point_is_drawn_inside_the_plot() {
        let svg = draw(&plot(), &[], (0.0, 99.0), WIDE);
        assert!(svg.contains("data-points=\"100\""), "{svg}");
        let path = svg.split("data-points").nth(1).unwrap().split('"').nth(3).unwrap();
        for point in path.split(['M', 'L']).filter(|p| !p.is_empty()) {
            let (x, y) = point.split_once(' ').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=WIDE.width).contains(&x) && (0.0..=WIDE.height).contains(&y), "{point}");
        }
        assert!(file(&plot(), &[], (0.0, 99.0)).starts_with("<svg xmlns="));
    }

    #[test]
    fn labels_have_the_room_up_to_the_next_mark() {
        assert_eq!(shortened("12 open B.pdf", 20), "12 open B.pdf");
        assert_eq!(shortened("12 open B.pdf", 8), "12 open…");
        assert_eq!(shortened("12 open B.pdf", 3), "12");
        assert_eq!(shortened("12 open B.pdf", 1), "");
    }
}
