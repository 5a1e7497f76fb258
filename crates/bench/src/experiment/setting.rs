//! What stays the same from run to run: the tree on its disk, the documents, the ground on which variants are arranged.

use std::sync::atomic::Ordering;
use std::time::Duration;

use eke_core::step::Step;
use eke_core::units::Bytes;
use eke_swap::measure::Measured;

use super::scene::{self, Scene};
use super::{Bench, Error, Experiment, Trial};
use crate::peers::host::processes_in_boxes;
use crate::peers::ours::Levers;
use crate::peers::table::STUDY_MIB;
use crate::peers::{self, Arrangement, Ground, Host};
use crate::report::{Machine, Report, Role, Variant};
use crate::rows::{Params, Rows, params};
use crate::session::{Act, Ballast, Event, Spec, figures, run};
use crate::stage::Stage;

/// A box in which nothing is short.
const TO_SPARE: Bytes = Bytes::mib(3072);
/// The name of the variant in it.
pub(super) const SPARE: &str = "memory to spare";
/// How the ballast's pages compress: what people see of a desktop's pages with lzo-rle and lz4 (Fedora's change page: "2:1 to
/// 3:1").
const BALLAST_RATIO: f64 = 2.5;
/// How long all documents stay open at the end of the calibration, so that their pages can be measured.
const CALM: Duration = Duration::from_secs(6);
/// The longest that a page may take, in seconds.
const PATIENCE_S: f64 = 10.0;

pub(super) struct Setting<'a> {
    bench: &'a Bench<'a>,
    experiment: &'a Experiment,
    stage: Stage,
    ground: Ground,
    host: Host,
    spec: Spec,
    notes: Vec<String>,
    /// How runs ended, in words, with their variant.
    ends: Vec<(String, String)>,
    unlike: usize,
}

/// A variant with the box that it runs in.
pub(super) struct Entrant {
    arrangement: Arrangement,
    memory: Bytes,
    params: Params,
}

impl Entrant {
    fn new(arrangement: Arrangement, memory: Bytes) -> Self {
        let params = compressed_swap(&arrangement).map_or_else(Params::new, |size| {
            params([("swap_mib", (size.0 / Bytes::mib(1).0).into())])
        });
        Self { arrangement, memory, params }
    }

    /// Is it a point of the study's curve?
    pub fn is_size(&self) -> bool {
        self.name().starts_with("zram of ")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.arrangement.variant.name
    }
}

/// The size of its zram devices; 0 for one that may not swap.
fn compressed_swap(arrangement: &Arrangement) -> Option<Bytes> {
    let sizes = arrangement.plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::AddZram(device) => Some(device.disksize),
        _ => None,
    });
    let size: Bytes = sizes.sum();
    (size.0 > 0 || !arrangement.swap).then_some(size)
}

impl<'a> Setting<'a> {
    /// Finds documents and programs, puts them on the disk, and undoes what a dead experiment left.
    pub fn prepare(bench: &'a Bench<'a>, experiment: &'a Experiment) -> Result<Self, Error> {
        let ground = Ground::prepare(bench.root)?;
        let host = Host::of(bench.root)?;
        bench.progress.say("preparing: programs and documents on their disk");
        let documents = if bench.options.quick { experiment.documents.div_ceil(2) } else { experiment.documents };
        let Scene { stage, viewer, documents, notes } = scene::set(bench, documents.max(2))?;
        let ballast = bench.options.ballast.unwrap_or(experiment.ballast);
        let spec = Spec {
            screen: (1024, 768),
            viewer,
            documents,
            ballast: Ballast { size: ballast, ratio: BALLAST_RATIO },
            merge_same_pages: false,
            acts: Vec::new(),
            patience_s: PATIENCE_S,
            expected: Vec::new(),
        };
        Ok(Self { bench, experiment, stage, ground, host, spec, notes, ends: Vec::new(), unlike: 0 })
    }

    /// Every document with memory to spare: what its pages look like, and how the pages of such programs compress.
    pub fn calibrate(&mut self) -> Result<Measured, Error> {
        self.bench.progress.begins("calibration: every document once, with memory to spare");
        let (documents, pages) = (self.spec.documents.len(), self.experiment.pages);
        let mut acts: Vec<Act> = (0..documents)
            .flat_map(|document| [Act::Open { document }, Act::Browse { document, pages, back: false }])
            .collect();
        acts.push(Act::Rest { ms: u64::try_from(CALM.as_millis()).unwrap_or(u64::MAX) });
        let spec = Spec { acts, ..self.spec.clone() };
        let (mut measured, mut turned) = (None, 0);
        let (host, root, tree) = (&self.host, self.bench.root, self.stage.root_dir());
        let run = self.hold(&spec, TO_SPARE, &Arrangement::default(), &mut |event| {
            turned += usize::from(matches!(event, Event::Page { .. }));
            if turned == documents * pages as usize && matches!(event, Event::Held(_)) {
                measured.get_or_insert_with(|| host.measure(root, Some(&processes_in_boxes(root)), Some(&tree)));
            }
        })?;
        let measured = measured.ok_or_else(|| Error::Calibration(figures::end_in_words(&run.events)))??;
        self.spec.expected = figures::looks(&run.events, documents);
        self.host.learn(&measured);
        Ok(measured)
    }

