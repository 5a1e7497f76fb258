//! The machine at one instant: the agent's snapshot, or this process's own.

use std::time::Duration;

use eke_apply::state;
use eke_linux::Root;
use eke_linux::cgroup::limit;
use eke_linux::read::{monotonic_ms, swap_in_use};
use eke_linux::sampler::Sampler;
use eke_model::applied::Applied;
use eke_model::model::Model;
use eke_model::sample::Sample;
use eke_model::snapshot::{Machine, Snapshot, waits_with_plenty};
use eke_present::exit::{Outcome, Status};

use crate::agent;

/// The interval between two samples if no agent runs.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time for an answer of an agent that did not answer the last time: whoever reads again and again sees no old numbers.
const ONCE_SILENT: Duration = Duration::from_secs(1);

/// The agent's snapshot; if none answers, of the machine as this process samples it.
///
/// # Errors
/// See [`Reader::snapshot`].
pub fn snapshot(root: &Root) -> Outcome<Snapshot> {
    Reader::new(root.clone()).snapshot()
}

/// Asks the agent; if none answers it samples the machine itself. Its rates are those since its last sample.
pub struct Reader {
    root: Root,
    sampler: Sampler,
    before: Option<Sample>,
    within: Duration,
}

impl Reader {
    /// Without a sample.
    pub fn new(root: Root) -> Self {
        let sampler = Sampler::new(&root);
        Self { root, sampler, before: None, within: agent::ANSWER_WITHIN }
    }

    /// The machine's root directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The present state. Without an agent the first call takes half a second; an agent that does not answer costs a few more.
    ///
    /// # Errors
    /// The agent refuses; the machine cannot be read.
    pub fn snapshot(&mut self) -> Outcome<Snapshot> {
        let answer = agent::snapshot_within(&self.root, self.within);
        self.within = agent::ANSWER_WITHIN;
        match answer {
            Ok(Some(snapshot)) => {
                self.before = None;
                Ok(snapshot)
            }
            Ok(None) => self.own(None),
            Err(silent) if silent.status() == Status::NoAgent => {
                self.within = ONCE_SILENT;
                self.own(Some(silent.message()))
            }
            Err(refused) => Err(refused),
        }
    }

    fn own(&mut self, agent_silent: Option<String>) -> Outcome<Snapshot> {
        let before = match self.before.take() {
            Some(before) => before,
            None => {
                let first = self.sample()?;
                self.root.sleep(INTERVAL);
                first
            }
        };
        let now = self.sample()?;
        let applied: Option<Applied> = state::load(&self.root, state::APPLIED);
        let (model, machine) = (Model::new(&now, Some(&before)), Machine::from(&now));
        let at_limit = waits_with_plenty(&model, &machine).then(|| limit::waiting_at_limit(&self.root));
        let snapshot = Snapshot {
            agent: None,
            agent_silent,
            applied: applied.as_ref().is_some_and(|applied| !applied.plans.is_empty()),
            backend: swap_in_use(&self.root, &now),
            prediction: applied.and_then(|a| a.plans.into_iter().find_map(|p| p.prediction)),
            unix_s: crate::unix_s(),
            model,
            machine,
            group_at_limit: at_limit.flatten(),
            prefetch: None,
            guard: None,
            io: None,
            events: Vec::new(),
            ended: Vec::new(),
        };
        self.before = Some(now);
        Ok(snapshot)
    }

    fn sample(&mut self) -> Outcome<Sample> {
        Ok(self.sampler.full(monotonic_ms())?)
    }
}
