//! `eke prefetch explain --missing`.

use std::ffi::OsStr;

use eke_model::units::Bytes;
use eke_prefetch_model::missing::{Missing, MissingFile};
use eke_prefetch_store::Access;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{document, put};

use crate::{Store, documents, failure, text};

/// The verb.
pub fn run(json: bool, store: &Store, program: &OsStr) -> Outcome {
    let keep = store.open(Access::Read)?;
    let record = store.find(&keep, program)?;
    let name = record.program.to_string();
    let none = || {
        Failure::new(Status::Failed, format!("no start of {name} was recorded for which eke had read")).hint(
            "eke records the first three starts of a program, and then each eighth; of the last 16 recorded programs it keeps this",
        )
    };
    let missing = keep.missing(record.id()).map_err(failure)?.ok_or_else(none)?;
    let document = document_of(name, missing);
    document::print(json, &document, |d| put!("{}", text::missing(d, store.now_s)))?;
    Ok(Status::Done)
}

fn document_of(program: String, missing: Missing) -> documents::Missing {
    documents::Missing {
        program,
        at_s: missing.at_s,
        took_ms: missing.took_ms,
        read: Bytes(missing.read_bytes),
        missing: Bytes(missing.bytes),
        known: Bytes(missing.known_bytes),
        in_files: missing.in_files,
        files: missing.files.into_iter().map(file).collect(),
    }
}

fn file(file: MissingFile) -> documents::MissingFile {
    documents::MissingFile {
        path: file.path,
        kind: file.kind.into(),
        missing: Bytes(file.bytes),
        known: Bytes(file.known_bytes),
        pages: file.pages.spans().iter().map(|span| [span.first, span.end]).collect(),
    }
}
