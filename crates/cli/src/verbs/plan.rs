//! `eke plan`: measures and prints; changes no setting.

use std::time::Duration;

use eke_apply::{journal, state};
use eke_model::config::Enabled;
use eke_model::step::Reason;
use eke_prefetch_model::pays::{Given, pays};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::task::{Task, expected};
use eke_present::{put, putln};
use eke_swap::Swap;
use eke_swap::decide;
use eke_swap::facts::{Facts, Manager};
use eke_swap::measure::measurements::Measured;

use super::Context;
use crate::args;
use crate::documents::{self, Switch};
use crate::show;

/// The usual duration of a measurement; slow CPUs take longer.
const USUALLY: Duration = Duration::from_secs(3);

/// The verb.
pub fn run(context: &Context, overrides: &args::Overrides) -> Outcome {
    let overrides = with_overrides(context, overrides);
    let document = make(context, &overrides, Effort::Full)?;
    if context.json {
        context.print_json(&document)?;
    } else {
        put!("{}", show::plan::text(&document));
        putln!("{}", closing(&document));
    }
    Ok(Status::Done)
}

fn closing(document: &documents::Plan) -> &'static str {
    let nothing_chosen = document.decision.choice.as_ref().is_some_and(|c| c.chosen.is_none());
    match (document.decision.plan.steps.is_empty(), document.facts.is_root) {
        (true, false) if nothing_chosen => {
            "Without root nothing could be measured, so there is no plan. `sudo eke plan` measures and changes nothing."
        }
        (true, _) => "Nothing to change.",
        (false, true) => "Nothing was changed. `eke up` applies this, `eke down` restores everything.",
        (false, false) => {
            "Nothing was changed. `sudo eke up` measures exactly and applies, `sudo eke down` restores everything."
        }
    }
}

/// The settings with the overrides of the command line.
pub fn with_overrides(context: &Context, overrides: &args::Overrides) -> decide::Overrides {
    use eke_model::config::BackendChoice;
    let mut settings = context.settings.swap.clone();
    if let Some(percent) = overrides.pool_percent {
        settings.pool_percent = percent;
    }
    if let Some(name) = &overrides.algorithm {
        settings.algorithm.clone_from(name);
    }
    match overrides.backend {
        Some(args::Backend::Zram) => settings.backend = BackendChoice::Zram,
        Some(args::Backend::Zswap) => settings.backend = BackendChoice::Zswap,
        Some(args::Backend::Auto) => settings.backend = BackendChoice::Auto,
        None => {}
    }
    decide::Overrides { settings, size: overrides.size, guard: context.settings.guard.enabled }
}

/// How thoroughly to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Every algorithm that the kernel offers.
    Full,
    /// The usual ones.
    Short,
}

/// Probes, measures and decides.
pub fn make(context: &Context, overrides: &decide::Overrides, effort: Effort) -> Outcome<documents::Plan> {
    let mut facts = Swap.probe_for(&context.root, &overrides.settings).map_err(failure)?;
    facts.managers.extend(ourselves(context));
    let task = Task::begin(context.json, "measuring pages and disks", expected(last_time(context)));
    let mut measured = match effort {
        Effort::Full => Swap.measure(&context.root, &facts),
        Effort::Short => Swap.measure_at_boot(&context.root, &facts, &overrides.settings),
    }
    .map_err(failure)?;
    measured.unix_s = eke_client::unix_s();
    drop(task);
    let decision = decide::decide(&facts, &measured, overrides).map_err(refused)?;
    let prefetch = prefetch(context, &facts, &measured);
    let governor = governor(context, &facts, &measured);
    Ok(documents::Plan { facts, measured, stored_s: None, decision, prefetch, governor })
}

/// Whether prefetch will run: by the settings, or by the measurement.
pub fn prefetch(context: &Context, facts: &Facts, measured: &Measured) -> Switch {
    switch(context.settings.prefetch.enabled, "`enabled` in [prefetch]", || {
        let other = facts.others.iter().find(|other| other.active && other.name == "preload");
        pays(Given {
            file_read: measured.file_read.as_ref().map(|disk| disk.p50),
            homes_rotate: facts.homes_rotate,
            ram: facts.ram,
            other: other.map(|other| other.name.as_str()),
        })
    })
}

/// Whether the governor of writers will run.
pub fn governor(context: &Context, facts: &Facts, measured: &Measured) -> Switch {
    switch(context.settings.io.govern, "`govern` in [io]", || {
        let file_read = measured.file_read.as_ref().map(|disk| disk.p50);
        eke_io::pays::pays(file_read, facts.homes_rotate, facts.ram)
    })
}

fn switch(choice: Enabled, key: &str, by_measurement: impl FnOnce() -> (bool, Reason)) -> Switch {
    let (is_on, reason) = match choice {
        Enabled::On => (true, Reason::new(format!("by {key}"))),
        Enabled::Off => (false, Reason::new(format!("by {key}"))),
        Enabled::Auto => by_measurement(),
    };
    Switch { is_on, reason }
}

/// Nothing is applied, so the agent starts nothing.
pub fn not_applied() -> Switch {
    Switch {
        is_on: false,
        reason: Reason::new("it runs while a plan is applied, and there is nothing to apply"),
    }
}

/// The duration of the last measurement here, or the usual one.
fn last_time(context: &Context) -> Duration {
    let kept = state::load::<Measured>(&context.root, state::MEASURED);
    kept.map_or(USUALLY, |m| Duration::from_millis(m.took_ms))
}

/// While eke is up, its own devices have eke as their manager.
fn ourselves(context: &Context) -> Option<Manager> {
    let entries = journal::entries(&context.root).unwrap_or_default();
    let devices: Vec<String> = entries.into_iter().filter_map(|e| e.made).collect();
    (!devices.is_empty()).then(|| Manager { name: "eke".to_owned(), devices, ..Manager::default() })
}
/// Probing or measuring swap failed.
pub fn failure(error: eke_swap::Error) -> Failure {
    match error {
        eke_swap::Error::Kernel(e) => e.into(),
        other => Failure::new(Status::Failed, other.to_string()),
    }
}

/// The settings name something that this machine cannot do.
pub fn refused(error: decide::BadOverride) -> Failure {
    Failure::new(Status::Usage, error.to_string())
}
