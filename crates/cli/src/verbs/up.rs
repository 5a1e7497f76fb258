//! `eke up`: measures, applies, starts the agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use eke_apply::journal;
use eke_apply::journal::replay::Entry;
use eke_apply::revert::{self, Outcome as Undone};
use eke_apply::session::Session;
use eke_apply::{state, swapped_off};
use eke_linux::cgroup::name;
use eke_linux::read::{self, kernel_release};
use eke_model::applied::{Applied, Bounds};
use eke_model::config::ExistingChoice;
use eke_model::snapshot::Request;
use eke_model::step::{Plan, Step};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_present::task::Task;
use eke_present::{put, putln};
use eke_swap::Swap;
use eke_swap::decide;
use eke_swap::measure::{self, Limits, Machine, measurements::Measured};

use super::applied::{DOWN_MARK, is_up, last_down, refuse_if_up, stays_down, swapped_back};
use super::plan::Effort;
use super::{Context, plan};
use crate::agent;
use crate::args::{AgentStart, Overrides, Up};
use crate::documents::{self, UpOutcome};
use crate::show;

/// The verb.
pub fn run(context: &Context, up: &Up) -> Outcome {
    context
        .need_root("`eke up` makes compressed swap and sets kernel settings, which needs root")
        .map_err(|f| f.hint("try again with sudo; `eke plan` and `eke doctor` work without"))?;
    context.need_machine("up")?;
    context.need_lasting_config()?;
    if up.boot && stays_down(context) {
        context.print(&without_plan(UpOutcome::WasDown), show)?;
        return Ok(Status::Done);
    }
    if is_up(context)? {
        return stay_up(context, up);
    }
    let stop = stop::on_signals()?;
    let plan = apply(context, up, &stop)?;
    let outcome = match plan.decision.plan.steps.is_empty() {
        true if is_up(context)? => UpOutcome::AgentOnly,
        true => UpOutcome::NothingToChange,
        false => UpOutcome::Applied,
    };
    let mut document = without_plan(outcome);
    let in_vain = outcome == UpOutcome::NothingToChange && plan::wants_agent(&context.settings, up.govern_io);
    if in_vain {
        document.notes.push(
            "neither prefetch, the governor of writers nor the guard runs here: eke changes nothing".into(),
        );
    }
    let agent = ensure_agent(context, up);
    // The plan is applied, with the agent or without it.
    if context.json || agent.is_ok() {
        context.print(&documents::Up { plan: Some(plan), ..document }, show)?;
    }
    agent.map(|()| if in_vain { Status::InPart } else { Status::Done })
}

fn without_plan(outcome: UpOutcome) -> documents::Up {
    documents::Up { outcome, plan: None, swapped_on: Vec::new(), notes: Vec::new() }
}

/// The end of the text; `apply` has shown the plan before.
fn show(document: &documents::Up) {
    match document.outcome {
        UpOutcome::Applied => {
            putln!("Applied. `eke status` shows what it gains, `eke down` restores everything.")
        }
        UpOutcome::AgentOnly => {
            putln!("Swap stays as it is; the agent does what else was asked of it. `eke down` ends that.")
        }
        UpOutcome::NothingToChange => putln!("Nothing to change."),
        UpOutcome::WasUp => {
            putln!("eke is up already. `eke status` shows it, `eke down` restores everything.")
        }
        UpOutcome::WasDown => {
            putln!("Nothing is applied: `eke down` was run since boot. `eke up` applies the plan.")
        }
    }
    for device in &document.swapped_on {
        putln!("{device} is swapped on again: somebody else had swapped it off.");
    }
    for note in &document.notes {
        eke_present::warn!("eke: {note}");
    }
}

/// While eke is up: repairs its swap, and takes `--govern-io`.
fn stay_up(context: &Context, up: &Up) -> Outcome {
    let mut document = without_plan(UpOutcome::WasUp);
    document.notes.extend(without_effect(context, up).into_iter().map(|option| {
        format!("{option} has no effect while eke is up: run `eke down`, and then this again")
    }));
    let all_on = swap_on_again(context, &mut document)?;
    let governs = govern_from_now_on(context, up)?;
    let agent = ensure_agent(context, up);
    context.print(&document, show)?;
    if governs && !context.json {
        putln!("From now on eke throttles writers while reads wait too long.");
    }
    agent.map(|()| if all_on { Status::Done } else { Status::InPart })
}

