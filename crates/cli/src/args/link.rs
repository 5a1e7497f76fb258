//! `eke link`.

use std::path::PathBuf;

use clap::Args;
use eke_link::policy::Policy;

/// `eke link`.
#[derive(Debug, Clone, Args)]
pub struct Link {
    /// Whom `ssh` reaches, by the names that it takes; with --ltsp the clients
    #[arg(value_name = "HOST", required_unless_present = "undo")]
    pub hosts: Vec<String>,
    /// Write a Host block for each into /etc/ssh/ssh_config.d; the change is shown first
    #[arg(long)]
    pub write: bool,
    /// Write SSH_OPTIONS into each client's section of /etc/ltsp/ltsp.conf, by its hardware address; the change is shown first
    #[arg(long)]
    pub ltsp: bool,
    /// Put those files back as they were
    #[arg(long, conflicts_with_all = ["write", "ltsp", "hosts"])]
    pub undo: bool,
    /// The security floor: modern, or fips
    #[arg(long, value_name = "NAME", default_value = "modern")]
    pub policy: Policy,
    /// How many sessions are measured at once; without it 4, and 1 where a password must be typed for each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub sessions: Option<u32>,
    /// Decide compression, too: run this there twice with its windows on this display, and count what moves and costs
    #[arg(long, value_name = "COMMAND")]
    pub x11: Option<String>,
    /// How long it runs, each time
    #[arg(long, value_name = "S", default_value_t = 10, requires = "x11", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub x11_seconds: u64,
    /// ssh's configuration, instead of the user's and the system's (as `ssh -F`)
    #[arg(long, short = 'F', value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}
