//! `eke bench io` and `eke bench io-overhead`.

use eke_bench_io::plan::{Variant, Writer};
use eke_bench_io::published::Published;
use eke_bench_io::{Io, Options};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;
use eke_present::put;

use super::experiment::verb;
use crate::args::{DiskBench, IoBench};
use crate::context::Context;

const SENSOR: &str = "eke-io";

/// `eke bench io`.
pub fn run(context: &Context, options: &IoBench) -> Outcome {
    verb(context, &Io(asked(options)), &options.files)
}

/// `eke bench disk`.
pub fn disk(context: &Context, options: &DiskBench) -> Outcome {
    let disk = Published { repeats: options.repeats as usize, seconds: options.seconds };
    verb(context, &disk, &options.files)
}

/// `eke bench io-overhead`: fails where it is more than was promised.
pub fn overhead(context: &Context, seconds: u64) -> Outcome {
    context.need_root("BPF programs and loop devices need root")?;
    let overhead = eke_bench_io::overhead(&programs::beside(SENSOR), seconds);
    let overhead = overhead.map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    context.print(&overhead, |o| put!("{o}"))?;
    Ok(if overhead.is_too_much() { Status::Failed } else { Status::Done })
}

fn asked(options: &IoBench) -> Options {
    let variants: &[Variant] = if options.quick { &Variant::QUICK } else { &Variant::ALL };
    let writers: &[Writer] = if options.quick { &Writer::ALL[..1] } else { &Writer::ALL };
    let chosen = |own: &[Variant]| if own.is_empty() { variants.to_vec() } else { own.to_vec() };
    let repeats = options.repeats.unwrap_or(if options.quick { 1 } else { 10 }) as usize;
    Options {
        disk: options.disk.clone(),
        repeats,
        fewer: if options.variants.is_empty() { repeats.div_ceil(4) } else { repeats },
        variants: chosen(&options.variants),
        writers: if options.writers.is_empty() { writers.to_vec() } else { options.writers.clone() },
        warm_up_s: options.warm_up,
        measured_s: options.seconds,
        rate: options.rate,
        any_commit: options.any_commit,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::tests::parsed;
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> IoBench {
        match parsed(line) {
            Which::Io(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_named_variants_are_in_all_rounds() {
        let of = |line: &str| {
            let asked = asked(&options(line));
            (asked.repeats, asked.fewer)
        };
        assert_eq!(of("eke bench io"), (10, 3));
        assert_eq!(of("eke bench io --variants bfq,eke --repeats 5"), (5, 5));
        assert_eq!(of("eke bench io --quick"), (1, 1));
    }

    #[test]
    fn quick_has_fewer_variants() {
        assert_eq!(
            (
                asked(&options("eke bench io --quick")).variants.len(),
                asked(&options("eke bench io")).writers.len()
            ),
            (4, 3)
        );
    }
}
