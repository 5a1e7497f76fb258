//! `eke bench web`: files of a web server from a slow disk, in little memory.
//!
//! The experiment of Beltran, Torres and Ayguadé ("Improving Web Server Performance Through Main Memory Compression", ICPADS 2008),
//! scaled 1 to 10: files in the classes of SPECweb2005 Support, a disk of 2008, a server with too little memory for them.
//!
//! ```text
//! clients ─ TCP ─> box { nginx or Tomcat · page cache · eke-cache } ─> content's file system ─> slow disk
//! ```
//!
//! - [`plan`]: which runs there are; one axis varied at a time (pure)
//! - [`content`]: what is served, as images of file systems that are made once
//! - [`requests`]: which file is asked for next (pure)
//! - [`disk`], [`room`], [`server`], [`ours`], [`client`]: what a run stands on
//! - [`trial`]: one run; [`warm`]: when caches are full (pure); [`cpu`]: CPU time by program and thread
//! - [`figures`], [`report`]: what runs come to (pure)
//!
//! Nothing stays: mounts, disks and groups have names that say their owner, swept by the next experiment and by `eke down`; processes
//! are the box's, which a guard empties when the experiment is gone, however it went.

pub mod client;
pub mod content;
pub mod cpu;
pub mod disk;
pub mod error;
pub mod figures;
pub mod ours;
pub mod plan;
pub mod report;
pub mod requests;
pub mod room;
pub mod server;
pub mod trial;
pub mod warm;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eke_apply::cgroup;
use eke_bench_core::fault::Missing;
use eke_bench_core::peers::Ground;
use eke_bench_core::stage;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_present::progress::Progress;
use eke_results::report::Report;

use content::{Content, Corpus, FileSystem};
pub use error::Error;
use error::Result;
use plan::{Axis, Conditions, Run, Variant};
use report::Held;
pub use requests::Requests;
pub use server::Kind as ServerKind;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Four variants at the base point.
    pub quick: bool,
    /// How often each run is made.
    pub repeats: usize,
    /// The point from which one thing is varied at a time.
    pub base: Conditions,
    /// What is varied; with the base point if that is wanted.
    pub axes: Vec<Axis>,
    /// Only these; all if empty.
    pub variants: Vec<Variant>,
    /// What the content is cut from; `None` for files of this machine.
    pub corpus: Option<PathBuf>,
    /// The longest warm-up.
    pub warm_up: Duration,
    /// How long each run is measured.
    pub window: Duration,
}

/// The experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// `eke`, with `eke-cache` beside it.
    pub program: PathBuf,
    /// Where images are kept.
    pub cache: PathBuf,
    /// What the user asks for.
    pub options: Options,
    /// The command line that makes it again.
    pub command: String,
    /// Who shows how far it is.
    pub progress: &'a dyn Progress,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
}

/// The least box: a server and something to cache.
const LEAST_MEMORY: Bytes = Bytes::mib(48);
/// eke's file server, beside the running program.
const FILE_SERVER: &str = "eke-cache";

/// Holds the experiment.
///
/// # Errors
/// What is missing, or the kernel's refusal; a single run that cannot be held is a note, unless all are. Whatever happens, the machine is
/// as before.
pub fn run(bench: &Bench) -> Result<Report> {
    let Options { base, axes, variants, quick, .. } = &bench.options;
    check(base)?;
    let (runs, mut notes) = possible(bench, plan::runs(base, axes, variants, *quick))?;
    // What a dead experiment's programs hold open cannot be taken down.
    cgroup::sweep(bench.root)?;
    stage::sweep(bench.root)?;
    let _ground = Ground::prepare(bench.root)?;
    let contents = contents(bench, &runs)?;
    let held = hold(bench, &runs, &contents, &mut notes)?;
    bench.progress.done();
    Ok(report::report(bench, &runs, &contents, &held, notes))
}

fn check(base: &Conditions) -> Result<()> {
    let wrong = match base {
        c if c.clients == 0 => "without clients there is no content: give --clients 1 or more".to_owned(),
        c if c.connections == 0 => "without connections nobody asks: give --connections 1 or more".to_owned(),
        c if c.memory < LEAST_MEMORY => {
            format!("a box of {} is too small for a web server; give at least {LEAST_MEMORY}", c.memory)
        }
        _ => return Ok(()),
    };
    Err(Error::Usage(wrong))
}

