//! A comparison of variants in boxes: the machine, the variants, their rounds, and the report.

use std::ffi::OsString;

use eke_bench_core::variants::ours::{EKE, Features};
use eke_bench_core::variants::table::{PEERS, STUDY_MIB};
use eke_bench_core::variants::{self, ArrangedMachine, Arrangement, Host};
use eke_bench_core::{Environment, Results, shuffled};
use eke_bench_desktop::session::{Event, metrics, run};
use eke_model::step::Step;
use eke_model::units::{Bytes, MIB};
use eke_results::report::{Metric, Report, Role};
use eke_results::rows::{Params, Rows, params};
use eke_swap::measure::Measured;

use crate::study;

use super::{Error, Options, lacking};

/// The variants of quick runs: none, two sizes, the most tuned peer, eke.
const QUICK: [&str; 6] = [TO_SPARE, "nothing", "zram of 64 MiB", "zram of 128 MiB", "tuned zram", "eke"];

/// The name of the variant with enough memory.
pub(super) const TO_SPARE: &str = "memory to spare";

/// A note of quick reports.
const IF_QUICK: &str = "A quick run has few peers, so the best peer is the best of these, and each ran once unless `--repeats` was given: a small difference can be chance.";

/// See the module.
pub(crate) struct Comparison<'a> {
    pub environment: &'a Environment<'a>,
    pub options: &'a Options,
    pub machine: ArrangedMachine,
    pub host: Host,
}

/// A variant and its box.
pub(crate) struct Entrant {
    pub arrangement: Arrangement,
    pub memory: Bytes,
    pub params: Params,
}

/// One run of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// The entrant's place.
    pub entrant: usize,
    /// From 1.
    pub round: usize,
}

impl Entrant {
    /// `params` has the size of its compressed swap, 0 for one without swap.
    pub fn new(arrangement: Arrangement, memory: Bytes) -> Self {
        let params = compressed_swap(&arrangement)
            .map_or_else(Params::new, |size| params([(crate::capacity::SWAP, (size.0 / MIB).into())]));
        Self { arrangement, memory, params }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.arrangement.variant.name
    }
}

/// All names of variants, whether or not this machine can have them.
fn names(sizes: bool, variations: bool) -> Vec<String> {
    let mut names: Vec<String> = PEERS.iter().map(|p| p.name.to_owned()).collect();
    if sizes {
        names.extend(STUDY_MIB.map(variants::size_name));
    } else {
        names.insert(0, TO_SPARE.to_owned());
    }
    names.push(EKE.to_owned());
    if variations {
        names.extend(variants::variation_names().map(str::to_owned));
    }
    names
}

fn compressed_swap(arrangement: &Arrangement) -> Option<Bytes> {
    let sizes = arrangement.plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::AddZram(device) => Some(device.disksize),
        _ => None,
    });
    let size: Bytes = sizes.sum();
    (size.0 > 0 || !arrangement.swap).then_some(size)
}

impl<'a> Comparison<'a> {
    /// Undoes what a killed experiment left, and reads the machine's facts.
    pub fn prepare(environment: &'a Environment<'a>, options: &'a Options) -> Result<Self, Error> {
        let machine = ArrangedMachine::prepare(environment.root)?;
        let host = Host::of(environment.root)?;
        Ok(Self { environment, options, machine, host })
    }

    /// Rejects unknown names before the calibration.
    ///
    /// # Errors
    /// A name that no variant has.
    pub fn check_names(&self, sizes: bool) -> Result<(), Error> {
        let known = names(sizes, self.options.variations);
        self.options.refuse_unknown(&known)
    }

