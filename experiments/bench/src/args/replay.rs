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
    /// The format of the trace
    #[arg(long, value_enum, default_value = "eke", conflicts_with = "scenario")]
    pub form: Form,
    /// Generate a trace instead
    #[arg(long, value_enum)]
    pub scenario: Option<Scenario>,
    /// Days of the generated trace
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "scenario")]
    pub days: u32,
    /// Seed of the generated trace
    #[arg(long, value_name = "N", default_value_t = 1, requires = "scenario")]
    pub seed: u64,
    /// Bytes that may be prefetched at a time; may be given more than once [default: a twentieth, a tenth and a fifth of all bytes that the
    /// trace's programs read]
    #[arg(long, value_name = "SIZE")]
    pub budget: Vec<Bytes>,
    #[command(flatten)]
    pub files: Files,
}

/// The formats of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// docs/prefetch-trace.md
    Eke,
    /// UNIX user data of Purdue University: names of commands by session; times and files are generated
    Purdue,
}

/// Generated traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// One user
    OneUser,
    /// Two users, of GNOME and of KDE, one after the other
    TwoUsers,
}
