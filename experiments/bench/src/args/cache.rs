//! `eke bench store`, `eke bench reads`, `eke bench names`, `eke bench warm`, `eke bench trace` and `eke bench tiers`.

use std::path::PathBuf;

use clap::Args;
use eke_model::units::Bytes;

use super::Files;

/// `eke bench store`.
#[derive(Debug, Clone, Args)]
pub struct StoreBench {
    /// Fill the blocks from the files below this directory, instead of files of this machine (at most 256 MiB are read)
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// The largest number of threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Seconds for each measurement [default: 0.25; 0.05 with --quick]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// The size of a block: a power of two from 4K to 256K
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub block: Bytes,
    /// Use little content, and measure once instead of 3 times
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench reads`.
#[derive(Debug, Clone, Args)]
pub struct ReadsBench {
    /// Fill the files from the files below this directory, instead of files of this machine
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Put the files into this directory, on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The size of the content; the store takes about half of it in memory [default: 256M; 64M with --quick]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Seconds for each measurement [default: 1; 0.2 with --quick]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Use little content, and measure once instead of 3 times
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench names`.
#[derive(Debug, Clone, Args)]
pub struct NamesBench {
    /// Put the files into this directory, on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The number of files [default: 100000; 2000 with --quick]
    #[arg(long = "number", value_name = "N", value_parser = clap::value_parser!(u32).range(200..=10_000_000))]
    pub number: Option<u32>,
    /// Use few files that were made a moment ago, and measure once instead of 5 times
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench warm`.
#[derive(Debug, Clone, Args)]
pub struct WarmBench {
    /// Keep the image of the disk in this directory
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The slow disk: laptop, scsi2008, sd or nfs
    #[arg(long, value_name = "DISK", default_value = "scsi2008")]
    pub disk: String,
    /// The size of the files [default: 320M; 48M with --quick]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The store's limit [default: 64M; 16M with --quick]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// How often each is measured [default: 3; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: Option<u32>,
    /// Use few files, and measure for seconds instead of minutes
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceBench {
    /// Recorded traces instead of generated ones: lines of "KEY WEIGHT" (compressed bytes) or of "OFFSET,SIZE" (bytes)
    #[arg(value_name = "FILE")]
    pub traces: Vec<PathBuf>,
    /// Use fewer sizes, and one seed
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench tiers`.
#[derive(Debug, Clone, Args)]
pub struct TiersBench {
    /// The seed of the requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Model 32 cells instead of 1600
    #[arg(long)]
    pub quick: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}
