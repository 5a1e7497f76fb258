//! `eke link`.

use std::path::PathBuf;

use clap::Args;
use eke_link::policy::Policy;

/// `eke link`.
#[derive(Debug, Clone, Args)]
pub struct Link {
    /// Hosts, by the names that ssh takes; with --ltsp and none: all clients of this LTSP server that are idle
    #[arg(value_name = "HOST", required_unless_present_any = ["undo", "ltsp"])]
    pub hosts: Vec<String>,
    /// Write a Host block for each into /etc/ssh/ssh_config.d, after printing the change
    #[arg(long)]
    pub write: bool,
    /// Write SSH_OPTIONS into each client's section of /etc/ltsp/ltsp.conf, by its hardware address, after printing the change
    #[arg(long)]
    pub ltsp: bool,
    /// Restore those files
    #[arg(long, conflicts_with_all = ["write", "ltsp", "hosts"])]
    pub undo: bool,
    /// Which ciphers are allowed: modern or fips
    #[arg(long, value_name = "NAME", default_value = "modern")]
    pub policy: Policy,
    /// Sessions to measure at once; by default 4, or 1 where each needs a password
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub sessions: Option<u32>,
    /// Hosts to measure at the same time [default: 1; 3 for all clients of a server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub at_once: Option<u32>,
    /// Also decide compression: run this command on the host twice, with its windows on this display
    #[arg(long, value_name = "COMMAND")]
    pub x11: Option<String>,
    /// Duration of each run
    #[arg(long, value_name = "S", default_value_t = 10, requires = "x11", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub x11_seconds: u64,
    /// The ssh configuration to use (as `ssh -F`)
    #[arg(long, short = 'F', value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}
