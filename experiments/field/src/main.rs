//! `eke-field`, called by `make field`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use clap::Parser;
use eke_field::drive::{Laboratory, run};
use eke_field::image::Images;
use eke_field::machines::{self, Machine};
use eke_field::qemu::program;
use eke_field::results::{Results, Row};
use eke_field::steps::{self, Ending};
use eke_field::table;

/// Install, use and remove the package on emulated machines, and write docs/field.md.
#[derive(Debug, Parser)]
struct Arguments {
    /// The machines, such as `debian13,arm64-16k`; all if empty
    #[arg(long, default_value = "")]
    machines: String,
    /// Run machines again that are finished
    #[arg(long)]
    again: bool,
    /// How many machines run at a time; by default two, or one for each CPU but one if that is more, since each emulates one CPU and measures
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    at_once: Option<u16>,
    /// Only write the page
    #[arg(long)]
    table: bool,
    /// Only make QEMU and the images
    #[arg(long)]
    make: bool,
    /// Files or directories with packages
    #[arg(long, default_value = "target/packages")]
    deb: Vec<PathBuf>,
    /// The directory of the images, several GB
    #[arg(long, default_value = "target/field/images")]
    images: PathBuf,
    /// The directory of the logs
    #[arg(long, default_value = "target/field")]
    logs: PathBuf,
    /// Debian's mirror
    #[arg(long, default_value = "http://deb.debian.org/debian")]
    mirror: String,
    /// Where to write the results and the page, instead of docs
    #[arg(long, default_value = "docs")]
    docs: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let recipe = Path::new("experiments/field");
    let read = |name: &str| {
        let file = recipe.join(name);
        std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}; run this in the source tree", file.display()))
    };
    let all = machines::parse(&read("machines.toml")?)?;
    let steps = steps::parse(&read("steps.toml")?)?;
    let chosen = machines::select(&all, &arguments.machines)?;
    let place = |path: &Path| std::path::absolute(path).with_context(|| format!("{}", path.display()));
    let laboratory = Laboratory {
        images: Images {
            place: place(&arguments.images)?,
            recipe: place(recipe)?,
            mirror: arguments.mirror.clone(),
        },
        logs: place(&arguments.logs)?,
        packages: arguments.deb.clone(),
    };
    if arguments.make {
        let images = &laboratory.images;
        for machine in &chosen {
            images.qemu(program(machine))?;
            images.of(machine)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bad = if arguments.table {
        Vec::new()
    } else {
        let file = ResultsFile {
            path: results_file(&arguments),
            names: all.iter().map(|machine| machine.name.clone()).collect(),
            lock: Mutex::default(),
        };
        drive_all(&chosen, at_once(&arguments), |machine| {
            drive(&file, arguments.again, &laboratory, machine, &steps)
        })?
    };
    let page = table::page(&all, &Results::read(&results_file(&arguments))?);
    eke_vm::write_scratch(&arguments.docs.join("field.md"), page.as_bytes())?;
    if bad.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("field: steps failed on {}; see {}", bad.join(", "), laboratory.logs.display());
    Ok(ExitCode::FAILURE)
}

fn results_file(arguments: &Arguments) -> PathBuf {
    arguments.docs.join("field.json")
}

fn at_once(arguments: &Arguments) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.at_once.map_or((cpus - 1).max(table::AT_ONCE), usize::from)
}

/// Runs the machines in this order, some at once; the names of those with a failed step. After an error no other begins.
fn drive_all(
    machines: &[Machine],
    at_once: usize,
    drive: impl Fn(&Machine) -> anyhow::Result<bool> + Sync,
) -> anyhow::Result<Vec<String>> {
    let next = Mutex::new(machines.iter());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> anyhow::Result<Vec<String>> {
        let mut bad = Vec::new();
        while let Some(machine) = take() {
            match drive(machine) {
                Ok(true) => {}
                Ok(false) => bad.push(machine.name.clone()),
                Err(e) => {
                    while take().is_some() {}
                    return Err(e);
                }
            }
        }
        Ok(bad)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let mut bad = Vec::new();
        for thread in threads {
            bad.extend(thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??);
        }
        Ok(bad)
    })
}

/// The results, which threads change in turn.
struct ResultsFile {
    path: PathBuf,
    /// All machines, in the order of the rows.
    names: Vec<String>,
    lock: Mutex<()>,
}

impl ResultsFile {
    fn read(&self) -> anyhow::Result<Results> {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        Results::read(&self.path)
    }

    /// Puts one machine's results into the file, which another run may have changed meanwhile.
    fn keep(&self, row: &Row) -> anyhow::Result<()> {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut results = Results::read(&self.path)?;
        results.put(row.clone(), &self.names);
        results.write(&self.path)
    }
}

/// Runs one machine unless it is finished; whether all its steps went well.
fn drive(
    file: &ResultsFile,
    again: bool,
    laboratory: &Laboratory,
    machine: &Machine,
    steps: &steps::Steps,
) -> anyhow::Result<bool> {
    if let Some(row) = file.read()?.of(&machine.name).filter(|row| row.finished && !again) {
        eprintln!("field: {}: finished before; AGAIN=1 runs it again", machine.name);
        return Ok(row.is_good());
    }
    let mut failure = None;
    let mut report = |row: &Row| {
        if let Some(step) = row.steps.last() {
            let sign = match step.ending {
                Ending::Ok => "ok",
                Ending::Failed => "FAILED",
                Ending::NotPossible => "not possible",
                Ending::Skipped => "skipped",
            };
            eprintln!(
                "field: {}: {}: {sign} ({:.0} s) {}",
                row.machine, step.step, step.seconds, step.reason
            );
        }
        failure = failure.take().or_else(|| file.keep(row).err());
    };
    let row = match run(laboratory, machine, steps, &mut report) {
        Ok(row) => row,
        Err(error) => {
            eprintln!("field: {}: {error:#}", machine.name);
            return Ok(false);
        }
    };
    if let Some(error) = failure {
        return Err(error);
    }
    file.keep(&row)?;
    Ok(row.is_good())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn machines() -> Vec<Machine> {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/machines.toml")).unwrap();
        machines::parse(&text).unwrap()
    }

    #[test]
    fn each_machine_runs_once_and_some_at_once() {
        let all = machines();
        let chosen = &all[..4];
        let (together, ran) = (Barrier::new(2), Mutex::new(Vec::new()));
        let bad = drive_all(chosen, 2, |machine| {
            together.wait();
            ran.lock().unwrap().push(machine.name.clone());
            Ok(machine.name != all[1].name)
        });
        assert_eq!(bad.unwrap(), [all[1].name.clone()]);
        let mut ran = ran.into_inner().unwrap();
        let mut names: Vec<String> = chosen.iter().map(|machine| machine.name.clone()).collect();
        ran.sort();
        names.sort();
        assert_eq!(ran, names);
    }

    #[test]
    fn an_error_ends_the_run() {
        let all = machines();
        let ran = Mutex::new(0);
        let ended = drive_all(&all, 1, |_| {
            *ran.lock().unwrap() += 1;
            anyhow::bail!("no disk")
        });
        assert_eq!((ended.unwrap_err().to_string(), *ran.lock().unwrap()), ("no disk".to_owned(), 1));
    }
}
