//! `eke dash`: a local web page over what every unprivileged client sees, with a history; and `eke metrics --listen`.
//!
//! # Layout
//! - [`view`]: what the page is told, and where that comes from
//! - [`history`]: what is remembered, thinned (pure), and its file
//! - [`recorder`]: one reading into the history; [`live`]: the thread that does it again and again
//! - [`server`]: HTTP: who may ask (pure), the page, its data, the metrics
//!
//! One process without privileges: one thread reads and records, one serves. Nothing here changes the machine, nothing is
//! asked of another machine, and nobody can make it grow: history and answers have a fixed size.

pub mod error;
pub mod history;
pub mod live;
pub mod recorder;
pub mod server;
pub mod view;

pub use error::{Error, Result};
