//! `eke prefetch forget`.

use std::ffi::OsStr;

use eke_prefetch_store::Access;
use eke_present::exit::{Outcome, Status};
use eke_present::{document, putln};

use crate::documents::Forget;
use crate::{Store, failure};

/// The verb.
pub fn run(json: bool, store: &Store, program: &OsStr) -> Outcome {
    let mut keep = store.open(Access::Write)?;
    let record = store.find(&keep, program)?;
    let name = record.program.to_string();
    keep.forget_program(record.id()).map_err(failure)?;
    let document = Forget { forgotten: record.into() };
    document::print(json, &document, |_| {
        putln!("{name} is forgotten. It is learned again when it is started.")
    })?;
    Ok(Status::Done)
}
