//! `eke bench startup`.

use std::path::PathBuf;

use clap::Args;
use eke_bench_startup::plan::Variant;
use eke_bench_startup::programs::{PROGRAMS, Program};
use eke_slow_disk::Profile;

use super::Files;
use super::web::named;

/// `eke bench startup`.
#[derive(Debug, Clone, Args)]
pub struct StartupBench {
    /// xterm, gedit and python on the sd card, once each, without strace and the ten in a row
    #[arg(long)]
    pub quick: bool,
    /// How often each run is made; without it 5 times, with --quick once. The table shows the median
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// The disks that the programs lie on, one after the other: laptop, sd, nfs, scsi2008, and none for this machine's own; without it laptop, sd and none, with --quick sd
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = disk)]
    pub disk: Vec<String>,
    /// Only these: xterm, gedit, python, mupdf, chromium, writer
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = program)]
    pub programs: Vec<&'static Program>,
    /// Only these: cold, warm, preload, eke-ahead, eke-exec
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// preload's cycle; as it is shipped 20, but the model learns as much in cycles of 2
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=60))]
    pub preload_cycle: u64,
    /// How long a start may take
    #[arg(long, value_name = "S", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub patience: u64,
    /// A directory with a PDF for the viewer, instead of those of the documentation packages
    #[arg(long, value_name = "DIR")]
    pub documents: Option<PathBuf>,
    /// Without another program that reads from the same disk
    #[arg(long)]
    pub no_harm: bool,
    /// Without the time in system calls
    #[arg(long)]
    pub no_calls: bool,
    /// Without ten programs in a row
    #[arg(long)]
    pub no_ten: bool,
    /// Without the CPU time that it takes to see launches
    #[arg(long)]
    pub no_cost: bool,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}

/// The disk that stands for this machine's own.
pub const NO_DISK: &str = "none";

fn disk(text: &str) -> Result<String, String> {
    let all: Vec<&str> = Profile::NAMES.into_iter().chain([NO_DISK]).collect();
    named(text, "disk", &all, |name| name).map(str::to_owned)
}

fn program(text: &str) -> Result<&'static Program, String> {
    let all: Vec<&'static Program> = PROGRAMS.iter().collect();
    named(text, "program", &all, |p| p.name)
}

fn variant(text: &str) -> Result<Variant, String> {
    named(text, "variant", &Variant::ALL, Variant::word)
}
