//! The memory stressor as a program of its own, for tests and the small machine; `eke stressor` is the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    ExitCode::from(eke_sandbox::stressor::program(&argument))
}
