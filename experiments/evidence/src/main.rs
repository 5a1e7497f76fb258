//! `eke-evidence`, called by `make evidence`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use eke_evidence::finished;
use eke_evidence::list::{self, Experiment};
use eke_evidence::plan::{Means, Plan, minutes, time};
use rustix::process::geteuid;
use signal_hook::consts::SIGINT;

/// Where the pages have their measurements from.
const RESULTS: &str = "docs/results";

/// Make the listed results again, of this commit; the same command continues an interrupted run.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only these results, such as `names,reads`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Show what would run, and how long
    #[arg(long)]
    list: bool,
    /// Files for experiments with content, instead of files of this machine
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// The directory of the new results
    #[arg(long, default_value = "target/evidence")]
    into: PathBuf,
    /// Copy the finished results to docs/results; `make docs` then writes them into the pages
    #[arg(long)]
    keep: bool,
    /// The experiments' program
    #[arg(long, default_value = "target/release/eke-bench")]
    program: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let file = "experiments/evidence/experiments.toml";
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {file}; run this in the source tree"))?;
    let list = list::parse(&text)?;
    let commit = commit()?;
    let means = Means { root: geteuid().is_root(), corpus: arguments.corpus.is_some() };
    let is_done = |name: &str| is_done(&arguments.into, name, &commit);
    let plan = Plan::new(&list, &arguments.only, means, is_done)?;
    print!("Results of {commit}:\n{plan}");
    let others = others(&list)?;
    if !others.is_empty() {
        println!("Not made by this command, so of older commits: {}.", others.join(", "));
    }
    if arguments.list {
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&arguments.into)
        .with_context(|| format!("cannot make {}", arguments.into.display()))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted)).context("cannot listen to Ctrl-C")?;
    let failed = run_all(&arguments, &plan.left(), &commit, &interrupted)?;
    if arguments.keep {
        keep(&arguments.into, &list, &commit)?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("evidence: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// As `eke-bench` names it in its results (experiments/bench/build.rs).
fn commit() -> anyhow::Result<String> {
    let git = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output();
    let git = git.context("cannot run git, which names the commit")?;
    ensure!(git.status.success(), "git names no commit: {}", String::from_utf8_lossy(&git.stderr).trim());
    let commit = String::from_utf8_lossy(&git.stdout).trim().to_owned();
    if commit.ends_with("-dirty") {
        eprintln!("evidence: files differ from the commit, so no result is kept from another run");
    }
    Ok(commit)
}

/// Stored results that the list does not have.
fn others(list: &[Experiment]) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(RESULTS).with_context(|| format!("cannot list {RESULTS}"))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<std::io::Result<Vec<String>>>()?;
    names.retain(|name| name.ends_with(".json") && list.iter().all(|e| e.result != *name));
    names.sort();
    Ok(names)
}

fn is_done(directory: &Path, name: &str, commit: &str) -> bool {
    finished::is_of(finished::commit(&directory.join(name)).as_deref(), commit)
}

/// Runs them in turn; the names of those that failed. An interrupted one ends the run.
fn run_all(
    arguments: &Arguments,
    left: &[&Experiment],
    commit: &str,
    interrupted: &AtomicBool,
) -> anyhow::Result<Vec<String>> {
    let mut failed = Vec::new();
    for (index, experiment) in left.iter().enumerate() {
        let rest = &left[index..];
        println!("\n[{} of {}, {} left] {}", index + 1, left.len(), time(minutes(rest)), experiment.result);
        let start = Instant::now();
        let good = run(arguments, experiment, interrupted)?;
        println!(
            "{}: {} after {}",
            experiment.result,
            ending(good),
            time(start.elapsed().as_secs().div_ceil(60))
        );
        if !good {
            failed.push(experiment.result.clone());
            continue;
        }
        let found = finished::commit(&arguments.into.join(&experiment.result));
        ensure!(
            found.as_deref() == Some(commit),
            "{} is of commit {}, and this tree is {commit}: make build-bench",
            arguments.program.display(),
            found.as_deref().unwrap_or("unknown")
        );
    }
    Ok(failed)
}

const fn ending(good: bool) -> &'static str {
    if good { "done" } else { "failed" }
}

/// Runs one; whether it succeeded.
fn run(arguments: &Arguments, experiment: &Experiment, interrupted: &AtomicBool) -> anyhow::Result<bool> {
    let corpus = arguments.corpus.as_ref().map(|directory| directory.to_string_lossy());
    let output = arguments.into.join(&experiment.result);
    let words = experiment.words(corpus.as_deref());
    println!("eke bench {}", words.join(" "));
    // Ctrl-C reaches the experiment too, which restores everything before it ends.
    let status =
        Command::new(&arguments.program).args(&words).arg("--output").arg(&output).arg("--force").status();
    let status = status
        .with_context(|| format!("cannot run {}; make build-bench builds it", arguments.program.display()))?;
    ensure!(!interrupted.load(Relaxed), "interrupted; the same command continues");
    Ok(status.success())
}

/// Copies the results of this commit to where the pages have theirs from.
fn keep(from: &Path, list: &[Experiment], commit: &str) -> anyhow::Result<()> {
    for experiment in list.iter().filter(|e| is_done(from, &e.result, commit)) {
        let to = Path::new(RESULTS).join(&experiment.result);
        std::fs::copy(from.join(&experiment.result), &to)
            .with_context(|| format!("cannot write {}", to.display()))?;
        println!("{}", to.display());
    }
    Ok(())
}
