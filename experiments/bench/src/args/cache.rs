//! `eke bench store`, `eke bench reads` and `eke bench trace`.

use std::path::PathBuf;

use clap::Args;
use eke_model::units::Bytes;

use super::Files;

/// `eke bench store`.
#[derive(Debug, Clone, Args)]
pub struct StoreBench {
    /// Fill the blocks from the files below this directory, instead of files of this machine (up to 256 MiB are read)
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// The most threads; without it one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// How long each measurement takes; without it 0.25, with --quick 0.05
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// The size of a block: a power of two from 4K to 256K
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub block: Bytes,
    /// Little content, and each measurement once instead of 3 times
    #[arg(long)]
    pub quick: bool,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench reads`.
#[derive(Debug, Clone, Args)]
pub struct ReadsBench {
    /// Fill the files from those below this directory, instead of files of this machine
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Put the files here, on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// How much content; without it 256M, with --quick 64M. The store takes about half of it in memory
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// How long each measurement takes; without it 1, with --quick 0.2
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Little content, and each measurement once instead of 3 times
    #[arg(long)]
    pub quick: bool,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceBench {
    /// Recorded traces instead of those by law: lines of "KEY WEIGHT" (bytes, packed) or of "OFFSET,SIZE" (bytes)
    #[arg(value_name = "FILE")]
    pub traces: Vec<PathBuf>,
    /// Fewer sizes, one seed
    #[arg(long)]
    pub quick: bool,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}
