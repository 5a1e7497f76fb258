//! Documents in windows: what stays the same from run to run.

use std::time::Duration;

use eke_bench_core::peers::Arrangement;
use eke_bench_core::peers::host::processes_in_boxes;
use eke_bench_core::stage::Stage;
use eke_bench_desktop::session::{Act, Ballast, Event, Spec, metrics, run};
use eke_model::units::{Bytes, MIB};
use eke_results::report::{Report, Role, Variant};
use eke_results::rows::Rows;
use eke_swap::measure::Measured;

use super::field::{self, Entrant, Field};
use super::scene::{self, Scene};
use super::{Bench, Error, Experiment, Trial};

/// A box in which nothing is short.
const TO_SPARE: Bytes = Bytes::mib(3072);
/// How the ballast's pages compress: what people see of a desktop's pages with lzo-rle and lz4 (Fedora's change page: "2:1 to
/// 3:1").
const BALLAST_RATIO: f64 = 2.5;
/// How long all documents stay open at the end of the calibration, so that their pages can be measured.
const CALM: Duration = Duration::from_secs(6);
/// The longest that a page may take, in seconds.
const PATIENCE_S: f64 = 10.0;
/// The same in the calibration, which is no trial: a busy machine may still be slow with its first page.
const PATIENCE_TO_SPARE_S: f64 = 120.0;

pub(super) struct Setting<'a> {
    experiment: &'a Experiment,
    field: Field<'a>,
    stage: Stage,
    spec: Spec,
    /// Pages that did not look as they should, in all runs.
    unlike: usize,
}

impl<'a> Setting<'a> {
    /// Finds documents and programs, puts them on the disk, and undoes what a dead experiment left.
    pub fn prepare(bench: &'a Bench<'a>, experiment: &'a Experiment) -> Result<Self, Error> {
        let mut field = Field::prepare(bench)?;
        field.check_names(experiment.sizes)?;
        bench.progress.say("Preparing programs and documents on their disk.");
        let documents =
            if bench.options.quick { experiment.documents_if_quick } else { experiment.documents };
        let Scene { stage, viewer, documents, notes } = scene::set(bench, documents)?;
        field.notes.extend(notes);
        let size = bench.options.ballast.unwrap_or(experiment.ballast);
        field.notes.push(format!(
            "The box has {}. A ballast of {size} ({BALLAST_RATIO} to 1, filled once) stands for the rest of a desktop.",
            memory(bench)
        ));
        let spec = Spec {
            screen: (1024, 768),
            viewer,
            documents,
            ballast: Ballast { size, ratio: BALLAST_RATIO },
            merge_same_pages: false,
            acts: Vec::new(),
            patience_s: PATIENCE_S,
            expected: Vec::new(),
        };
        Ok(Self { experiment, field, stage, spec, unlike: 0 })
    }

    /// Every document with memory to spare: what its pages look like, and how the pages of such programs compress.
    pub fn calibrate(&mut self) -> Result<Measured, Error> {
        let Field { bench, host, .. } = &self.field;
        bench.progress.begins("calibration: every document once, with memory to spare");
        let (documents, pages) = (self.spec.documents.len(), self.experiment.pages);
        let (mut measured, mut turned) = (None, 0);
        let (root, tree) = (bench.root, self.stage.root_dir());
        let acts = every_document(documents, pages);
        let spec = Spec { acts, patience_s: PATIENCE_TO_SPARE_S, ..self.spec.clone() };
        let command = run::driver_command(&bench.program, &tree, &spec);
        let run = self.field.hold(command, TO_SPARE, &Arrangement::default(), &mut |event| {
            turned += usize::from(matches!(event, Event::Page { .. }));
            if turned == documents * pages as usize && matches!(event, Event::Memory(_)) {
                measured
                    .get_or_insert_with(|| host.measure(root, Some(&processes_in_boxes(root)), Some(&tree)));
            }
        })?;
        self.spec.expected = metrics::page_contents(&run.events, documents);
        Ok(measured.ok_or_else(|| Error::Calibration(run.describe_end()))??)
    }

    /// Everything that is compared, in the order of the table.
    pub fn entrants(&mut self, measured: &Measured) -> Result<Vec<Entrant>, Error> {
        let sizes = self.experiment.sizes;
        let others = self.field.entrants(memory(self.field.bench), measured, sizes)?;
        let spare = (!sizes).then(to_spare);
        self.field.chosen(spare.into_iter().chain(others).collect())
    }

    /// All runs. One that fails after a whole round ends the experiment, and what was measured before it stands.
    pub fn trials(
        &mut self,
        entrants: &[Entrant],
        add: &mut dyn FnMut(&Trial, &mut Rows),
    ) -> Result<Rows, Error> {
        let mut rows = Rows::default();
        for (done, entrant) in self.field.rounds(entrants).enumerate() {
            match self.trial(entrant, &mut |trial| add(trial, &mut rows)) {
                Err(e) if done >= entrants.len() && !self.field.is_interrupted() => {
                    self.field.ended_early(done, entrant, &e);
                    break;
                }
                ended => ended?,
            }
        }
        Ok(rows)
    }

    /// One run, from a cold disk and a machine without swap of ours to the same again.
    fn trial(&mut self, entrant: &Entrant, add: &mut dyn FnMut(&Trial)) -> Result<(), Error> {
        self.stage.cold()?;
        let before = self.read();
        let spec = Spec {
            acts: (self.experiment.acts)(self.spec.documents.len(), self.experiment.pages),
            merge_same_pages: entrant.arrangement.merge_same_pages,
            ..self.spec.clone()
        };
        let command = run::driver_command(&self.field.bench.program, &self.stage.root_dir(), &spec);
        let Some(run) = self.field.compete(entrant, command)? else { return Ok(()) };
        self.unlike += metrics::browsed(&run.events).iter().map(|b| b.unexpected).sum::<usize>();
        let read = self.read().zip(before).map(|(after, before)| after.saturating_sub(before));
        let read_mib = read.map(|read| read.0 as f64 / MIB as f64);
        let (variant, params) = (entrant.name(), &entrant.params);
        add(&Trial { variant, params, events: &run.events, report: &run.report, read_mib });
        Ok(())
    }

    /// What was read so far; `None` on this machine's own disk.
    fn read(&self) -> Option<Bytes> {
        self.stage.stats().map(|stats| stats.reads.bytes)
    }

    /// What all runs together show.
    pub fn report(mut self, entrants: &[Entrant], rows: Rows) -> Report {
        if self.unlike > 0 {
            self.field.notes.push(format!(
                "{} pages stayed unlike what they are with memory to spare; they count as drawn at their last change.",
                self.unlike
            ));
        }
        self.field.report(self.experiment.name, (self.experiment.metrics)(), entrants, rows)
    }
}

fn memory(bench: &Bench) -> Bytes {
    bench.options.memory.unwrap_or(super::CLIENT)
}

fn every_document(documents: usize, pages: u32) -> Vec<Act> {
    let each = |document| [Act::Open { document }, Act::Browse { document, pages, back: false }];
    let calm = Act::Rest { ms: u64::try_from(CALM.as_millis()).unwrap_or(u64::MAX) };
    (0..documents).flat_map(each).chain([calm]).collect()
}

fn to_spare() -> Entrant {
    let set_up = format!("the same in a box of {TO_SPARE}, without swap");
    let variant = Variant { name: field::TO_SPARE.to_owned(), role: Role::Baseline, set_up };
    Entrant::new(Arrangement { variant, ..Arrangement::default() }, TO_SPARE)
}
