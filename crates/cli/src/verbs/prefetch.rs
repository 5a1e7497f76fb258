//! `eke prefetch ...`: executes `eke-prefetch`, which stores what programs read at launch, or `eke-bench` for a replay.

use eke_present::exit::Outcome;

use super::program::{PREFETCH, execute};
use super::{Context, laboratory};
use crate::args::prefetch::{Prefetch, Verb};

/// The store's directory.
const DIR: &str = "var/lib/eke";

/// The verb. It returns only if the program cannot be executed.
pub fn run(context: &Context, prefetch: &Prefetch) -> Outcome {
    if let Verb::Replay { words } = &prefetch.verb {
        return laboratory::run(context, &["replay"], words);
    }
    let mut command = std::process::Command::new(PREFETCH.find()?);
    if context.json {
        command.arg("--json");
    }
    let store = prefetch.store.clone().unwrap_or_else(|| context.root.path(DIR));
    command.arg("--store").arg(store);
    match &prefetch.verb {
        Verb::List => command.arg("list"),
        Verb::Show { program, all } => command.args(all.then_some("--all")).args(["show", "--"]).arg(program),
        Verb::Forget { program } => command.args(["forget", "--"]).arg(program),
        Verb::Explain { program, missing: true, .. } => {
            command.args(["explain", "--missing", "--"]).args(program)
        }
        Verb::Explain { program, most, .. } => {
            command.args(["explain", "--most", &most.to_string(), "--"]).args(program)
        }
        Verb::Boot => command.arg("boot"),
        Verb::Trace { hash, output } => {
            command.arg("trace").args(hash.then_some("--hash"));
            output.iter().fold(&mut command, |command, file| command.arg("--output").arg(file))
        }
        Verb::Export { programs, output, sign } => {
            command.arg("export").arg("--output").arg(output);
            sign.iter()
                .fold(&mut command, |command, key| command.arg("--sign").arg(key))
                .arg("--")
                .args(programs)
        }
        Verb::Import { file, signers, unsigned } => {
            command.arg("import").args(unsigned.then_some("--unsigned"));
            signers
                .iter()
                .fold(&mut command, |command, of| command.arg("--signers").arg(of))
                .arg("--")
                .arg(file)
        }
        Verb::Replay { .. } => &mut command,
    };
    execute(command)
}
