//! `eke-compare --base A.json... --new B.json...`, called by `make compare`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Parser;
use eke_compare::report::Report;
use eke_compare::{rows, table};

/// Compare the reports of one experiment by two revisions, row by row.
#[derive(Debug, Parser)]
struct Arguments {
    /// Reports of the base revision; at least two are needed to know the noise.
    #[arg(long, num_args = 1.., required = true)]
    base: Vec<PathBuf>,
    /// Reports of the new revision.
    #[arg(long, num_args = 1.., required = true)]
    new: Vec<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = |files: &[PathBuf]| files.iter().map(|file| report(file)).collect::<anyhow::Result<Vec<_>>>();
    let comparison =
        rows::compare(&read(&arguments.base)?, &read(&arguments.new)?).map_err(|why| anyhow!(why))?;
    print!("{}", table::text(&comparison));
    Ok(())
}

fn report(file: &Path) -> anyhow::Result<Report> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a report of `eke bench`", file.display()))
}
