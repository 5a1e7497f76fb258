//! `eke bench link`.

use clap::Args;
use eke_bench_link::plan::{Cpu, Rate};

use super::Files;
use super::web::named;

/// `eke bench link`.
#[derive(Debug, Clone, Args)]
pub struct LinkBench {
    /// The link of 1 Gb/s, the full and the Atom-like CPU, short slices
    #[arg(long)]
    pub quick: bool,
    /// Slices of each cipher and way; without it 6, with --quick 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub rounds: Option<u32>,
    /// How often eke decides in each setting; without it 3, with --quick once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// Without the X session
    #[arg(long)]
    pub no_x11: bool,
    /// Only these: 100m, 1g, unlimited
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = link)]
    pub links: Vec<Rate>,
    /// Only these: full, no-aes, atom
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cpu)]
    pub cpus: Vec<Cpu>,
    /// Where the result goes
    #[command(flatten)]
    pub files: Files,
}

fn link(text: &str) -> Result<Rate, String> {
    named(text, "link", &Rate::ALL, Rate::word)
}

fn cpu(text: &str) -> Result<Cpu, String> {
    named(text, "CPU", &Cpu::ALL, Cpu::word)
}
