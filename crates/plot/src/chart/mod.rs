//! Charts of samples: bars, strips of many samples, differences around zero, and values over a number.
//!
//! - [`categories`]: the charts with a row for each category
//! - [`curve`]: values over a number; `labels` places the names beside points
//! - [`frame`]: the element, text and dots; [`scale`]: values to pixels

mod categories;
mod curve;
mod frame;
mod labels;
mod scale;

pub use frame::{cut, text};

use crate::svg::Size;
use categories::Kind;

/// The style sheet of charts. The classes `baseline`, `peer`, `ours` and `variation` have a colour each.
pub const STYLE: &str = include_str!("chart.css");

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// How to read it.
    pub about: &'static str,
    /// The unit of its values.
    pub unit: String,
    /// True for a logarithmic scale.
    pub logarithmic: bool,
    /// Its data.
    pub shape: Shape,
}

/// The data of a chart, by the way it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A bar up to each median, and a dot for each sample.
    Bars(Vec<Category>),
    /// A stroke for each of many samples.
    Strips(Vec<Category>),
    /// Differences around zero.
    Differences(Vec<Category>),
    /// Values over a number.
    Curve(Curve),
}

/// One row of a chart with its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// Its CSS class, for the colour.
    pub class: &'static str,
    /// Its samples.
    pub samples: Vec<f64>,
    /// Their median; `None` without samples.
    pub median: Option<f64>,
    /// Its numbers as text.
    pub text: String,
}

/// Values over a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name and unit of the number: `swap, MiB`.
    pub over: String,
    /// A line for each name.
    pub lines: Vec<Line>,
}

/// The points of one line, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its CSS class, for the colour.
    pub class: &'static str,
    /// At least one.
    pub points: Vec<Point>,
}

/// The samples at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The number.
    pub at: f64,
    /// All of them.
    pub samples: Vec<f64>,
    /// Their median.
    pub median: f64,
}

/// The chart as an SVG element; `id` is the prefix of its parts' ids.
pub fn draw(chart: &Chart, size: Size, id: &str) -> String {
    match &chart.shape {
        Shape::Bars(all) => categories::draw(chart, all, Kind::Bars, size, id),
        Shape::Strips(all) => categories::draw(chart, all, Kind::Strips, size, id),
        Shape::Differences(all) => categories::draw(chart, all, Kind::Differences, size, id),
        Shape::Curve(curve) => curve::draw(chart, curve, size, id),
    }
}
