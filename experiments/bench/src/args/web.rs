//! `eke bench web`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use eke_bench_web::Requests;
use eke_bench_web::plan::{Axis, DEFAULT_SHARE, Variant};
use eke_model::units::Bytes;

use super::{DISKS, Files, disk};

/// `eke bench web`.
#[derive(Debug, Clone, Args)]
pub struct WebBench {
    /// Run only ext4, ext4 with twice the memory, btrfs and eke, at one point, and shorter; with --grid two cells
    #[arg(long)]
    pub quick: bool,
    /// Measure eke's default beside ext4 in 36 cells of the grid of `eke bench tiers`, at most four hours. Finished cells are kept in the file of --output: the
    /// same command continues with the next one
    #[arg(long, requires = "output", conflicts_with_all = ["clients", "corpus", "memory", "disk", "server", "connections", "requests", "think_ms", "share", "variants", "axes"])]
    pub grid: bool,
    /// With --grid: also continue a file that has measurements of another commit. Each row then names its commit
    #[arg(long, requires = "grid")]
    pub any_commit: bool,
    /// Number of rounds; the table shows medians [default: 1; 3 with --grid]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// Clients, each with 1.7 MB of content: 1000 clients have 1.7 GB
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Cut the content from the files below this directory, instead of files of this machine. Every user of this machine can read it from the server
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// The memory of the box: server, page cache and eke-cache together
    #[arg(long, value_name = "SIZE", default_value = "400M")]
    pub memory: Bytes,
    #[arg(long, value_name = "DISK", default_value = "scsi2008", value_parser = disk, help = format!("The slow disk with the content: {DISKS}; none: this machine's own disk"))]
    pub disk: String,
    /// The web server
    #[arg(long, value_enum, default_value = "nginx")]
    pub server: Server,
    /// Connections at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub connections: u32,
    /// The popularity of files: uniform, or zipf:EXPONENT
    #[arg(long, value_name = "LAW", default_value = "zipf:0.8")]
    pub requests: Requests,
    /// Milliseconds that each client waits after a reply
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub think_ms: u64,
    /// The most of the box that eke may use, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_SHARE, value_parser = clap::value_parser!(u8).range(1..=85))]
    pub share: u8,
    /// Seconds of the longest warm-up of a run [default: 150; 75 with --quick, 90 with --grid]
    #[arg(long, value_name = "S")]
    pub warm_up: Option<u64>,
    /// Seconds of measurement in each run [default: 60; 40 with --quick, 20 with --grid]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Run only these variants: ext4, ext4x2, btrfs, erofs, eke, eke-btrfs, eke-sync
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// Vary only these axes [default: all; base with --quick]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = axis)]
    pub axes: Vec<Axis>,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// The web server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Server {
    /// nginx
    Nginx,
    /// Apache Tomcat 10
    Tomcat,
}

fn variant(text: &str) -> Result<Variant, String> {
    named(text, "variant", &Variant::ALL, |v| v.word())
}

fn axis(text: &str) -> Result<Axis, String> {
    named(text, "axis", &Axis::ALL, |a| a.word())
}

pub(super) fn named<T: Copy>(
    text: &str,
    what: &str,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.iter().copied().find(|one| word(*one) == text.trim());
    let known = || all.iter().map(|one| word(*one)).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| {
        format!("there is no {what} \"{}\" in this experiment; there are: {}", text.trim(), known())
    })
}
