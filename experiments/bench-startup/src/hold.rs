//! The whole experiment, disk by disk.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use eke_bench_core::stage::{self, Tree};
use eke_bench_desktop::desktop::bare::Screen;
use eke_bench_desktop::desktop::find;
use eke_results::report::Report;

use super::error::{Error, Result};
use super::packages::Installed;
use super::plan::{self, Run, Variant};
use super::prefetcher::Prefetcher;
use super::prefetcher::eke::Eke;
use super::prefetcher::preload::Preload;
use super::programs::{DOCUMENT, PROGRAMS, Program};
use super::report::{self, Held};
use super::scene::{Home, How, Scene};
use super::{Bench, cost, harm, launcher, ten, tree, trial};

/// Whoever reads ahead; `None` where its variant is not wanted or not to be had.
struct Prefetchers {
    preload: Option<Preload>,
    eke: Option<Eke>,
}

/// What is to be done.
struct Plan {
    programs: Vec<&'static Program>,
    variants: Vec<Variant>,
    image: PathBuf,
    document: Option<String>,
}

/// Holds the experiment.
///
/// # Errors
/// What is missing, or the kernel's refusal; a single run that came to nothing is a note. Whatever happens, the machine is as before.
pub fn run(bench: &Bench<'_>) -> Result<Report> {
    let mut held = Held::default();
    stage::sweep(bench.root)?;
    let plan = prepare(bench, &mut held)?;
    let screen = Screen::start().map_err(Error::Screen)?;
    let home = Home::make(&screen)?;
    let mut prefetchers = Prefetchers::new(bench, &plan.variants)?;
    bench.progress.planned(runs_planned(bench, &plan));
    for disk in 0..bench.options.disks.len() {
        let name = bench.options.disks[disk].as_deref();
        bench.progress.doing("the disk");
        let scene = Scene::set(bench, &plan.image, name, &screen, &home, plan.document.clone())?;
        let mut field = Field {
            disk,
            scene: &scene,
            plan: &plan,
            prefetchers: &mut prefetchers,
            broken: Vec::new(),
            unlearned: Vec::new(),
            held: &mut held,
        };
        let done = field.hold();
        prefetchers.rest()?;
        done?;
        scene.place.strike()?;
    }
    bench.progress.done();
    if held.trials.is_empty() {
        return Err(Error::Usage(format!("no run could be held: {}", held.notes.join(" "))));
    }
    Ok(report::report(bench, &plan.variants, held))
}

fn runs_planned(bench: &Bench<'_>, plan: &Plan) -> usize {
    let (programs, variants) = (plan.programs.len(), plan.variants.len());
    let each = bench.options.repeats * programs * variants;
    let calls = if bench.options.calls { programs * variants } else { 0 };
    let rest = (usize::from(bench.options.harm) + usize::from(bench.options.ten)) * variants;
    bench.options.disks.len() * (each + calls + rest)
}

/// The programs and variants that can be had, and the image.
fn prepare(bench: &Bench<'_>, held: &mut Held) -> Result<Plan> {
    let installed = Installed::read()?;
    let variants = variants(bench, held)?;
    let mut programs = programs(bench, &installed, held)?;
    let document = document(bench, &mut programs, held)?;
    if programs.is_empty() {
        return Err(Error::Usage(format!("none of the programs is here: {}", held.notes.join(" "))));
    }
    bench.progress.say("Preparing the disk with the programs (it is kept for the next time).");
    let parts = tree::parts(&programs, &installed, document.as_deref())?;
    let image = stage::ensure(bench.root, &Tree::of(&parts)?, &bench.cache, SystemTime::now())?;
    let document = document.map(|_| launcher::document_path(DOCUMENT).display().to_string());
    Ok(Plan { programs, variants, image, document })
}

/// A variant that was asked for by its name must be possible.
fn variants(bench: &Bench<'_>, held: &mut Held) -> Result<Vec<Variant>> {
    let asked = &bench.options.variants;
    let wanted = Variant::ALL.into_iter().filter(|v| asked.is_empty() || asked.contains(v));
    let mut possible = Vec::new();
    for variant in wanted {
        match check(bench, variant) {
            Ok(()) => possible.push(variant),
            Err(e) if asked.contains(&variant) => return Err(e),
            Err(e) => held.notes.push(format!("{} is left out: {e}.", variant.name())),
        }
    }
    Ok(possible)
}

fn check(bench: &Bench<'_>, variant: Variant) -> Result<()> {
    match variant {
        Variant::Preload => Preload::check(),
        Variant::Ahead | Variant::AtExec => Eke::check(&bench.program),
        Variant::Cold | Variant::Warm => Ok(()),
    }
}

