//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use eke_model::config::PrefetchSettings;

/// The settings and the command line's options.
#[derive(Debug, Clone)]
pub struct Options {
    /// The store's directory.
    pub store: PathBuf,
    /// `[prefetch]`.
    pub settings: PrefetchSettings,
    /// Whether to publish the state in `/run/eke`, for the agent.
    pub publishes_state: bool,
    /// The least time between two choices of reads ahead.
    pub between_choices: Duration,
    /// A start this soon after the last one of the same program by the same account is no habit, but that of a loop, a build or a script.
    pub repeated_within: Duration,
}

impl Options {
    /// The store's default directory below the root.
    pub const STORE: &'static str = "var/lib/eke";

    /// The defaults with these settings.
    pub fn new(store: PathBuf, settings: PrefetchSettings) -> Self {
        Self {
            store,
            settings,
            publishes_state: true,
            between_choices: Duration::from_secs(2),
            repeated_within: Duration::from_secs(600),
        }
    }

    /// The share of starts to leave alone: none if nobody would see what they show.
    pub fn control_percent(&self) -> u32 {
        if self.publishes_state { self.settings.control_percent } else { 0 }
    }
}
