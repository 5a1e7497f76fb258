//! `eke bench web`.

use std::time::Duration;

use eke_bench_web::plan::{Axis, Conditions};
use eke_bench_web::{Options, ServerKind, Web};
use eke_present::command_line::{list, quoted, set, size};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::{Server, WebBench};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &WebBench) -> Outcome {
    verb(context, &Web(asked(options)), command(options), &options.files)
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
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--repeats {} --clients {}", options.repeats, options.clients));
    words.extend(options.corpus.as_ref().map(|d| format!("--corpus {}", quoted(&d.to_string_lossy()))));
    words.push(format!("--memory {} --disk {}", size(options.memory), options.disk));
    let base = base(options);
    words.push(format!("--server {} --connections {}", base.server.name(), base.connections));
    words
        .push(format!("--requests {} --think-ms {} --share {}", base.requests, options.think_ms, base.share));
    words.push(format!("--warm-up {} --seconds {}", warm_up_s(options), window_s(options)));
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
    }
}
