//! `eke bench io` and `eke bench io-overhead`.

use clap::Args;
use eke_bench_io::plan::{Variant, Writer};

use super::web::named;
use super::{DISKS, Files, slow_disk};

/// `eke bench io`.
#[derive(Debug, Clone, Args)]
pub struct IoBench {
    /// Run only default, mq-deadline, no-wbt and eke, beside a stream, once each
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds; the table shows medians. A quarter of them has all variants, the others have default, again, bfq-strict and eke
    /// [default: 10; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    #[arg(long, value_name = "DISK", default_value = "sd", value_parser = slow_disk, help = format!("The slow disk: {DISKS}"))]
    pub disk: String,
    /// Run only these variants, in all rounds: default, again, mq-deadline, kyber, bfq, bfq-strict, no-wbt, wbt-500, wbt, wbt-10000, wbt-75000,
    /// ionice, dirty, dirty-bfq, eke
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// Run only these writers: stream, fsync, btrfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = writer)]
    pub writers: Vec<Writer>,
    /// Seconds of warm-up, in which the governor finds its settings
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub warm_up: u64,
    /// Seconds of measurement
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Also continue what another commit has measured of this command. Each row names its commit
    #[arg(long)]
    pub any_commit: bool,
    /// Reads per second
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rate: u32,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// `eke bench disk`.
#[derive(Debug, Clone, Args)]
pub struct DiskBench {
    /// Number of rounds; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    /// Seconds for each of nine jobs on each of five disks
    #[arg(long, value_name = "S", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

fn variant(text: &str) -> Result<Variant, String> {
    named(text, "variant", &Variant::ALL, Variant::word)
}

fn writer(text: &str) -> Result<Writer, String> {
    named(text, "writer", &Writer::ALL, Writer::word)
}
