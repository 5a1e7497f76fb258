//! The whole experiment, disk by disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use eke_bench_core::test_image::{self, Tree};
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_bench_desktop::desktop::bare::Screen;
use eke_bench_desktop::desktop::find;
use eke_results::report::Report;

use super::error::{Error, Result};
use super::fixture::{DiskFixture, Home, How};
use super::packages::Installed;
use super::plan::{self, Run, Variant, What};
use super::prefetcher::Prefetcher;
use super::prefetcher::eke::Eke;
use super::prefetcher::preload::Preload;
use super::programs::{self, DOCUMENT, Program};
use super::report::{self, Measurement};
use super::{Options, cost, harm, launcher, ten, tree, trial};

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Startup(pub Options);

/// What runs on all disks share. Fields are dropped in this order.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    options: &'e Options,
    prefetchers: Prefetchers,
    disk: Option<CurrentDisk<'e>>,
    programs: Vec<&'static Program>,
    variants: Vec<Variant>,
    image: PathBuf,
    document: Option<String>,
    home: Rc<Home>,
    screen: Rc<Screen>,
    /// The number and bytes of maps, by program.
    maps: BTreeMap<&'static str, (usize, u64)>,
}

/// The prefetchers of the chosen variants.
struct Prefetchers {
    preload: Option<Preload>,
    eke: Option<Eke>,
}

/// The disk of the current runs.
struct CurrentDisk<'e> {
    /// Its place in [`Options::disks`].
    number: usize,
    fixture: DiskFixture<'e>,
    /// Programs that do not start here.
    broken: Vec<&'static str>,
    /// Prefetchers and programs that they did not learn.
    unlearned: Vec<(&'static str, &'static str)>,
}

impl Experiment for Startup {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes a slow disk and mounts it anew for each run, which needs root");

    type Fixture<'e> = Fixture<'e>;
    type Run = Run;
    type Measurement = Measurement;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>> {
        let options = &self.0;
        test_image::sweep(environment.root)?;
        let cache = environment.cache.join("startup");
        let installed = Installed::read()?;
        let variants = variants(environment, options, notes)?;
        let mut programs = programs(options, &installed, notes)?;
        let document = document(options, &cache, &mut programs, notes)?;
        if programs.is_empty() {
            return Err(Error::Usage(format!("none of the programs is here: {}", notes.join(" "))));
        }
        environment.progress.print("Preparing the disk with the programs (it is kept for the next time).");
        let parts = tree::parts(&programs, &installed, document.as_deref())?;
        let image = test_image::ensure(environment.root, &Tree::of(&parts)?, &cache, SystemTime::now())?;
        let document = document.map(|_| launcher::document_path(DOCUMENT).display().to_string());
        let screen = Screen::start().map_err(Error::Screen)?;
        let home = Home::make(&screen)?;
        Ok(Fixture {
            environment,
            options,
            prefetchers: Prefetchers::new(environment, options, &variants)?,
            disk: None,
            programs,
            variants,
            image,
            document,
            home: Rc::new(home),
            screen: Rc::new(screen),
            maps: BTreeMap::new(),
        })
    }

    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Run> {
        plan::runs(&self.0, &fixture.programs, &fixture.variants)
    }

    fn name(&self, fixture: &Fixture<'_>, run: &Run) -> String {
        fixture.on_disk(run.disk, &self.name_on_disk(fixture, run))
    }

    fn prepare(&self, fixture: &mut Fixture<'_>, run: &Run, notes: &mut Vec<String>) -> Result<bool> {
        if fixture.disk.as_ref().is_none_or(|disk| disk.number != run.disk) {
            fixture.detach()?;
            fixture.attach(run.disk, notes)?;
        }
        fixture.can(run, notes)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Measurement>> {
        let besides = fixture.beside();
        let row = plan::in_a_row(&fixture.there(), ten::COUNT);
        let Fixture { prefetchers, disk: Some(CurrentDisk { fixture: disk, .. }), .. } = fixture else {
            return Ok(None);
        };
        let variant = run.variant;
        Ok(Some(match run.what {
            What::Start { program, .. } => {
                Measurement::Start(trial::run(disk, &mut prefetchers.of(variant), program, variant)?)
            }
            What::Traced { program } => {
                Measurement::Calls(trial::traced(disk, &mut prefetchers.of(variant), program, variant)?)
            }
            What::Beside => {
                let Some(program) = besides else { return Ok(None) };
                Measurement::Harm(program, harm::run(disk, &mut prefetchers.of(variant), program, variant)?)
            }
            What::Row => {
                let mut prefetcher = prefetchers.of(variant);
                if let (Variant::Preload, Some(preload)) = (variant, &mut prefetcher) {
                    preload.learn(disk, &row)?;
                }
                let ten = ten::run(disk, &mut prefetcher, &row, variant)?;
                Measurement::Ten(row, ten)
            }
            What::Cost { program } => {
                let Some(eke) = &mut prefetchers.eke else { return Ok(None) };
                Measurement::Cost(cost::run(disk, eke, program)?)
            }
        }))
    }

    /// A failed run leaves the others valid.
    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        if error.is_of_one_run() { OnFailure::LeaveOut } else { OnFailure::Abort }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Run, Measurement>,
    ) -> Report {
        let maps = std::mem::take(&mut fixture.maps);
        report::report(environment, &self.0, &fixture.variants, report::by_kind(results, maps))
    }

