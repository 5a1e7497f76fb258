//! The verbs: from words to an experiment's options, and from its report to files.

mod agent;
mod cache;
mod command;
mod experiment;
mod farm;
mod files;
mod guard;
mod io;
mod link;
mod ltsp;
mod memory;
mod pages;
mod replay;
mod show;
mod startup;
mod web;

use clap::CommandFactory;
use eke_linux::Root;
use eke_present::exit::{Outcome, Status};

use crate::args::{Args, Verb};
use crate::context::Context;
use crate::{lab, schema};

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let context = Context { root: Root::at(&args.root), json: args.json, command: command() };
    match args.verb {
        Verb::Completions { shell } => pages::completions(shell),
        Verb::Man { verb, directory } => pages::man(&verb, directory.as_deref()),
        Verb::Schema => schema::print(),
        Verb::Stressor { spec } => Ok(Status::Of(eke_sandbox::stressor::program(&spec))),
        Verb::Lab(lab) => lab::run(&context, lab),
        verb => experiment(&context, &verb),
    }
}

/// This command line, for the report.
fn command() -> String {
    let command = Args::command();
    let matches = command.clone().try_get_matches_from(std::env::args_os());
    matches.ok().and_then(|matches| command::again(&command, &matches)).unwrap_or_default()
}

fn experiment(context: &Context, verb: &Verb) -> Outcome {
    match verb {
        Verb::Replay(options) => replay::run(context, options),
        Verb::Agent { seconds } => agent::run(context, *seconds),
        Verb::Show(options) => show::run(context, options),
        Verb::Store(options) => cache::store(context, options),
        Verb::Reads(options) => cache::reads(context, options),
        Verb::Names(options) => cache::names(context, options),
        Verb::Warm(options) => cache::warm(context, options),
        Verb::Trace(options) => cache::trace(context, options),
        Verb::Tiers(options) => cache::tiers(context, options),
        Verb::Web(options) => web::run(context, options),
        Verb::Farm(options) => farm::run(context, options),
        Verb::Link(options) => link::run(context, options),
        Verb::Ltsp(options) => ltsp::run(context, options),
        Verb::Startup(options) => startup::run(context, options),
        Verb::Io(options) => io::run(context, options),
        Verb::Disk(options) => io::disk(context, options),
        Verb::IoOverhead { seconds } => io::overhead(context, *seconds),
        Verb::Guard(options) => guard::run(context, options),
        Verb::Paging(options) => memory::run(context, verb, options),
        Verb::Switch(options) => memory::run(context, verb, options),
        Verb::Capacity(options) => memory::run(context, verb, &options.experiment),
        Verb::Completions { .. } | Verb::Man { .. } | Verb::Schema | Verb::Stressor { .. } | Verb::Lab(_) => {
            Ok(Status::Done)
        }
    }
}
