//! Plots as SVG, and the HTML page around them. Pure: data in, text out.
//!
//! - [`axis`]: round ticks and their labels
//! - [`lines`]: values over time, with named steps; `thin` keeps as many points as there are pixels
//! - [`svg`]: sizes, letters, escaping
//! - [`page`]: the page's beginning and style; light or dark as the reader's system is
//!
//! Own code and not `plotters`: a plot here is text of a few kilobytes that a page's style colours (light and dark), whose labels a screen
//! reader reads and whose values the page's script finds. `plotters` draws shapes with fixed colours.

pub mod axis;
pub mod lines;
pub mod page;
pub mod svg;
mod thin;
