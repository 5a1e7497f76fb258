//! The pictures of the documents: `make docs` writes them to `docs/pictures`, light and dark.
//!
//! # Layout
//! - [`stored`]: measurements of `docs/results`
//! - [`remedies`]: which measurement stands for which remedy, and one plot for each
//! - [`gains`]: all remedies in one picture and in the table of the README
//! - [`plot`]: a plot as a file of its own
//! - [`screen`]: the screen of `eke top`
//! - [`theme`]: light and dark

pub mod gains;
pub mod plot;
pub mod remedies;
pub mod screen;
pub mod stored;
pub mod theme;
