//! `eke-bench replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use eke_model::units::Bytes;

use super::Files;

/// `eke-bench replay`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(false).args(["trace", "scenario"])))]
pub struct Replay {
    /// The trace; - for standard input
    pub trace: Option<PathBuf>,
    /// Whose form it has
    #[arg(long, value_enum, default_value = "eke", conflicts_with = "scenario")]
    pub form: Form,
    /// A generated one instead
    #[arg(long, value_enum)]
    pub scenario: Option<Scenario>,
    /// Its days
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "scenario")]
    pub days: u32,
    /// Its seed
    #[arg(long, value_name = "N", default_value_t = 1, requires = "scenario")]
    pub seed: u64,
    /// Bytes that may be prefetched at a time; more than once for more than one. Without it a twentieth, a tenth and a fifth of all that
    /// the trace's programs read
    #[arg(long, value_name = "SIZE")]
    pub budget: Vec<Bytes>,
    #[command(flatten)]
    pub files: Files,
}

/// The forms of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// docs/prefetch-trace.md
    Eke,
    /// UNIX user data of Purdue University: names of commands by session, without times or files (made up by rule)
    Purdue,
}

/// Generated traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// One user
    OneUser,
    /// Two users in turn, of GNOME and of KDE
    TwoUsers,
}
