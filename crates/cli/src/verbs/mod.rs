//! The verbs, one file each.

mod advise;
mod applied;
mod boot_config;
mod cache;
mod cgroup_box;
mod dash;
mod demo;
mod doctor;
mod down;
mod enable;
mod files;
mod io;
mod laboratory;
mod let_go;
mod link;
mod ltsp;
mod metrics;
mod notify;
mod overview;
mod pages;
mod plan;
mod prefetch;
mod program;
mod recording;
mod report_bug;
mod retrain;
mod run;
mod status;
mod top;
mod up;

use eke_linux::Root;
use eke_linux::settings;
use eke_model::config::Settings;
use eke_present::document;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::warn;
use serde::Serialize;

use crate::args::{Args, Cache, Lab, Record, Swap, Verb};

/// The arguments that every verb needs.
pub struct Context {
    /// The machine.
    pub root: Root,
    /// Print JSON.
    pub json: bool,
    /// The user's settings.
    pub settings: Settings,
    /// The configuration file given instead of the installed ones, as an absolute path.
    pub config: Option<String>,
}

impl Context {
    /// Prints one JSON document.
    pub fn print_json(&self, value: &impl Serialize) -> Outcome<()> {
        document::print_json(value)
    }

    /// Prints a document as JSON, or as text by `show`.
    pub fn print<T: Serialize>(&self, document: &T, show: impl FnOnce(&T)) -> Outcome<()> {
        document::print(self.json, document, show)
    }

    /// Fails if the agent cannot read the configuration file: it does so in another process, and again while it runs.
    pub fn need_lasting_config(&self) -> Outcome<()> {
        let Some(file) = self.config.as_deref().filter(|_| self.root.is_host()) else { return Ok(()) };
        let is_this_process = ["/dev/", "/proc/"].iter().any(|dir| file.starts_with(dir));
        if std::path::Path::new(file).is_file() && !is_this_process {
            return Ok(());
        }
        let why =
            format!("{file} is no file that lasts, and the agent reads its configuration while it runs");
        Err(Failure::new(Status::Usage, why).hint("write it to a file, and name that"))
    }

    /// Fails without root, with the reason `why` root is needed.
    pub fn need_root(&self, why: &str) -> Outcome<()> {
        if rustix::process::geteuid().is_root() || !self.root.is_host() {
            return Ok(());
        }
        Err(Failure::new(Status::NotPermitted, why).hint("try again with sudo"))
    }

    /// Fails in a user namespace, whose root may stop the machine's agent, and change nothing else of the machine.
    pub fn need_machine(&self, verb: &str) -> Outcome<()> {
        if !self.root.is_host() || !eke_linux::read::is_in_user_namespace(&self.root) {
            return Ok(());
        }
        let why = format!("`eke {verb}` changes the machine, and this is root of a user namespace only");
        Err(Failure::new(Status::NotPermitted, why).hint("run it on the host"))
    }
}

/// Makes a path of the caller absolute; paths below another root directory stay as they are.
fn absolute(root: &Root, file: String) -> Outcome<String> {
    if !root.is_host() {
        return Ok(file);
    }
    Ok(std::path::absolute(file)?.to_string_lossy().into_owned())
}

/// The user's settings. A wrong key stops no undo, and so no removal of the package; nor does a file that only root may read stop a verb that changes
/// nothing.
fn settings_for(verb: Option<&Verb>, root: &Root, config: Option<&str>) -> Outcome<Settings> {
    let wrong = match settings::load(root, config) {
        Err(wrong) => Failure::from(wrong),
        Ok(settings) => return Ok(settings),
    };
    let is_for_root = wrong.status() == Status::NotPermitted;
    let needs_none = verb.is_none_or(|verb| verb.needs_no_settings() || (is_for_root && verb.only_reads()));
    if config.is_some() || !needs_none {
        return Err(wrong);
    }
    warn!("eke: {wrong}; going on without the configuration");
    Ok(Settings::from_sources(&[])?)
}

