//! `eke bench ltsp`.

use eke_bench_ltsp::{Lab, Options};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::LtspBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &LtspBench) -> Outcome {
    verb(context, &Lab(asked(options)), &options.files)
}

fn asked(options: &LtspBench) -> Options {
    let quick = options.quick;
    let or = |n: Option<u32>, quickly: u32, otherwise: u32| {
        n.unwrap_or(if quick { quickly } else { otherwise }) as usize
    };
    let sizes: &[u32] = if quick { &[124] } else { &[124, 256, 512] };
    Options {
        sizes_mib: if options.sizes_mib.is_empty() { sizes.to_vec() } else { options.sizes_mib.clone() },
        clients: or(options.clients, 1, 2),
        means: options.variants.clone(),
        repeats: options.repeats as usize,
        faults: options.faults,
        documents: or(options.documents, 6, 12),
        mirror: options.mirror.clone(),
        cache: options.cache.clone(),
        any_commit: options.any_commit,
    }
}
