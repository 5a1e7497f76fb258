//! `eke io ...`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

/// `eke io ...`.
#[derive(Debug, Subcommand)]
pub enum Io {
    /// Print disk latency by class, as histograms, with a verdict
    #[command(
        after_help = "Example:\n  sudo eke io watch\n  sudo eke io watch sda --every 1s --by process\n  eke io watch --count 1 --json | jq '.verdicts'\n\nWithout root or BPF it prints averages and the reason. Reads are \"sync\" except readahead; writes are \"sync\" if a process waits for them."
    )]
    Watch(Watch),
    /// Compare two values of a setting under the same load, A B A B, with both histograms and the differences
    #[command(
        after_help = "Example:\n  sudo eke io compare async_write_max_active 10 3 -- ./load.sh\n  sudo eke io compare scheduler none bfq --device sda --pairs 8 -- fio job.fio\n\nEach run starts the load once, and the load must end by itself. The setting is restored at the end and at Ctrl-C; after kill -9 `eke down` restores it. \"default\" is the present value."
    )]
    Compare(Compare),
    /// Measure several values of a setting under the same load, as a table and a plot
    #[command(
        after_help = "Example:\n  sudo eke io sweep wbt_lat_usec 0,500,2000,75000 --device sda -- ./load.sh\n  sudo eke io sweep nr_requests 8,32,128 --html sweep.html --device sda -- ./load.sh"
    )]
    Sweep(Sweep),
}

/// `eke io watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Only this disk (sda, /dev/sda) or ZFS pool
    pub device: Option<String>,
    /// Time between two lines (10ms to 1h)
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = eke_model::span::every)]
    pub every: Duration,
    /// End after this number of lines; by default at Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Also by process or control group
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Print CSV
    #[arg(long)]
    pub csv: bool,
    /// Target for reads, for the verdict; by default 10ms, on rotating disks 50ms
    #[arg(long, value_name = "TIME", value_parser = eke_model::span::every)]
    pub target: Option<Duration>,
    /// Use the kernel's averages instead of BPF
    #[arg(long)]
    pub no_bpf: bool,
}

/// The breakdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Processes; for writeback, the kernel's threads
    Process,
    /// Control groups
    Cgroup,
}

/// What `compare` and `sweep` share.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// The disk to set and to measure; by default the only one, or the busiest
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Seed of the confidence intervals: the same seed gives the same intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots and histograms to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// The load: a command and its arguments
    #[arg(last = true, required = true, value_name = "LOAD")]
    pub command: Vec<OsString>,
}

/// `eke io compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The setting: wbt_lat_usec, scheduler, nr_requests, max_sectors_kb, a scheduler's, dirty_bytes, zfs_vdev_async_write_max_active, ...
    pub knob: String,
    /// The first value
    #[arg(allow_negative_numbers = true)]
    pub a: String,
    /// The second value
    #[arg(allow_negative_numbers = true)]
    pub b: String,
    /// The number of pairs of runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// The load
    #[command(flatten)]
    pub load: Load,
}

/// `eke io sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// The setting
    pub knob: String,
    /// The values
    #[arg(value_delimiter = ',', required = true, value_name = "VALUES", num_args = 1, action = clap::ArgAction::Set, allow_hyphen_values = true)]
    pub values: Vec<String>,
    /// Runs of each value
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The load
    #[command(flatten)]
    pub load: Load,
}
