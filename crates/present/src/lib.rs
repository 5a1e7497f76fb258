//! What every program of eke shares at its border with the user.
//!
//! # Layout
//! - [`terminal`]: prints text and escapes what a terminal would obey; [`putln!`], [`put!`] and [`warn!`] use it
//! - [`exit`]: failures and exit statuses
//! - [`table`]: plain tables; [`mod@document`]: JSON or text
//! - [`progress`]: a bar for an experiment; [`task`]: one line for anything that takes longer than a moment
//! - [`stop`]: Ctrl-C, SIGTERM and a hang-up as a flag
//! - `manual`: man pages
//! - [`programs`]: where eke's other programs are; [`output`]: files that a user named
//! - [`refresh`]: what `eke status`, `eke top` and `eke` show, as data; [`scarce`], [`memory`], [`remedies`]: the same in words, pure;
//!   [`words`]: numbers as short words; `strip`: histograms of latencies, a strip of a line each

// Everything is printed through `terminal`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod document;
pub mod exit;
#[cfg(feature = "manual")]
pub mod manual;
pub mod memory;
pub mod output;
pub mod programs;
pub mod progress;
pub mod refresh;
pub mod remedies;
pub mod scarce;
pub mod stop;
mod strip;
pub mod table;
pub mod task;
pub mod terminal;
pub mod words;

/// Prints a line.
#[macro_export]
macro_rules! putln {
    ($($text:tt)*) => { $crate::terminal::print(format_args!("{}\n", format_args!($($text)*))) };
    () => { $crate::putln!("") };
}

/// Prints text without a line end.
#[macro_export]
macro_rules! put {
    ($($text:tt)*) => { $crate::terminal::print(format_args!($($text)*)) };
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! warn {
    ($($text:tt)*) => { $crate::terminal::print_error(format_args!($($text)*)) };
}