/// The given options that only a new plan or another agent would follow.
fn without_effect(context: &Context, up: &Up) -> Vec<&'static str> {
    let Overrides { size, pool_percent, algorithm, backend } = &up.overrides;
    let given = [
        ("--config", context.config.is_some()),
        ("--size", size.is_some()),
        ("--pool-percent", pool_percent.is_some()),
        ("--algorithm", algorithm.is_some()),
        ("--backend", backend.is_some()),
    ];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
}

/// Repairs what `swapoff -a` does to eke's swap; false if a device stays off, or is gone.
fn swap_on_again(context: &Context, document: &mut documents::Up) -> Outcome<bool> {
    // Without the lock, which a measurement may have for seconds.
    let off = swapped_off::devices(&context.root, decide::REMEDY)?;
    let (removed, off): (Vec<_>, Vec<_>) = off.into_iter().partition(|off| off.is_removed);
    document.notes.extend(removed.iter().map(|off| {
        format!("{} was removed by somebody else: `eke down` and then `eke up` set swap up again", off.name)
    }));
    if off.is_empty() {
        return Ok(removed.is_empty());
    }
    let again = Session::open(&context.root, decide::REMEDY)?.swap_on_again()?;
    let all_on = removed.is_empty() && again.iter().all(|(_, answer)| answer.is_ok());
    for (device, answer) in again {
        match answer {
            Ok(()) => document.swapped_on.push(device),
            Err(e) => {
                document.notes.push(format!("{device} was swapped off by somebody else, and stays off: {e}"))
            }
        }
    }
    Ok(all_on)
}

/// `--govern-io` also works when eke is up already; only `down` undoes it. True if it is new.
fn govern_from_now_on(context: &Context, up: &Up) -> Outcome<bool> {
    let applied = state::load::<Applied>(&context.root, state::APPLIED);
    if let Some(mut applied) = applied.filter(|applied| up.govern_io && !applied.bounds.govern_io) {
        applied.bounds.govern_io = true;
        state::save(&context.root, state::APPLIED, &applied)?;
        return Ok(true);
    }
    Ok(false)
}

/// Measures, prints the text, and applies. If it fails nothing is applied. A signal ends it before it applies, not after.
pub fn apply(context: &Context, up: &Up, stop: &AtomicBool) -> Outcome<documents::Plan> {
    let last_down = last_down(context);
    let keeps_swap = undo_leftovers(context)?;
    let mut overrides = plan::with_overrides(context, &up.overrides);
    if keeps_swap {
        overrides.settings.existing = ExistingChoice::Adopt;
    }
    let mut document =
        if up.boot { at_boot(context, &overrides)? } else { plan::make(context, &overrides, Effort::Full)? };
    let has_steps = !document.decision.plan.steps.is_empty();
    let is_for_agent = plan::is_for_agent(&context.settings, &document.facts, up.govern_io);
    plan::settle(&context.settings, &mut document, up.govern_io);
    if !context.json {
        put!("{}", show::plan::text(&document));
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::new(Status::Failed, "interrupted; nothing was changed"));
    }
    if keeps_swap || has_steps || is_for_agent {
        commit(context, up, &document, last_down)?;
    }
    Ok(document)
}

/// Undoes the leftovers of a killed `up`, `plan` or `demo`: a plan would take them for another program's. True if eke's swap stays, because a `down` has
/// no room to swap it off.
fn undo_leftovers(context: &Context) -> Outcome<bool> {
    if !has_leftovers(context)? {
        return Ok(false);
    }
    let task = Task::begin(context.json, "undoing the leftovers of an earlier eke", swapped_back(context));
    let session = Session::open(&context.root, decide::REMEDY)?;
    // While this one waited for the journal another `eke up` may have undone them, and applied its plan.
    refuse_if_up(context)?;
    if !has_leftovers(context)? {
        return Ok(false);
    }
    let outcomes = revert::all(&context.root, session.journal())?;
    drop(task);
    keeps_swap(context, &outcomes)
}

