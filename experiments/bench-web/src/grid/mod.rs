//! `eke bench web --grid`: the real mount in cells of the model's grid, beside ext4 and beside what the model says.
//!
//! - [`choose`]: the cells (pure); [`conditions`]: a cell's memory, files, requests and disk (pure)
//! - [`saved`]: the file, from which finished cells are known
//! - [`report`](mod@report): ratios by cell, those in which eke loses first (pure)
//!
//! A run is a cell: its content is made, ext4 and eke's default serve it in turn, and the file is replaced. A command that was stopped continues with the
//! next cell.

pub mod choose;
pub mod conditions;
pub mod report;
pub mod saved;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use eke_apply::cgroup;
use eke_bench_cache::tiers::grid::{Cell, MEMORY};
use eke_bench_cache::tiers::{Modelled, modelled, on_all_cpus, report::worst};
use eke_bench_core::test_image;
use eke_bench_core::variants::ArrangedMachine;
use eke_bench_core::{Environment, Experiment, OnFailure, Results, shuffled};
use eke_results::report::{Report, Row};

use crate::content::filled;
use crate::error::{Error, Result};
use crate::plan::{Conditions, Run, Variant};
use crate::{metrics, server, trial};

/// No cell begins that would probably end later than this.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// The longest cell.
const CELL: Duration = Duration::from_secs(7 * 60);
/// The compared set-ups.
const VARIANTS: [Variant; 2] = [Variant::Ext4, Variant::EkeExt4];
/// With `quick` so many cells are measured.
const QUICK_CELLS: usize = 2;

/// The experiment with the user's options.
#[derive(Debug, Clone, PartialEq)]
pub struct WebGrid {
    /// The file of the result.
    pub output: PathBuf,
    /// Runs of each variant in each cell.
    pub repeats: usize,
    /// Whether to measure few cells.
    pub quick: bool,
    /// The longest warm-up of a run.
    pub warm_up: Duration,
    /// The length of each measurement.
    pub window: Duration,
    /// Whether to continue a file with measurements of another commit.
    pub any_commit: bool,
}

/// The state of a grid.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    begun: Instant,
    cells: Vec<Cell>,
    /// Of all finished cells.
    rows: Vec<Row>,
    _machine: ArrangedMachine,
}

impl Experiment for WebGrid {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes a box and a slow disk, and mounts there, which needs root");

    type Fixture<'e> = Fixture<'e>;
    /// A cell to measure; `None` if all are finished.
    type Run = Option<Cell>;
    type Measurement = ();
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>> {
        let rows = saved::read(&self.output, &environment.command, &environment.provenance, self.any_commit)?;
        server::Kind::Nginx.check()?;
        VARIANTS.into_iter().try_for_each(|variant| crate::lacks(environment, variant))?;
        cgroup::sweep(environment.root)?;
        test_image::sweep(environment.root)?;
        let machine = ArrangedMachine::prepare(environment.root)?;
        let begun = Instant::now();
        let cells = self.cells(environment);
        Ok(Fixture { environment, begun, cells, rows, _machine: machine })
    }

    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Option<Cell>> {
        let finished = saved::finished(&fixture.rows);
        let left: Vec<_> =
            fixture.cells.iter().filter(|cell| !finished.contains(cell)).copied().map(Some).collect();
        if left.is_empty() { vec![None] } else { left }
    }

    fn name(&self, _fixture: &Fixture<'_>, cell: &Option<Cell>) -> String {
        cell.map_or("all cells are finished".to_owned(), |cell| cell.names().join(", "))
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        cell: &Option<Cell>,
        notes: &mut Vec<String>,
    ) -> Result<Option<()>> {
        let Some(cell) = cell else { return Ok(Some(())) };
        if fixture.begun.elapsed() + CELL > LONGEST {
            notes.push(format!("Not measured within four hours: {}.", cell.names().join(", ")));
            return Ok(None);
        }
        let of_this = |row| Row { commit: fixture.environment.provenance.commit.clone(), ..row };
        let rows = self.cell(fixture.environment, cell)?;
        fixture.rows.extend(rows.into_iter().map(of_this));
        saved::write(&self.output, &report::report(fixture.environment, self, &fixture.rows, &[]))?;
        Ok(Some(()))
    }

    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        match error {
            Error::Program { .. } | Error::Client(_) | Error::Command { .. } | Error::Space { .. } => {
                OnFailure::LeaveOut
            }
            _ => OnFailure::Abort,
        }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Option<Cell>, ()>,
    ) -> Report {
        let report = report::report(environment, self, &fixture.rows, &results.notes);
        if let Err(error) = saved::write(&self.output, &report) {
            environment.progress.print(&error.to_string());
        }
        report
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
}

impl WebGrid {
    /// The cells to measure. The model says which are the worst, which takes a minute.
    fn cells(&self, environment: &Environment<'_>) -> Vec<Cell> {
        environment.progress.print("Modelling the grid, to choose cells.");
        let all = Cell::all(self.quick);
        let stop = environment.shutdown;
        let model = |cell: &Cell| {
            let is_stopped = stop.load(std::sync::atomic::Ordering::Relaxed);
            (!is_stopped).then(|| modelled(*cell, &cell.load(MEMORY, 1), MEMORY))
        };
        let modelled: Vec<Modelled> = on_all_cpus(&all, model).into_iter().flatten().collect();
        let worst: Vec<Cell> = worst(&modelled).iter().map(|m| m.cell).collect();
        let chosen = choose::choose(&worst, &all);
        if self.quick { smallest(chosen, QUICK_CELLS) } else { chosen }
    }

    /// Makes the content of a cell and runs each variant on it, in turn. Returns the cell's rows.
    fn cell(&self, environment: &Environment<'_>, cell: &Cell) -> Result<Vec<Row>> {
        let (repeated, files) = conditions::files(cell);
        let ratio = eke_bench_cache::tiers::grid::CONTENTS[cell.content];
        let filled = filled::make(environment, files, ratio)?;
        let of = conditions::conditions(cell, repeated);
        let mut samples = report::Samples::new(cell);
        for round in 0..self.repeats {
            for variant in shuffled(&VARIANTS, round) {
                let run = Run { variant, conditions: of.clone(), shown: Vec::new() };
                let trial = trial::run(environment, &self.options(&of), &filled.content, &run)?;
                samples.add(variant, &metrics::of(&trial.window), trial.filled);
            }
        }
        Ok(samples.rows())
    }

    /// The options of a run, of which it takes its times.
    fn options(&self, base: &Conditions) -> crate::Options {
        crate::Options {
            quick: self.quick,
            repeats: self.repeats,
            base: base.clone(),
            axes: Vec::new(),
            variants: VARIANTS.to_vec(),
            corpus: None,
            warm_up: self.warm_up,
            window: self.window,
        }
    }
}

/// The `count` cells with the least content.
fn smallest(mut cells: Vec<Cell>, count: usize) -> Vec<Cell> {
    let bytes = |cell: &Cell| conditions::files(cell).1.iter().map(|file| file.bytes).sum::<u64>();
    cells.sort_by_cached_key(bytes);
    cells.truncate(count);
    cells
}
