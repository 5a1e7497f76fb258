//! One figure as SVG. Colours are CSS variables, so that the page around it (or its own style) makes it light or dark.

use std::fmt::Write;

use crate::figures::{Figure, Series};
use crate::row::Mark;
use crate::scale::{self, Axis};
use crate::thin::thin;

/// The colours, light and dark; shared by the page and the files.
pub const COLOURS: &str = ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--muted:#59636e;--grid:#e4e7eb;--mark:#8a5a00;--s1:#1f6feb;--s2:#d9480f;--s3:#2b8a3e}\
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--muted:#9aa4af;--grid:#2d333a;--mark:#e3b04b;--s1:#6cb0ff;--s2:#ff9b6a;--s3:#6fdc8c}}";

/// What the parts of a figure look like.
pub const STYLE: &str = "svg text{font:12px system-ui,sans-serif;fill:var(--muted)}svg .name{fill:var(--fg)}\
svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--muted)}svg .mark{stroke:var(--mark);stroke-dasharray:4 3}svg .step{fill:var(--mark)}\
svg .line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\
svg .s1{stroke:var(--s1);stroke-width:2}svg .s2{stroke:var(--s2)}svg .s3{stroke:var(--s3)}svg.swap .s2{stroke-dasharray:5 6}svg .cursor{stroke:var(--fg);stroke-opacity:.5}";

/// How large a figure is in its own units, which are pixels where it is shown as large as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The class of the element.
    pub class: &'static str,
}

/// For a screen.
pub const WIDE: Size = Size { width: 760.0, height: 300.0, class: "wide" };
/// For a phone: the same letters on less room.
pub const NARROW: Size = Size { width: 350.0, height: 270.0, class: "narrow" };

/// About the width of a letter of [`STYLE`]'s font.
const LETTER: f64 = 6.6;
const LINE: f64 = 18.0;

/// Text as it can stand in XML, between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // not allowed in XML at all
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The figure as an element for a page; `span_s` are the ends of the recording.
pub fn draw(figure: &Figure, marks: &[Mark], span_s: (f64, f64), size: Size) -> String {
    Plot::new(figure, span_s, size).svg(figure, marks, size, "")
}

/// The figure as a file of its own.
pub fn file(figure: &Figure, marks: &[Mark], span_s: (f64, f64)) -> String {
    let inside = format!(
        "<style>{COLOURS}{STYLE}</style><rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>"
    );
    let svg = Plot::new(figure, span_s, WIDE).svg(figure, marks, WIDE, &inside);
    svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1)
}

/// Where things are.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    legend: Vec<(f64, f64)>,
    x: Axis,
    y: Axis,
}

impl Plot {
    fn new(figure: &Figure, (from, to): (f64, f64), size: Size) -> Self {
        let values = || figure.series.iter().flat_map(|s| s.points.iter().filter_map(|p| p.1));
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        let y = scale::values(figure.unit, least, most, 5);
        let widest = y.ticks.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
        let left = (widest as f64).mul_add(LETTER, 14.0).max(34.0);
        let right = size.width - 14.0;
        let legend = legend(figure, size.width);
        let rows = legend.last().map_or(0.0, |(_, y)| *y);
        let x = scale::time(from, to, (size.width / 70.0) as usize);
        Self { left, right, top: rows + 40.0, bottom: size.height - 26.0, legend, x, y }
    }

    fn at_x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    fn svg(&self, figure: &Figure, marks: &[Mark], size: Size, inside: &str) -> String {
        let mut out = format!(
            "<svg class=\"{} {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" data-left=\"{:.1}\" data-right=\"{:.1}\" data-from=\"{}\" data-to=\"{}\">{inside}",
            size.class,
            figure.id,
            size.width,
            size.height,
            escape(figure.title),
            self.left,
            self.right,
            self.x.low,
            self.x.high
        );
        self.axes(&mut out);
        self.marks(&mut out, marks);
        for (i, series) in figure.series.iter().enumerate() {
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

    /// Each mark has a line; its label has the room up to the next one: number and name, the number, or nothing.
    fn marks(&self, out: &mut String, marks: &[Mark]) {
        let at = |mark: &Mark| self.at_x(self.x.share(mark.time_ms as f64 / 1e3));
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

/// Where each name begins; a new line where one does not fit.
fn legend(figure: &Figure, width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (2.0, 14.0);
    let mut places = Vec::new();
    for series in &figure.series {
        let room = (series.label.len() as f64).mul_add(LETTER, 46.0);
        if x > 2.0 && x + room - 18.0 > width {
            (x, y) = (2.0, y + LINE);
        }
        places.push((x, y));
        x += room;
    }
    places
}

/// At most `room` letters; below three only the number that it begins with, or nothing.
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
    use crate::scale::Unit;

    fn figure() -> Figure {
        let points = (0..100).map(|i| (f64::from(i), Some(f64::from(i * i)))).collect();
        let series = vec![Series { label: "pages in", points }];
        Figure { id: "traffic", title: "Traffic", note: "", unit: Unit::PerSecond, series }
    }

    #[test]
    fn names_of_users_are_text_and_nothing_else() {
        assert_eq!(escape("<a href='x'>&\"\u{1}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
        let marks = [Mark { time_ms: 5000, name: "</svg><script>alert(1)</script>".into() }];
        let svg = draw(&figure(), &marks, (0.0, 99.0), WIDE);
        assert!(!svg.contains("<script") && svg.contains("&lt;/svg&gt;"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn every_point_is_there_and_inside() {
        let svg = draw(&figure(), &[], (0.0, 99.0), WIDE);
        assert!(svg.contains("data-points=\"100\""), "{svg}");
        let path = svg.split("data-points").nth(1).unwrap().split('"').nth(3).unwrap();
        for point in path.split(['M', 'L']).filter(|p| !p.is_empty()) {
            let (x, y) = point.split_once(' ').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=WIDE.width).contains(&x) && (0.0..=WIDE.height).contains(&y), "{point}");
        }
        assert!(file(&figure(), &[], (0.0, 99.0)).starts_with("<svg xmlns="));
    }

    #[test]
    fn labels_have_the_room_up_to_the_next_mark() {
        assert_eq!(shortened("12 open B.pdf", 20), "12 open B.pdf");
        assert_eq!(shortened("12 open B.pdf", 8), "12 open…");
        assert_eq!(shortened("12 open B.pdf", 3), "12");
        assert_eq!(shortened("12 open B.pdf", 1), "");
    }
}
