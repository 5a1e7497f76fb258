//! *Tabs*: how many pages of a local web server headless Chromium keeps open and usable in little memory.
//!
//! The server runs beside the box; the driver (`eke lab tabs SPEC`) and the browser run in it. For n = 1, 2, ...: the driver
//! opens tab n and scrolls through it. Then it visits every earlier tab, searches a word in it, and checks its state. A tab counts
//! when all of this was drawn within the patience; [`Event::Memory`] reports it.
//!
//! - [`spec`]: the description of a run
//! - [`pages`], [`documents`]: choosing the documents of the tabs (pure), and reading them
//! - [`server`]: the local web server
//! - [`wire`]: the browser's protocol as bytes (pure)
//! - [`launch`], [`profile`]: the browser as a process, and its directory
//! - [`browser`]: requests to it
//! - [`visit`]: the run itself
//! - [`memory`]: the memory of the browser's processes, from `/proc`
//! - [`cold`]: evicts the browser's files from the page cache, so that a box is charged for them
//!
//! [`Event::Memory`]: crate::session::Event::Memory

pub mod browser;
pub mod cold;
pub mod documents;
pub mod launch;
pub mod memory;
pub mod pages;
pub mod profile;
pub mod server;
pub mod spec;
pub mod visit;
pub mod wire;

pub use server::Server;
pub use spec::Spec;
pub use visit::run;

use crate::session::Event;

/// The most tabs that were open and usable at once.
pub fn usable(events: &[Event]) -> usize {
    let tabs = events.iter().filter_map(|e| match e {
        Event::Memory(memory) => Some(memory.documents),
        _ => None,
    });
    tabs.max().unwrap_or(0)
}
