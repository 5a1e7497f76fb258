//! `eke bench io` and `eke bench io-overhead`.

use clap::Args;
use eke_bench_io::plan::{Variant, Writer};
use eke_slow_disk::Profile;

use super::Files;
use super::web::named;

/// `eke bench io`.
#[derive(Debug, Clone, Args)]
pub struct IoBench {
    /// Run only default, mq-deadline, no-wbt and eke, beside a stream, once each
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds; the table shows medians [default: 3; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// The slow disk
    #[arg(long, default_value = "sd", value_parser = clap::builder::PossibleValuesParser::new(Profile::NAMES))]
    pub disk: String,
    /// Run only these variants: default, mq-deadline, kyber, bfq, no-wbt, wbt, ionice, eke
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// Run only these writers: stream, fsync, btrfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = writer)]
    pub writers: Vec<Writer>,
    /// Seconds of warm-up, in which the governor finds its settings
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub warm_up: u64,
    /// Seconds of measurement
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Reads per second
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rate: u32,
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
