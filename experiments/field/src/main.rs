//! `eke-field`, called by `make field`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use eke_field::drive::{Laboratory, run};
use eke_field::image::Images;
use eke_field::machines::{self, Machine};
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
    /// Only write the page
    #[arg(long)]
    table: bool,
    /// Only make the images
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
        chosen.iter().try_for_each(|machine| laboratory.images.of(machine).map(drop))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut bad = Vec::new();
    if !arguments.table {
        for machine in &chosen {
            if !drive(&arguments, &laboratory, &all, machine, &steps)? {
                bad.push(machine.name.clone());
            }
        }
    }
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

/// Runs one machine unless it is finished; whether all its steps went well.
fn drive(
    arguments: &Arguments,
    laboratory: &Laboratory,
    all: &[Machine],
    machine: &Machine,
    steps: &steps::Steps,
) -> anyhow::Result<bool> {
    let file = results_file(arguments);
    let names: Vec<String> = all.iter().map(|m| m.name.clone()).collect();
    if let Some(row) = Results::read(&file)?.of(&machine.name)
        && row.finished
        && !arguments.again
    {
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
        failure = failure.take().or_else(|| keep(&file, row, &names).err());
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
    keep(&file, &row, &names)?;
    Ok(row.is_good())
}

/// Puts one machine's results into the file, which another run may have changed meanwhile.
fn keep(file: &Path, row: &Row, names: &[String]) -> anyhow::Result<()> {
    let mut results = Results::read(file)?;
    results.put(row.clone(), names);
    results.write(file)
}
