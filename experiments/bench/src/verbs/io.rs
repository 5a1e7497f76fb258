//! `eke bench io` and `eke bench io-overhead`.

use eke_bench_io::plan::{Variant, Writer};
use eke_bench_io::{Io, Options};
use eke_present::command_line::list;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;
use eke_present::put;

use super::experiment::verb;
use crate::args::IoBench;
use crate::context::Context;

const SENSOR: &str = "eke-io";

/// `eke bench io`.
pub fn run(context: &Context, options: &IoBench) -> Outcome {
    verb(context, &Io(asked(options)), command(options), &options.files)
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
    Options {
        disk: options.disk.clone(),
        repeats: repeats(options) as usize,
        variants: chosen(&options.variants),
        writers: if options.writers.is_empty() { writers.to_vec() } else { options.writers.clone() },
        warm_up_s: options.warm_up,
        measured_s: options.seconds,
        rate: options.rate,
    }
}

fn repeats(options: &IoBench) -> u32 {
    options.repeats.unwrap_or(if options.quick { 1 } else { 3 })
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &IoBench) -> String {
    let Options { disk, repeats, variants, writers, warm_up_s, measured_s, rate } = asked(options);
    let mut words = vec![format!("sudo eke bench io --repeats {repeats} --disk {disk}")];
    words.extend(list("--variants", variants.into_iter().map(Variant::word)));
    words.extend(list("--writers", writers.into_iter().map(Writer::word)));
    words.push(format!("--warm-up {warm_up_s} --seconds {measured_s} --rate {rate}"));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::{parsed, the_command_makes_the_same};
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> IoBench {
        match parsed(line) {
            Which::Io(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        let lines = [
            "eke bench io",
            "eke bench io --quick",
            "eke bench io --variants eke,default --writers btrfs --disk laptop --rate 10",
        ];
        the_command_makes_the_same(&lines, options, asked, command);
        assert_eq!(
            (
                asked(&options("eke bench io --quick")).variants.len(),
                asked(&options("eke bench io")).writers.len()
            ),
            (4, 3)
        );
    }
}
