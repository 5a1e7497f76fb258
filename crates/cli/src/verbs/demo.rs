//! `eke demo`: before and after, in a box on this machine.

use std::path::Path;
use std::time::Duration;

use eke_apply::session::Session;
use eke_model::step::{Plan, PlannedStep, Reason, Step};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_present::task::{Task, expected};
use eke_present::{put, putln};
use eke_sandbox::demo::{self, Arrange, DemoSpec, disk_file, text};

use super::plan::Effort;
use super::{Context, applied, plan};
use crate::documents;
use crate::show;

/// The owner of the demo's changes in the journal.
const OWNER: &str = "demo";
/// A priority above all other swap, eke's included.
const FIRST: i16 = 32_000;
/// The usual duration; a slow disk takes longer.
const USUALLY: Duration = Duration::from_secs(30);

/// The verb. Its changes go through the journal: `down` undoes them after a crash.
pub fn run(context: &Context) -> Outcome {
    context.need_root(
        "`eke demo` makes a box, swaps on a file and sets kernel settings for a minute, which needs root",
    )?;
    let stop = stop::on_signals()?;
    let mut swap = DemoSwap { context, plan: None, task: None };
    // The plan must not build on the leftovers of a killed demo.
    swap.none()?;
    if !applied::is_up(context)? {
        swap.plan = Some(shown_plan(context)?);
    }
    let stressor = vec![std::env::current_exe()?.into(), "stressor".into()];
    let spec = DemoSpec::new(stressor, disk_file::default_dir());
    swap.task = Some(Task::begin(context.json, "without swap", expected(USUALLY)));
    let report = demo::run(&context.root, &spec, &mut swap, &stop);
    swap.task = None;
    swap.none()?;
    let report = report.map_err(failure)?;
    context.print(&report, |d| put!("{}", text::render(d)))?;
    Ok(Status::Done)
}

fn failure(error: demo::Error) -> Failure {
    Failure::new(Status::Failed, error.to_string())
}

fn shown_plan(context: &Context) -> Outcome<documents::Plan> {
    let overrides = plan::with_overrides(context, &crate::args::Overrides::default());
    let document = plan::make(context, &overrides, Effort::Full)?;
    if !context.json {
        put!("{}", show::plan::text(&document));
        putln!("The demo: this takes about half a minute ...\n");
    }
    Ok(document)
}

/// Sets up the swap of each part of the demo.
struct DemoSwap<'a> {
    context: &'a Context,
    /// `None` if eke is up already: its swap stays in use. The whole document: the plan has only the path of the dictionary that it owns.
    plan: Option<documents::Plan>,
    /// The status line.
    task: Option<Task>,
}

impl DemoSwap<'_> {
    fn show(&self, what: &str) {
        if let Some(task) = &self.task {
            task.doing(what);
        }
    }

    fn apply(&self, plan: &Plan) -> Result<(), eke_linux::Error> {
        Session::open(&self.context.root, OWNER)?.apply_plan(plan).map(drop)
    }
}

impl Arrange for DemoSwap<'_> {
    type Error = eke_linux::Error;

    fn compressed(&mut self) -> Result<(), eke_linux::Error> {
        self.none()?;
        self.show("with compressed swap");
        self.plan.as_ref().map_or(Ok(()), |document| self.apply(&document.decision.plan))
    }

    fn disk(&mut self, file: &Path) -> Result<(), eke_linux::Error> {
        self.none()?;
        self.show("with swap on the disk");
        let because = |text: &str| Reason::new(text);
        let steps = [
            (Step::set("zswap.enabled", "N"), because("the demo shows the disk alone")),
            (
                Step::SwapOn { path: file.display().to_string(), priority: Some(FIRST) },
                because("the demo's swap on the disk"),
            ),
        ];
        let has_zswap = self.context.root.exists("sys/module/zswap/parameters/enabled");
        let steps = steps.into_iter().filter(|(step, _)| has_zswap || matches!(step, Step::SwapOn { .. }));
        let steps = steps.map(|(step, reason)| PlannedStep { step, reason }).collect();
        self.apply(&Plan { remedy: OWNER.into(), steps, ..Plan::default() })
    }

    fn none(&mut self) -> Result<(), eke_linux::Error> {
        Session::open(&self.context.root, OWNER)?.undo_own()
    }
}
