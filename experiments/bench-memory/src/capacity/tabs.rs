//! Tabs of a browser, in a box: each is opened and scrolled through, then every earlier one is visited.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use eke_bench_core::variants::Arrangement;
use eke_bench_core::variants::host::processes_in_boxes;
use eke_bench_core::{Environment, Experiment, Results};
use eke_bench_desktop::session::{Event, MemoryUse, metrics, run};
use eke_bench_desktop::tabs::{Server, Spec, cold, documents, usable};
use eke_model::units::Bytes;
use eke_results::report::{Metric, Report};
use eke_results::rows::{Params, Rows};
use eke_swap::measure::Measured;

use super::{add_density, add_killed, density_metric, killed_metric};
use crate::experiment::comparison::{Comparison, Entrant, Repeat};
use crate::experiment::{Error, NEEDS_ROOT, Options};
use eke_results::report::{less, more};

/// The budget of the box. In it, a browser without swap can keep 5 tabs, but not 6.
pub const MEMORY: Bytes = Bytes::mib(720);
/// A box with memory to spare.
const TO_SPARE: Bytes = Bytes::mib(6144);
/// The most tabs.
const MOST: usize = 40;
/// The number of open tabs when their pages are measured.
const MEASURED_AT: usize = 6;
/// How much of a document each tab shows, in bytes.
const WEIGHT: usize = 400 << 10;
/// Earlier tabs that are visited after each new one, in a quick run.
const VISITS_IF_QUICK: usize = 6;
/// Browsers; the first installed one is used.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const HELD: &str = "tabs held";
const OPENING: &str = "opening a tab";
const VISIT: &str = "going back to a tab";

/// The experiment.
pub struct Tabs(pub Options);

impl Experiment for Tabs {
    const NEEDS_ROOT: Option<&'static str> = Some(NEEDS_ROOT);

    type Fixture<'e> = Browsing<'e>;
    type Run = Repeat;
    type Measurement = Rows;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Browsing<'e>, Error> {
        let mut browsing = Browsing::prepare(environment, &self.0, notes)?;
        let measured = browsing.calibrate()?;
        let memory = self.0.memory.unwrap_or(MEMORY);
        let entrants = browsing.comparison.entrants(memory, &measured, true, notes)?;
        browsing.entrants = browsing.comparison.chosen(entrants)?;
        Ok(browsing)
    }

    fn plan(&self, browsing: &Browsing<'_>) -> Vec<Repeat> {
        browsing.comparison.plan(&browsing.entrants)
    }

    fn name(&self, browsing: &Browsing<'_>, run: &Repeat) -> String {
        browsing.comparison.name(&browsing.entrants, run)
    }

    fn measure(
        &self,
        browsing: &mut Browsing<'_>,
        run: &Repeat,
        notes: &mut Vec<String>,
    ) -> Result<Option<Rows>, Error> {
        browsing.trial(run.entrant, notes)
    }

    fn report(
        &self,
        _environment: &Environment<'_>,
        browsing: &mut Browsing<'_>,
        results: Results<Repeat, Rows>,
    ) -> Report {
        browsing.comparison.report("capacity of tabs", metrics(), &browsing.entrants, results, Vec::new())
    }

    fn is_usage(error: &Error) -> bool {
        error.is_usage()
    }
}

/// What runs share.
pub struct Browsing<'a> {
    comparison: Comparison<'a>,
    /// All variants, in the order of the table.
    entrants: Vec<Entrant>,
    spec: Spec,
    /// The browser's files. Each run reads them from the disk anew, so that its box is charged for them.
    files: Vec<PathBuf>,
    _server: Server,
}

impl<'a> Browsing<'a> {
    fn prepare(
        environment: &'a Environment<'a>,
        options: &'a Options,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let comparison = Comparison::prepare(environment, options)?;
        comparison.check_names(true)?;
        let found = eke_bench_desktop::desktop::find(&BROWSERS)
            .ok_or(Error::NoBrowser { known: BROWSERS.to_vec() })?;
        let program = cold::real(&found);
        let directories = options
            .documents
            .as_ref()
            .map_or_else(|| documents::USUAL.map(PathBuf::from).to_vec(), |own| vec![own.clone()]);
        let pages = documents::gather(&directories, MOST, WEIGHT);
        notes.extend(pages.notes);
        notes.push(format!(
            "The browser is {}, headless, each tab another site. Its files are read from this machine's own disk anew in each run; there is no slow disk, no viewer and no ballast, whatever the options are.",
            program.display()
        ));
        let server = Server::start(pages.pages, Arc::new(AtomicBool::new(false)))?;
        let visits = options.quick.then_some(VISITS_IF_QUICK);
        let spec = Spec { tabs: MOST, visits, ..Spec::new(program.clone(), server.port()) };
        Ok(Self { comparison, entrants: Vec::new(), spec, files: cold::files(&program), _server: server })
    }

    /// Opens some tabs with memory to spare, and measures how memory of such programs compresses.
    fn calibrate(&self) -> Result<Measured, Error> {
        let Comparison { environment, host, .. } = &self.comparison;
        environment.progress.begins("calibration: some tabs with memory to spare");
        let mut measured = None;
        let spec = Spec { tabs: MEASURED_AT + 1, ..self.spec.clone() };
        let run = self.comparison.run_session(
            self.command(&spec),
            TO_SPARE,
            &Arrangement::default(),
            &mut |event| {
                if matches!(event, Event::Memory(MemoryUse { documents: MEASURED_AT, .. })) {
                    let root = environment.root;
                    measured = Some(host.measure(root, Some(&processes_in_boxes(root)), None));
                }
            },
        )?;
        Ok(measured.ok_or_else(|| Error::Calibration(run.describe_end()))??)
    }

    fn trial(&mut self, entrant: usize, notes: &mut Vec<String>) -> Result<Option<Rows>, Error> {
        let Some(entrant) = self.entrants.get(entrant) else { return Ok(None) };
        cold::evict(&self.files);
        let spec = Spec { merge_same_pages: entrant.arrangement.merge_same_pages, ..self.spec.clone() };
        let command = self.command(&spec);
        let run = self.comparison.run_variant(entrant, command, notes)?;
        Ok(run.map(|run| rows(entrant, &run)))
    }

    fn command(&self, spec: &Spec) -> Vec<OsString> {
        let program = OsString::from(&self.comparison.environment.program);
        let spec = serde_json::to_string(spec).unwrap_or_default();
        vec![program, "lab".into(), "tabs".into(), spec.into()]
    }
}

fn metrics() -> Vec<Metric> {
    vec![
        more(HELD, "tabs opened, scrolled through and visited again before one was killed or took over 10 s"),
        density_metric("browser's"),
        less(OPENING, "from asking for the tab until its page is drawn"),
        less(VISIT, "from asking for an earlier tab until it is drawn and answers"),
        killed_metric(),
    ]
}

fn rows(entrant: &Entrant, run: &run::SessionRun) -> Rows {
    let (variant, params, mut rows) = (entrant.name(), &entrant.params, Rows::default());
    rows.add(variant, params, HELD, "tabs", [usable(&run.events) as f64]);
    let last = run.events.iter().rev().find_map(|event| match event {
        Event::Memory(held) => Some(*held),
        _ => None,
    });
    add_density(&mut rows, variant, params, last.unwrap_or_default(), run.report.memory);
    let none = Params::new();
    rows.add(variant, &none, OPENING, "s", metrics::openings(&run.events));
    rows.add(variant, &none, VISIT, "s", metrics::switches(&run.events));
    add_killed(&mut rows, variant, params, &run.events);
    rows
}
