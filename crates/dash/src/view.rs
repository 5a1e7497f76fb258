//! What the page is told, and where that comes from. It names nothing of a user's but the history's own file, where that is
//! broken: on a machine with several users each of them can ask a port of 127.0.0.1.

use eke_model::snapshot::{Applied, Snapshot};
use eke_model::step::Prediction;
use eke_model::units::Bytes;
use serde::Serialize;

/// The machine at one instant, and what eke does there.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct View {
    /// The machine's name.
    pub host: String,
    /// The version of this program.
    pub version: &'static str,
    /// The agent's snapshot, or one's own where no agent runs.
    pub snapshot: Snapshot,
    /// The mounted caches of this user, as one; `None` where there are none.
    pub caches: Option<Caches>,
    /// The plans as applied; `None` where none is.
    pub applied: Option<AppliedView>,
    /// What is in force.
    pub journal: Journal,
    /// What was measured here of the time until data is back.
    pub latencies: Vec<Latency>,
    /// What the user should know of this page: why something is missing.
    pub notes: Vec<String>,
}

/// All caches together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Caches {
    /// How many.
    pub mounts: u64,
    /// How many of them serve.
    pub serving: u64,
    /// Memory held.
    pub memory: Bytes,
    /// What is held of files, uncompressed.
    pub files: Bytes,
    /// Blocks that were requested and cached.
    pub hits: u64,
    /// Blocks that were requested and not cached.
    pub misses: u64,
    /// Bytes answered from the stores.
    pub from_store: Bytes,
    /// Bytes read from the backing file systems.
    pub from_backing: Bytes,
}

/// What `eke up` applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AppliedView {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The plans.
    pub plans: Vec<PlanView>,
}

/// One remedy's plan, as sentences.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlanView {
    /// The remedy.
    pub remedy: String,
    /// What was done and why, in order.
    pub steps: Vec<StepView>,
    /// What it should bring.
    pub prediction: Option<Prediction>,
    /// What the user should know or do.
    pub advice: Vec<String>,
}

/// What was done and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StepView {
    /// The step.
    pub what: String,
    /// Its reason.
    pub why: String,
}

impl From<&Applied> for AppliedView {
    fn from(applied: &Applied) -> Self {
        let plan = |plan: &eke_model::step::Plan| PlanView {
            remedy: plan.remedy.clone(),
            steps: plan
                .steps
                .iter()
                .map(|s| StepView { what: s.step.to_string(), why: s.reason.text.clone() })
                .collect(),
            prediction: plan.prediction.clone(),
            advice: plan.advice.iter().map(|reason| reason.text.clone()).collect(),
        };
        Self { unix_s: applied.unix_s, plans: applied.plans.iter().map(plan).collect() }
    }
}

/// What is in force by the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Journal {
    /// Oldest first.
    pub changes: Vec<Change>,
    /// Why they cannot be seen; `None`: they can.
    pub hidden: Option<String>,
}

/// One change in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Change {
    /// The change.
    pub what: String,
    /// Why it was made.
    pub why: String,
    /// What undoes it alone, for a root shell.
    pub undo: String,
}

/// How long something takes to come back, as measured on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Latency {
    /// From where.
    pub what: String,
    /// Is it what is in use?
    pub chosen: bool,
    /// The median.
    pub p50_ns: u64,
    /// 99 of 100; `None` where only a mean is known.
    pub p99_ns: Option<u64>,
}

/// Where views come from.
pub trait Source: Send {
    /// The view now; may take seconds where the agent hangs.
    ///
    /// # Errors
    /// A sentence for the user.
    fn view(&mut self) -> Result<View, String>;
}

impl<F: FnMut() -> Result<View, String> + Send> Source for F {
    fn view(&mut self) -> Result<View, String> {
        self()
    }
}
