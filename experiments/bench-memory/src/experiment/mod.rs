//! What experiments in a box share: documents and programs on a slow disk, a calibration with memory to spare, and rounds of all variants.

pub(crate) mod comparison;
pub(crate) mod installation;
mod lacking;
pub mod trial;
mod windows;

use std::path::PathBuf;

use eke_bench_core::{OnFailure, variants};
use eke_bench_desktop::session::{Act, run};
use eke_model::units::Bytes;
use eke_results::report::Metric;
use eke_results::rows::Rows;

pub use trial::Trial;
pub use windows::Windows;

/// The default budget of a box: the memory of the study's client.
pub const CLIENT: Bytes = Bytes::mib(124);
/// Why these experiments need root.
pub(crate) const NEEDS_ROOT: &str = "an experiment makes a box and a slow disk, swaps, and sets kernel settings that it puts back, which needs root";
/// The default ballast: with it, a client without swap can just keep two documents open.
pub const DESKTOP: Bytes = Bytes::mib(72);
/// The compression ratio of the ballast's pages: that of a desktop's pages with lzo-rle and lz4 (Fedora's change page: "2:1 to 3:1").
pub const BALLAST_RATIO: f64 = 2.5;
/// The longest that a page may take on a real CPU, in seconds.
pub const PATIENCE_S: f64 = 10.0;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Fewer variants, once.
    pub quick: bool,
    /// How often each variant is run; the median is shown.
    pub repeats: usize,
    /// The budget of the box; `None` for the default.
    pub memory: Option<Bytes>,
    /// Memory that stands for the rest of a desktop; `None` for the default.
    pub ballast: Option<Bytes>,
    /// The slow disk that programs and documents are on; `None` for this machine's own.
    pub disk: Option<String>,
    /// The viewer; `None` for the first that is installed.
    pub viewer: Option<String>,
    /// The directory of the documents; `None` for the documentation of this machine.
    pub documents: Option<PathBuf>,
    /// Only these variants; all if empty.
    pub variants: Vec<String>,
    /// Also eke with one thing changed at a time.
    pub variations: bool,
    /// The suite of Debian with the small machine's kernel; `None` for that of this machine's.
    pub kernel_of: Option<String>,
}

impl Options {
    /// # Errors
    /// The first chosen variant that is not `known`.
    fn refuse_unknown(&self, known: &[String]) -> Result<(), Error> {
        match self.variants.iter().find(|name| !known.contains(name)) {
            Some(name) => Err(Error::NoVariant { name: name.clone(), known: known.to_vec() }),
            None => Ok(()),
        }
    }
}

/// What an experiment with documents in windows is made of.
pub struct Kind {
    /// As on the command line.
    pub name: &'static str,
    /// How many documents it opens at most.
    pub documents: usize,
    /// The same in a quick run.
    pub documents_if_quick: usize,
    /// Page changes in a document.
    pub pages: u32,
    /// The session's acts.
    pub acts: fn(documents: usize, pages: u32) -> Vec<Act>,
    /// The metrics of the report.
    pub metrics: fn() -> Vec<Metric>,
    /// Adds the measurements of one run.
    pub add: fn(&Trial<'_>, &mut Rows),
    /// Compare plain zram of several sizes, too.
    pub sizes: bool,
    /// The default ballast.
    pub ballast: Bytes,
}

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The documents, the programs or the disk.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// The documents.
    #[error(transparent)]
    Documents(#[from] eke_bench_desktop::documents::Error),
    /// A variant cannot be arranged.
    #[error(transparent)]
    Variants(#[from] variants::Error),
    /// The session.
    #[error(transparent)]
    Session(#[from] run::Error),
    /// An unknown viewer.
    #[error("there is no viewer \"{name}\" in the table; there are: {}", known.join(", "))]
    Viewer {
        /// As given.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// No viewer is installed.
    #[error("none of these viewers is installed: {}; `make bench-deps` installs what experiments need", known.join(", "))]
    NoViewer {
        /// The known viewers.
        known: Vec<&'static str>,
    },
    /// No browser is installed.
    #[error("none of these browsers is installed: {}; `make bench-deps` installs what experiments need", known.join(", "))]
    NoBrowser {
        /// The known names.
        known: Vec<&'static str>,
    },
    /// The web server of the tabs.
    #[error(transparent)]
    Server(#[from] eke_bench_desktop::tabs::server::Error),
    /// The small machine.
    #[error(transparent)]
    Guest(#[from] crate::guest::Error),
    /// A program for the small machine is missing.
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
    /// An unknown variant.
    #[error("there is no variant \"{name}\" in this experiment; there are: {}", known.join(", "))]
    NoVariant {
        /// As given.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The session fails even with memory to spare.
    #[error(
        "the session does not work even with memory to spare: {0}; the programs that it needs come with `make bench-deps`"
    )]
    Calibration(String),
}

impl Error {
    /// Do the user's words cause it?
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Viewer { .. } | Self::NoVariant { .. })
    }

    /// In small machines, the runs of other variants stay valid.
    pub(crate) fn on_failure(&self) -> OnFailure {
        match self {
            Self::Guest(error) if error.is_of_one_run() => OnFailure::LeaveOut,
            _ => OnFailure::Abort,
        }
    }
}
