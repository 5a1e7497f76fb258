//! `eke prefetch show`.

use std::ffi::OsStr;

use eke_model::units::Bytes;
use eke_prefetch_model::Touched;
use eke_prefetch_store::Access;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::{document, put};

use crate::documents::{File, Show};
use crate::{Store, failure, text};

/// The verb.
pub fn run(json: bool, store: &Store, program: &OsStr, all: bool) -> Outcome {
    let keep = store.open(Access::Read)?;
    let id = store.find(&keep, program)?.id();
    let gone = || Failure::new(Status::Failed, "another process has just forgotten this program");
    let known = keep.program(id, store.now_s).map_err(failure)?.ok_or_else(gone)?;
    let document = Show {
        bytes: Bytes(known.set.bytes()),
        program: known.record.into(),
        files: known.set.files.into_iter().map(file).collect(),
    };
    document::print(json, &document, |d| put!("{}", text::program(d, store.now_s, all)))?;
    Ok(Status::Done)
}

fn file(touched: Touched) -> File {
    File {
        path: touched.path,
        kind: touched.kind.into(),
        bytes: Bytes(touched.pages.bytes()),
        pieces: touched.pages.spans().len(),
        weight: touched.weight,
    }
}