/// Whether there are changes in force, all by processes that have ended; an error if one is at work.
fn has_leftovers(context: &Context) -> Outcome<bool> {
    let root = &context.root;
    let alive = |e: &Entry| e.intent.made_by.is_some_and(|owner| name::is_alive(root, owner).unwrap_or(true));
    let entries = journal::entries(root)?;
    if let Some(entry) = entries.iter().find(|e| alive(e)) {
        let owner = &entry.intent.owner;
        return Err(Failure::new(
            Status::Failed,
            format!("another eke ({owner}) is at work on this machine; try again when it is done"),
        ));
    }
    Ok(!entries.is_empty())
}

/// True if only swap of eke's is left, which this eke adopts; an error if something else is.
fn keeps_swap(context: &Context, outcomes: &[(Entry, Undone)]) -> Outcome<bool> {
    let mut keeps = false;
    for (entry, outcome) in outcomes {
        let Undone::Blocked(why) = outcome else { continue };
        match own_swap(context, entry) {
            Some(device) => {
                eke_present::warn!("eke: {device} of an earlier eke stays swap, and is used as it is: {why}");
                keeps = true;
            }
            None if revert::waits(&entry.intent.undo) => {}
            None => {
                return Err(Failure::new(
                    Status::InPart,
                    format!("the leftovers of an earlier eke cannot be undone now: {why}"),
                ));
            }
        }
    }
    Ok(keeps)
}

/// The entry's device, if eke made it and it is swap.
fn own_swap<'a>(context: &Context, entry: &'a Entry) -> Option<&'a str> {
    let device = entry.made.as_deref().filter(|_| entry.intent.owner == decide::REMEDY)?;
    let area = read::swap_at(&context.root, &format!("/dev/{device}")).ok()?;
    area.map(|_| device)
}

/// Applies the plan and saves it; undoes it if it cannot be saved. Does nothing if `down` was run after the time `before`.
fn commit(context: &Context, up: &Up, document: &documents::Plan, before: Option<SystemTime>) -> Outcome<()> {
    let mut session = Session::open(&context.root, decide::REMEDY)?;
    // Others may have finished while this one measured: another `eke up`, or `eke down`.
    refuse_if_up(context)?;
    if last_down(context).is_some_and(|down| Some(down) != before) {
        return Err(Failure::new(Status::Failed, "`eke down` was run meanwhile; nothing is applied"));
    }
    let plan = apply_plan(&mut session, &document.decision.plan)?;
    let bounds = Bounds {
        pool_percent: up.overrides.pool_percent,
        fixed_size: up.overrides.size.is_some(),
        govern_io: up.govern_io,
        prefetch: document.prefetch.is_on,
        governor: document.governor.is_on,
    };
    let has_changes = !session.journal().entries()?.is_empty();
    let plans = has_changes.then_some(plan).into_iter().collect();
    let applied = Applied { unix_s: eke_client::unix_s(), plans, bounds };
    if let Err(e) = state::save(&context.root, state::APPLIED, &applied) {
        revert::all(&context.root, session.journal())?;
        return Err(Failure::from(e).hint("the plan was applied and undone again"));
    }
    if last_down(context) == before {
        state::forget(&context.root, DOWN_MARK)?;
    }
    keep(context, &document.measured);
    Ok(())
}

/// Applies the plan. If that fails, once more without a dictionary: until Linux 6.15 the kernel takes the memory for one without reclaiming any, and security
/// modules may keep it from reading one. Returns the plan that is applied.
fn apply_plan(session: &mut Session, plan: &Plan) -> Outcome<Plan> {
    let before = session.journal().entries()?.len();
    let Err(why) = session.apply_plan(plan) else { return Ok(plan.clone()) };
    let is_undone = session.journal().entries()?.len() == before;
    let without = without_dictionary(plan).filter(|_| is_undone);
    let Some(without) = without.filter(|without| session.apply_plan(without).is_ok()) else {
        return Err(why.into());
    };
    eke_present::warn!("eke: swap is set up without a dictionary for zstd, because with one {why}");
    Ok(without)
}

/// The plan without its dictionaries; `None` if it has none.
fn without_dictionary(plan: &Plan) -> Option<Plan> {
    let mut plan = plan.clone();
    let specs = plan.steps.iter_mut().filter_map(|planned| match &mut planned.step {
        Step::AddZram(spec) => spec.dictionary.take(),
        _ => None,
    });
    (specs.count() > 0).then_some(plan)
}

