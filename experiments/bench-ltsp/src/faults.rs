//! Faults of the server while a client works: it cannot be reached for a minute, then it is restarted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::network::Network;
use crate::server::Server;

/// How long the server cannot be reached.
const HANG: Duration = Duration::from_secs(60);
/// How long a restart takes.
const RESTART: Duration = Duration::from_secs(20);

/// What a client's session did after each fault; `None` if the fault did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Survived {
    /// It went on after the server could not be reached for a minute.
    pub hang: Option<bool>,
    /// It went on after the server was restarted.
    pub restart: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Hanging,
    Between,
    Restarting,
    After,
}

/// The faults of one run, in order.
#[derive(Debug)]
pub struct Faults {
    phase: Phase,
    since: Instant,
    /// Documents that were open at the end of the last fault.
    opened: usize,
    survived: Survived,
}

impl Default for Faults {
    fn default() -> Self {
        Self { phase: Phase::Before, since: Instant::now(), opened: 0, survived: Survived::default() }
    }
}

impl Faults {
    /// Begins or ends a fault, by the documents that the session has opened so far.
    ///
    /// # Errors
    /// The bridge cannot be set, or the server does not start again.
    pub fn follow(
        &mut self,
        opened: usize,
        network: &Network,
        server: &mut Option<Server>,
        tree: &Path,
        log: PathBuf,
    ) -> Result<()> {
        match self.phase {
            Phase::Before if opened > 0 => {
                network.set_reachable(false)?;
                self.enter(Phase::Hanging, opened);
            }
            Phase::Hanging if self.since.elapsed() > HANG => {
                network.set_reachable(true)?;
                self.survived.hang = Some(false);
                self.enter(Phase::Between, opened);
            }
            Phase::Between if opened > self.opened => {
                self.survived.hang = Some(true);
                *server = None;
                self.enter(Phase::Restarting, opened);
            }
            Phase::Restarting if self.since.elapsed() > RESTART => {
                *server = Some(Server::start(network, tree, log)?);
                self.survived.restart = Some(false);
                self.enter(Phase::After, opened);
            }
            Phase::After if opened > self.opened => self.survived.restart = Some(true),
            _ => {}
        }
        Ok(())
    }

    /// What the session survived so far.
    #[must_use]
    pub fn survived(&self) -> Survived {
        self.survived
    }

    fn enter(&mut self, phase: Phase, opened: usize) {
        (self.phase, self.since, self.opened) = (phase, Instant::now(), opened);
    }
}