/// The same for programs.
fn programs(bench: &Bench<'_>, installed: &Installed, held: &mut Held) -> Result<Vec<&'static Program>> {
    let asked = &bench.options.programs;
    let wanted = PROGRAMS
        .iter()
        .filter(|p| if asked.is_empty() { p.quick || !bench.options.quick } else { asked.contains(p) });
    let there = tree::there(&wanted.collect::<Vec<_>>(), installed);
    for (name, why) in &there.lacking {
        if asked.iter().any(|p| p.name == *name) {
            return Err(Error::Usage(why.clone()));
        }
        held.notes.push(format!("{name} is left out: {why}."));
    }
    Ok(there.programs)
}

/// For the viewer; without one it is left out.
fn document(
    bench: &Bench<'_>,
    programs: &mut Vec<&'static Program>,
    held: &mut Held,
) -> Result<Option<PathBuf>> {
    if !programs.iter().any(|p| p.needs_document()) {
        return Ok(None);
    }
    let own = bench.options.documents.as_deref();
    match tree::document(own, &bench.cache.join("documents")) {
        Ok(document) => Ok(Some(document.path)),
        Err(e) if own.is_some() => Err(e),
        Err(e) => {
            programs.retain(|p| !p.needs_document());
            held.notes.push(format!("mupdf is left out, since it has nothing to show: {e}."));
            Ok(None)
        }
    }
}

impl Prefetchers {
    fn new(bench: &Bench<'_>, variants: &[Variant]) -> Result<Self> {
        let preload = variants.contains(&Variant::Preload);
        let eke = variants.iter().any(|v| v.is_ours());
        Ok(Self {
            preload: preload.then(|| Preload::new(bench.root, bench.options.preload_cycle_s)).transpose()?,
            eke: eke.then(|| Eke::new(bench.root, &bench.program)).transpose()?,
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

/// One disk.
struct Field<'a> {
    disk: usize,
    scene: &'a Scene<'a>,
    plan: &'a Plan,
    prefetchers: &'a mut Prefetchers,
    /// Programs that do not start here.
    broken: Vec<&'static str>,
    /// Whose runs would show nothing.
    unlearned: Vec<(&'static str, &'static str)>,
    held: &'a mut Held,
}

impl Field<'_> {
    fn hold(&mut self) -> Result<()> {
        self.first_starts()?;
        self.learn()?;
        self.trials()?;
        let options = &self.scene.bench.options;
        if options.calls {
            self.calls()?;
        }
        if options.harm {
            self.harm()?;
        }
        if options.ten {
            self.ten()?;
        }
        if options.cost && self.disk + 1 == options.disks.len() {
            self.cost()?;
        }
        Ok(())
    }

    fn bench(&self) -> &Bench<'_> {
        self.scene.bench
    }

    /// Those that start here.
    fn programs(&self) -> Vec<&'static Program> {
        self.plan.programs.iter().copied().filter(|p| !self.broken.contains(&p.name)).collect()
    }

    /// What a first start leaves in the home directory, and the maps.
    fn first_starts(&mut self) -> Result<()> {
        let unknown = self.plan.programs.iter().filter(|p| !self.held.maps.contains_key(p.name));
        for program in unknown.copied().collect::<Vec<_>>() {
            self.bench().progress.doing(&format!("{}, for the first time", program.name));
            let maps = first_start(self.scene, program);
            match self.note(maps, || format!("{}, for the first time", program.name))? {
                Some(maps) => drop(self.held.maps.insert(program.name, maps)),
                None => self.broken.push(program.name),
            }
        }
        Ok(())
    }

    /// preload goes by paths, which are the same on each disk; eke learns anew.
    fn learn(&mut self) -> Result<()> {
        if let Some(eke) = &mut self.prefetchers.eke {
            eke.forget()?;
        }
        for variant in [Variant::Preload, Variant::Ahead] {
            for program in self.programs() {
                let Some(prefetcher) = self.prefetchers.of(variant) else { continue };
                self.scene.bench.progress.doing(&format!("{} learns {}", words(variant), program.name));
                let learned = prefetcher.learn(self.scene, &[program]);
                let rested = prefetcher.rest();
                if self.note(learned, || format!("{} learns {}", words(variant), program.name))?.is_none() {
                    self.unlearned.push((words(variant), program.name));
                }
                rested?;
            }
        }
        Ok(())
    }

    /// Those whose prefetcher has learned the program.
    fn runs(&self, repeats: usize) -> Vec<Run> {
        let mut runs = plan::runs(&self.programs(), &self.plan.variants, repeats);
        runs.retain(|run| self.is_learned(run.variant, run.program));
        runs
    }

    fn is_learned(&self, variant: Variant, program: &Program) -> bool {
        !self.unlearned.contains(&(words(variant), program.name))
    }

    fn trials(&mut self) -> Result<()> {
        let repeats = self.bench().options.repeats;
        for run in self.runs(repeats) {
            self.bench().progress.begins(&self.named(&report::run_name(&run, repeats)));
            let held =
                trial::hold(self.scene, &mut self.prefetchers.of(run.variant), run.program, run.variant);
            if let Some(trial) = self.note(held, || report::run_name(&run, repeats))? {
                self.held.trials.push((self.disk, run, trial));
            }
        }
        Ok(())
    }

    fn calls(&mut self) -> Result<()> {
        if find(&["strace"]).is_none() {
            if self.disk == 0 {
                let note = "Time in system calls is not there: strace is not installed (Debian: apt install strace).";
                self.held.notes.push(note.to_owned());
            }
            return Ok(());
        }
        for run in self.runs(1) {
            let name = format!("{}, {}, under strace", run.program.name, run.variant.name());
            self.bench().progress.begins(&self.named(&name));
            let traced =
                trial::traced(self.scene, &mut self.prefetchers.of(run.variant), run.program, run.variant);
            if let Some(calls) = self.note(traced, || name)? {
                self.held.calls.push((self.disk, run.program, run.variant, calls));
            }
        }
        Ok(())
    }

    /// Beside gedit, or the first that there is.
    fn harm(&mut self) -> Result<()> {
        let programs = self.programs();
        let gedit = programs.iter().find(|p| p.name == "gedit").or(programs.first());
        let Some(program) = gedit.copied() else { return Ok(()) };
        let learned = self.plan.variants.iter().copied().filter(|v| self.is_learned(*v, program));
        for variant in learned.collect::<Vec<_>>() {
            let name = format!("{}, {}, beside another reader", program.name, variant.name());
            self.bench().progress.begins(&self.named(&name));
            let held = harm::hold(self.scene, &mut self.prefetchers.of(variant), program, variant);
            if let Some(harm) = self.note(held, || name)? {
                self.held.harm.push((self.disk, program, variant, harm));
            }
        }
        Ok(())
    }

    /// A warm row would be the same as a cold one from the second round on.
    fn ten(&mut self) -> Result<()> {
        let row = plan::in_a_row(&self.programs(), ten::COUNT);
        for variant in self.plan.variants.clone().into_iter().filter(|v| *v != Variant::Warm) {
            let name = format!("ten in a row, {}", variant.name());
            self.bench().progress.begins(&self.named(&name));
            let held = self.one_row(&row, variant);
            if let Some(held) = self.note(held, || name)? {
                self.held.ten.push((self.disk, variant, row.clone(), held));
            }
        }
        Ok(())
    }

    fn one_row(&mut self, row: &[&'static Program], variant: Variant) -> Result<ten::Ten> {
        let mut prefetcher = self.prefetchers.of(variant);
        if variant == Variant::Preload {
            if let Some(preload) = &mut prefetcher {
                preload.learn(self.scene, row)?;
            }
        }
        ten::hold(self.scene, &mut prefetcher, row, variant)
    }

    /// What it costs to see launches. Last, since what is learned is forgotten.
    fn cost(&mut self) -> Result<()> {
        for program in self.programs().into_iter().filter(|p| cost::can(p)) {
            self.bench().progress.doing(&self.named(&format!("{}, CPU time", program.name)));
            let Some(eke) = &mut self.prefetchers.eke else { return Ok(()) };
            let held = cost::hold(self.scene, eke, program);
            if let Some(cost) = self.note(held, || format!("{}, CPU time", program.name))? {
                self.held.cost.push((self.disk, program, cost));
            }
        }
        Ok(())
    }

    fn named(&self, run: &str) -> String {
        format!("{}: {run}", report::disk_name(&self.bench().options, self.disk))
    }

    /// One run that comes to nothing must not cost the others' hours; after a signal, whatever failed, failed by it.
    fn note<T>(&mut self, result: Result<T>, what: impl FnOnce() -> String) -> Result<Option<T>> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(_) if self.bench().shutdown.load(Ordering::Relaxed) => Err(Error::Interrupted),
            Err(e @ (Error::Launch { .. } | Error::Prefetcher { .. } | Error::Reader(_))) => {
                let note = self.named(&format!("{}: no figures: {e}.", what()));
                self.bench().progress.say(&note);
                self.held.notes.push(note);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }
}

/// Twice: what the first one makes in the home directory, it makes once. The maps of the second, and their bytes.
fn first_start(scene: &Scene<'_>, program: &'static Program) -> Result<(usize, u64)> {
    scene.launch(program, How::default())?.running.end()?;
    let launched = scene.launch(program, How { maps: true, ..How::default() })?;
    let maps = (launched.running.started.maps, launched.running.started.map_bytes);
    launched.running.end()?;
    Ok(maps)
}

fn words(variant: Variant) -> &'static str {
    if variant.is_ours() { "eke" } else { variant.name() }
}