    fn tear_down(&self, mut fixture: Fixture<'_>) -> Result<()> {
        fixture.detach()
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
}

impl Startup {
    fn name_on_disk(&self, fixture: &Fixture<'_>, run: &Run) -> String {
        let variant = run.variant.name();
        match run.what {
            What::Start { round, program } => {
                format!("{}, {variant}, {} of {}", program.name, round + 1, self.0.repeats)
            }
            What::Traced { program } => format!("{}, {variant}, under strace", program.name),
            What::Beside => {
                let program = fixture.beside().map_or("", |program| program.name);
                format!("{program}, {variant}, beside another reader")
            }
            What::Row => format!("ten in a row, {variant}"),
            What::Cost { program } => format!("{}, CPU time", program.name),
        }
    }
}

impl Fixture<'_> {
    /// Attaches a disk, starts every program there for the first time, and lets the prefetchers learn.
    fn attach(&mut self, number: usize, notes: &mut Vec<String>) -> Result<()> {
        self.environment.progress.doing("the disk");
        let name = self.options.disks.get(number).and_then(Option::as_deref);
        let (screen, home) = (Rc::clone(&self.screen), Rc::clone(&self.home));
        let fixture = DiskFixture::set(
            self.environment,
            self.options,
            &self.image,
            name,
            (screen, home),
            self.document.clone(),
        )?;
        self.disk = Some(CurrentDisk { number, fixture, broken: Vec::new(), unlearned: Vec::new() });
        self.first_starts(notes)?;
        self.learn(notes)
    }

    /// Stops the prefetchers and tears the disk down, if there is one.
    fn detach(&mut self) -> Result<()> {
        self.prefetchers.rest()?;
        self.disk.take().map_or(Ok(()), |disk| disk.fixture.disk.teardown())
    }

    /// The programs that start on this disk.
    fn there(&self) -> Vec<&'static Program> {
        let is_broken =
            |program: &Program| self.disk.as_ref().is_some_and(|disk| disk.broken.contains(&program.name));
        self.programs.iter().copied().filter(|program| !is_broken(program)).collect()
    }

    /// The program beside a second reader: gedit, or the first one.
    fn beside(&self) -> Option<&'static Program> {
        let programs = self.there();
        programs.iter().find(|p| p.name == "gedit").or(programs.first()).copied()
    }

    /// Can this run be made? Its program must start here, and its prefetcher must have learned the program.
    fn can(&self, run: &Run, notes: &mut Vec<String>) -> Result<bool> {
        let is_learned = |program: &Program| {
            let lesson = (words(run.variant), program.name);
            self.disk.as_ref().is_some_and(|disk| !disk.unlearned.contains(&lesson))
        };
        let starts = |program: &&'static Program| self.there().contains(program);
        Ok(match run.what {
            What::Start { program, .. } => starts(&program) && is_learned(program),
            What::Traced { program } => {
                let is_traceable = find(&["strace"]).is_some();
                let note =
                    "Time in system calls is left out: strace is not installed (Debian: apt install strace).";
                if !is_traceable && !notes.iter().any(|n| n == note) {
                    notes.push(note.to_owned());
                }
                is_traceable && starts(&program) && is_learned(program)
            }
            What::Beside => self.beside().is_some_and(is_learned),
            What::Row => true,
            What::Cost { program } => self.prefetchers.eke.is_some() && starts(&program),
        })
    }

    /// Starts every program for the first time, which fills the home directory, and counts maps.
    fn first_starts(&mut self, notes: &mut Vec<String>) -> Result<()> {
        for program in self.programs.clone() {
            if self.maps.contains_key(program.name) {
                continue;
            }
            let what = format!("{}, for the first time", program.name);
            self.environment.progress.doing(&what);
            let Some(disk) = &mut self.disk else { return Ok(()) };
            let maps = first_start(&disk.fixture, program);
            match self.or_note(maps, &what, notes)? {
                Some(maps) => drop(self.maps.insert(program.name, maps)),
                None => self.disk.iter_mut().for_each(|disk| disk.broken.push(program.name)),
            }
        }
        Ok(())
    }

    /// Lets prefetchers learn. preload knows programs by path, which is the same on each disk; eke learns anew.
    fn learn(&mut self, notes: &mut Vec<String>) -> Result<()> {
        if let Some(eke) = &mut self.prefetchers.eke {
            eke.forget()?;
        }
        for variant in [Variant::Preload, Variant::Ahead] {
            for program in self.there() {
                let Some(prefetcher) = self.prefetchers.of(variant) else { continue };
                let what = format!("{} learns {}", words(variant), program.name);
                self.environment.progress.doing(&what);
                let Some(disk) = &mut self.disk else { return Ok(()) };
                let learned = prefetcher.learn(&disk.fixture, &[program]);
                let rested = prefetcher.rest();
                if self.or_note(learned, &what, notes)?.is_none() {
                    self.disk.iter_mut().for_each(|disk| disk.unlearned.push((words(variant), program.name)));
                }
                rested?;
            }
        }
        Ok(())
    }

    fn on_disk(&self, disk: usize, what: &str) -> String {
        format!("{}: {what}", report::disk_name(self.options, disk))
    }

    /// A failure that concerns one program is a note.
    fn or_note<T>(&self, result: Result<T>, what: &str, notes: &mut Vec<String>) -> Result<Option<T>> {
        match result {
            Err(e) if e.is_of_one_run() && !self.environment.is_interrupted() => {
                let disk = self.disk.as_ref().map_or(0, |disk| disk.number);
                let note = self.on_disk(disk, &format!("{what}: this failed: {e}."));
                self.environment.progress.print(&note);
                notes.push(note);
                Ok(None)
            }
            result => result.map(Some),
        }
    }
}

