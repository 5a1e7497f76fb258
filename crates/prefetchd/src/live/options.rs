//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use eke_model::config::PrefetchSettings;

/// The settings and the options of the command line.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the store.
    pub store: PathBuf,
    /// `[prefetch]`.
    pub settings: PrefetchSettings,
    /// Notify in `/run/eke` how it goes, for the agent.
    pub publishes_state: bool,
    /// The least time between two choices of what to read ahead.
    pub between_choices: Duration,
}

impl Options {
    /// Where the store is, from the root.
    pub const STORE: &'static str = "var/lib/eke";

    /// By the settings.
    pub fn new(store: PathBuf, settings: PrefetchSettings) -> Self {
        Self { store, settings, publishes_state: true, between_choices: Duration::from_secs(2) }
    }
}
