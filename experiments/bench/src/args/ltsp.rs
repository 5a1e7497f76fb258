//! `eke bench ltsp`.

use std::path::PathBuf;

use clap::Args;
use eke_bench_ltsp::plan::Means;

use super::Files;
use super::web::named;

/// `eke bench ltsp`.
#[derive(Debug, Clone, Args)]
pub struct LtspBench {
    /// One client of 124 MiB, and fewer documents
    #[arg(long)]
    pub quick: bool,
    /// Rounds
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub repeats: u32,
    /// RAM of the clients in MiB [default: 124,256,512; 124 with --quick]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(96..=4096))]
    pub sizes_mib: Vec<u32>,
    /// Clients at once [default: 2; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub clients: Option<u32>,
    /// Documents to open [default: 12; 6 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=24))]
    pub documents: Option<u32>,
    /// Instead of comparing: the server hangs for a minute and is restarted while clients with eke work
    #[arg(long)]
    pub faults: bool,
    /// Also continue what another commit has measured of this command. Each row then names its commits
    #[arg(long)]
    pub any_commit: bool,
    /// Run only these variants: plain LTSP, zram script, eke, eke again
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = means)]
    pub variants: Vec<Means>,
    /// Debian's mirror
    #[arg(long, value_name = "URL", default_value = "http://deb.debian.org/debian")]
    pub mirror: String,
    /// Keep Debian for server and clients in this directory [default: ~/.cache/eke-bench/ltsp]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// The result's files
    #[command(flatten)]
    pub files: Files,
}

fn means(text: &str) -> Result<Means, String> {
    named(text, "variant", &Means::ALL, Means::word)
}
