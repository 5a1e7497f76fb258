//! `eke plan`: measures and prints; changes no setting.

use std::time::Duration;

use eke_apply::{journal, state};
use eke_model::config::{Enabled, Settings};
use eke_model::step::{Reason, Step};
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
    let mut document = make(context, &overrides, Effort::Full)?;
    settle(&context.settings, &mut document, false);
    if context.json {
        context.print_json(&document)?;
    } else {
        put!("{}", show::plan::text(&document));
        putln!("{}", closing(context, &document));
    }
    Ok(Status::Done)
}

fn closing(context: &Context, document: &documents::Plan) -> &'static str {
    let nothing_chosen = document.decision.choice.as_ref().is_some_and(|c| c.chosen.is_none());
    let is_nothing =
        document.decision.plan.steps.is_empty() && !is_for_agent(&context.settings, &document.facts, false);
    match (is_nothing, document.facts.is_root) {
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
    let (facts, measured) = measured(context, overrides, effort)?;
    decided(context, overrides, facts, measured, None)
}

/// Probes and measures.
pub fn measured(
    context: &Context,
    overrides: &decide::Overrides,
    effort: Effort,
) -> Outcome<(Facts, Measured)> {
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
    Ok((facts, measured))
}

/// Decides. `stored_s`: the age of a stored measurement.
pub fn decided(
    context: &Context,
    overrides: &decide::Overrides,
    facts: Facts,
    measured: Measured,
    stored_s: Option<u64>,
) -> Outcome<documents::Plan> {
    let decision = decide::decide(&facts, &measured, overrides).map_err(refused)?;
    let prefetch = prefetch(context, &facts, &measured);
    let governor = governor(context, &facts, &measured);
    Ok(documents::Plan { facts, measured, stored_s, decision, prefetch, governor })
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
        // over a network no queue of this machine makes reads wait
        let disk = measured.file_read.as_ref().filter(|disk| disk.device.is_some());
        let file_read = disk.map(|disk| disk.p50);
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

/// Whether the user wants something of the agent that needs no swap of eke's.
pub fn wants_agent(settings: &Settings, govern_io: bool) -> bool {
    govern_io
        || settings.io.govern == Enabled::On
        || settings.prefetch.enabled == Enabled::On
        || settings.guard.enabled == Enabled::On
}

/// Whether the agent runs for that, also where the plan has no steps.
pub fn is_for_agent(settings: &Settings, facts: &Facts, govern_io: bool) -> bool {
    wants_agent(settings, govern_io) && facts.elsewhere().is_none()
}

/// Puts what will run into the switches: where the plan has no steps, only what is asked for. `govern_io`: `--govern-io` is given.
pub fn settle(settings: &Settings, document: &mut documents::Plan, govern_io: bool) {
    let has_steps = !document.decision.plan.steps.is_empty();
    let is_for_agent = is_for_agent(settings, &document.facts, govern_io);
    let runs = |is_wanted| has_steps || is_for_agent && is_wanted;
    if govern_io {
        document.governor = Switch { is_on: true, reason: Reason::new(Switch::BY_OPTION) };
    }
    if !runs(govern_io || settings.io.govern == Enabled::On) {
        document.governor = off(&document.facts);
    }
    if !runs(settings.prefetch.enabled == Enabled::On) {
        document.prefetch = off(&document.facts);
    }
}

/// Nothing is applied, so the agent starts nothing.
fn off(facts: &Facts) -> Switch {
    let why = match facts.elsewhere() {
        Some(_) => "it runs on a host alone",
        None => "it runs while a plan is applied, and there is nothing to apply",
    };
    Switch { is_on: false, reason: Reason::new(why) }
}

/// The duration of the last measurement here, or the usual one.
fn last_time(context: &Context) -> Duration {
    let kept = state::load::<Measured>(&context.root, state::MEASURED);
    kept.map_or(USUALLY, |m| Duration::from_millis(m.took_ms))
}

/// While eke is up, its own devices have eke as their manager, and so has a zswap that it set up.
fn ourselves(context: &Context) -> Option<Manager> {
    let entries = journal::entries(&context.root).unwrap_or_default();
    let sets_zswap = |step: &Step| matches!(step, Step::Set { knob, value, .. } if knob == "zswap.enabled" && value == "Y");
    let has_zswap = entries.iter().any(|entry| sets_zswap(&entry.intent.step));
    let devices: Vec<String> = entries.into_iter().filter_map(|e| e.made).collect();
    let is_here = has_zswap || !devices.is_empty();
    is_here.then(|| Manager { name: "eke".to_owned(), devices, ..Manager::default() })
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

#[cfg(test)]
mod tests {
    use eke_model::step::{Plan, PlannedStep};
    use eke_swap::decide::Decision;
    use eke_swap::decide::backend::Backend;

    use super::*;

    fn document(has_steps: bool) -> documents::Plan {
        let step = PlannedStep { step: Step::set("vm.swappiness", 100), reason: Reason::new("a test") };
        let steps = if has_steps { vec![step] } else { Vec::new() };
        let by_measurement = || Switch { is_on: true, reason: Reason::new("reads are slow") };
        documents::Plan {
            facts: Facts::default(),
            measured: Measured::default(),
            stored_s: None,
            decision: Decision {
                backend: Backend::Nothing,
                backend_reason: Reason::new("a test"),
                choice: None,
                plan: Plan { steps, ..Plan::default() },
            },
            prefetch: by_measurement(),
            governor: by_measurement(),
        }
    }

    /// Whether prefetch and the governor are on, and the governor's reason.
    fn settled(has_steps: bool, govern: Enabled, govern_io: bool) -> (bool, bool, String) {
        let mut settings = Settings::default();
        settings.io.govern = govern;
        let mut document = document(has_steps);
        if govern == Enabled::Off {
            document.governor.is_on = false;
        }
        settle(&settings, &mut document, govern_io);
        (document.prefetch.is_on, document.governor.is_on, document.governor.reason.text)
    }

    #[test]
    fn the_switches_say_what_will_run() {
        let by = |(prefetch, governor, _)| (prefetch, governor);
        assert_eq!(by(settled(true, Enabled::Auto, false)), (true, true));
        assert_eq!(by(settled(false, Enabled::Auto, false)), (false, false), "nothing is applied");
        assert_eq!(by(settled(false, Enabled::On, false)), (false, true), "it is asked for");
        for (has_steps, govern) in [(true, Enabled::Off), (false, Enabled::Auto), (false, Enabled::Off)] {
            let (_, is_on, why) = settled(has_steps, govern, true);
            assert_eq!((is_on, why.as_str()), (true, Switch::BY_OPTION));
        }
    }
}
