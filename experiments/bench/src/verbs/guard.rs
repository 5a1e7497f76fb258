//! `eke bench guard`.

use eke_bench_memory::guard::Guard;
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::GuardBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &GuardBench) -> Outcome {
    let GuardBench { quick, repeats, memory_mib, .. } = *options;
    let experiment = Guard { repeats: repeats as usize, memory_mib, quick };
    verb(context, &experiment, &options.files)
}
