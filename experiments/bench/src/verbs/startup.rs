//! `eke bench startup`.

use std::time::Duration;

use eke_bench_startup::programs::Set;
use eke_bench_startup::{Options, Startup};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::{NO_DISK, StartupBench};
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &StartupBench) -> Outcome {
    verb(context, &Startup(asked(options)), &options.files)
}

fn asked(options: &StartupBench) -> Options {
    Options {
        set: match (options.quick, options.all) {
            (true, _) => Set::Quick,
            (_, true) => Set::All,
            _ => Set::Usual,
        },
        repeats: options.repeats.unwrap_or(if options.quick { 1 } else { 5 }) as usize,
        disks: disks(options).into_iter().map(|name| (name != NO_DISK).then_some(name)).collect(),
        variants: options.variants.clone(),
        programs: options.programs.clone(),
        preload_cycle_s: options.preload_cycle,
        patience: Duration::from_secs(options.patience),
        documents: options.documents.clone(),
        harm: !options.no_harm,
        calls: !options.no_calls && !options.quick,
        ten: !options.no_ten && !options.quick,
        cost: !options.no_cost && !options.quick,
    }
}

fn disks(options: &StartupBench) -> Vec<String> {
    let words: &[&str] = match (options.disk.as_slice(), options.quick) {
        ([], true) => &["sd"],
        ([], false) => &["laptop", "sd", NO_DISK],
        (named, _) => return named.to_vec(),
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::command::tests::parsed;
    use super::*;
    use crate::args::Verb as Which;

    fn options(line: &str) -> StartupBench {
        match parsed(line) {
            Which::Startup(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn quick_is_one_disk_once_and_without_what_takes_long() {
        let quick = asked(&options("eke bench startup --quick"));
        assert_eq!(
            (quick.repeats, quick.disks, quick.calls, quick.ten),
            (1, vec![Some("sd".to_owned())], false, false)
        );
        let full = asked(&options("eke bench startup"));
        assert_eq!((full.repeats, full.disks.len(), full.disks.last()), (5, 3, Some(&None)));
        assert!(full.harm && full.calls && full.ten);
    }
}