/// At boot there are few pages to sample, and all read the disks: uses the last measurement if it is of this machine and of a kernel of the same series. A
/// machine without any measures in short: it may forget everything when it is switched off, and measure at each boot.
fn at_boot(context: &Context, overrides: &decide::Overrides) -> Outcome<documents::Plan> {
    let Some(mut measured) = stored(context) else {
        let (facts, measured) = plan::measured(context, overrides, Effort::Short)?;
        return plan::decided(context, overrides, facts, Measured { at_boot: true, ..measured }, None);
    };
    if !measured.is_of_series(&kernel_release(&context.root)) {
        let (facts, new) = plan::measured(context, overrides, Effort::Full)?;
        let new = Measured { at_boot: true, ..new }.with_disks_of(measured);
        return plan::decided(context, overrides, facts, new, None);
    }
    let facts = Swap.probe_for(&context.root, &overrides.settings).map_err(plan::failure)?;
    if measured.algorithms.iter().any(|row| row.dictionary) {
        match measure::dictionary(&context.root, &facts, &Limits::default()) {
            Ok(dictionary) => measured.dictionary = dictionary,
            Err(why) => eke_present::warn!("eke: the plan has no dictionary for zstd: {why}"),
        }
    }
    let stored_s = eke_client::unix_s().saturating_sub(measured.unix_s);
    plan::decided(context, overrides, facts, measured, Some(stored_s))
}

/// The last measurement, if it was made on this machine.
fn stored(context: &Context) -> Option<Measured> {
    let stored: Option<Measured> = state::load(&context.root, state::MEASURED);
    stored.filter(|stored| stored.machine == Some(Machine::of(&context.root)))
}

/// Stores a measurement for the next boot. One that was made at boot replaces none of `eke up`'s.
fn keep(context: &Context, measured: &Measured) {
    if measured.at_boot && stored(context).is_some_and(|stored| !stored.at_boot) {
        return;
    }
    if let Err(e) = state::save(&context.root, state::MEASURED, measured) {
        eke_present::warn!("eke: cannot save the measurement for the next boot: {e}");
    }
}

/// Starts the agent, or has the running one reload its plan; one of an older version is replaced.
pub fn ensure_agent(context: &Context, up: &Up) -> Outcome<()> {
    if up.agent == AgentStart::None || !context.root.is_host() || !is_up(context)? {
        return Ok(());
    }
    if agent::is_outdated(&context.root) {
        return agent::replace(&context.root, context.config.as_deref());
    }
    if eke_client::agent::ask(&context.root, &Request::Reload)?.is_some() {
        return Ok(());
    }
    agent::start(&context.root, context.config.as_deref())
        .map(drop)
        .map_err(|e| e.hint("the plan is applied nevertheless; `eke down` undoes it"))
}

#[cfg(test)]
mod tests {
    use eke_model::step::{Reason, ZramSpec};
    use eke_model::units::Bytes;
    use eke_testkit::fake_kernel::{FakeKernel, Faults};

    use super::*;

    /// A plan of a setting and a device, with a dictionary if `has_dictionary`.
    fn plan(has_dictionary: bool) -> Plan {
        let spec = ZramSpec {
            dictionary: has_dictionary.then(|| "/proc/self/fd/7".into()),
            swap_priority: Some(100),
            ..ZramSpec::new("zstd", Bytes::mib(64))
        };
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        plan.push(Step::set("vm.swappiness", 180), Reason::new("a test"));
        plan.push(Step::AddZram(spec), Reason::new("a test"));
        plan
    }

    /// The applied plan, on a kernel that takes no dictionary, and so often no size.
    fn applied(plan: &Plan, refused_sizes: usize) -> Option<Plan> {
        const EINVAL: i32 = 22;
        let machine = FakeKernel::new();
        let errors = vec![("zram1/disksize".into(), EINVAL, refused_sizes)];
        machine.set_faults(Faults { errors, ..Faults::default() });
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        let applied = apply_plan(&mut session, plan).ok();
        let changes = session.journal().entries().unwrap().len();
        assert_eq!(changes, if applied.is_some() { 2 } else { 0 });
        applied
    }

    #[test]
    fn a_dictionary_that_the_kernel_refuses_costs_the_dictionary_alone() {
        let without = plan(false);
        assert_eq!(applied(&plan(true), 0), Some(without.clone()));
        assert_eq!(applied(&plan(true), 1), None, "another reason");
        assert_eq!(applied(&without, 0), Some(without.clone()));
        assert_eq!(applied(&without, 1), None, "not tried again");
    }
}
