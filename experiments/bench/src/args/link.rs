//! `eke bench link`.

use clap::Args;
use eke_bench_link::plan::{Cpu, Rate};

use super::Files;
use super::web::named;

/// `eke bench link`.
#[derive(Debug, Clone, Args)]
pub struct LinkBench {
    /// Use only the link of 1 Gb/s, the full and the Atom-like CPU, and short slices
    #[arg(long)]
    pub quick: bool,
    /// Slices for each cipher and direction [default: 6; 4 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub rounds: Option<u32>,
    /// Decisions of eke in each setting [default: 3; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// Leave out the X session
    #[arg(long)]
    pub no_x11: bool,
    /// Use only these links: 100m, 1g, unlimited
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = link)]
    pub links: Vec<Rate>,
    /// Use only these CPUs: full, no-aes, atom
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = cpu)]
    pub cpus: Vec<Cpu>,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

fn link(text: &str) -> Result<Rate, String> {
    named(text, "link", &Rate::ALL, Rate::word)
}

fn cpu(text: &str) -> Result<Cpu, String> {
    named(text, "CPU", &Cpu::ALL, Cpu::word)
}