/// What this machine has the programs for, and what is left out and why. A variant that was asked for by its name must be possible.
fn possible(bench: &Bench, runs: Vec<Run>) -> Result<(Vec<Run>, Vec<String>)> {
    let (mut possible, mut left_out): (Vec<Run>, BTreeMap<String, String>) = (Vec::new(), BTreeMap::new());
    for run in runs {
        let lacking = run.conditions.server.check().and_then(|()| lacks(bench, run.variant));
        let base_server = run.conditions.server == bench.options.base.server;
        match lacking {
            Ok(()) => possible.push(run),
            Err(e) if bench.options.variants.contains(&run.variant) && base_server => return Err(e),
            Err(e) => {
                let what = if base_server { run.variant.name() } else { run.conditions.server.name() };
                left_out.insert(what.to_owned(), e.to_string());
            }
        }
    }
    if possible.is_empty() {
        bench.options.base.server.check()?;
        return Err(Error::Usage("nothing is left to compare: name other --variants or --axes".to_owned()));
    }
    let notes = left_out.into_iter().map(|(what, why)| format!("{what} is left out: {why}."));
    Ok((possible, notes.collect()))
}

fn lacks(bench: &Bench, variant: Variant) -> Result<()> {
    let needs = || format!("the variant \"{}\" needs", variant.name());
    let need = |program, package| match server::find(program) {
        Some(_) => Ok(()),
        None => Err(Missing::new(program, needs(), package).into()),
    };
    if variant.is_ours() && !bench.program.with_file_name(FILE_SERVER).is_file() {
        let beside = bench.program.display();
        return Err(Error::Usage(format!(
            "{FILE_SERVER} is not beside {beside}; `make build` puts it there"
        )));
    }
    match variant.file_system() {
        FileSystem::Ext4 => need("mke2fs", "e2fsprogs"),
        FileSystem::Btrfs => need("mkfs.btrfs", "btrfs-progs"),
        FileSystem::Erofs => need("mkfs.erofs", "erofs-utils"),
    }
}

/// The content for each number of clients.
fn contents(bench: &Bench, runs: &[Run]) -> Result<BTreeMap<u32, Arc<Content>>> {
    let mut systems: BTreeMap<u32, Vec<FileSystem>> = BTreeMap::new();
    for run in runs {
        let of = systems.entry(run.conditions.clients).or_default();
        if !of.contains(&run.variant.file_system()) {
            of.push(run.variant.file_system());
        }
    }
    bench.progress.say("Preparing the content (it is kept for the next time).");
    let corpus = Corpus::find(bench.options.corpus.as_deref())?;
    let of = |(clients, systems): (u32, Vec<FileSystem>)| {
        content::ensure(bench, &corpus, clients, &systems).map(|content| (clients, Arc::new(content)))
    };
    systems.into_iter().map(of).collect()
}

/// Every run, and then all again.
fn hold(
    bench: &Bench,
    runs: &[Run],
    contents: &BTreeMap<u32, Arc<Content>>,
    notes: &mut Vec<String>,
) -> Result<Vec<Held>> {
    let repeats = bench.options.repeats;
    bench.progress.planned(runs.len() * repeats);
    let (mut held, mut failed) = (Vec::new(), None);
    for (round, (number, run)) in (1..=repeats).flat_map(|r| runs.iter().enumerate().map(move |n| (r, n))) {
        bench.progress.begins(&format!("{}, {round} of {repeats}", report::run_name(run)));
        let Some(content) = contents.get(&run.conditions.clients) else { continue };
        match trial::hold(bench, content, run) {
            Ok(trial) => held.push(Held { run: number, trial }),
            // One variant that fails must not cost the others' hours.
            Err(e @ (Error::Server { .. } | Error::Client(_) | Error::Cache { .. })) => {
                let note =
                    format!("{}: a run could not be held and has no figures: {e}.", report::run_name(run));
                bench.progress.say(&note);
                notes.push(note);
                failed.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    match failed {
        Some(e) if held.is_empty() => Err(e),
        _ => Ok(held),
    }
}
