//! `eke bench link`.

use eke_bench_link::plan::{Cpu, Rate};
use eke_bench_link::{Link, Options};
use eke_present::command_line::{list, set};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::LinkBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &LinkBench) -> Outcome {
    verb(context, &Link(asked(options)), command(options), &options.files)
}

fn asked(options: &LinkBench) -> Options {
    let quick = options.quick;
    let links: &[Rate] = if quick { &[Rate::Gbit1] } else { &Rate::ALL };
    let cpus: &[Cpu] = if quick { &[Cpu::Full, Cpu::Atom] } else { &Cpu::ALL };
    let or = |n: Option<u32>, quickly: u32, otherwise: u32| {
        n.unwrap_or(if quick { quickly } else { otherwise }) as usize
    };
    Options {
        quick,
        rounds: or(options.rounds, 4, 6),
        repeats: or(options.repeats, 1, 3),
        x11: !options.no_x11,
        links: if options.links.is_empty() { links.to_vec() } else { options.links.clone() },
        cpus: if options.cpus.is_empty() { cpus.to_vec() } else { options.cpus.clone() },
    }
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &LinkBench) -> String {
    let asked = asked(options);
    let mut words = vec!["sudo eke bench link".to_owned()];
    words.extend(set(&[("--quick", asked.quick)]));
    words.push(format!("--rounds {} --repeats {}", asked.rounds, asked.repeats));
    words.extend(list("--links", asked.links.iter().map(|l| l.word())));
    words.extend(list("--cpus", asked.cpus.iter().map(|c| c.word())));
    words.extend(set(&[("--no-x11", !asked.x11)]));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::{parsed, the_command_makes_the_same};
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> LinkBench {
        match parsed(line) {
            Which::Link(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        let lines = [
            "eke bench link",
            "eke bench link --quick",
            "eke bench link --cpus atom,full --links 1g --rounds 9 --no-x11",
        ];
        the_command_makes_the_same(&lines, options, asked, command);
    }
}