/// Fails if the verb prints something for which there is no JSON.
fn refuse_json(verb: &Verb) -> Outcome<()> {
    let (name, what, hint) = match verb {
        Verb::Top(_) => ("top", "draws on a terminal", "`eke status --json` prints the same once"),
        Verb::Run(_) => ("run", "shows what it gains, live", "`eke up --json` applies the same"),
        Verb::Dash(_) => ("dash", "serves a page", "`eke status --json` prints the same once"),
        Verb::Metrics(_) => ("metrics", "prints OpenMetrics", "`eke status --json` prints the same numbers"),
        Verb::Notify => ("notify", "shows messages", "`eke status --json` has the latest events"),
        Verb::Completions { .. } => ("completions", "prints a script for a shell", "leave --json out"),
        Verb::Man { .. } => ("man", "prints a man page", "leave --json out"),
        Verb::Down { print: true } => ("down --print", "prints a script for a shell", "leave --json out"),
        Verb::Enable => ("enable", "prints what it wrote", "leave --json out"),
        Verb::Disable => ("disable", "prints what it restored", "leave --json out"),
        Verb::Doctor { knobs: true } => ("doctor --knobs", "prints a table in Markdown", "leave --json out"),
        Verb::Cache(Cache::Enable(_)) => ("cache enable", "prints what it wrote", "leave --json out"),
        Verb::Cache(Cache::Disable { .. }) => {
            ("cache disable", "prints what it restored", "leave --json out")
        }
        Verb::Record(Record { verb: Some(_), .. }) => ("record mark", "prints one line", "leave --json out"),
        Verb::Swap(_) => ("swap boot-config", "prints changes of files", "leave --json out"),
        _ => return Ok(()),
    };
    let why = format!("`eke {name}` {what} and has no JSON");
    Err(Failure::new(Status::Usage, why).hint(hint))
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    if let Some(verb) = args.verb.as_ref().filter(|_| args.json) {
        refuse_json(verb)?;
    }
    let root = Root::at(&args.root);
    let config = args.config.map(|file| absolute(&root, file)).transpose()?;
    let settings = settings_for(args.verb.as_ref(), &root, config.as_deref())?;
    let context = Context { root, json: args.json, settings, config };
    match args.verb {
        None => overview::run(&context),
        Some(Verb::Plan(overrides)) => plan::run(&context, &overrides),
        Some(Verb::Up(up)) => up::run(&context, &up),
        Some(Verb::Run(up)) => run::run(&context, &up),
        Some(Verb::Down { print }) => down::run(&context, print),
        Some(Verb::Enable) => enable::enable(&context),
        Some(Verb::Disable) => enable::disable(&context),
        Some(Verb::Status) => status::run(&context),
        Some(Verb::Top(options)) => top::run(&context, &options),
        Some(Verb::Dash(options)) => dash::run(&context, &options),
        Some(Verb::Metrics(options)) => metrics::run(&context, &options),
        Some(Verb::Notify) => notify::run(&context),
        Some(Verb::Doctor { knobs }) => doctor::run(&context, knobs),
        Some(Verb::ReportBug { output }) => report_bug::run(&context, output.as_deref()),
        Some(Verb::Advise { most }) => advise::run(&context, most),
        Some(Verb::Box { memory, command }) => cgroup_box::run(&context, memory, command),
        Some(Verb::Demo) => demo::run(&context),
        Some(Verb::Swap(Swap::BootConfig { write, undo, compressor, max_pool_percent })) => {
            boot_config::run(&context, &boot_config::Options { write, undo, compressor, max_pool_percent })
        }
        Some(Verb::Cache(cache)) => cache::run(&context, &cache),
        Some(Verb::Prefetch(prefetch)) => prefetch::run(&context, &prefetch),
        Some(Verb::Link(options)) => link::run(&context, &options),
        Some(Verb::Ltsp(verb)) => ltsp::run(&context, &verb),
        Some(Verb::Io(io)) => io::run(&context, &io),
        Some(Verb::Bench { words }) => laboratory::run(&context, &[], &words),
        Some(Verb::Record(options)) => recording::record(&context, &options),
        Some(Verb::Report(options)) => recording::report(&context, &options),
        Some(Verb::Completions { shell }) => pages::completions(shell),
        Some(Verb::Man { verb, directory }) => pages::man(&verb, directory.as_deref()),
        Some(Verb::Schema { name }) => crate::schema::print(name.as_deref()),
        Some(Verb::Lab(Lab::LinkEnd)) => link::end(),
        Some(Verb::Lab(Lab::Retrain { end_with })) => retrain::run(&context, &end_with),
        Some(Verb::Lab(Lab::LetGo)) => let_go::run(&context),
        Some(Verb::Lab(Lab::Other(words))) => laboratory::run(&context, &["lab"], &words),
        Some(Verb::Stressor { spec }) => {
            Ok(eke_present::exit::Status::Of(eke_sandbox::stressor::program(&spec)))
        }
    }
}
