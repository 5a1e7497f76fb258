//! `eke bench link`.

use eke_bench_link::plan::{Cpu, Rate};
use eke_bench_link::{Link, Options};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::LinkBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &LinkBench) -> Outcome {
    verb(context, &Link(asked(options)), &options.files)
}

fn asked(options: &LinkBench) -> Options {
    let quick = options.quick;
    let links: &[Rate] = if quick { &[Rate::Gbit1] } else { &Rate::ALL };
    let cpus: &[Cpu] = if quick { &[Cpu::Full, Cpu::Atom] } else { &Cpu::ALL };
    let or = |n: Option<u32>, quickly: u32, otherwise: u32| {
        n.unwrap_or(if quick { quickly } else { otherwise }) as usize
    };
    Options {
        quick,
        rounds: or(options.rounds, 4, 6),
        repeats: or(options.repeats, 1, 3),
        x11: !options.no_x11,
        links: if options.links.is_empty() { links.to_vec() } else { options.links.clone() },
        cpus: if options.cpus.is_empty() { cpus.to_vec() } else { options.cpus.clone() },
    }
}
