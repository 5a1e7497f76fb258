//! What every experiment gets from whoever starts it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_linux::Root;
use eke_present::progress::Progress;
use eke_results::report::{Machine, Provenance, Report};

use crate::settings;

/// The machine, the programs, and the ways in and out.
pub struct Environment<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The running `eke-bench`. Its hidden verbs drive sessions; eke's own programs are beside it.
    pub program: PathBuf,
    /// The directory that keeps images for the next time.
    pub cache: PathBuf,
    /// The command line that repeats the experiment, for the report.
    pub command: String,
    /// Where the results come from.
    pub provenance: Provenance,
    /// Shows how far the experiment is.
    pub progress: &'a dyn Progress,
    /// A signal sets it.
    pub shutdown: &'a AtomicBool,
}

impl Environment<'_> {
    /// Did a signal come?
    pub fn is_interrupted(&self) -> bool {
        self.shutdown.load(Ordering::Relaxed)
    }

    /// The program of this name beside the running one; the bare name, for PATH, if there is none.
    pub fn installed(&self, name: &str) -> PathBuf {
        let beside = self.program.with_file_name(name);
        if beside.exists() { beside } else { name.into() }
    }

    /// A report with this machine and this command, and no measurements yet.
    pub fn report(&self, experiment: &str) -> Report {
        Report {
            experiment: experiment.to_owned(),
            command: self.command.clone(),
            provenance: Some(Provenance {
                settings: settings::all(self.root, &self.cache),
                ..self.provenance.clone()
            }),
            machine: Machine::of(self.root),
            ..Report::default()
        }
    }
}
