//! Experiments with documents in windows.

use std::time::Duration;

use eke_bench_core::test_image::TestImage;
use eke_bench_core::variants::Arrangement;
use eke_bench_core::variants::host::processes_in_boxes;
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_bench_desktop::session::{Act, Ballast, Event, Spec, metrics, run};
use eke_model::units::{Bytes, MIB};
use eke_results::report::{Report, Role, Variant};
use eke_results::rows::Rows;
use eke_swap::measure::Measured;

use super::comparison::{self, Comparison, Entrant, Repeat};
use super::installation::{self, Installation};
use super::{BALLAST_RATIO, Error, Kind, NEEDS_ROOT, Options, PATIENCE_S, Trial};

/// A box with memory to spare.
const TO_SPARE: Bytes = Bytes::mib(3072);
/// All documents stay open for this long at the end of the calibration, so that their pages can be measured.
const CALM: Duration = Duration::from_secs(6);
/// [`PATIENCE_S`] in the calibration, which is not measured: a busy machine may be slow with its first page.
const PATIENCE_TO_SPARE_S: f64 = 120.0;

/// An experiment with documents in windows.
pub struct Windows {
    /// Its documents, acts and metrics.
    pub kind: &'static Kind,
    /// What the user asks for.
    pub options: Options,
}

/// What runs share.
pub struct Fixture<'a> {
    kind: &'static Kind,
    comparison: Comparison<'a>,
    image: TestImage,
    spec: Spec,
    /// All variants, in the order of the table.
    entrants: Vec<Entrant>,
    /// Pages with unexpected content, in all runs.
    unlike: usize,
}

impl Experiment for Windows {
    const NEEDS_ROOT: Option<&'static str> = Some(NEEDS_ROOT);

    type Fixture<'e> = Fixture<'e>;
    type Run = Repeat;
    type Measurement = Rows;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>, Error> {
        let mut fixture = Fixture::prepare(self.kind, environment, &self.options, notes)?;
        let measured = fixture.calibrate()?;
        fixture.enter(&measured, notes)?;
        Ok(fixture)
    }

    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Repeat> {
        fixture.comparison.plan(&fixture.entrants)
    }

    fn name(&self, fixture: &Fixture<'_>, run: &Repeat) -> String {
        fixture.comparison.name(&fixture.entrants, run)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        run: &Repeat,
        notes: &mut Vec<String>,
    ) -> Result<Option<Rows>, Error> {
        fixture.trial(run.entrant, notes)
    }

    /// After a complete round the measurements are valid.
    fn on_failure(&self, fixture: &Fixture<'_>, _error: &Error, tried: usize) -> OnFailure {
        if tried < fixture.entrants.len() { OnFailure::Abort } else { OnFailure::EndEarly }
    }

    fn report(
        &self,
        _environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Repeat, Rows>,
    ) -> Report {
        fixture.report(results)
    }

    fn is_usage(error: &Error) -> bool {
        error.is_usage()
    }
}

