//! `eke prefetch explain`.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use eke_model::units::Bytes;
use eke_prefetch_model::ProgramId;
use eke_prefetch_model::choose::{ChoiceOutcome, Occasion};
use eke_prefetch_store::{Access, Decision, ProgramStore};
use eke_present::exit::{Outcome, Status};
use eke_present::{document, put};

use crate::documents::{self, Explain};
use crate::{Store, failure, text};

/// The verb.
pub fn run(json: bool, store: &Store, program: Option<&OsStr>, most: usize) -> Outcome {
    let keep = store.open(Access::Read)?;
    let of = program.map(|text| store.find(&keep, text)).transpose()?.map(|record| record.id());
    let names = names(&keep, store)?;
    let decisions = keep.decisions(of, most).map_err(failure)?;
    let document = Explain { decisions: decisions.iter().map(|d| decision(d, &names)).collect() };
    document::print(json, &document, |d| put!("{}", text::explain(d, store.now_s)))?;
    Ok(Status::Done)
}

/// The programs' names by their ids.
pub fn names(keep: &ProgramStore, store: &Store) -> Outcome<BTreeMap<ProgramId, String>> {
    let records = keep.records(store.now_s).map_err(failure)?;
    Ok(records.iter().map(|record| (record.id(), record.program.to_string())).collect())
}

/// A decision as a document.
pub fn decision(decision: &Decision, names: &BTreeMap<ProgramId, String>) -> documents::Decision {
    let number = || format!("a program that is no longer known ({:016x})", decision.program.0);
    let occasion = match decision.occasion {
        Occasion::Ahead => "ahead",
        Occasion::Exec => "exec",
        Occasion::Session => "session",
    };
    documents::Decision {
        at_s: decision.at_s,
        program: names.get(&decision.program).cloned().unwrap_or_else(number),
        occasion: occasion.to_owned(),
        probability: decision.probability,
        chosen: matches!(decision.outcome, ChoiceOutcome::Chosen { .. }),
        why: text::why(&decision.outcome, decision.limit.as_ref()),
        used: decision.usage.map(|usage| Bytes(usage.used_bytes)),
        wasted: decision.usage.map(|usage| Bytes(usage.wasted_bytes)),
    }
}