    /// All variants in boxes of `budget`, in the order of the table; with `sizes` also the study's curve.
    pub fn entrants(
        &mut self,
        budget: Bytes,
        measured: &Measured,
        sizes: bool,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Entrant>, Error> {
        self.host.learn(measured);
        let peers = variants::in_box(budget, &self.host, &[])?;
        let mut arrangements = peers.arrangements;
        notes.extend(peers.notes);
        if sizes {
            arrangements.extend(variants::sizes(&self.host, &STUDY_MIB));
        }
        arrangements.push(variants::ours(budget, &self.host, measured, Features::default())?);
        if self.options.variations {
            let (variations, left_out) = variants::variations(budget, &self.host, measured)?;
            arrangements.extend(variations);
            notes.extend(left_out);
        }
        Ok(arrangements.into_iter().map(|a| Entrant::new(a, budget)).collect())
    }

    /// The variants that the user chose, in the order of the table.
    pub fn chosen(&self, entrants: Vec<Entrant>) -> Result<Vec<Entrant>, Error> {
        let options = self.options;
        let known: Vec<String> = entrants.iter().map(|e| e.name().to_owned()).collect();
        let wanted = |entrant: &Entrant| match (options.variants.as_slice(), options.quick) {
            ([], false) => true,
            ([], true) => {
                QUICK.contains(&entrant.name()) || entrant.arrangement.variant.role == Role::Variation
            }
            (named, _) => named.iter().any(|n| n == entrant.name()),
        };
        let chosen: Vec<Entrant> = entrants.into_iter().filter(wanted).collect();
        // Variants that this machine leaves out are notes. An experiment needs at least one.
        if chosen.is_empty() {
            options.refuse_unknown(&known)?;
        }
        Ok(chosen)
    }

    /// Every variant once per round, in an order of chance.
    pub fn plan(&self, entrants: &[Entrant]) -> Vec<Repeat> {
        let places: Vec<usize> = (0..entrants.len()).collect();
        let of_round = |round| {
            shuffled(&places, round).into_iter().map(move |entrant| Repeat { entrant, round: round + 1 })
        };
        (0..self.options.repeats).flat_map(of_round).collect()
    }

    /// `eke, 2 of 3`
    pub fn name(&self, entrants: &[Entrant], Repeat { entrant, round }: &Repeat) -> String {
        let name = entrants.get(*entrant).map_or("", Entrant::name);
        format!("{name}, {round} of {}", self.options.repeats)
    }

    /// Runs one session of a variant, with its arrangement in force. `None` if the session could not begin; `notes` have the reason.
    pub fn run_variant(
        &mut self,
        entrant: &Entrant,
        command: Vec<OsString>,
        notes: &mut Vec<String>,
    ) -> Result<Option<run::SessionRun>, Error> {
        self.machine.apply(&entrant.arrangement)?;
        let run = self.run_session(command, entrant.memory, &entrant.arrangement, &mut |_| {});
        self.machine.restore()?;
        let run = run?;
        let (held, end) = (run.is_valid(), run.describe_end());
        if !held {
            notes.push(format!("{}: a run failed and has no measurement: {end}.", entrant.name()));
        } else if end != metrics::ALL_DONE {
            notes.push(format!("{}: a run ended because {end}.", entrant.name()));
        }
        Ok(Some(run).filter(|_| held))
    }

    /// Runs one session in a box of `memory`.
    pub fn run_session(
        &self,
        command: Vec<OsString>,
        memory: Bytes,
        arrangement: &Arrangement,
        on_event: &mut dyn FnMut(&Event),
    ) -> Result<run::SessionRun, Error> {
        let environment = self.environment;
        let place =
            run::SessionBox { memory, swap: arrangement.swap, swappiness: arrangement.swappiness, command };
        Ok(run::in_box(environment.root, &place, environment.shutdown, &mut |event| {
            if let Some(doing) = doing(event) {
                environment.progress.doing(&doing);
            }
            on_event(event);
        })?)
    }

    /// What all runs together show.
    pub fn report(
        &self,
        name: &str,
        metrics: Vec<Metric>,
        entrants: &[Entrant],
        results: Results<Repeat, Rows>,
        more: Vec<String>,
    ) -> Report {
        let Results { measured, mut notes } = results;
        let mut rows = Rows::default();
        measured.into_iter().for_each(|(_, measured)| rows.merge(measured));
        let rows = rows.done();
        let names: Vec<&str> = entrants.iter().map(Entrant::name).collect();
        notes.extend(more);
        notes.extend(lacking::notes(&rows, &names, self.options.repeats));
        notes.extend(self.options.quick.then(|| IF_QUICK.to_owned()));
        study::beside(Report {
            variants: entrants.iter().map(|e| e.arrangement.variant.clone()).collect(),
            metrics,
            rows,
            notes,
            ..self.environment.report(name)
        })
    }
}

/// The driver's current act, for the progress.
pub(crate) fn doing(event: &Event) -> Option<String> {
    match event {
        Event::Page { document, page, .. } => Some(format!("document {}, page {}", document + 1, page + 1)),
        Event::Opened { document, .. } => Some(format!("document {} is open", document + 1)),
        Event::Switched { document, .. } => Some(format!("switched to document {}", document + 1)),
        _ => None,
    }
}
