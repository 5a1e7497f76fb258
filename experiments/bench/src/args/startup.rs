//! `eke bench startup`.

use std::path::PathBuf;

use clap::Args;
use eke_bench_startup::plan::Variant;
use eke_bench_startup::programs::{self, Program};

use super::web::named;
use super::{Files, disk};

/// `eke bench startup`.
#[derive(Debug, Clone, Args)]
pub struct StartupBench {
    /// Run only xterm, gedit and python on the sd card, once each, without strace and the ten in a row
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds; the table shows medians [default: 5; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: Option<u32>,
    /// The disks with the programs, one after the other: laptop, sd, nfs, scsi2008, with what `eke-bench lab slow-disk --help` names, or none for this machine's own [default: laptop,sd,none; sd with --quick]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = disk)]
    pub disk: Vec<String>,
    /// Run also programs of more kinds, as far as they are installed: firefox, thunderbird, okular, evince, gimp, inkscape, vlc, qterminal, emacs, vim, maven, node, go, php, git, g++
    #[arg(long, conflicts_with_all = ["quick", "programs"])]
    pub all: bool,
    /// Run only these programs: xterm, gedit, python, mupdf, chromium, writer, or some of those that --all adds
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = program)]
    pub programs: Vec<&'static Program>,
    /// Run only these variants: cold, warm, preload, eke-ahead, eke-exec
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = variant)]
    pub variants: Vec<Variant>,
    /// preload's cycle in seconds. Its own default is 20; its model learns as much in cycles of 2
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=60))]
    pub preload_cycle: u64,
    /// The longest start, in seconds
    #[arg(long, value_name = "S", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub patience: u64,
    /// Use a PDF in this directory for the viewer, instead of those of the documentation packages
    #[arg(long, value_name = "DIR")]
    pub documents: Option<PathBuf>,
    /// Leave out the second reader on the same disk
    #[arg(long)]
    pub no_harm: bool,
    /// Leave out the time in system calls
    #[arg(long)]
    pub no_calls: bool,
    /// Leave out ten programs in a row
    #[arg(long)]
    pub no_ten: bool,
    /// Leave out the CPU time of tracing starts
    #[arg(long)]
    pub no_cost: bool,
    /// The files of the result
    #[command(flatten)]
    pub files: Files,
}

/// The name of this machine's own disk.
pub const NO_DISK: &str = "none";

fn program(text: &str) -> Result<&'static Program, String> {
    let all: Vec<&'static Program> = programs::all().collect();
    named(text, "program", &all, |p| p.name)
}

fn variant(text: &str) -> Result<Variant, String> {
    named(text, "variant", &Variant::ALL, Variant::word)
}
