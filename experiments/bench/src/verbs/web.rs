//! `eke bench web`.

use std::path::Path;
use std::time::Duration;

use eke_bench_web::plan::{Axis, Conditions};
use eke_bench_web::{Options, ServerKind, Web, WebGrid};
use eke_present::exit::Outcome;
use eke_present::output;

use super::experiment::verb;
use crate::args::{Files, Server, WebBench};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &WebBench) -> Outcome {
    match &options.files.output {
        Some(path) if options.grid => grid(context, options, path),
        _ => verb(context, &Web(asked(options)), &options.files),
    }
}

/// The experiment writes its file itself, after each cell.
fn grid(context: &Context, options: &WebBench, path: &Path) -> Outcome {
    output::may_write(path, true)?;
    let files = Files { output: None, ..options.files.clone() };
    verb(context, &asked_grid(options, path), &files)
}

fn asked_grid(options: &WebBench, path: &Path) -> WebGrid {
    WebGrid {
        output: path.to_owned(),
        repeats: repeats(options) as usize,
        quick: options.quick,
        warm_up: Duration::from_secs(warm_up_s(options)),
        window: Duration::from_secs(window_s(options)),
        any_commit: options.any_commit,
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
        (true, _) => 90,
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

#[cfg(test)]
mod tests {
    use super::super::command::tests::parsed;
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> WebBench {
        match parsed(line) {
            Which::Web(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_grid_has_three_rounds_unless_quick() {
        let repeats = |line| asked_grid(&options(line), Path::new("a.json")).repeats;
        assert_eq!(repeats("eke bench web --grid --output a.json"), 3);
        assert_eq!(repeats("eke bench web --grid --output a.json --quick"), 1);
    }
}
