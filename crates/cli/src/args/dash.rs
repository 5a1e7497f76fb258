//! `eke dash` and `eke metrics`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `eke dash`.
#[derive(Debug, Clone, Args)]
pub struct Dash {
    /// Address to listen on; if others can reach it, the page needs the token in the printed address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7117", value_parser = address)]
    pub listen: SocketAddr,
    /// The history of the last day; by default history.db in $XDG_STATE_HOME/eke or ~/.local/state/eke
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

/// `eke metrics`.
#[derive(Debug, Clone, Args)]
pub struct Metrics {
    /// Serve the metrics at /metrics until Ctrl-C; everybody who can reach the address can read them
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "format", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Text format; over HTTP the client chooses it
    #[arg(long, value_enum, default_value = "openmetrics")]
    pub format: MetricsFormat,
    /// Write this file instead of standard output, as a whole: for node_exporter's textfile collector
    #[arg(long, short, value_name = "FILE", conflicts_with = "listen")]
    pub output: Option<PathBuf>,
    /// Print the table of all metrics (docs/metrics.md)
    #[arg(long, conflicts_with_all = ["listen", "format", "output"])]
    pub table: bool,
}

/// Text formats of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0
    Openmetrics,
    /// The older format, for promtool and node_exporter text files
    Prometheus,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give ADDRESS:PORT, such as 127.0.0.1:7118 or [::1]:7118".to_owned())
}
