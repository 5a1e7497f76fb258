//! `eke bench link`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use eke_bench::link::plan::{Cpu, Rate};
use eke_bench::link::{self, Bench, Error, Options};

use super::Context;
use super::bench::{finish, refuse_existing};
use crate::args::LinkBench;
use crate::exit::{Failure, Outcome, Status};
use crate::say;
use crate::show::progress::Shown;

/// The verb.
pub fn run(context: &Context, options: &LinkBench) -> Outcome {
    refuse_existing(&options.files)?;
    context.need_root("an experiment makes network namespaces and a link between them, which needs root")?;
    let stop = super::run::stop_flag()?;
    let progress = Shown::on_terminal(context.json);
    let held = link::run(&Bench {
        root: &context.root,
        program: std::env::current_exe()?,
        options: asked(options),
        command: command(options),
        progress: &progress,
        shutdown: &stop,
    });
    progress.end();
    // A signal goes to helpers such as ip too, whose failure is not the news then.
    let held = held.map_err(|e| if stop.load(Ordering::Relaxed) { Error::Interrupted } else { e });
    finish(context, &held.map_err(|e| Failure::new(Status::Failed, e.to_string()))?, &options.files)
}

/// `eke lab picture`.
pub fn picture(time_ms: u64) -> Outcome {
    let frames = link::picture::show(Duration::from_millis(time_ms));
    say!("{}", serde_json::to_string(&frames.map_err(|why| Failure::new(Status::Failed, why))?)?);
    Ok(Status::Done)
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
    let links: Vec<&str> = asked.links.iter().map(|l| l.word()).collect();
    let cpus: Vec<&str> = asked.cpus.iter().map(|c| c.word()).collect();
    format!(
        "sudo eke bench link {}--rounds {} --repeats {} --links {} --cpus {}{}",
        if asked.quick { "--quick " } else { "" },
        asked.rounds,
        asked.repeats,
        links.join(","),
        cpus.join(","),
        if asked.x11 { "" } else { " --no-x11" }
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Bench, Verb};

    fn options(line: &str) -> LinkBench {
        match Args::try_parse_from(line.split(' ')).unwrap().verb {
            Some(Verb::Bench(Bench::Link(options))) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        for line in [
            "eke bench link",
            "eke bench link --quick",
            "eke bench link --cpus atom,full --links 1g --rounds 9 --no-x11",
        ] {
            let first = options(line);
            let command = command(&first);
            let again = options(command.strip_prefix("sudo ").unwrap());
            assert_eq!(asked(&again), asked(&first), "{command}");
        }
    }
}
