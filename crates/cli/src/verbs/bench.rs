//! `eke bench ...`.

use std::path::Path;
use std::time::Duration;

use eke_bench::experiment;
use eke_bench::page::page;
use eke_bench::report::{Report, saved};
use eke_present::command_line::{quoted, set, size};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;
use eke_present::progress::Shown;
use eke_present::stop;
use eke_present::task::{Task, expected};
use eke_present::terminal::one_lined;
use eke_present::{put, say};
use eke_record::output;

use super::Context;
use super::bench_line::{self, news};
use crate::args::{Bench, Capacity, Experiment, Files, Of, Place, Show};

/// A saved result is a megabyte or two; more is something else.
const LONGEST: u64 = 256 << 20;

/// The verb.
pub fn run(context: &Context, bench: &Bench) -> Outcome {
    match bench {
        Bench::Agent { seconds } => agent(context, *seconds),
        Bench::Show(options) => show(context, options),
        Bench::Store(options) => super::bench_cache::store(context, options),
        Bench::Reads(options) => super::bench_cache::reads(context, options),
        Bench::Trace(options) => super::bench_cache::trace(context, options),
        Bench::Web(options) => super::bench_web::run(context, options),
        Bench::Link(options) => super::bench_link::run(context, options),
        Bench::Startup(options) => super::bench_startup::run(context, options),
        Bench::Io(options) => super::bench_io::run(context, options),
        Bench::IoOverhead { seconds } => super::bench_io::overhead(context, *seconds),
        Bench::Paging(options) => hold(context, bench, options),
        Bench::Switch(options) => hold(context, bench, options),
        Bench::Capacity(options) => hold(context, bench, &options.experiment),
    }
}

/// The agent's resident set and idle CPU; fails where they are more than was promised.
fn agent(context: &Context, seconds: u64) -> Outcome {
    let whole = Duration::from_secs(seconds) * (2 * eke_bench::agent::REPEATS as u32);
    let task = Task::begin(context.json, "watching an agent, idle and asked", expected(whole));
    let report = eke_bench::agent::run(&programs::beside(crate::agent::PROGRAM), seconds);
    drop(task);
    let report = report.map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    context.print(&report, |d| put!("{d}"))?;
    let excesses = eke_bench::agent::excesses(&report);
    for excess in &excesses {
        eke_present::warn!("eke: {excess}");
    }
    Ok(if excesses.is_empty() { Status::Done } else { Status::Failed })
}

fn show(context: &Context, options: &Show) -> Outcome {
    let report = read(&options.file)?;
    let files = Files { output: None, html: options.html.clone(), force: options.force };
    refuse_existing(&files)?;
    finish(context, &report, &files)
}

fn read(path: &Path) -> Outcome<Report> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Status::Failed, format!("cannot show {}: {why}", path.display()))
    };
    let metadata = std::fs::metadata(path).map_err(|e| failed(&e))?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Err(failed(&"it is no file that `eke bench ... --output` wrote"));
    }
    let bytes = std::fs::read(path).map_err(|e| failed(&e))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not text, so not JSON either"))?;
    // It can come from anybody. What is no JSON is an error with a place in the text as it is.
    let cleaned = serde_json::from_str(&text).map(|json| one_lined(json).to_string());
    saved::parse(&cleaned.unwrap_or(text)).map_err(|e| failed(&e))
}

/// Everything around an experiment: what must hold before, what is done with its result.
fn hold(context: &Context, bench: &Bench, options: &Experiment) -> Outcome {
    refuse_existing(&options.files)?;
    context.need_root("an experiment makes a box and a slow disk, swaps, and sets kernel settings that it puts back, which needs root")?;
    let stop = stop::on_signals()?;
    let progress = Shown::on_terminal(context.json);
    let surroundings = experiment::Bench {
        root: &context.root,
        program: std::env::current_exe()?,
        options: asked(bench, options),
        command: command(bench),
        progress: &progress,
        shutdown: &stop,
    };
    let measured = measured(bench, &surroundings);
    progress.end();
    let measured = news(measured, &stop, experiment::Error::Interrupted);
    finish(context, &measured.map_err(|e| failure(&e))?, &options.files)
}

/// The experiment itself.
fn measured(bench: &Bench, surroundings: &experiment::Bench) -> Result<Report, experiment::Error> {
    match bench {
        Bench::Switch(_) => eke_bench::switch::run(surroundings),
        Bench::Capacity(Capacity { of: Of::Tabs, place: Place::Machine, .. }) => {
            Err(experiment::Error::TabsInMachine)
        }
        Bench::Capacity(Capacity { place: Place::Machine, .. }) => {
            eke_bench::capacity::machine::run(surroundings)
        }
        Bench::Capacity(Capacity { of: Of::Tabs, .. }) => eke_bench::capacity::tabs::run(surroundings),
        Bench::Capacity(_) => eke_bench::capacity::documents::run(surroundings),
        _ => eke_bench::paging::run(surroundings),
    }
}

