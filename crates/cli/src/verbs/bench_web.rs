//! `eke bench web`.

use std::time::Duration;

use eke_bench::report::Report;
use eke_bench::stage;
use eke_bench::web::plan::{Axis, Conditions};
use eke_bench::web::{self, Bench, Error, Options, ServerKind};

use super::Context;
use super::bench::{finish, quoted, refuse_existing, size};
use crate::args::{Server, WebBench};
use crate::exit::{Failure, Outcome, Status};
use crate::show::progress::Shown;

/// The verb.
pub fn run(context: &Context, options: &WebBench) -> Outcome {
    refuse_existing(&options.files)?;
    context.need_root("an experiment makes a box and a slow disk, and mounts there, which needs root")?;
    let stop = super::run::stop_flag()?;
    let progress = Shown::on_terminal(context.json);
    let held: Result<Report, Error> = web::run(&Bench {
        root: &context.root,
        program: std::env::current_exe()?,
        cache: stage::default_cache().join("web"),
        options: asked(options),
        command: command(options),
        progress: &progress,
        shutdown: &stop,
    });
    progress.end();
    // A signal goes to helpers such as mke2fs too, whose failure is not the news then.
    let is_over = stop.load(std::sync::atomic::Ordering::Relaxed);
    let held = held.map_err(|e| if is_over { Error::Interrupted } else { e });
    finish(context, &held.map_err(failure)?, &options.files)
}

fn failure(error: Error) -> Failure {
    let status = match error {
        Error::Usage(_) => Status::Usage,
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}

fn asked(options: &WebBench) -> Options {
    Options {
        quick: options.quick,
        repeats: options.repeats as usize,
        base: base(options),
        axes: axes(options),
        variants: options.variants.clone(),
        corpus: options.corpus.clone(),
        warm_up: Duration::from_secs(warm_up_s(options)),
        window: Duration::from_secs(window_s(options)),
    }
}

fn base(options: &WebBench) -> Conditions {
    Conditions {
        server: match options.server {
            Server::Nginx => ServerKind::Nginx,
            Server::Tomcat => ServerKind::Tomcat,
        },
        memory: options.memory,
        clients: options.clients,
        connections: options.connections as usize,
        requests: options.requests,
        think: Duration::from_millis(options.think_ms),
        share: options.share,
        disk: (options.disk != "none").then(|| options.disk.clone()),
    }
}

fn axes(options: &WebBench) -> Vec<Axis> {
    match (options.axes.as_slice(), options.quick) {
        ([], true) => vec![Axis::Base],
        ([], false) => Axis::ALL.to_vec(),
        (named, _) => named.to_vec(),
    }
}

fn warm_up_s(options: &WebBench) -> u64 {
    options.warm_up.unwrap_or(if options.quick { 75 } else { 150 })
}

fn window_s(options: &WebBench) -> u64 {
    options.seconds.unwrap_or(if options.quick { 40 } else { 60 })
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &WebBench) -> String {
    let mut words = vec!["sudo eke bench web".to_owned()];
    words.extend(options.quick.then(|| "--quick".to_owned()));
    words.push(format!("--repeats {} --clients {}", options.repeats, options.clients));
    words.extend(options.corpus.as_ref().map(|d| format!("--corpus {}", quoted(&d.to_string_lossy()))));
    words.push(format!("--memory {} --disk {}", size(options.memory), options.disk));
    let base = base(options);
    words.push(format!("--server {} --connections {}", base.server.name(), base.connections));
    words
        .push(format!("--requests {} --think-ms {} --share {}", base.requests, options.think_ms, base.share));
    words.push(format!("--warm-up {} --seconds {}", warm_up_s(options), window_s(options)));
    if !options.variants.is_empty() {
        let variants: Vec<&str> = options.variants.iter().map(|v| v.word()).collect();
        words.push(format!("--variants {}", variants.join(",")));
    }
    let axes: Vec<&str> = axes(options).iter().map(|a| a.word()).collect();
    words.push(format!("--axes {}", axes.join(",")));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Bench, Verb};

    fn options(line: &str) -> WebBench {
        match Args::try_parse_from(line.split(' ')).unwrap().verb {
            Some(Verb::Bench(Bench::Web(options))) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        for line in [
            "eke bench web",
            "eke bench web --quick --corpus /a/b",
            "eke bench web --variants eke,ext4x2 --axes base,fast-disk --requests uniform --server tomcat --disk none",
        ] {
            let first = options(line);
            let command = command(&first);
            let again = options(command.strip_prefix("sudo ").unwrap());
            assert_eq!(asked(&again), asked(&first), "{command}");
        }
    }
}
