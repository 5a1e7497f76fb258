//! The options of the program.

use std::ffi::OsString;
use std::path::PathBuf;

use eke_prefetch_learned as learned;
use eke_prefetch_learned::share::export::Options as Export;
use eke_prefetch_learned::share::import::{Options as Import, SIGNERS};
use lexopt::prelude::{Long, Short, Value, ValueExt};
use lexopt::{Error, Parser};

/// The help.
pub const USAGE: &str =
    "eke-prefetch learns what programs read when they start, and reads it before their next start.

    eke-prefetch run [--config FILE] [--store DIR] [--no-ahead] [--no-exec] [--now-only] [--end-with PID]
    eke-prefetch ahead [--config FILE] [--store DIR] PROGRAM...
    eke-prefetch source
    eke-prefetch list | show PROGRAM [--all] | forget PROGRAM | explain [PROGRAM] [--most N] [--missing] | boot | trace [--hash] [--output FILE]
                 | export [PROGRAM...] --output FILE [--sign KEY] | import FILE [--signers FILE] [--unsigned] [--store DIR] [--json]

run       runs until SIGTERM and prints its events as lines of JSON. `eke up` makes the agent start it.
ahead     reads the files of these programs now. `eke prefetch list` shows their paths.
source    prints how launches are traced on this machine, and why not by a better method.
The others show, forget and export what was learned: `eke prefetch` executes them, and its help explains them.

--store DIR      uses this directory instead of /var/lib/eke
--no-ahead       reads nothing before a program starts
--no-exec        reads nothing when a program starts
--now-only       publishes no state for `eke status`, and so leaves no start alone to measure the others; each start counts as a habit
--end-with PID   ends when this process, its parent, ends";

/// What the program shall do.
#[derive(Default)]
pub struct Arguments {
    /// The configuration instead of the installed one.
    pub config: Option<String>,
    /// The store's directory.
    pub store: Option<PathBuf>,
    /// Read nothing before a program starts.
    pub no_ahead: bool,
    /// Read nothing when a program starts.
    pub no_exec: bool,
    /// Publish no state.
    pub now_only: bool,
    /// The process to end with.
    pub end_with: Option<String>,
    /// Print JSON.
    pub json: bool,
    /// The verb.
    pub verb: Verb,
}

/// The verbs.
#[derive(Default)]
pub enum Verb {
    /// Trace, learn and read ahead.
    #[default]
    Run,
    /// Read the files of these programs.
    Ahead(Vec<String>),
    /// Print how launches are traced.
    Source,
    /// Show, forget or export what was learned.
    Learned(learned::Verb),
}

/// The options of single verbs.
#[derive(Default)]
struct Words {
    values: Vec<OsString>,
    all: bool,
    hash: bool,
    missing: bool,
    most: Option<u16>,
    output: Option<PathBuf>,
    key: Option<PathBuf>,
    signers: Option<PathBuf>,
    unsigned: bool,
}

const VERBS: &str = "run, ahead, source, list, show, forget, explain, boot, trace, export or import";
/// The most decisions that `explain` prints if `--most` is absent.
const MOST: u16 = 20;

/// `None` if the user requested the help.
///
/// # Errors
/// An option is unknown, lacks its value or has a wrong one.
pub fn parse(mut parser: Parser) -> Result<Option<Arguments>, Error> {
    let (mut all, mut words) = (Arguments::default(), Words::default());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("config") => all.config = Some(parser.value()?.string()?),
            Long("store") => all.store = Some(parser.value()?.into()),
            Long("no-ahead") => all.no_ahead = true,
            Long("no-exec") => all.no_exec = true,
            Long("now-only") => all.now_only = true,
            Long("end-with") => all.end_with = Some(parser.value()?.string()?),
            Long("json") => all.json = true,
            Long("all") => words.all = true,
            Long("hash") => words.hash = true,
            Long("missing") => words.missing = true,
            Long("most") => words.most = Some(parser.value()?.parse()?),
            Long("output") => words.output = Some(parser.value()?.into()),
            Long("sign") => words.key = Some(parser.value()?.into()),
            Long("signers") => words.signers = Some(parser.value()?.into()),
            Long("unsigned") => words.unsigned = true,
            Short('h') | Long("help") => return Ok(None),
            Value(value) => words.values.push(value),
            other => return Err(other.unexpected()),
        }
    }
    all.verb = verb(words)?;
    Ok(Some(all))
}

fn verb(words: Words) -> Result<Verb, Error> {
    let mut values = words.values.into_iter();
    let verb = values.next().unwrap_or_default().string()?;
    if verb == "ahead" {
        let programs = values.map(ValueExt::string).collect::<Result<Vec<_>, _>>()?;
        return if programs.is_empty() {
            Err("ahead needs a program".into())
        } else {
            Ok(Verb::Ahead(programs))
        };
    }
    if verb == "export" {
        let output = words.output.ok_or("export needs --output FILE")?;
        let options = Export { programs: values.collect(), output, key: words.key };
        return Ok(Verb::Learned(learned::Verb::Export(options)));
    }
    let program = values.next();
    let needed = || program.clone().ok_or_else(|| Error::from(format!("{verb} needs a program")));
    let verb = match verb.as_str() {
        "run" => Verb::Run,
        "source" => Verb::Source,
        "list" => Verb::Learned(learned::Verb::List),
        "show" => Verb::Learned(learned::Verb::Show { program: needed()?, all: words.all }),
        "forget" => Verb::Learned(learned::Verb::Forget { program: needed()? }),
        "explain" if words.missing => Verb::Learned(learned::Verb::Missing { program: needed()? }),
        "explain" => Verb::Learned(learned::Verb::Explain {
            program: program.clone(),
            most: usize::from(words.most.unwrap_or(MOST)),
        }),
        "boot" => Verb::Learned(learned::Verb::Boot),
        "trace" => Verb::Learned(learned::Verb::Trace { hash: words.hash, output: words.output }),
        "import" => Verb::Learned(learned::Verb::Import(Import {
            file: program.clone().ok_or("import needs a file")?.into(),
            signers: words.signers.unwrap_or_else(|| SIGNERS.into()),
            unsigned: words.unsigned,
        })),
        "" => return Err(format!("a verb is missing: {VERBS}").into()),
        other => return Err(format!("\"{other}\" is not a verb: {VERBS}").into()),
    };
    match (values.next(), program, &verb) {
        (Some(more), ..) => Err(Error::UnexpectedArgument(more)),
        (
            None,
            Some(more),
            Verb::Run | Verb::Source | Verb::Learned(learned::Verb::List | learned::Verb::Boot),
        ) => Err(Error::UnexpectedArgument(more)),
        _ => Ok(verb),
    }
}
