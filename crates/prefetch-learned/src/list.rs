//! `eke prefetch list`.

use eke_model::units::Bytes;
use eke_prefetch_store::{Access, Error, NAME, ProgramStore};
use eke_present::exit::{Outcome, Status};
use eke_present::{document, put};

use crate::documents::List;
use crate::{Store, failure, text};

/// The verb. The list is empty if nothing has been learned.
pub fn run(json: bool, store: &Store) -> Outcome {
    let document = match ProgramStore::existing(&store.dir, Access::Read) {
        Ok(keep) => List {
            store: keep.path().to_owned(),
            bytes: Some(Bytes(keep.bytes())),
            programs: keep.records(store.now_s).map_err(failure)?.into_iter().map(Into::into).collect(),
        },
        Err(Error::Nothing(dir)) => List { store: dir.join(NAME), bytes: None, programs: Vec::new() },
        Err(e) => return Err(failure(e)),
    };
    document::print(json, &document, |d| put!("{}", text::list(d, store.now_s)))?;
    Ok(Status::Done)
}
