//! `eke bench web`.

use std::path::Path;
use std::time::Duration;

use eke_bench_web::plan::{Axis, Conditions};
use eke_bench_web::{Options, ServerKind, Web, WebGrid};
use eke_present::command_line::{list, quoted, set, size};
use eke_present::exit::Outcome;
use eke_present::output;

use super::experiment::verb;
use crate::args::{Files, Server, WebBench};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &WebBench) -> Outcome {
    match &options.files.output {
        Some(path) if options.grid => grid(context, options, path),
        _ => verb(context, &Web(asked(options)), command(options), &options.files),
    }
}

/// The experiment writes its file itself, after each cell.
fn grid(context: &Context, options: &WebBench, path: &Path) -> Outcome {
    output::may_write(path, true)?;
    let files = Files { output: None, ..options.files.clone() };
    verb(context, &asked_grid(options, path), command(options), &files)
}

fn asked_grid(options: &WebBench, path: &Path) -> WebGrid {
    WebGrid {
        output: path.to_owned(),
        repeats: repeats(options) as usize,
        quick: options.quick,
        warm_up: Duration::from_secs(warm_up_s(options)),
        window: Duration::from_secs(window_s(options)),
    }
}

fn repeats(options: &WebBench) -> u32 {
    options.repeats.unwrap_or(if options.grid && !options.quick { 3 } else { 1 })
}

fn asked(options: &WebBench) -> Options {
    Options {
        quick: options.quick,
        repeats: repeats(options) as usize,
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
    let usual = match (options.grid, options.quick) {
        (true, _) => 30,
        (false, true) => 75,
        (false, false) => 150,
    };
    options.warm_up.unwrap_or(usual)
}

fn window_s(options: &WebBench) -> u64 {
    let usual = match (options.grid, options.quick) {
        (true, _) => 20,
        (false, true) => 40,
        (false, false) => 60,
    };
    options.seconds.unwrap_or(usual)
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &WebBench) -> String {
    let mut words = vec!["sudo eke bench web".to_owned()];
    words.extend(set(&[("--quick", options.quick), ("--grid", options.grid)]));
    words.push(format!("--repeats {}", repeats(options)));
    let times = format!("--warm-up {} --seconds {}", warm_up_s(options), window_s(options));
    if options.grid {
        words.push(times);
        return words.join(" ");
    }
    words.push(format!("--clients {}", options.clients));
    words.extend(options.corpus.as_ref().map(|d| format!("--corpus {}", quoted(&d.to_string_lossy()))));
    words.push(format!("--memory {} --disk {}", size(options.memory), options.disk));
    let base = base(options);
    words.push(format!("--server {} --connections {}", base.server.name(), base.connections));
    words
        .push(format!("--requests {} --think-ms {} --share {}", base.requests, options.think_ms, base.share));
    words.push(times);
    words.extend(list("--variants", options.variants.iter().map(|v| v.word())));
    words.extend(list("--axes", axes(options).iter().map(|a| a.word())));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::{parsed, the_command_makes_the_same};
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> WebBench {
        match parsed(line) {
            Which::Web(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        let lines = [
            "eke bench web",
            "eke bench web --quick --corpus /a/b",
            "eke bench web --variants eke,ext4x2 --axes base,fast-disk --requests uniform --server tomcat --disk none",
        ];
        the_command_makes_the_same(&lines, options, asked, command);
        let line = "eke bench web --grid --output a.json --quick --seconds 5";
        let command = command(&options(line));
        assert_eq!(command, "sudo eke bench web --quick --grid --repeats 1 --warm-up 30 --seconds 5");
        let again = options(&format!("{} --output a.json", command.strip_prefix("sudo ").unwrap()));
        let of = |options: &WebBench| asked_grid(options, Path::new("a.json"));
        assert_eq!(of(&again), of(&options(line)));
        assert_eq!(of(&options("eke bench web --grid --output a.json")).repeats, 3);
    }
}
