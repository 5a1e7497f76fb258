//! `eke bench farm`.

use clap::Args;
use eke_bench_farm::plan::Variant;
use eke_model::units::Bytes;

use super::web::named;
use super::{DISKS, Files, slow_disk};

/// `eke bench farm`.
#[derive(Debug, Clone, Args)]
pub struct FarmBench {
    /// Run only the page cache, eke with and without the tier, and faults, with less content and shorter
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    /// The memory of each node, and of each member of the engine
    #[arg(long, value_name = "SIZE", default_value = "96M")]
    pub memory: Bytes,
    /// All files together [default: five times --memory; twice with --quick]
    #[arg(long, value_name = "SIZE")]
    pub content: Option<Bytes>,
    #[arg(long, value_name = "DISK", default_value = "scsi2008", value_parser = slow_disk, help = format!("The slow disk of the origin: {DISKS}"))]
    pub disk: String,
    /// Connections to each node
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub connections: u32,
    /// The exponent of Zipf's law for the popularity of files
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.8, value_parser = exponent)]
    pub zipf: f64,
    /// Seconds for which each run warms up [default: 60; 20 with --quick]
    #[arg(long, value_name = "S")]
    pub warm_up: Option<u64>,
    /// Seconds of measurement in each run [default: 20; 8 with --quick]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Seconds after each of the faults [default: 6; 4 with --quick]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub phase: Option<u64>,
    /// Run only these variants: alone, eke, eke-more, shared, again, proxy, varnish, faults, replicas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

fn exponent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|e| (0.0..=3.0).contains(e));
    number.ok_or_else(|| format!("\"{text}\" is not a number from 0 to 3, as 0.8"))
}

fn variant(text: &str) -> Result<Variant, String> {
    named(text, "variant", &Variant::ALL, |v| v.word())
}
