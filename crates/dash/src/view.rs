//! The page's data, and their source. They have no names of a user's files, groups or programs except the history's file, if that is broken: all users of
//! a machine can read a port of 127.0.0.1, and root's page has what only root can read.

use eke_model::applied::Applied;
use eke_model::snapshot::Snapshot;
use eke_model::step::{Plan, PlannedStep, Prediction, Reason, Step};
use eke_model::units::Bytes;
use serde::Serialize;

/// The machine at one instant, and what eke does on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct View {
    /// The machine's name.
    pub host: String,
    /// The version of this program.
    pub version: &'static str,
    /// The agent's snapshot, or this process's own if no agent runs.
    pub snapshot: Snapshot,
    /// The sum of this user's mounted caches; `None` without caches.
    pub caches: Option<Caches>,
    /// The applied plans; `None` if none is applied.
    pub applied: Option<AppliedView>,
    /// The changes in force.
    pub journal: Journal,
    /// The measured latencies of swap-ins and reads.
    pub latencies: Vec<Latency>,
    /// Notes for the user: why something is missing.
    pub notes: Vec<String>,
}

/// The sum of all caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Caches {
    /// The number of caches.
    pub mounts: u64,
    /// The number of them that serve.
    pub serving: u64,
    /// Memory in use.
    pub memory: Bytes,
    /// The size of the cached data before compression.
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
    /// The steps with their reasons, in order.
    pub steps: Vec<StepView>,
    /// The prediction.
    pub prediction: Option<Prediction>,
    /// Advice for the user.
    pub advice: Vec<String>,
    /// The number of steps and pieces of advice that are left out, because they have names.
    pub hidden: usize,
}

/// A step and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StepView {
    /// The step.
    pub what: String,
    /// Its reason.
    pub why: String,
}

impl AppliedView {
    /// Without what names a user's group or file.
    pub fn for_all_users(applied: &Applied) -> Self {
        Self { unix_s: applied.unix_s, plans: applied.plans.iter().map(PlanView::for_all_users).collect() }
    }
}

impl PlanView {
    fn for_all_users(plan: &Plan) -> Self {
        // The sentence about a new zram device has no path.
        let is_shown = |s: &&PlannedStep| matches!(s.step, Step::AddZram(_)) || !has_names(&s.step);
        let step = |s: &PlannedStep| StepView { what: s.step.to_string(), why: s.reason.text.clone() };
        let steps: Vec<StepView> = plan.steps.iter().filter(is_shown).map(step).collect();
        let advice = plan.advice.iter().filter(|reason| !names_a_group(reason));
        let advice: Vec<String> = advice.map(|reason| reason.text.clone()).collect();
        Self {
            remedy: plan.remedy.clone(),
            hidden: plan.steps.len() - steps.len() + plan.advice.len() - advice.len(),
            steps,
            prediction: plan.prediction.clone(),
            advice,
        }
    }
}

/// Does the step name a group, a device, a file or a process?
pub fn has_names(step: &Step) -> bool {
    match step {
        Step::Set { target, .. } => !target.is_empty(),
        Step::AddZram(zram) => zram.backing_dev.is_some() || zram.backing_file.is_some(),
        Step::LoadModule { .. } => false,
        Step::SwapOn { .. } | Step::SwapOff { .. } | Step::Stop { .. } => true,
    }
}

/// The advice about groups with memory limits names the largest one.
fn names_a_group(reason: &Reason) -> bool {
    reason.numbers.contains_key("limited_groups")
}

/// The changes in force, from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Journal {
    /// Oldest first.
    pub changes: Vec<Change>,
    /// Why not all of them are shown; `None` if they are.
    pub hidden: Option<String>,
}

/// One change in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Change {
    /// The change.
    pub what: String,
    /// Why it was made.
    pub why: String,
    /// The command that undoes only this change, for a root shell.
    pub undo: String,
}

/// The measured latency of a source of pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Latency {
    /// The source.
    pub what: String,
    /// True if it is in use.
    pub chosen: bool,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile; `None` if only a mean is known.
    pub p99_ns: Option<u64>,
}

/// The source of views.
pub trait Source: Send {
    /// The present view; may take seconds if the agent hangs.
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
