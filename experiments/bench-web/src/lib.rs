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
use std::time::Duration;

use eke_apply::cgroup;
use eke_bench_core::fault::Missing;
use eke_bench_core::peers::Ground;
use eke_bench_core::stage;
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_model::units::Bytes;
use eke_results::report::Report;

use content::{Content, Corpus, FileSystem};
pub use error::Error;
use error::Result;
use plan::{Axis, Conditions, Run, Variant};
use report::Held;
pub use requests::Requests;
pub use server::Kind as ServerKind;
use trial::Trial;

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

/// The least box: a server and something to cache.
const LEAST_MEMORY: Bytes = Bytes::mib(48);
/// eke's file server, beside the running program.
const FILE_SERVER: &str = "eke-cache";

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Web(pub Options);

/// What runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    /// Those that this machine has the programs for.
    runs: Vec<Run>,
    /// By the number of clients.
    contents: BTreeMap<u32, Arc<Content>>,
    _ground: Ground,
}

/// One run of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Its place in the list of runs.
    run: usize,
    /// From 1.
    round: usize,
}

impl Experiment for Web {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes a box and a slow disk, and mounts there, which needs root");

    type Fixture<'e> = Fixture<'e>;
    type Run = Repeat;
    type Measurement = Trial;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>> {
        let Options { base, axes, variants, quick, .. } = &self.0;
        check(base)?;
        let runs = possible(environment, &self.0, plan::runs(base, axes, variants, *quick), notes)?;
        // What a dead experiment's programs hold open cannot be taken down.
        cgroup::sweep(environment.root)?;
        stage::sweep(environment.root)?;
        let ground = Ground::prepare(environment.root)?;
        let contents = contents(environment, &self.0, &runs)?;
        Ok(Fixture { environment, runs, contents, _ground: ground })
    }

    /// Every run, and then all again.
    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Repeat> {
        let runs = fixture.runs.len();
        (1..=self.0.repeats).flat_map(|round| (0..runs).map(move |run| Repeat { run, round })).collect()
    }

    fn name(&self, fixture: &Fixture<'_>, Repeat { run, round }: &Repeat) -> String {
        let name = fixture.runs.get(*run).map(report::run_name).unwrap_or_default();
        format!("{name}, {round} of {}", self.0.repeats)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        repeat: &Repeat,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Trial>> {
        let Fixture { environment, runs, contents, .. } = fixture;
        let Some(run) = runs.get(repeat.run) else { return Ok(None) };
        let Some(content) = contents.get(&run.conditions.clients) else { return Ok(None) };
        trial::run(environment, &self.0, content, run).map(Some)
    }

    /// One variant that fails must not cost the others' hours.
    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        match error {
            Error::Server { .. } | Error::Client(_) | Error::Cache { .. } => OnFailure::LeaveOut,
            _ => OnFailure::Abort,
        }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Repeat, Trial>,
    ) -> Report {
        let measured = results.measured.into_iter();
        let held: Vec<Held> = measured.map(|(Repeat { run, .. }, trial)| Held { run, trial }).collect();
        report::report(environment, &self.0, (&fixture.runs, &fixture.contents), &held, results.notes)
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
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
fn possible(
    environment: &Environment<'_>,
    options: &Options,
    runs: Vec<Run>,
    notes: &mut Vec<String>,
) -> Result<Vec<Run>> {
    let (mut possible, mut left_out): (Vec<Run>, BTreeMap<String, String>) = (Vec::new(), BTreeMap::new());
    for run in runs {
        let lacking = run.conditions.server.check().and_then(|()| lacks(environment, run.variant));
        let base_server = run.conditions.server == options.base.server;
        match lacking {
            Ok(()) => possible.push(run),
            Err(e) if options.variants.contains(&run.variant) && base_server => return Err(e),
            Err(e) => {
                let what = if base_server { run.variant.name() } else { run.conditions.server.name() };
                left_out.insert(what.to_owned(), e.to_string());
            }
        }
    }
    if possible.is_empty() {
        options.base.server.check()?;
        return Err(Error::Usage("nothing is left to compare: name other --variants or --axes".to_owned()));
    }
    notes.extend(left_out.into_iter().map(|(what, why)| format!("{what} is left out: {why}.")));
    Ok(possible)
}

fn lacks(environment: &Environment<'_>, variant: Variant) -> Result<()> {
    let needs = || format!("the variant \"{}\" needs", variant.name());
    let need = |program, package| match server::find(program) {
        Some(_) => Ok(()),
        None => Err(Missing::new(program, needs(), package).into()),
    };
    if variant.is_ours() && !environment.program.with_file_name(FILE_SERVER).is_file() {
        let beside = environment.program.display();
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
fn contents(
    environment: &Environment<'_>,
    options: &Options,
    runs: &[Run],
) -> Result<BTreeMap<u32, Arc<Content>>> {
    let mut systems: BTreeMap<u32, Vec<FileSystem>> = BTreeMap::new();
    for run in runs {
        let of = systems.entry(run.conditions.clients).or_default();
        if !of.contains(&run.variant.file_system()) {
            of.push(run.variant.file_system());
        }
    }
    environment.progress.say("Preparing the content (it is kept for the next time).");
    let corpus = Corpus::find(options.corpus.as_deref())?;
    let of = |(clients, systems): (u32, Vec<FileSystem>)| {
        content::ensure(environment, &corpus, clients, &systems).map(|content| (clients, Arc::new(content)))
    };
    systems.into_iter().map(of).collect()
}
