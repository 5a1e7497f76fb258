//! Plots as SVG, and the HTML page around them. Pure: data in, text out.
//!
//! - [`axis`]: round ticks and their labels; [`number`]: numbers as text
//! - [`chart`]: samples of variants as bars, strips, differences or curves
//! - [`lines`]: values over time, with named steps; `thin` keeps as many points as there are pixels
//! - [`svg`]: sizes, letters, escaping
//! - [`page`]: the page's beginning and style, light or dark by the reader's system
//!
//! Own code and not `plotters`: here a plot is a few kilobytes of text, coloured by the page's style (light and dark), with labels for
//! screen readers and values for the page's script. `plotters` draws shapes in fixed colours.

pub mod axis;
pub mod chart;
pub mod lines;
pub mod number;
pub mod page;
pub mod svg;
mod thin;
