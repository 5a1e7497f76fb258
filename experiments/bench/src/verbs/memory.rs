//! `eke bench paging`, `switch` and `capacity`: experiments in little memory.

use eke_bench_memory::{capacity, experiment, paging, switch};
use eke_present::command_line::{quoted, set, size};
use eke_present::exit::{Failure, Outcome};
use eke_present::progress::Shown;
use eke_present::stop;
use eke_results::report::Report;

use super::files::{finish, refuse_existing};
use super::line::{self, news};
use crate::args::{Capacity, Experiment, Of, Place, Verb};
use crate::context::Context;

/// Everything around an experiment: what must hold before, what is done with its result.
pub fn run(context: &Context, bench: &Verb, options: &Experiment) -> Outcome {
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
fn measured(bench: &Verb, surroundings: &experiment::Bench) -> Result<Report, experiment::Error> {
    match bench {
        Verb::Switch(_) => switch::run(surroundings),
        Verb::Capacity(Capacity { of: Of::Tabs, place: Place::Machine, .. }) => {
            Err(experiment::Error::TabsInMachine)
        }
        Verb::Capacity(Capacity { place: Place::Machine, .. }) => capacity::machine::run(surroundings),
        Verb::Capacity(Capacity { of: Of::Tabs, .. }) => capacity::tabs::run(surroundings),
        Verb::Capacity(_) => capacity::documents::run(surroundings),
        _ => paging::run(surroundings),
    }
}

fn failure(error: &experiment::Error) -> Failure {
    let is_usage = matches!(error, experiment::Error::Viewer { .. } | experiment::Error::NoVariant { .. });
    line::failure(error, is_usage)
}

fn asked(bench: &Verb, options: &Experiment) -> experiment::Options {
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

/// Three are enough for a median; whoever is in a hurry gets one. So does the small machine, where each takes minutes.
fn repeats(bench: &Verb, options: &Experiment) -> u32 {
    let slow = matches!(bench, Verb::Capacity(Capacity { place: Place::Machine, .. }));
    options.repeats.unwrap_or(if options.quick || slow { 1 } else { 3 })
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(bench: &Verb) -> String {
    let (name, options) = match bench {
        Verb::Paging(options) => ("paging".to_owned(), options),
        Verb::Switch(options) => ("switch".to_owned(), options),
        Verb::Capacity(Capacity { of, place, experiment }) => {
            let of = if *of == Of::Documents { "documents" } else { "tabs" };
            let place = if *place == Place::Box { "box" } else { "machine" };
            (format!("capacity --of {of} --in {place}"), experiment)
        }
        // The others make their own.
        _ => return String::new(),
    };
    let mut words = vec![format!("sudo eke bench {name}")];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--repeats {}", repeats(bench, options)));
    words.extend(options.documents.as_ref().map(|d| format!("--documents {}", quoted(&d.to_string_lossy()))));
    words.extend(options.viewer.as_ref().map(|v| format!("--viewer {}", quoted(v))));
    words.extend(options.memory.map(|m| format!("--memory {}", size(m))));
    if !matches!(bench, Verb::Capacity(Capacity { of: Of::Tabs, .. })) {
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
    use super::super::line::again::parsed_words;
    use super::*;

    fn again(line: &[&str]) -> String {
        command(&parsed_words(line.iter().copied()).unwrap())
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
        assert!(parsed_words(words).is_some());
    }
}
