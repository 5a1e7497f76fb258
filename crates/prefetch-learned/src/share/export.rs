//! `eke prefetch export`: the launches of packages' programs, in one file.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_model::text::one_line;
use eke_prefetch_model::system::is_program;
use eke_prefetch_model::{FileSet, Kind};
use eke_prefetch_store::{Access, ProgramStore, Record};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{document, putln};

use super::form::{ExportedProgram, encode};
use super::{is_program_here, of_system, signature};
use crate::documents::Export;
use crate::{Store, failure};

/// What to export, and where to.
#[derive(Debug)]
pub struct Options {
    /// These programs; without any, all.
    pub programs: Vec<OsString>,
    /// A new file.
    pub output: PathBuf,
    /// The private key that signs it.
    pub key: Option<PathBuf>,
}

/// The verb.
pub(crate) fn run(json: bool, root: &Root, store: &Store, options: &Options) -> Outcome {
    let keep = store.open(Access::Read)?;
    let records = chosen(&keep, store, &options.programs)?;
    let known = records.len();
    let mut programs = Vec::new();
    for record in records {
        programs.extend(shared(root, &keep, store, &record)?);
    }
    let (exported, files) = (programs.len(), programs.iter().map(|p| p.set().files.len()).sum());
    let mut text = encode(programs).map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    if let Some(key) = &options.key {
        text += &signature::sign(&text, key)?;
    }
    write(&options.output, &text)?;
    let document = Export {
        output: options.output.clone(),
        programs: exported,
        files,
        left_out: known - exported,
        is_signed: options.key.is_some(),
    };
    document::print(json, &document, |d| putln!("{}", one_line(&sentence(d))))?;
    Ok(Status::Done)
}

fn sentence(d: &Export) -> String {
    let left = match d.left_out {
        0 => String::new(),
        n => format!("; {n} others are no package's, or have no file of a package"),
    };
    let signed = if d.is_signed { "" } else { ". It is not signed: --sign KEY" };
    format!("{}: {} files of {} programs{left}{signed}", d.output.display(), d.files, d.programs)
}

fn chosen(keep: &ProgramStore, store: &Store, programs: &[OsString]) -> Outcome<Vec<Record>> {
    if programs.is_empty() {
        return keep.records(store.now_s).map_err(failure);
    }
    programs.iter().map(|text| store.find(keep, text)).collect()
}

/// `None` for a user's own program, and for one of which no file is the system's.
fn shared(
    root: &Root,
    keep: &ProgramStore,
    store: &Store,
    record: &Record,
) -> Outcome<Option<ExportedProgram>> {
    if !is_program(&record.program) || !is_program_here(root, &record.program) {
        return Ok(None);
    }
    let Some(known) = keep.program(record.id(), store.now_s).map_err(failure)? else { return Ok(None) };
    let mut set = known.set.of_system();
    // The path is a package's; what is there now must be, too.
    set.files.retain(|file| of_system(root, &file.path).is_some_and(|(kind, _)| kind == file.kind));
    let has_files = |set: &FileSet| set.files.iter().any(|file| file.kind == Kind::File);
    Ok(has_files(&set).then(|| ExportedProgram::new(&record.program, record.coldest.0, &set)))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    let failed = |e: std::io::Error| {
        Failure::new(Status::Failed, format!("cannot write {}: {e}; no file is replaced", path.display()))
    };
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| {
        // Half a file would pass for a whole one.
        let _ = std::fs::remove_file(path);
        failed(e)
    })
}
