//! Parts of all charts: the element, text, dots.

use std::fmt::Write;

use super::Chart;
use crate::svg::{LETTER, Size, escape};

/// The text, cut with an ellipsis to at most `room` pixels.
pub fn cut(text: &str, room: f64) -> String {
    let room = (room / LETTER).max(2.0) as usize;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

/// The approximate width of a text in pixels.
pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// The element around `inside`, with title and description for screen readers.
pub fn frame(chart: &Chart, size: Size, height: f64, id: &str, description: &str, inside: &str) -> String {
    let (class, width) = (size.class, size.width);
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-labelledby=\"{id}{class}t {id}{class}d\">\
         <title id=\"{id}{class}t\">{}</title><desc id=\"{id}{class}d\">{}</desc>{inside}</svg>",
        escape(&chart.title),
        escape(description)
    )
}

/// Adds text at a point; `anchor` as in SVG.
pub fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>",
        escape(text)
    );
}

/// Adds a sample as a dot, with its value as tooltip and as attribute.
pub fn dot(out: &mut String, (x, y): (f64, f64), name: &str, value: f64, unit: &str) {
    let name = escape(name);
    let _ = write!(
        out,
        "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" data-variant=\"{name}\" data-value=\"{value}\"><title>{name}: {value} {}</title></circle>",
        escape(unit)
    );
}
