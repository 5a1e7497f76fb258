//! The pictures and measurements of the documents: `make docs` writes pictures to `docs/pictures`, light and dark, and measurements into the pages.
//!
//! # Layout
//! - [`measurements`]: those in the pages
//! - [`stored`]: results in `docs/results`
//! - [`remedies`]: the metric of each remedy, and its plot
//! - [`gains`]: all remedies in one picture and in the README's table
//! - [`plot`]: a plot as a file of its own
//! - [`terminal`]: a terminal's screen
//! - [`screen`]: the screen of `eke top`
//! - [`cast`]: a recorded terminal session that plays
//! - [`theme`]: light and dark colours

pub mod cast;
pub mod gains;
pub mod measurements;
pub mod plot;
pub mod remedies;
pub mod screen;
pub mod stored;
pub mod terminal;
pub mod theme;
