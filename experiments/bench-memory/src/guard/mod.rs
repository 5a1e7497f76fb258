//! `eke bench guard`: a small machine with a login over ssh and an editor, while a load takes all memory. Who keeps it usable?
//!
//! - [`variants`]: who guards, and the loads; pure
//! - [`script`]: the guest's shell script; pure
//! - [`outcome`]: rows from the guest's output; pure

pub mod outcome;
pub mod script;
pub mod variants;

use std::path::PathBuf;
use std::time::Duration;

use eke_bench_core::test_image::Placed;
use eke_bench_core::{Environment, Experiment, OnFailure, Results, shuffled};
use eke_results::report::Report;
use eke_results::rows::Rows;
use eke_vm::{Kit, Recipe, fetch_package, run_until};

use crate::capacity::machine::files;
use crate::experiment::Error;
use crate::guest;
use outcome::Trial;
use variants::{Guarding, Load};

/// The longest that one run may take on the host's clock, with its boot.
const LIMIT: Duration = Duration::from_secs(420);
/// Names under which `eke stressor` runs in the guest.
const NAMES: [&str; 6] = ["leak", "crowd", "tab", "browser", "cc1", "editor"];

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// How often each load runs with each variant.
    pub repeats: usize,
    /// RAM of the machine in MiB.
    pub memory_mib: u32,
    /// Only the kernel and eke, and the first two loads.
    pub quick: bool,
}

/// What runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    kit: Kit,
    image: PathBuf,
    has_earlyoom: bool,
}

/// One run of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    guarding: Guarding,
    load: Load,
    round: usize,
}

impl Experiment for Guard {
    type Fixture<'e> = Fixture<'e>;
    type Run = Repeat;
    type Measurement = Trial;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>, Error> {
        let kit = files::kit(None)?;
        let earlyoom = fetch_package(&eke_vm::default_cache(), "earlyoom");
        notes.extend(
            earlyoom.as_ref().err().map(|e| format!("earlyoom is left out, it cannot be fetched: {e}.")),
        );
        let own = files::own(&environment.program)?;
        let mut parts = guest::bare_parts(&own, &["sshd", "ssh", "ssh-keygen"]);
        let eke = environment.program.with_file_name("eke");
        parts
            .placed
            .extend(NAMES.map(|name| Placed { from: eke.clone(), to: format!("/root/{name}").into() }));
        environment.progress.print("Preparing the disk of the small machine.");
        let packages: Vec<PathBuf> = earlyoom.iter().cloned().collect();
        let image = guest::ensure_image(environment.root, &kit, &parts, &packages, &environment.cache)?;
        Ok(Fixture { environment, kit, image, has_earlyoom: earlyoom.is_ok() })
    }

    /// Every round has all loads, and each load all variants in an order of its own.
    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Repeat> {
        let loads = if self.quick { &Load::ALL[..2] } else { &Load::ALL[..] };
        let mut runs = Vec::new();
        for round in 0..self.repeats {
            for load in loads.iter().copied() {
                let has = |g: &Guarding| *g != Guarding::Earlyoom || fixture.has_earlyoom;
                let mut of: Vec<Guarding> = Guarding::ALL.into_iter().filter(has).collect();
                of.retain(|g| !self.quick || matches!(g, Guarding::Kernel | Guarding::Eke));
                let repeat = |guarding| Repeat { guarding, load, round: round + 1 };
                runs.extend(shuffled(&of, round).into_iter().map(repeat));
            }
        }
        runs
    }

    fn name(&self, _fixture: &Fixture<'_>, run: &Repeat) -> String {
        format!("{}, {}, {} of {}", run.guarding.name(), run.load.name(), run.round, self.repeats)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        run: &Repeat,
        notes: &mut Vec<String>,
    ) -> Result<Option<Trial>, Error> {
        let mut recipe = Recipe::new(script::script(run.guarding, run.load)).on_root(&fixture.image);
        recipe.memory_mib = self.memory_mib;
        recipe.timeout = LIMIT;
        recipe.forget_root = true;
        recipe.kernel_args.push("no_timer_check".to_owned());
        let ended = run_until(&fixture.kit, &recipe, fixture.environment.shutdown, &mut |_| {});
        // A machine that hangs is an outcome: what it printed until then counts.
        let (output, hung) = match ended {
            Ok(ended) => (ended.output, false),
            Err(eke_vm::Error::TimedOut { trace, .. }) => (trace.output, true),
            Err(e) => return Err(guest::Error::Machine(e).into()),
        };
        let trial = outcome::parse(&output);
        if let Some(why) = &trial.failed {
            notes.push(format!("{}: {why}.", self.name(fixture, run)));
            return Ok(None);
        }
        notes.extend(hung.then(|| format!("{}: the machine hung.", self.name(fixture, run))));
        Ok(Some(trial))
    }

    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        error.on_failure()
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _fixture: &mut Fixture<'_>,
        results: Results<Repeat, Trial>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, trial) in &results.measured {
            outcome::add(run.guarding, run.load, trial, &mut rows);
        }
        let mut notes = results.notes;
        notes.push(format!(
            "A machine of {} MiB (QEMU, emulated, Debian's kernel, two CPUs). All variants have the same swap: what `eke up` sets up. Beside the load run \
             sshd with one session, and an editor with 12 % of RAM that uses its pages all the time.",
            self.memory_mib
        ));
        notes.extend(
            results.measured.first().map(|(_, trial)| format!("Swap: {}.", trial.settings.join(", "))),
        );
        Report {
            variants: Guarding::ALL.map(Guarding::variant).into(),
            metrics: outcome::metrics(),
            rows: rows.done(),
            notes,
            ..environment.report("guard in the small machine")
        }
    }

    fn is_usage(error: &Error) -> bool {
        error.is_usage()
    }
}
