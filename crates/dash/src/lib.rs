//! `eke dash`: a local web page over what every unprivileged client sees, with a history; and `eke metrics --listen`.
//!
//! # Layout
//! - [`view`]: the page's data, and their source
//! - [`history`]: the history, thinned (pure), and its file
//! - [`recorder`]: adds readings to the history; [`live`]: the thread that reads and records
//! - [`server`]: HTTP: access control (pure), the page, its data, the metrics
//!
//! One process without privileges: one thread reads and records, one serves. It does not change
//! the machine, sends no requests to other machines, and limits the size of history and answers.
//!
//! # Design
//! - *Two threads*: one reads and records, every second while a page is open, else every five; one serves and never waits for the agent. They share the
//!   newest view, as JSON made once for all clients, and the history.
//! - *The history* is in memory, bounded by construction: three spans, each with its step; a point is the mean of its step's readings. The file
//!   (`docs/history.md`) has the hour and the day, written every two minutes; SQLite refuses more than 2 MiB.
//! - *A view has no names* of a user's files except the history's, if that is broken: all users can read a loopback port. Caches are summed.
//! - *Connections* are bounded in number and time, one request each. When all places are taken, the oldest idle connection of the peer with the most is
//!   closed. axum's own loop has no such limits.
//! - *Access control* is pure: on loopback by `Host`, against DNS rebinding; elsewhere by a token, once in the address, then in a cookie. Every answer forbids
//!   foreign content (CSP), framing, and reading by other sites.
//! - *The page* is a few modules of JavaScript without a library. All text is inserted as text, never as markup. Parts are rebuilt only when their content changed,
//!   so that focus and selection stay.

pub mod error;
pub mod history;
pub mod live;
pub mod recorder;
pub mod server;
pub mod view;

pub use error::{Error, Result};
