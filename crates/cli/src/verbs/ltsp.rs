//! `eke ltsp`: executes `eke-ltsp`.

use eke_present::exit::Outcome;

use super::Context;
use super::program::{LTSP, execute};
use crate::args::ltsp::Ltsp;

/// The verb. It returns only if the program cannot be executed.
pub fn run(context: &Context, verb: &Ltsp) -> Outcome {
    let mut command = LTSP.command(context)?;
    match verb {
        Ltsp::Plan => command.arg("plan"),
        Ltsp::Install => command.arg("install"),
        Ltsp::Uninstall => command.arg("uninstall"),
        Ltsp::Status(clients) => command.args(["status", "--"]).args(&clients.clients),
        Ltsp::Targets { output, clients } => {
            command.arg("targets");
            if let Some(file) = output {
                command.arg("--output").arg(file);
            }
            command.arg("--").args(&clients.clients)
        }
    };
    execute(command)
}
