//! eke's domain, without I/O and without a clock.
//!
//! # Layout
//! - [`units`]: bytes, shares and times, and the one place where they become text
//! - [`sample`]: raw counters of one instant, as the kernel gives them
//! - [`model`]: rates and shares, a pure function of two samples
//! - [`step`]: what eke would change and why ([`step::Step`], [`step::Reason`], [`step::Plan`])
//! - [`process`]: which process, safe against reused pids
//! - [`config`]: settings from TOML, with shipped defaults and drop-ins
//! - [`guard`]: when the guard stays off
//! - [`histogram`]: latencies in powers of two
//! - [`date`]: dates in UTC; [`span`]: parses durations; [`path_text`]: paths in JSON
//! - [`text`]: foreign text for a terminal or a log; [`shell`]: words of a command line; [`repeats`]: how often a log has lines of one kind
//! - [`applied`]: the plan as applied, for whoever follows `eke up`
//! - [`snapshot`]: what `status` shows, and the messages on the agent's socket
//!
//! Invariant: nothing here opens a file, asks for the time or knows an absolute path of the machine.

pub mod applied;
pub mod config;
pub mod date;
pub mod guard;
pub mod histogram;
pub mod model;
pub mod path_text;
pub mod process;
pub mod repeats;
pub mod sample;
pub mod shell;
pub mod snapshot;
pub mod span;
pub mod step;
pub mod text;
pub mod units;