impl<'a> Fixture<'a> {
    /// Undoes what a killed experiment left, finds documents and programs, and puts them on the disk.
    fn prepare(
        kind: &'static Kind,
        environment: &'a Environment<'a>,
        options: &'a Options,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let comparison = Comparison::prepare(environment, options)?;
        comparison.check_names(kind.sizes)?;
        environment.progress.print("Preparing programs and documents on their disk.");
        let documents = if options.quick { kind.documents_if_quick } else { kind.documents };
        let Installation { image, viewer, documents } =
            installation::set(environment, options, documents, notes)?;
        let size = options.ballast.unwrap_or(kind.ballast);
        notes.push(format!(
            "The box has {}. A ballast of {size} ({BALLAST_RATIO} to 1, filled once) stands for the rest of a desktop.",
            memory(options)
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
        Ok(Self { kind, comparison, image, spec, entrants: Vec::new(), unlike: 0 })
    }

    /// Opens every document with memory to spare: records the contents of its pages, and measures how memory of such programs compresses.
    fn calibrate(&mut self) -> Result<Measured, Error> {
        let Comparison { environment, host, .. } = &self.comparison;
        environment.progress.begins("calibration: every document once, with memory to spare");
        let (documents, pages) = (self.spec.documents.len(), self.kind.pages);
        let (mut measured, mut turned) = (None, 0);
        let (root, tree) = (environment.root, self.image.root_dir());
        let acts = every_document(documents, pages);
        let spec = Spec { acts, patience_s: PATIENCE_TO_SPARE_S, ..self.spec.clone() };
        let command = run::driver_command(&environment.program, &tree, &spec);
        let run = self.comparison.run_session(command, TO_SPARE, &Arrangement::default(), &mut |event| {
            turned += usize::from(matches!(event, Event::Page { .. }));
            if turned == documents * pages as usize && matches!(event, Event::Memory(_)) {
                measured
                    .get_or_insert_with(|| host.measure(root, Some(&processes_in_boxes(root)), Some(&tree)));
            }
        })?;
        self.spec.expected = metrics::page_contents(&run.events, documents);
        Ok(measured.ok_or_else(|| Error::Calibration(run.describe_end()))??)
    }

    fn enter(&mut self, measured: &Measured, notes: &mut Vec<String>) -> Result<(), Error> {
        let sizes = self.kind.sizes;
        let others = self.comparison.entrants(memory(self.comparison.options), measured, sizes, notes)?;
        let spare = (!sizes).then(to_spare);
        self.entrants = self.comparison.chosen(spare.into_iter().chain(others).collect())?;
        Ok(())
    }

    /// Makes one run. It begins and ends with a cold disk and without swap of ours.
    fn trial(&mut self, entrant: usize, notes: &mut Vec<String>) -> Result<Option<Rows>, Error> {
        let Some(entrant) = self.entrants.get(entrant) else { return Ok(None) };
        self.image.cold()?;
        let before = read(&self.image);
        let spec = Spec {
            acts: (self.kind.acts)(self.spec.documents.len(), self.kind.pages),
            merge_same_pages: entrant.arrangement.merge_same_pages,
            ..self.spec.clone()
        };
        let command =
            run::driver_command(&self.comparison.environment.program, &self.image.root_dir(), &spec);
        let Some(run) = self.comparison.run_variant(entrant, command, notes)? else { return Ok(None) };
        self.unlike += metrics::browsed(&run.events).iter().map(|b| b.unexpected).sum::<usize>();
        let read = read(&self.image).zip(before).map(|(after, before)| after.saturating_sub(before));
        let read_mib = read.map(|read| read.0 as f64 / MIB as f64);
        let (variant, params) = (entrant.name(), &entrant.params);
        let mut rows = Rows::default();
        (self.kind.add)(
            &Trial { variant, params, events: &run.events, report: &run.report, read_mib },
            &mut rows,
        );
        Ok(Some(rows))
    }

    /// What all runs together show.
    fn report(&self, results: Results<Repeat, Rows>) -> Report {
        let unlike = (self.unlike > 0).then(|| {
            format!(
                "{} pages had another content than with memory to spare; they count as drawn at their last change.",
                self.unlike
            )
        });
        let more = unlike.into_iter().collect();
        self.comparison.report(self.kind.name, (self.kind.metrics)(), &self.entrants, results, more)
    }
}

/// The bytes read until now; `None` on this machine's own disk.
fn read(image: &TestImage) -> Option<Bytes> {
    image.stats().map(|stats| stats.reads.bytes)
}

fn memory(options: &Options) -> Bytes {
    options.memory.unwrap_or(super::CLIENT)
}

fn every_document(documents: usize, pages: u32) -> Vec<Act> {
    let each = |document| [Act::Open { document }, Act::Browse { document, pages, back: false }];
    let calm = Act::Rest { ms: u64::try_from(CALM.as_millis()).unwrap_or(u64::MAX) };
    (0..documents).flat_map(each).chain([calm]).collect()
}

fn to_spare() -> Entrant {
    let set_up = format!("the same in a box of {TO_SPARE}, without swap");
    let variant = Variant { name: comparison::TO_SPARE.to_owned(), role: Role::Baseline, set_up };
    Entrant::new(Arrangement { variant, ..Arrangement::default() }, TO_SPARE)
}
