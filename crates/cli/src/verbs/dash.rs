//! `eke dash`: executes `eke-dash`, which serves the web page.

use eke_present::exit::Outcome;

use super::Context;
use super::program::{DASH, execute};
use crate::args::Dash;

/// The verb. It returns only if the program cannot be executed.
pub fn run(context: &Context, options: &Dash) -> Outcome {
    let mut command = DASH.command(context)?;
    command.arg("page").arg("--listen").arg(options.listen.to_string());
    if let Some(file) = &options.history {
        command.arg("--history").arg(file);
    }
    execute(command)
}
