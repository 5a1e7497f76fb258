//! `eke bench guard`.

use eke_bench_memory::guard::Guard;
use eke_present::command_line::set;
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::GuardBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &GuardBench) -> Outcome {
    let GuardBench { quick, repeats, memory_mib, .. } = *options;
    let experiment = Guard { repeats: repeats as usize, memory_mib, quick };
    verb(context, &experiment, command(options), &options.files)
}

/// The command line that makes a result again.
pub fn command(options: &GuardBench) -> String {
    let mut words = vec!["eke bench guard".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--repeats {} --memory-mib {}", options.repeats, options.memory_mib));
    words.join(" ")
}
