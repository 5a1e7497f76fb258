//! `eke bench names`: what programs do with many names (find, ls, git), through a cache's mount and on the files themselves.
//!
//! - `tree`: the files and a repository; `work`: what is timed; `report`: names of variants and metrics

mod report;
mod tree;
mod work;

use std::path::PathBuf;

use eke_bench_core::fault::{self, Io};
use eke_bench_core::{Environment, Experiment, Results, shuffled};
use eke_results::report::Report;
use eke_results::rows::{Rows, params};

use crate::cache_mount::CacheMount;
use tree::Tree;
use work::{Measurement, Work};

/// How often each is measured.
const ROUNDS: usize = 5;

/// The user's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The directory for the files, on the disk to measure.
    pub dir: PathBuf,
    /// The number of files.
    pub files: u32,
    /// Whether to measure once, and files that were made a moment ago.
    pub quick: bool,
}

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] Io),
    /// `eke cache` or a program that is timed failed.
    #[error(transparent)]
    Program(#[from] fault::Command),
    /// A change did not show.
    #[error("a change of {} did not show on the mount within {seconds} s", path.display())]
    NotSeen {
        /// The file.
        path: PathBuf,
        /// The time until it was given up.
        seconds: u64,
    },
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

/// Where the names come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The files themselves.
    Native,
    /// The same once more: the difference is noise.
    Again,
    /// The mount at its defaults.
    Mount,
    /// A mount that is not told of changes.
    Unwatched,
}

impl Source {
    const ALL: [Self; 4] = [Self::Native, Self::Again, Self::Mount, Self::Unwatched];

    /// The options of its mount; `None`: the files themselves.
    fn mount(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Native | Self::Again => None,
            Self::Mount => Some(&[]),
            Self::Unwatched => Some(&["--no-watch"]),
        }
    }
}

/// The experiment. It changes nothing of the machine but a directory and a mount, which it removes afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub Options);

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    source: Source,
    /// The round, from 0.
    round: usize,
}

impl Experiment for Names {
    type Fixture<'e> = Tree<'e>;
    type Run = Run;
    type Measurement = Vec<Measurement>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Tree<'e>, Error> {
        environment.progress.print(if self.0.quick {
            "Making files."
        } else {
            "Making files, and waiting a minute: attributes of newer files are not kept."
        });
        Tree::make(environment, &self.0, notes)
    }

    fn plan(&self, _tree: &Tree<'_>) -> Vec<Run> {
        let rounds = 0..self.rounds();
        rounds
            .flat_map(|round| {
                shuffled(&Source::ALL, round).into_iter().map(move |source| Run { source, round })
            })
            .collect()
    }

    fn name(&self, _tree: &Tree<'_>, Run { source, round }: &Run) -> String {
        format!("{}, {} of {}", source.name(), round + 1, self.rounds())
    }

    fn measure(
        &self,
        tree: &mut Tree<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<Measurement>>, Error> {
        let backing = tree.files();
        let Some(options) = run.source.mount() else {
            return Work { dir: &backing, backing: None, tree }.measure().map(Some);
        };
        let mount = CacheMount::new(tree.environment, &backing, tree.place(), options)?;
        let measured = Work { dir: mount.place(), backing: Some(&backing), tree }.measure()?;
        mount.unmount()?;
        Ok(Some(measured))
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        tree: &mut Tree<'_>,
        results: Results<Run, Vec<Measurement>>,
    ) -> Report {
        let mut rows = Rows::default();
        let params = params([("files", tree.count.into())]);
        for (run, measurements) in results.measured {
            for (metric, unit, value) in measurements {
                rows.add(run.source.name(), &params, metric, unit, [value]);
            }
        }
        report::report(environment, rows.done(), results.notes)
    }
}

impl Names {
    fn rounds(&self) -> usize {
        if self.0.quick { 1 } else { ROUNDS }
    }
}
