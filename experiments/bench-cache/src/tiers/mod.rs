//! `eke bench tiers`: a page cache over a compressed store by a model, in each way to use both, over a grid of 1600 cells.
//!
//! - [`grid`]: the cells
//! - [`report`](mod@report): the tables and means of a grid
//!
//! [`eke_cache_replay::tiers`] has the model.

pub mod grid;
pub mod report;

use std::sync::atomic::Ordering;
use std::thread;

use eke_bench_core::{Environment, Experiment, Results};
use eke_cache_replay::tiers::bound::bound;
use eke_cache_replay::tiers::{Load, Outcome, Way, outcome};
use eke_model::units::Bytes;
use eke_results::report::Report;

use grid::{CONTENTS, Cell, MEMORY};

/// The experiment with the user's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// The seed of the requests.
    pub seed: u64,
    /// Whether to use few values of each axis.
    pub quick: bool,
}

/// A cell and its outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// The cell.
    pub cell: Cell,
    /// In the order of [`Way::ALL`].
    pub ways: Vec<Outcome>,
    /// What no way beats.
    pub bound: Outcome,
    /// ext4 and eke from empty caches.
    pub cold: [Outcome; 2],
}

/// The cells with one load, which differ in content and disk.
type Loaded = (Cell, Vec<Cell>);

/// The cells by load.
pub struct Grid<'e> {
    environment: &'e Environment<'e>,
    loads: Vec<Loaded>,
}

impl Experiment for Tiers {
    type Fixture<'e> = Grid<'e>;
    type Run = usize;
    type Measurement = Vec<Modelled>;
    type Error = std::convert::Infallible;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<Grid<'e>, Self::Error> {
        Ok(Grid { environment, loads: by_load(Cell::all(self.quick)) })
    }

    /// A run models all cells of one load.
    fn plan(&self, grid: &Grid<'_>) -> Vec<usize> {
        (0..grid.loads.len()).collect()
    }

    fn name(&self, grid: &Grid<'_>, number: &usize) -> String {
        let [_, working_set, requests, files, _] = grid.loads[*number].0.names();
        format!("{working_set} times memory, {requests}, {files}, {} of {}", number + 1, grid.loads.len())
    }

    fn measure(
        &self,
        grid: &mut Grid<'_>,
        number: &usize,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<Modelled>>, Self::Error> {
        let (first, cells) = &grid.loads[*number];
        let load = first.load(MEMORY, self.seed);
        let stop = grid.environment.shutdown;
        let model = |cell: &Cell| (!stop.load(Ordering::Relaxed)).then(|| modelled(*cell, &load, MEMORY));
        Ok(on_all_cpus(cells, model).into_iter().collect())
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _grid: &mut Grid<'_>,
        results: Results<usize, Vec<Modelled>>,
    ) -> Report {
        let mut all: Vec<Modelled> =
            results.measured.into_iter().flat_map(|(_, modelled)| modelled).collect();
        all.sort_by_key(|modelled| modelled.cell);
        report::report(environment, &all)
    }
}

/// All outcomes of a cell, whose load is known.
pub fn modelled(cell: Cell, load: &Load, memory: Bytes) -> Modelled {
    let machine = cell.machine(memory);
    let ways = Way::ALL.map(|way| outcome(load, &machine, way)).to_vec();
    let from_empty = load.cold();
    let cold = [Way::PageCache, Way::Eke].map(|way| outcome(&from_empty, &machine, way));
    Modelled { cell, ways, bound: bound(load, &machine), cold }
}

fn by_load(cells: Vec<Cell>) -> Vec<Loaded> {
    let mut loads: Vec<Loaded> = Vec::new();
    for cell in cells {
        let key = Cell { content: 0, disk: 0, ..cell };
        match loads.iter_mut().find(|(load, _)| *load == key) {
            Some((_, of)) => of.push(cell),
            None => loads.push((key, vec![cell])),
        }
    }
    loads
}

/// What `act` returns for each item, in order.
pub fn on_all_cpus<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(CONTENTS.len());
    let part = items.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().map(&act).collect::<Vec<R>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}
