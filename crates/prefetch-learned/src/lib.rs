//! `eke prefetch ...`: what programs read at launch, as learned. Only root may see which programs are used.
//!
//! # Layout
//! - `which`: finds the program that a text names
//! - `list`, `show`, `forget`, `explain`, `missing`, `boot`, `trace`: the verbs; [`share`]: `export` and `import`
//! - [`documents`]: what they print with `--json`; `text`: as text

mod boot;
pub mod documents;
mod explain;
mod forget;
mod list;
mod missing;
pub mod share;
mod show;
mod text;
mod trace;
mod which;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_prefetch_model::{Kind, Program};
use eke_prefetch_store::{Access, Error, FALLBACK, Fallback, ProgramStore, Record};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::warn;

use which::{Which, which};

/// The most candidates that an error names.
const NAMED: usize = 10;
const BEGIN: &str = "programs are learned when they start while prefetch runs; `eke plan` says whether it does, and `enabled = \"on\"` under [prefetch] in /etc/eke/eke.toml sets it";

/// What to do.
#[derive(Debug)]
pub enum Verb {
    /// Lists the learned programs.
    List,
    /// Shows a program.
    Show {
        /// Its path or the end of it.
        program: OsString,
        /// All files, not only the first ones.
        all: bool,
    },
    /// Forgets a program.
    Forget {
        /// Its path or the end of it.
        program: OsString,
    },
    /// Explains decisions.
    Explain {
        /// Only those about this program.
        program: Option<OsString>,
        /// The number of decisions.
        most: usize,
    },
    /// What the last recorded start of a program still read itself.
    Missing {
        /// Its path or the end of it.
        program: OsString,
    },
    /// What was decided in the first minutes after the boot.
    Boot,
    /// Exports launches and files.
    Trace {
        /// Replace names by hashes.
        hash: bool,
        /// A new file instead of standard output.
        output: Option<PathBuf>,
    },
    /// Writes launches for another machine.
    Export(share::export::Options),
    /// Takes launches of another machine.
    Import(share::import::Options),
}

/// Does it on the store in `dir`, or its copy that is used instead, at `now_s` seconds since 1970; the learned files are below `root`.
///
/// # Errors
/// The store cannot be read or written, or no program has that name.
pub fn run(verb: &Verb, root: &Root, dir: PathBuf, now_s: i64, json: bool) -> Outcome {
    let store = Store { dir: in_use(root, &dir), now_s };
    match verb {
        Verb::List => list::run(json, &store),
        Verb::Show { program, all } => show::run(json, &store, program, *all),
        Verb::Forget { program } => forget::run(json, &store, program),
        Verb::Explain { program, most } => explain::run(json, &store, program.as_deref(), *most),
        Verb::Missing { program } => missing::run(json, &store, program),
        Verb::Boot => boot::run(json, root, &store),
        Verb::Trace { hash, output } => trace::run(json, &store, *hash, output.as_deref()),
        Verb::Export(options) => share::export::run(json, root, &store, options),
        Verb::Import(options) => share::import::run(json, root, &store, options),
    }
}

/// The directory of the store that prefetch uses. It may be a copy, and then this is said.
fn in_use(root: &Root, dir: &Path) -> PathBuf {
    let fallback = Fallback::new(dir, &root.path(FALLBACK));
    let used = fallback.in_use();
    if used != dir {
        let (used, dir) = (used.display(), dir.display());
        warn!("eke: this is about {used}: prefetch uses this copy, because {dir} could not be written");
    }
    used.to_owned()
}

/// The store's directory, and the present time.
struct Store {
    dir: PathBuf,
    now_s: i64,
}

impl Store {
    fn open(&self, access: Access) -> Outcome<ProgramStore> {
        ProgramStore::existing(&self.dir, access).map_err(failure)
    }

    /// The program that a text names.
    fn find(&self, keep: &ProgramStore, text: &OsStr) -> Outcome<Record> {
        let mut records = keep.records(self.now_s).map_err(failure)?;
        let programs: Vec<Program> = records.iter().map(|record| record.program.clone()).collect();
        let shown = text.to_string_lossy();
        match which(&programs, text) {
            Which::One(program) => {
                let at = programs.iter().position(|p| p == program).unwrap_or(0);
                Ok(records.swap_remove(at))
            }
            Which::Many(many) => {
                Err(Failure::new(Status::Usage, format!("more than one program ends in \"{shown}\""))
                    .hint(format!("give one of these: {}", names(&many))))
            }
            Which::None(near) => {
                let none = Failure::new(Status::Failed, format!("no program \"{shown}\" is known"));
                let hint = match near.as_slice() {
                    [] => "`eke prefetch list` shows the known programs".to_owned(),
                    near => format!("did you mean: {}", names(near)),
                };
                Err(none.hint(hint))
            }
        }
    }
}

fn names(programs: &[&Program]) -> String {
    let named: Vec<String> = programs.iter().take(NAMED).map(ToString::to_string).collect();
    let more = programs.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    named.join(", ") + &rest
}

fn failure(error: Error) -> Failure {
    let status = match error {
        Error::NotPermitted(_) => Status::NotPermitted,
        _ => Status::Failed,
    };
    let hint = match error {
        Error::NotPermitted(_) => Some("try again with sudo"),
        Error::Nothing(_) => Some(BEGIN),
        _ => None,
    };
    let failure = Failure::new(status, error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl From<Record> for documents::Program {
    fn from(record: Record) -> Self {
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            exe: record.program.exe,
            script: record.program.script,
            launches: record.launches,
            learned: record.learned,
            last_seen_s: record.last_seen_s,
            took_ms: ms(record.took),
            cold: eke_model::units::Bytes(record.cold_bytes),
            coldest_took_ms: ms(record.coldest.0),
            coldest: eke_model::units::Bytes(record.coldest.1),
            weight: record.weight,
        }
    }
}

impl From<Kind> for documents::FileKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Directory => Self::Directory,
            Kind::Device => Self::Device,
        }
    }
}
