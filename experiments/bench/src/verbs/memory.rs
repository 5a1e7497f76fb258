//! `eke bench paging`, `switch` and `capacity`: experiments in little memory.

use eke_bench_memory::capacity::documents;
use eke_bench_memory::capacity::machine::SmallMachine;
use eke_bench_memory::capacity::tabs::Tabs;
use eke_bench_memory::experiment;
use eke_bench_memory::{paging, switch};
use eke_present::exit::{Failure, Outcome, Status};

use super::experiment::verb;
use crate::args::{Capacity, Experiment, Of, Place, Verb};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, which: &Verb, options: &Experiment) -> Outcome {
    let (asked, files) = (asked(which, options), &options.files);
    match which {
        Verb::Switch(_) => verb(context, &switch::experiment(asked), files),
        Verb::Capacity(Capacity { of: Of::Tabs, place: Place::Machine, .. }) => Err(Failure::new(
            Status::Usage,
            "there is no browser in the small machine: `--of tabs` runs in a box only (--in box)",
        )),
        Verb::Capacity(Capacity { place: Place::Machine, .. }) => verb(context, &SmallMachine(asked), files),
        Verb::Capacity(Capacity { kernel_of: Some(_), .. }) => Err(Failure::new(
            Status::Usage,
            "a box has this machine's kernel: --kernel-of is for the small machine (--in machine)",
        )),
        Verb::Capacity(Capacity { of: Of::Tabs, .. }) => verb(context, &Tabs(asked), files),
        Verb::Capacity(_) => verb(context, &documents::experiment(asked), files),
        _ => verb(context, &paging::experiment(asked), files),
    }
}

fn asked(bench: &Verb, options: &Experiment) -> experiment::Options {
    experiment::Options {
        quick: options.quick,
        repeats: repeats(bench, options) as usize,
        memory: options.memory,
        ballast: options.ballast,
        disk: (options.disk != "none").then(|| options.disk.clone()),
        viewer: options.viewer.clone(),
        documents: options.documents.clone(),
        variants: options.variants.iter().map(|name| name.trim().to_owned()).collect(),
        variations: options.variations,
        kernel_of: match bench {
            Verb::Capacity(capacity) => capacity.kernel_of.clone(),
            _ => None,
        },
    }
}

/// Three rounds are enough for a median. Quick runs have one, and so has the small machine, where a run takes minutes.
fn repeats(bench: &Verb, options: &Experiment) -> u32 {
    let slow = matches!(bench, Verb::Capacity(Capacity { place: Place::Machine, .. }));
    options.repeats.unwrap_or(if options.quick || slow { 1 } else { 3 })
}
