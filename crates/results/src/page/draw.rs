//! What all plots share: their frame, letters, dots.

use std::fmt::Write;

use eke_plot::svg::{Size, escape};

use super::figures::Figure;
use crate::report::Role;

/// About the width of a letter of the plots' font.
pub const LETTER: f64 = 6.6;

/// The class of a role.
pub fn class(role: Role) -> &'static str {
    match role {
        Role::Baseline => "baseline",
        Role::Peer => "peer",
        Role::Ours => "ours",
        Role::Lever => "lever",
    }
}

/// At most `room` pixels, cut with an ellipsis.
pub fn cut(text: &str, room: f64) -> String {
    let room = (room / LETTER).max(2.0) as usize;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

/// About how wide a text is.
pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// The element around `inside`, with what a screen reader says: title and description.
pub fn frame(figure: &Figure, size: Size, height: f64, id: &str, says: &str, inside: &str) -> String {
    let (class, width) = (size.class, size.width);
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-labelledby=\"{id}{class}t {id}{class}d\">\
         <title id=\"{id}{class}t\">{}</title><desc id=\"{id}{class}d\">{}</desc>{inside}</svg>",
        escape(&figure.title),
        escape(says)
    )
}

/// Text at a place; `anchor` as in SVG.
pub fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>",
        escape(text)
    );
}

/// A sample, with its value for whoever points at it or reads the page by program.
pub fn dot(out: &mut String, (x, y): (f64, f64), name: &str, value: f64, unit: &str) {
    let name = escape(name);
    let _ = write!(
        out,
        "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" data-variant=\"{name}\" data-value=\"{value}\"><title>{name}: {value} {}</title></circle>",
        escape(unit)
    );
}
