//! *Tabs*: how many pages of a local web server headless Chromium holds open and usable in little memory.
//!
//! The server runs beside the box, the driver (`eke lab tabs SPEC`) and the browser in it. For n = 1, 2, ...: tab n is opened,
//! scrolled through, then every earlier tab is visited in turn, a word is looked up in it, and its state must be what it
//! was. A tab counts when all of this was drawn within the patience; [`Event::Held`] says so.
//!
//! - [`spec`]: what is to be done
//! - [`pages`], [`documents`]: which documents the tabs show (pure), and reading them
//! - [`server`]: the local web server
//! - [`wire`]: the browser's protocol as bytes (pure)
//! - [`launch`], [`place`]: the browser as a process, and its directory
//! - [`browser`]: what is asked of it
//! - [`visit`]: the experiment itself
//! - [`memory`]: what the browser's processes hold, from `/proc`
//! - [`cold`]: the browser's files out of the page cache, so that a box is charged for them
//!
//! [`Event::Held`]: crate::session::Event::Held

pub mod browser;
pub mod cold;
pub mod documents;
pub mod launch;
pub mod memory;
pub mod pages;
pub mod place;
pub mod server;
pub mod spec;
pub mod visit;
pub mod wire;

pub use server::Server;
pub use spec::Spec;
pub use visit::run;

use crate::session::Event;

/// The tabs that were held by these events: opened, and all others still usable.
pub fn held(events: &[Event]) -> usize {
    let held = events.iter().filter_map(|e| match e {
        Event::Held(held) => Some(held.documents),
        _ => None,
    });
    held.max().unwrap_or(0)
}
