//! The screen of `eke top`: what is scarce, how RAM is split, what each remedy gains and costs, what was decided and why.
//!
//! # Layout
//! - [`history`]: the last refreshes
//! - [`view`]: all that is drawn, folded from looks and keys
//! - [`draw`](mod@draw): a view onto a frame of any size; [`ascii`] for terminals with no more than that
//! - [`run`](mod@run): the loop, with the terminal and everything outside as arguments
//! - [`terminal`]: the real terminal, its keys and signals
//!
//! # Invariants
//! - Only [`terminal`] touches a terminal, a signal or a thread, and nothing here knows a socket or a file.
//! - A colour never says what no word or sign says.
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
