//! `eke bench paging`, `switch` and `capacity`: experiments in little memory.

use eke_bench_memory::capacity::documents;
use eke_bench_memory::capacity::machine::SmallMachine;
use eke_bench_memory::capacity::tabs::Tabs;
use eke_bench_memory::experiment;
use eke_bench_memory::{paging, switch};
use eke_present::command_line::{quoted, set, size};
use eke_present::exit::{Failure, Outcome, Status};

use super::experiment::verb;
use crate::args::{Capacity, Experiment, Of, Place, Verb};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, which: &Verb, options: &Experiment) -> Outcome {
    let (asked, command, files) = (asked(which, options), command(which), &options.files);
    match which {
        Verb::Switch(_) => verb(context, &switch::experiment(asked), command, files),
        Verb::Capacity(Capacity { of: Of::Tabs, place: Place::Machine, .. }) => Err(Failure::new(
            Status::Usage,
            "there is no browser in the small machine: `--of tabs` runs in a box only (--in box)",
        )),
        Verb::Capacity(Capacity { place: Place::Machine, .. }) => {
            verb(context, &SmallMachine(asked), command, files)
        }
        Verb::Capacity(Capacity { kernel_of: Some(_), .. }) => Err(Failure::new(
            Status::Usage,
            "a box has this machine's kernel: --kernel-of is for the small machine (--in machine)",
        )),
        Verb::Capacity(Capacity { of: Of::Tabs, .. }) => verb(context, &Tabs(asked), command, files),
        Verb::Capacity(_) => verb(context, &documents::experiment(asked), command, files),
        _ => verb(context, &paging::experiment(asked), command, files),
    }
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
        variations: options.variations,
        kernel_of: match bench {
            Verb::Capacity(capacity) => capacity.kernel_of.clone(),
            _ => None,
        },
    }
}

/// Three rounds are enough for a median. Quick runs have one, and so has the small machine, where a run takes minutes.
fn repeats(bench: &Verb, options: &Experiment) -> u32 {
    let slow = matches!(bench, Verb::Capacity(Capacity { place: Place::Machine, .. }));
    options.repeats.unwrap_or(if options.quick || slow { 1 } else { 3 })
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(bench: &Verb) -> String {
    let (name, options) = match bench {
        Verb::Paging(options) => ("paging".to_owned(), options),
        Verb::Switch(options) => ("switch".to_owned(), options),
        Verb::Capacity(Capacity { of, place, kernel_of, experiment }) => {
            let of = if *of == Of::Documents { "documents" } else { "tabs" };
            let place = if *place == Place::Box { "box" } else { "machine" };
            let kernel = kernel_of.as_ref().map_or_else(String::new, |suite| format!(" --kernel-of {suite}"));
            (format!("capacity --of {of} --in {place}{kernel}"), experiment)
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
    words.extend(set(&[("--variations", options.variations)]));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::parsed_words;
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
            "--kernel-of",
            "trixie",
            "--documents",
            "/a b/it's",
            "--variants",
            "none,eke",
            "--ballast",
            "1500",
            "--variations",
        ]);
        assert_eq!(
            line,
            r"sudo eke bench capacity --of documents --in machine --kernel-of trixie --repeats 1 --documents '/a b/it'\''s' --disk nfs --ballast 1500 --variants none,eke --variations"
        );
        let words: Vec<&str> = line.split(' ').skip(1).filter(|w| !w.contains('\'')).collect();
        let words: Vec<&str> = words.into_iter().filter(|w| *w != "--documents").collect();
        assert!(parsed_words(words).is_some());
    }
}