/// The possible variants. One that the user names must be possible.
fn variants(
    environment: &Environment<'_>,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<Variant>> {
    let asked = &options.variants;
    let wanted = Variant::ALL.into_iter().filter(|v| asked.is_empty() || asked.contains(v));
    let mut possible = Vec::new();
    for variant in wanted {
        match check(environment, variant) {
            Ok(()) => possible.push(variant),
            Err(e) if asked.contains(&variant) => return Err(e),
            Err(e) => notes.push(format!("{} is left out: {e}.", variant.name())),
        }
    }
    Ok(possible)
}

fn check(environment: &Environment<'_>, variant: Variant) -> Result<()> {
    match variant {
        Variant::Preload => Preload::check(),
        Variant::Ahead | Variant::AtExec => Eke::check(&environment.program),
        Variant::Cold | Variant::Warm => Ok(()),
    }
}

/// The installed programs. One that the user names must be installed.
fn programs(
    options: &Options,
    installed: &Installed,
    notes: &mut Vec<String>,
) -> Result<Vec<&'static Program>> {
    let asked = &options.programs;
    let wanted =
        programs::all().filter(|p| if asked.is_empty() { p.set <= options.set } else { asked.contains(p) });
    let there = tree::there(&wanted.collect::<Vec<_>>(), installed);
    for (name, why) in &there.lacking {
        if asked.iter().any(|p| p.name == *name) {
            return Err(Error::Usage(why.clone()));
        }
        notes.push(format!("{name} is left out: {why}."));
    }
    Ok(there.programs)
}

/// The viewer's document. Without one, the viewer is left out.
fn document(
    options: &Options,
    cache: &Path,
    programs: &mut Vec<&'static Program>,
    notes: &mut Vec<String>,
) -> Result<Option<PathBuf>> {
    if !programs.iter().any(|p| p.needs_document()) {
        return Ok(None);
    }
    let own = options.documents.as_deref();
    match tree::document(own, &cache.join("documents")) {
        Ok(document) => Ok(Some(document.path)),
        Err(e) if own.is_some() => Err(e),
        Err(e) => {
            programs.retain(|p| !p.needs_document());
            notes.push(format!("mupdf is left out, since it has nothing to show: {e}."));
            Ok(None)
        }
    }
}

impl Prefetchers {
    fn new(environment: &Environment<'_>, options: &Options, variants: &[Variant]) -> Result<Self> {
        let preload = variants.contains(&Variant::Preload);
        let eke = variants.iter().any(|v| v.is_ours());
        Ok(Self {
            preload: preload.then(|| Preload::new(environment.root, options.preload_cycle_s)).transpose()?,
            eke: eke.then(|| Eke::new(environment.root, &environment.program)).transpose()?,
        })
    }

    fn of(&mut self, variant: Variant) -> Option<&mut dyn Prefetcher> {
        match variant {
            Variant::Preload => self.preload.as_mut().map(|p| p as &mut dyn Prefetcher),
            Variant::Ahead | Variant::AtExec => self.eke.as_mut().map(|p| p as &mut dyn Prefetcher),
            Variant::Cold | Variant::Warm => None,
        }
    }

    fn rest(&mut self) -> Result<()> {
        let preload = self.preload.as_mut().map_or(Ok(()), Prefetcher::rest);
        preload.and(self.eke.as_mut().map_or(Ok(()), Prefetcher::rest))
    }
}

/// Starts a program twice, since the first start makes files in the home directory. Returns the second one's maps and their bytes.
fn first_start(fixture: &DiskFixture<'_>, program: &'static Program) -> Result<(usize, u64)> {
    fixture.launch(program, How::default())?.running.end()?;
    let launched = fixture.launch(program, How { maps: true, ..How::default() })?;
    let maps = (launched.running.started.maps, launched.running.started.map_bytes);
    launched.running.end()?;
    Ok(maps)
}

fn words(variant: Variant) -> &'static str {
    if variant.is_ours() { "eke" } else { variant.name() }
}
