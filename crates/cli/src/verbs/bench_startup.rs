//! `eke bench startup`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use eke_bench::stage;
use eke_bench::startup::{self, Bench, Error, Options};

use super::Context;
use super::bench::{finish, quoted, refuse_existing};
use crate::args::{NO_DISK, StartupBench};
use crate::exit::{Failure, Outcome, Status};
use crate::show::progress::Shown;

/// The verb.
pub fn run(context: &Context, options: &StartupBench) -> Outcome {
    refuse_existing(&options.files)?;
    context.need_root("an experiment makes a slow disk and mounts it anew for each run, which needs root")?;
    let stop = super::run::stop_flag()?;
    let progress = Shown::on_terminal(context.json);
    let held = startup::run(&Bench {
        root: &context.root,
        program: std::env::current_exe()?,
        cache: stage::default_cache().join("startup"),
        options: asked(options),
        command: command(options),
        progress: &progress,
        shutdown: &stop,
    });
    progress.end();
    // A signal goes to helpers such as mke2fs too, whose failure is not the news then.
    let held = held.map_err(|e| if stop.load(Ordering::Relaxed) { Error::Interrupted } else { e });
    finish(context, &held.map_err(failure)?, &options.files)
}

fn failure(error: Error) -> Failure {
    let status = match error {
        Error::Usage(_) => Status::Usage,
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}

fn asked(options: &StartupBench) -> Options {
    Options {
        quick: options.quick,
        repeats: repeats(options) as usize,
        disks: disks(options).into_iter().map(|name| (name != NO_DISK).then_some(name)).collect(),
        variants: options.variants.clone(),
        programs: options.programs.clone(),
        preload_cycle_s: options.preload_cycle,
        patience: Duration::from_secs(options.patience),
        documents: options.documents.clone(),
        harm: !options.no_harm,
        calls: !options.no_calls && !options.quick,
        ten: !options.no_ten && !options.quick,
        cost: !options.no_cost && !options.quick,
    }
}

fn repeats(options: &StartupBench) -> u32 {
    options.repeats.unwrap_or(if options.quick { 1 } else { 5 })
}

fn disks(options: &StartupBench) -> Vec<String> {
    let words: &[&str] = match (options.disk.as_slice(), options.quick) {
        ([], true) => &["sd"],
        ([], false) => &["laptop", "sd", NO_DISK],
        (named, _) => return named.to_vec(),
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &StartupBench) -> String {
    let mut words = vec!["sudo eke bench startup".to_owned()];
    words.extend(options.quick.then(|| "--quick".to_owned()));
    words.push(format!("--repeats {} --disk {}", repeats(options), disks(options).join(",")));
    if !options.programs.is_empty() {
        let programs: Vec<&str> = options.programs.iter().map(|p| p.name).collect();
        words.push(format!("--programs {}", programs.join(",")));
    }
    if !options.variants.is_empty() {
        let variants: Vec<&str> = options.variants.iter().map(|v| v.word()).collect();
        words.push(format!("--variants {}", variants.join(",")));
    }
    words.push(format!("--preload-cycle {} --patience {}", options.preload_cycle, options.patience));
    words.extend(options.documents.as_ref().map(|d| format!("--documents {}", quoted(&d.to_string_lossy()))));
    let without = [
        ("--no-harm", options.no_harm),
        ("--no-calls", options.no_calls),
        ("--no-ten", options.no_ten),
        ("--no-cost", options.no_cost),
    ];
    words.extend(without.iter().filter(|(_, is)| *is).map(|(word, _)| (*word).to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Bench, Verb};

    fn options(line: &str) -> StartupBench {
        match Args::try_parse_from(line.split(' ')).unwrap().verb {
            Some(Verb::Bench(Bench::Startup(options))) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        for line in [
            "eke bench startup",
            "eke bench startup --quick --documents /a/b",
            "eke bench startup --variants eke-exec,cold --programs xterm,writer --disk none,laptop --no-harm --no-ten --no-cost --repeats 2",
        ] {
            let first = options(line);
            let command = command(&first);
            let again = options(command.strip_prefix("sudo ").unwrap());
            assert_eq!(asked(&again), asked(&first), "{command}");
        }
    }

    #[test]
    fn quick_is_one_disk_once_and_without_what_takes_long() {
        let quick = asked(&options("eke bench startup --quick"));
        assert_eq!(
            (quick.repeats, quick.disks, quick.calls, quick.ten),
            (1, vec![Some("sd".to_owned())], false, false)
        );
        let full = asked(&options("eke bench startup"));
        assert_eq!((full.repeats, full.disks.len(), full.disks.last()), (5, 3, Some(&None)));
        assert!(full.harm && full.calls && full.ten);
    }
}
