//! The screen of `eke top`: scarce resources, RAM, what each remedy gains and costs, the agent's decisions and their reasons.
//!
//! # Layout
//! - [`history`]: the last refreshes
//! - [`view`]: the state that is drawn, folded from refreshes and keys
//! - [`draw`](mod@draw): draws a view on a frame of any size; [`ascii`] for terminals with ASCII only
//! - [`run`](mod@run): the loop, with the terminal and everything outside as arguments
//! - [`terminal`]: the real terminal, its keys and signals
//!
//! # Invariants
//! - Only [`terminal`] uses a terminal, signals or threads; no module uses a socket or a file.
//! - Each colour has a word or sign beside it.
//!
//! # Design
//! ```text
//! agent's socket ─ reader thread ─> sample ─┐
//! keys, sizes ─ thread ─> Event ────────────┼─> run: one channel ─> View (pure) ─> draw (pure) ─> ratatui: cells that changed
//! signals ─ thread ─> Stop ─────────────────┘
//! ```
//!
//! - A thread asks for samples, one at a time: a silent agent blocks no key, and a slow line slows only itself.
//! - ASCII is a last pass over the cells, so that drawing knows one alphabet.
//! - Drop, a panic hook (a release build aborts), and SIGTERM, SIGINT and SIGHUP leave the terminal as it was.

pub mod ascii;
pub mod bar;
pub mod draw;
pub mod history;
pub mod run;
pub mod terminal;
pub mod view;

pub use draw::draw;
pub use run::run;
pub use view::View;
