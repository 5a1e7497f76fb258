//! `eke bench ltsp`.

use eke_bench_ltsp::{Lab, Options};
use eke_present::command_line::{list, set};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::LtspBench;
use crate::context::Context;

/// The verb.
pub fn run(context: &Context, options: &LtspBench) -> Outcome {
    verb(context, &Lab(asked(options)), command(options), &options.files)
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
    }
}

/// The command line that makes a result again, with its defaults, which may change.
fn command(options: &LtspBench) -> String {
    let Options { sizes_mib, clients, repeats, documents, .. } = asked(options);
    let mut words =
        vec![format!("sudo eke bench ltsp --repeats {repeats} --clients {clients} --documents {documents}")];
    let sizes: Vec<String> = sizes_mib.iter().map(u32::to_string).collect();
    words.extend(list("--sizes-mib", sizes.iter().map(String::as_str)));
    words.extend(list("--variants", options.variants.iter().map(|means| means.name())).map(quoted));
    words.extend(set(&[("--faults", options.faults)]));
    words.join(" ")
}

/// Names of variants have blanks.
fn quoted(option: String) -> String {
    option.split_once(' ').map_or(option.clone(), |(option, names)| format!("{option} \"{names}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;
    use crate::verbs::again::{parsed, the_command_makes_the_same};

    #[test]
    fn the_command_in_a_report_makes_the_same_experiment() {
        let options = |line: &str| match parsed(line) {
            Verb::Ltsp(options) => *options,
            _ => panic!("{line}"),
        };
        let lines = [
            "eke bench ltsp",
            "eke bench ltsp --quick",
            "eke bench ltsp --faults",
            "eke bench ltsp --quick --clients 3 --sizes-mib 124,300",
        ];
        the_command_makes_the_same(&lines, options, asked, command);
    }
}
