//! `eke bench farm`.

use std::time::Duration;

use eke_bench_farm::plan::{QUICK_TIMES, TIMES};
use eke_bench_farm::{Farm, Options};
use eke_model::units::Bytes;
use eke_present::command_line::{list, set, size};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::FarmBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &FarmBench) -> Outcome {
    verb(context, &Farm(asked(options)), command(options), &options.files)
}

fn asked(options: &FarmBench) -> Options {
    let usual = |quick, full| if options.quick { quick } else { full };
    let seconds = |asked: Option<u64>, quick, full| Duration::from_secs(asked.unwrap_or(usual(quick, full)));
    let memory = options.memory;
    let all = Bytes(memory.0.saturating_mul(usual(QUICK_TIMES, TIMES)));
    Options {
        repeats: options.repeats as usize,
        quick: options.quick,
        variants: options.variants.clone(),
        memory,
        content: options.content.unwrap_or(all),
        disk: options.disk.clone(),
        connections: options.connections as usize,
        exponent: options.zipf,
        warm_up: seconds(options.warm_up, 20, 60),
        window: seconds(options.seconds, 8, 20),
        phase: seconds(options.phase, 4, 6),
    }
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &FarmBench) -> String {
    let asked = asked(options);
    let mut words = vec!["sudo eke bench farm".to_owned()];
    words.extend(set(&[("--quick", asked.quick)]));
    words.push(format!(
        "--repeats {} --memory {} --content {}",
        asked.repeats,
        size(asked.memory),
        size(asked.content)
    ));
    words
        .push(format!("--disk {} --connections {} --zipf {}", asked.disk, asked.connections, asked.exponent));
    let [warm_up, window, phase] = [asked.warm_up, asked.window, asked.phase].map(|time| time.as_secs());
    words.push(format!("--warm-up {warm_up} --seconds {window} --phase {phase}"));
    words.extend(list("--variants", asked.variants.iter().map(|v| v.word())));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::{parsed, the_command_makes_the_same};
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> FarmBench {
        match parsed(line) {
            Which::Farm(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        let lines = [
            "eke bench farm",
            "eke bench farm --quick",
            "eke bench farm --variants shared,faults --memory 64M --content 100M --zipf 1.1 --disk sd --phase 3",
        ];
        the_command_makes_the_same(&lines, options, asked, command);
    }
}
