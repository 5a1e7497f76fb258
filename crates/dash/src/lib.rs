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
//!
//! # Design
//! - *Two threads*: one reads and records, every second while somebody looks and every five otherwise; one serves and never waits for the agent. They share the
//!   newest view, as JSON made once for all, and the history.
//! - *The history* is in memory, bounded by construction: three spans, each with its step; a point is the mean of its step's readings. The file
//!   (`docs/history.md`) has the hour and the day, written every two minutes; SQLite refuses more than 2 MiB.
//! - *A view names nothing* of a user's but the history's file, if that is broken: anybody on the machine can ask a loopback port. Caches are summed.
//! - *Connections* are bounded in number and time, one request each. When all places are taken, the peer with the most gives up its oldest idle one. axum's own
//!   loop has no such bounds.
//! - *Who may ask* is pure: on loopback by `Host`, against DNS rebinding; elsewhere by a token, once in the address, then in a cookie. Every answer forbids
//!   foreign content (CSP), framing, and reading by other sites.
//! - *The page* is a few modules of JavaScript without a library. All text goes in as text, never as markup. Parts are rebuilt only when their content changed,
//!   so that focus and selection stay.

pub mod error;
pub mod history;
pub mod live;
pub mod recorder;
pub mod server;
pub mod view;

pub use error::{Error, Result};
