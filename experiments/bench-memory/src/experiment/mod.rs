//! What the experiments in a box have in common: documents and programs on a slow disk, a calibration with memory to
//! spare, every variant in turn, and the same again.

pub(crate) mod field;
mod lacking;
pub(crate) mod scene;
mod setting;
pub mod trial;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_bench_core::peers;
use eke_bench_core::stage;
use eke_bench_desktop::session::{Act, run};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_present::progress::Progress;
use eke_results::report::{Metric, Report};
use eke_results::rows::Rows;

use setting::Setting;
pub use trial::Trial;

/// The budget of a box unless the user says otherwise: the study's client.
pub const CLIENT: Bytes = Bytes::mib(124);
/// The ballast unless the user says otherwise: with it, a client without swap holds two documents and struggles.
pub const DESKTOP: Bytes = Bytes::mib(72);

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Fewer variants, once.
    pub quick: bool,
    /// How often each variant is run; the median is shown.
    pub repeats: usize,
    /// The budget of the box; `None` for the experiment's own.
    pub memory: Option<Bytes>,
    /// What stands for the rest of a desktop; `None` for the experiment's own.
    pub ballast: Option<Bytes>,
    /// The slow disk that programs and documents are on; `None` for this machine's own.
    pub disk: Option<String>,
    /// The viewer; `None` for the first that is installed.
    pub viewer: Option<String>,
    /// The directory of the documents; `None` for the documentation of this machine.
    pub documents: Option<PathBuf>,
    /// Only these variants; all if empty.
    pub variants: Vec<String>,
    /// Also eke with one lever changed at a time.
    pub levers: bool,
}

impl Options {
    /// # Errors
    /// The first variant that is asked for and not `known`.
    fn refuse_unknown(&self, known: &[String]) -> Result<(), Error> {
        match self.variants.iter().find(|name| !known.contains(name)) {
            Some(name) => Err(Error::NoVariant { name: name.clone(), known: known.to_vec() }),
            None => Ok(()),
        }
    }
}

/// An experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The program whose hidden verbs drive a session: `eke`.
    pub program: PathBuf,
    /// What the user asks for.
    pub options: Options,
    /// The command line that makes it again.
    pub command: String,
    /// Who shows how far it is.
    pub progress: &'a dyn Progress,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
}

/// What an experiment is made of.
pub struct Experiment {
    /// As on the command line.
    pub name: &'static str,
    /// How many documents it opens at most.
    pub documents: usize,
    /// The same if it is to be quick.
    pub documents_if_quick: usize,
    /// How many pages of a document are turned.
    pub pages: u32,
    /// What is done.
    pub acts: fn(documents: usize, pages: u32) -> Vec<Act>,
    /// What is measured.
    pub metrics: fn() -> Vec<Metric>,
    /// Also plain zram of several sizes?
    pub sizes: bool,
    /// The ballast unless the user says otherwise.
    pub ballast: Bytes,
}

/// Why an experiment could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The documents, the programs or the disk.
    #[error(transparent)]
    Stage(#[from] eke_bench_core::stage::Error),
    /// The documents.
    #[error(transparent)]
    Documents(#[from] eke_bench_desktop::documents::Error),
    /// A variant cannot be arranged.
    #[error(transparent)]
    Peers(#[from] peers::Error),
    /// The session.
    #[error(transparent)]
    Session(#[from] run::Error),
    /// A viewer that is not known.
    #[error("there is no viewer \"{name}\" in the table; there are: {}", known.join(", "))]
    Viewer {
        /// As asked for.
        name: String,
        /// What could have been.
        known: Vec<&'static str>,
    },
    /// No viewer is installed.
    #[error("none of these viewers is installed: {}; `make bench-deps` installs what experiments need", known.join(", "))]
    NoViewer {
        /// The table.
        known: Vec<&'static str>,
    },
    /// No browser is installed.
    #[error("none of these browsers is installed: {}; `make bench-deps` installs what experiments need", known.join(", "))]
    NoBrowser {
        /// What could have been.
        known: Vec<&'static str>,
    },
    /// The web server of the tabs.
    #[error(transparent)]
    Server(#[from] eke_bench_desktop::tabs::server::Error),
    /// The small machine.
    #[error(transparent)]
    Guest(#[from] crate::guest::Error),
    /// A program that goes into the small machine.
    #[error(
        "{name} is not beside {}, and goes into the small machine with it; `make build` puts both into target/release",
        beside.display()
    )]
    NoProgram {
        /// Its name.
        name: &'static str,
        /// The running program.
        beside: PathBuf,
    },
    /// Tabs in the small machine.
    #[error("there is no browser in the small machine: `--of tabs` runs in a box only (--in box)")]
    TabsInMachine,
    /// A variant that is not there.
    #[error("there is no variant \"{name}\" in this experiment; there are: {}", known.join(", "))]
    NoVariant {
        /// As asked for.
        name: String,
        /// What could have been.
        known: Vec<String>,
    },
    /// The programs of the session do not do what they should with memory to spare.
    #[error(
        "the session does not work even with memory to spare: {0}; the programs that it needs come with `make bench-deps`"
    )]
    Calibration(String),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

/// Holds an experiment: every variant once, then all again, `add` making figures of each run.
///
/// # Errors
/// What is missing, or the kernel's refusal. Whatever happens, the machine is as before.
pub fn hold(
    bench: &Bench,
    experiment: &Experiment,
    add: &mut dyn FnMut(&Trial, &mut Rows),
) -> Result<Report, Error> {
    or_interrupted(bench, held(bench, experiment, add))
}

fn held(
    bench: &Bench,
    experiment: &Experiment,
    add: &mut dyn FnMut(&Trial, &mut Rows),
) -> Result<Report, Error> {
    let mut setting = Setting::prepare(bench, experiment)?;
    let measured = setting.calibrate()?;
    let entrants = setting.entrants(&measured)?;
    let rows = setting.trials(&entrants, add)?;
    Ok(setting.report(&entrants, rows))
}

/// What fails after a signal fails by it, for the most part: programs of the same terminal get the signal too. What could not
/// be undone is said all the same.
pub(crate) fn or_interrupted(bench: &Bench, result: Result<Report, Error>) -> Result<Report, Error> {
    let of_a_program =
        |e: &Error| matches!(e, Error::Stage(stage::Error::Command { .. }) | Error::Calibration(_));
    match result {
        Err(e) if of_a_program(&e) && bench.shutdown.load(Ordering::Relaxed) => Err(Error::Interrupted),
        result => result,
    }
}
