//! `eke bench web`: a web server with little memory and files on a slow disk.
//!
//! It repeats the experiment of Beltran, Torres and Ayguadé ("Improving Web Server Performance Through Main Memory Compression", ICPADS
//! 2008), scaled 1 to 10: files in the classes of SPECweb2005 Support, a disk of 2008, a server with too little memory for the files.
//!
//! ```text
//! clients ─ TCP ─> box { nginx or Tomcat · page cache · eke-cache } ─> content's file system ─> slow disk
//! ```
//!
//! - [`plan`]: the runs; varies one axis at a time (pure)
//! - [`content`]: the served files, as images of file systems that are made once
//! - [`requests`]: the sequence of requested files (pure)
//! - [`disk`], [`server_box`], [`service`], [`server`], [`eke_mount`], [`client`]: the parts of a run
//! - [`trial`]: one run; [`warm`]: when caches are full (pure); [`cpu`]: CPU time by program and thread
//! - [`metrics`], [`report`]: metrics of a run, and the report (pure)
//! - [`grid`]: cells of the model's grid instead
//!
//! Server, page cache and `eke-cache` share the box's memory, without swap. The clients and the disk are outside. Clients count the bytes of
//! each reply and check the hash of some. `eke cache` makes, queries and ends eke's mount, as users do. A metric is the difference of counters
//! before and after the window: those of the slow disk, the clients, the CPU time of programs and of `eke-cache`'s threads, the group's
//! memory, and `eke cache status --json`.
//!
//! Mounts, disks and groups are removed at the end. Their names contain their owner, so the next experiment and `eke down` remove those of
//! killed ones. A guard kills the box's processes when the experiment has ended, also by a kill.

pub mod client;
pub mod content;
pub mod cpu;
pub mod disk;
pub mod eke_mount;
pub mod error;
pub mod grid;
pub mod metrics;
pub mod plan;
mod random;
pub mod report;
pub mod requests;
pub mod server;
pub mod server_box;
pub mod service;
pub mod trial;
pub mod warm;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eke_apply::cgroup;
use eke_bench_core::fault::Missing;
use eke_bench_core::test_image;
use eke_bench_core::variants::ArrangedMachine;
use eke_bench_core::{Environment, Experiment, OnFailure, Results, shuffled};
use eke_model::units::Bytes;
use eke_results::report::Report;

use content::{Content, Corpus, FileSystem};
pub use error::Error;
use error::Result;
pub use grid::WebGrid;
use plan::{Axis, Conditions, Run, Variant};
use report::Measured;
pub use requests::Requests;
pub use server::Kind as ServerKind;
use trial::Trial;

/// The user's options.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Whether to run only four variants at the base point.
    pub quick: bool,
    /// How often to make each run.
    pub repeats: usize,
    /// The base point, from which one parameter is varied at a time.
    pub base: Conditions,
    /// The axes to vary, with `Base` for the base point itself.
    pub axes: Vec<Axis>,
    /// The variants to run; all if empty.
    pub variants: Vec<Variant>,
    /// The directory of the content's corpus; `None` for files of this machine.
    pub corpus: Option<PathBuf>,
    /// The longest warm-up.
    pub warm_up: Duration,
    /// The length of each measurement.
    pub window: Duration,
}

/// The least box: a server and something to cache.
const LEAST_MEMORY: Bytes = Bytes::mib(48);
/// eke's file server, beside the running program.
const FILE_SERVER: &str = "eke-cache";

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Web(pub Options);

/// The state that all runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    /// The runs whose programs are installed.
    runs: Vec<Run>,
    /// The contents by number of clients.
    contents: BTreeMap<u32, Arc<Content>>,
    _machine: ArrangedMachine,
}

/// One run of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// The run's index in the list of runs.
    run: usize,
    /// The round, from 1.
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
        // First end the programs of dead experiments: they keep mounts in use.
        cgroup::sweep(environment.root)?;
        test_image::sweep(environment.root)?;
        let ground = ArrangedMachine::prepare(environment.root)?;
        let contents = contents(environment, &self.0, &runs)?;
        Ok(Fixture { environment, runs, contents, _machine: ground })
    }

    /// Every run, and then all again.
    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Repeat> {
        let runs: Vec<usize> = (0..fixture.runs.len()).collect();
        let of_round =
            |round| shuffled(&runs, round).into_iter().map(move |run| Repeat { run, round: round + 1 });
        (0..self.0.repeats).flat_map(of_round).collect()
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

    /// A failed run of one variant does not end the others, which may take hours.
    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        match error {
            Error::Program { .. } | Error::Client(_) | Error::Command { .. } => OnFailure::LeaveOut,
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
        let measured: Vec<Measured> =
            measured.map(|(Repeat { run, .. }, trial)| Measured { run, trial }).collect();
        report::report(environment, &self.0, (&fixture.runs, &fixture.contents), &measured, results.notes)
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
}

fn check(base: &Conditions) -> Result<()> {
    let wrong = match base {
        c if c.clients == 0 => "without clients there is no content: give --clients 1 or more".to_owned(),
        c if c.connections == 0 => {
            "without connections there are no requests: give --connections 1 or more".to_owned()
        }
        c if c.memory < LEAST_MEMORY => {
            format!("a box of {} is too small for a web server; give at least {LEAST_MEMORY}", c.memory)
        }
        _ => return Ok(()),
    };
    Err(Error::Usage(wrong))
}

/// The runs whose programs are installed. `notes` name the others with the reason. A missing program of a variant that the user named is an
/// error.
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
    if variant.uses_eke() && !environment.program.with_file_name(FILE_SERVER).is_file() {
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
    environment.progress.print("Preparing the content (it is kept for the next time).");
    let corpus = Corpus::find(options.corpus.as_deref())?;
    let of = |(clients, systems): (u32, Vec<FileSystem>)| {
        content::ensure(environment, &corpus, clients, &systems).map(|content| (clients, Arc::new(content)))
    };
    systems.into_iter().map(of).collect()
}
