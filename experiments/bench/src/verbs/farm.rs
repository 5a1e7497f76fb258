//! `eke bench farm`.

use std::time::Duration;

use eke_bench_farm::plan::{QUICK_TIMES, TIMES};
use eke_bench_farm::{Farm, Options};
use eke_model::units::Bytes;
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::FarmBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &FarmBench) -> Outcome {
    verb(context, &Farm(asked(options)), &options.files)
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
