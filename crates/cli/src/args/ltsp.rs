//! `eke ltsp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `eke ltsp ...`.
#[derive(Debug, Subcommand)]
pub enum Ltsp {
    /// Print every file and line that install would write; change nothing
    #[command(
        after_help = "Example:\n  eke ltsp plan\n  sudo eke ltsp plan                where only root can read ltsp.conf"
    )]
    Plan,
    /// Put eke into the clients' boot: one script below /etc/ltsp, which `ltsp initrd` puts into ltsp.img
    #[command(
        after_help = "Example:\n  sudo eke ltsp install\n  sudoedit /etc/ltsp/ltsp.conf      below [clients]: EKE=auto\n  sudo ltsp initrd                  then restart a client\n\nA client without EKE=auto boots as before. Its image must have the package eke: docs/ltsp.md."
    )]
    Install,
    /// Take eke out of the clients' boot; every byte is as before
    #[command(after_help = "Example:\n  sudo eke ltsp uninstall")]
    Uninstall,
    /// List the clients: memory, what is short, what eke does and gains
    #[command(
        after_help = "Example:\n  eke ltsp status\n  eke ltsp status --json | jq '.clients[] | {name, measured}'\n  eke ltsp status 192.168.67.21     a client without a lease of dnsmasq here\n  sudo eke ltsp status              where only root can read ltsp.conf\n\nClients with EKE_METRICS=on in ltsp.conf are asked, for two seconds each and 32 at a time."
    )]
    Status(Clients),
    /// Print the clients for Prometheus (file_sd_configs)
    #[command(
        after_help = "Example:\n  eke ltsp targets\n  sudo eke ltsp targets --output /etc/prometheus/eke-clients.json     from cron, each minute"
    )]
    Targets {
        /// Write this file as a whole instead of standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Which clients there are beside the known ones
        #[command(flatten)]
        clients: Clients,
    },
}

/// Clients by name or address.
#[derive(Debug, Clone, Args)]
pub struct Clients {
    /// IP addresses of clients that have neither a lease of dnsmasq nor a section in ltsp.conf
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<String>,
}