fn failure(error: &experiment::Error) -> Failure {
    let is_usage = matches!(error, experiment::Error::Viewer { .. } | experiment::Error::NoVariant { .. });
    bench_line::failure(error, is_usage)
}

fn asked(bench: &Bench, options: &Experiment) -> experiment::Options {
    experiment::Options {
        quick: options.quick,
        repeats: repeats(bench, options) as usize,
        memory: options.memory,
        ballast: options.ballast,
        disk: (options.disk != "none").then(|| options.disk.clone()),
        viewer: options.viewer.clone(),
        documents: options.documents.clone(),
        variants: options.variants.iter().map(|name| name.trim().to_owned()).collect(),
        levers: options.levers,
    }
}

/// An hour's experiment must not end with a file that cannot be written.
pub(in crate::verbs) fn refuse_existing(files: &Files) -> Outcome<()> {
    for path in files.output.iter().chain(&files.html) {
        output::may_write(path, files.force).map_err(super::record::failure)?;
    }
    Ok(())
}

/// The table or the JSON, and the files.
pub(super) fn finish(context: &Context, report: &Report, files: &Files) -> Outcome {
    // the table first: whatever happens to the files, the figures are seen
    context.print(report, |r| put!("{r}"))?;
    write(context, report, files)
}

/// The files, where there are to be some.
pub(in crate::verbs) fn write(context: &Context, report: &Report, files: &Files) -> Outcome {
    let mut written = Vec::new();
    if let Some(path) = &files.output {
        written.push((path, serde_json::to_string_pretty(report)? + "\n"));
    }
    if let Some(path) = &files.html {
        written.push((path, page(report)));
    }
    for (path, text) in &written {
        output::write(path, text, files.force).map_err(super::record::failure)?;
    }
    if !context.json && !written.is_empty() {
        say!("");
        written.iter().for_each(|(path, _)| say!("Written: {}", path.display()));
    }
    Ok(Status::Done)
}

/// Three are enough for a median; whoever is in a hurry gets one. So does the small machine, where each takes minutes.
fn repeats(bench: &Bench, options: &Experiment) -> u32 {
    let slow = matches!(bench, Bench::Capacity(Capacity { place: Place::Machine, .. }));
    options.repeats.unwrap_or(if options.quick || slow { 1 } else { 3 })
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(bench: &Bench) -> String {
    let (name, options) = match bench {
        // Those of the cache make their own.
        Bench::Agent { .. }
        | Bench::Show(_)
        | Bench::Store(_)
        | Bench::Reads(_)
        | Bench::Trace(_)
        | Bench::Web(_)
        | Bench::Link(_)
        | Bench::Io(_)
        | Bench::IoOverhead { .. }
        | Bench::Startup(_) => {
            return String::new();
        }
        Bench::Paging(options) => ("paging".to_owned(), options),
        Bench::Switch(options) => ("switch".to_owned(), options),
        Bench::Capacity(Capacity { of, place, experiment }) => {
            let of = if *of == Of::Documents { "documents" } else { "tabs" };
            let place = if *place == Place::Box { "box" } else { "machine" };
            (format!("capacity --of {of} --in {place}"), experiment)
        }
    };
    let mut words = vec![format!("sudo eke bench {name}")];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--repeats {}", repeats(bench, options)));
    words.extend(options.documents.as_ref().map(|d| format!("--documents {}", quoted(&d.to_string_lossy()))));
    words.extend(options.viewer.as_ref().map(|v| format!("--viewer {}", quoted(v))));
    words.extend(options.memory.map(|m| format!("--memory {}", size(m))));
    if !matches!(bench, Bench::Capacity(Capacity { of: Of::Tabs, .. })) {
        words.push(format!("--disk {}", options.disk));
    }
    words.extend(options.ballast.map(|b| format!("--ballast {}", size(b))));
    if !options.variants.is_empty() {
        words.push(format!("--variants {}", quoted(&options.variants.join(","))));
    }
    words.extend(set(&[("--levers", options.levers)]));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Verb};

    fn again(line: &[&str]) -> String {
        match Args::try_parse_from(line).unwrap().verb {
            Some(Verb::Bench(bench)) => command(&bench),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        assert_eq!(
            again(&["eke", "bench", "paging", "--quick", "--output", "a.json", "--force"]),
            "sudo eke bench paging --quick --repeats 1 --disk nfs"
        );
        let line = again(&[
            "eke",
            "bench",
            "capacity",
            "--in",
            "machine",
            "--documents",
            "/a b/it's",
            "--variants",
            "none,eke",
            "--ballast",
            "1500",
            "--levers",
        ]);
        assert_eq!(
            line,
            r"sudo eke bench capacity --of documents --in machine --repeats 1 --documents '/a b/it'\''s' --disk nfs --ballast 1500 --variants none,eke --levers"
        );
        let words: Vec<&str> = line.split(' ').skip(1).filter(|w| !w.contains('\'')).collect();
        let words: Vec<&str> = words.into_iter().filter(|w| *w != "--documents").collect();
        assert!(Args::try_parse_from(words).is_ok());
    }
}
