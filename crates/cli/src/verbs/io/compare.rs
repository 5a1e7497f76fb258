//! `eke io compare` and `eke io sweep`.

use eke_io::compare::setting::Setting;
use eke_io::compare::{self, Comparison, ComparisonResult, Error, RunBegins};
use eke_io::knobs;
use eke_io::sensor::SensorOptions;
use eke_model::shell::word;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::progress::Progress;
use eke_present::progress::Shown;
use eke_present::stop;
use eke_present::{output, put, putln};
use eke_results::page::page;

use super::{Context, device, sensor};
use crate::args::{IoCompare, IoLoad, IoSweep};
use crate::show::io::{compare as text, report};

/// `eke io compare`.
pub fn compare(context: &Context, options: &IoCompare) -> Outcome {
    let values = [options.a.clone(), options.b.clone()];
    may_write_page(&options.load)?;
    let compared = run(context, &options.knob, &values, options.pairs, &options.load)?;
    context.print(&compared, |c| put!("{}", text::pair(c)))?;
    let [a, b] = values.each_ref().map(|value| word(value));
    let asked = format!("compare {} {a} {b} --pairs {}", word(&options.knob), options.pairs);
    write_page(context, &compared, &asked, &options.load)
}

/// `eke io sweep`.
pub fn sweep(context: &Context, options: &IoSweep) -> Outcome {
    may_write_page(&options.load)?;
    let compared = run(context, &options.knob, &options.values, options.rounds, &options.load)?;
    context.print(&compared, |c| put!("{}", text::sweep(c)))?;
    let values = word(&options.values.join(","));
    let asked = format!("sweep {} {values} --rounds {}", word(&options.knob), options.rounds);
    write_page(context, &compared, &asked, &options.load)
}

/// Checks before a long comparison that the page can be written.
fn may_write_page(load: &IoLoad) -> Outcome<()> {
    match &load.html {
        Some(path) => Ok(output::may_write(path, load.force)?),
        None => Ok(()),
    }
}

/// Writes the page if `--html` is given. `asked` are the verb and its own arguments.
fn write_page(context: &Context, compared: &ComparisonResult, asked: &str, load: &IoLoad) -> Outcome {
    let Some(path) = &load.html else { return Ok(Status::Done) };
    let verb = asked.split(' ').next().unwrap_or_default();
    let mut words = vec![format!("sudo eke io {asked} --device {} --seed {} --", compared.device, load.seed)];
    words.extend(load.command.iter().map(|one| word(&one.to_string_lossy())));
    let report = report::report(&context.root, compared, &format!("io {verb}"), words.join(" "));
    output::write(path, &page(&report), load.force)?;
    if !context.json {
        putln!("\nWritten: {}", path.display());
    }
    Ok(Status::Done)
}

fn run(
    context: &Context,
    knob: &str,
    values: &[String],
    rounds: u32,
    load: &IoLoad,
) -> Outcome<ComparisonResult> {
    let knob = knobs::named(knob).map_err(|why| Failure::new(Status::Usage, why))?;
    context.need_root(
        "comparing changes a kernel setting, which needs root; the setting is restored at the end",
    )?;
    let only = load.device.as_deref().map(|text| device(context, text)).transpose()?;
    let target = match (knobs::is_of_disk(knob), &only) {
        (false, _) => String::new(),
        (true, Some(device)) => eke_io::sensor::devices::directory(device),
        (true, None) => {
            let why = format!("{} is a setting of each disk: choose one with --device", knob.name);
            return Err(Failure::new(Status::Usage, why));
        }
    };
    let stop = stop::on_signals()?;
    let setting = Setting::new(&context.root, knob, &target).map_err(failure)?;
    let mut windows = sensor(context, SensorOptions::default())?;
    let comparison = Comparison {
        setting: &setting,
        values,
        rounds: rounds as usize,
        device: only,
        command: &load.command,
        seed: load.seed,
        stop: &stop,
    };
    let progress = Shown::in_lines();
    let mut report = |RunBegins { of, value, .. }: RunBegins| {
        progress.planned(of);
        progress.begins(&value);
    };
    compare::run(&comparison, windows.as_mut(), &mut report).map_err(failure)
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Kernel(e) => Failure::from(e),
        other => Failure::new(Status::Failed, other.to_string()),
    }
}
