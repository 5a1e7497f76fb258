//! `eke io ...`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

/// `eke io ...`.
#[derive(Debug, Subcommand)]
pub enum Io {
    /// Latencies of disks by class, as histograms, and what is the matter
    #[command(
        after_help = "Example:\n  sudo eke io watch\n  sudo eke io watch sda --every 1s --by process\n  eke io watch --count 1 --json | jq '.verdicts'\n\nWithout root, or without BPF, averages are shown, and why. Reads are \"sync\" but for readahead; writes are \"sync\" if somebody waits for them."
    )]
    Watch(Watch),
    /// A setting at two values under the same load, A B A B, with both histograms and what differs
    #[command(
        after_help = "Example:\n  sudo eke io compare async_write_max_active 10 3 -- ./load.sh\n  sudo eke io compare scheduler none bfq --device sda --pairs 8 -- fio job.fio\n\nThe load is started once for each run and must end by itself. The setting comes back at the end, also after Ctrl-C; after kill -9\n`eke down` brings it back. \"default\" is the value that it has now."
    )]
    Compare(Compare),
    /// A setting at several values under the same load, as a table and a plot
    #[command(
        after_help = "Example:\n  sudo eke io sweep wbt_lat_usec 0,500,2000,75000 --device sda -- ./load.sh\n  sudo eke io sweep nr_requests 8,32,128 --html sweep.html --device sda -- ./load.sh"
    )]
    Sweep(Sweep),
}

/// `eke io watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Only this disk (sda, /dev/sda) or pool of ZFS
    pub device: Option<String>,
    /// The time between two figures (100ms to 1h)
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = eke_record::span::every)]
    pub every: Duration,
    /// End after so many; without it at Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Also who asks
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Rows with commas between instead of text
    #[arg(long)]
    pub csv: bool,
    /// Reads should be answered within this time, for the verdict; without it 10ms, on rotating disks 50ms
    #[arg(long, value_name = "TIME", value_parser = eke_record::span::every)]
    pub target: Option<Duration>,
    /// Averages of the kernel instead of BPF
    #[arg(long)]
    pub no_bpf: bool,
}

/// By whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Processes that ask; of writeback, the kernel's threads
    Process,
    /// Groups that are charged
    Cgroup,
}

/// What `compare` and `sweep` share.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// The disk whose setting it is and whose latencies count; without it the only one that there is, or the busiest
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Where random numbers begin: the same seed gives the same confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots and histograms to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace a file that is there already
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
    /// Its first value
    pub a: String,
    /// Its second value
    pub b: String,
    /// How many pairs of runs
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
    /// Its values
    #[arg(value_delimiter = ',', required = true, value_name = "VALUES")]
    pub values: Vec<String>,
    /// How often each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The load
    #[command(flatten)]
    pub load: Load,
}
