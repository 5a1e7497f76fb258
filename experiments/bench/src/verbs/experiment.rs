//! Every experiment as a verb: checks, the environment, and the report's output.

use eke_bench_core::{Environment, Experiment, Failure, run, test_image};
use eke_present::exit::{self, Outcome, Status};
use eke_present::progress::Shown;
use eke_present::stop;

use super::files::{finish, refuse_existing};
use crate::args::Files;
use crate::context::Context;
use crate::provenance;

/// Runs an experiment and prints its report.
pub fn verb<E: Experiment>(context: &Context, experiment: &E, files: &Files) -> Outcome {
    refuse_existing(files)?;
    if let Some(reason) = E::NEEDS_ROOT {
        context.need_root(reason)?;
    }
    let stop = stop::on_signals()?;
    let progress = Shown::on_terminal(context.json);
    let environment = Environment {
        root: &context.root,
        program: std::env::current_exe()?,
        cache: test_image::default_cache(),
        command: format!("{}{}", if E::NEEDS_ROOT.is_some() { "sudo " } else { "" }, context.command),
        provenance: provenance::now(&context.root),
        progress: &progress,
        shutdown: &stop,
    };
    let report = run(experiment, &environment);
    progress.end();
    let status = finish(context, &report.map_err(|e| failure::<E>(&e))?, files)?;
    experiment.written(&environment);
    Ok(status)
}

/// The exit status depends on the cause: the user's options or the machine.
fn failure<E: Experiment>(failure: &Failure<E::Error>) -> exit::Failure {
    let is_usage = matches!(failure, Failure::Experiment(error) if E::is_usage(error));
    exit::Failure::new(if is_usage { Status::Usage } else { Status::Failed }, failure.to_string())
}
