//! The options, as `eke` passes them.

use std::ffi::OsString;
use std::path::PathBuf;

use eke_linux::Root;
use lexopt::prelude::{Long, Short, Value, ValueExt};
use lexopt::{Error, Parser};

/// The help.
pub const USAGE: &str =
    "eke-ltsp serves LTSP's clients. `eke ltsp` executes it; its help explains the options.

    eke-ltsp plan | install | uninstall [--json]
    eke-ltsp status [--json] [CLIENT]...
    eke-ltsp targets [--output FILE] [CLIENT]...
    eke-ltsp addresses";

/// What the program shall do.
pub struct Arguments {
    /// The machine.
    pub root: Root,
    /// Print JSON.
    pub json: bool,
    /// The verb.
    pub verb: Verb,
}

/// The verbs.
pub enum Verb {
    /// Show what `install` would change.
    Plan,
    /// Put eke into the clients' boot.
    Install,
    /// Take it out again.
    Uninstall,
    /// Show the clients, also these.
    Status(Vec<String>),
    /// Print the address of each client, one a line: for `eke link --ltsp`.
    Addresses,
    /// Write the clients, also these, for Prometheus.
    Targets {
        /// The file, or standard output.
        output: Option<PathBuf>,
        /// Names and addresses.
        clients: Vec<String>,
    },
}

/// `None` if the user requested the help.
///
/// # Errors
/// An option is unknown, lacks its value or has a wrong one.
pub fn parse(mut parser: Parser) -> Result<Option<Arguments>, Error> {
    let (mut root, mut json, mut output, mut values) = (Root::host(), false, None, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => json = true,
            // for tests: the directory that stands for /
            Long("root") => root = confined(parser.value()?)?,
            Long("output") => output = Some(parser.value()?.into()),
            Short('h') | Long("help") => return Ok(None),
            Value(value) => values.push(value),
            other => return Err(other.unexpected()),
        }
    }
    let verb = verb(output, values)?;
    Ok(Some(Arguments { root, json, verb }))
}

fn confined(dir: OsString) -> Result<Root, Error> {
    Root::confined(PathBuf::from(dir)).map_err(|e| Error::Custom(e.to_string().into()))
}

fn verb(output: Option<PathBuf>, values: Vec<OsString>) -> Result<Verb, Error> {
    let mut values = values.into_iter();
    let verb = values.next().unwrap_or_default().string()?;
    let clients = values.map(|value| value.string()).collect::<Result<Vec<String>, Error>>()?;
    let verb = match verb.as_str() {
        "plan" => Verb::Plan,
        "install" => Verb::Install,
        "uninstall" => Verb::Uninstall,
        "addresses" => Verb::Addresses,
        "status" => return Ok(Verb::Status(clients)),
        "targets" => return Ok(Verb::Targets { output, clients }),
        "" => return Err("a verb is missing: plan, install, uninstall, status, targets or addresses".into()),
        other => {
            return Err(format!(
                "\"{other}\" is not a verb: plan, install, uninstall, status, targets or addresses"
            )
            .into());
        }
    };
    match clients.first() {
        Some(word) => Err(format!("\"{word}\" is one word too many").into()),
        None => Ok(verb),
    }
}