    /// Everything that is compared, in the order of the table.
    pub fn entrants(&mut self, measured: &Measured) -> Result<Vec<Entrant>, Error> {
        let (options, budget) = (&self.bench.options, self.bench.options.memory);
        let peers = peers::in_box(budget, &self.host, &[])?;
        self.notes.extend(peers.notes);
        let mut arrangements = peers.arrangements;
        if self.experiment.sizes {
            let sizes = if options.quick { &[STUDY_MIB[1], STUDY_MIB[3]][..] } else { &STUDY_MIB };
            arrangements.extend(peers::sizes(&self.host, sizes));
        }
        arrangements.push(peers::ours(budget, &self.host, measured, Levers::default())?);
        if options.levers {
            let (levers, notes) = peers::levers(budget, &self.host, measured)?;
            arrangements.extend(levers);
            self.notes.extend(notes);
        }
        let spare = (!self.experiment.sizes).then(|| Entrant::new(to_spare(), TO_SPARE));
        let others = arrangements.into_iter().map(|a| Entrant::new(a, budget));
        super::choose(spare.into_iter().chain(others).collect(), options)
    }

    /// One run, from a cold disk and a machine without swap of ours to the same again.
    pub fn trial(&mut self, entrant: &Entrant, add: &mut dyn FnMut(&Trial)) -> Result<(), Error> {
        self.stage.cold()?;
        let before = self.read();
        self.ground.apply(&entrant.arrangement)?;
        let acts = (self.experiment.acts)(self.spec.documents.len(), self.experiment.pages);
        let merge_same_pages = entrant.arrangement.merge_same_pages;
        let spec = Spec { acts, merge_same_pages, ..self.spec.clone() };
        let run = self.hold(&spec, entrant.memory, &entrant.arrangement, &mut |_| {});
        self.ground.none()?;
        let run = run?;
        let read_mib = self.read().saturating_sub(before).0 as f64 / Bytes::mib(1).0 as f64;
        self.ends.push((entrant.name().to_owned(), figures::end_in_words(&run.events)));
        self.unlike += figures::browsed(&run.events).iter().map(|b| b.unlike).sum::<usize>();
        let (variant, params) = (entrant.name(), &entrant.params);
        add(&Trial { variant, params, events: &run.events, report: &run.report, read_mib });
        Ok(())
    }

    fn read(&self) -> Bytes {
        self.stage.stats().map_or(Bytes(0), |stats| stats.reads.bytes)
    }

    /// Holds one session in a box of `memory`.
    fn hold(
        &self,
        spec: &Spec,
        memory: Bytes,
        arrangement: &Arrangement,
        heard: &mut dyn FnMut(&Event),
    ) -> Result<run::Run, Error> {
        let place = run::Box {
            memory,
            swap: arrangement.swap,
            swappiness: arrangement.swappiness,
            driver: run::driver(&self.bench.program),
            tree: Some(self.stage.root_dir()),
        };
        let run = run::in_box(self.bench.root, &place, spec, self.bench.shutdown, &mut |event| {
            if let Some(doing) = super::doing(event) {
                self.bench.progress.doing(&doing);
            }
            heard(event);
        })?;
        if self.bench.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(run)
    }

    /// What all runs together show.
    pub fn report(mut self, entrants: &[Entrant], rows: Rows) -> Report {
        self.notes.push(format!(
            "The box has {}. A ballast of {} ({BALLAST_RATIO} to 1, filled once) stands for the rest of a desktop.",
            self.bench.options.memory, self.spec.ballast.size
        ));
        self.notes.extend(self.ends_in_words());
        if self.unlike > 0 {
            self.notes.push(format!(
                "{} pages stayed unlike what they look with memory to spare; they count as drawn at their last change.",
                self.unlike
            ));
        }
        let variants = entrants.iter().map(|e| e.arrangement.variant.clone()).collect();
        Report {
            experiment: self.experiment.name.to_owned(),
            command: self.bench.command.clone(),
            machine: Machine::of(self.bench.root),
            variants,
            metrics: (self.experiment.metrics)(),
            rows: rows.done(),
            notes: self.notes,
        }
    }

    /// One sentence for each variant whose runs did not all go to their end.
    fn ends_in_words(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (variant, end) in &self.ends {
            if end != figures::ALL_DONE {
                sentences.push(format!("{variant}: a run ended because {end}."));
            }
        }
        sentences
    }
}

fn to_spare() -> Arrangement {
    let set_up = format!("the same in a box of {TO_SPARE}, without swap");
    let variant = Variant { name: SPARE.to_owned(), role: Role::Baseline, set_up };
    Arrangement { variant, ..Arrangement::default() }
}
