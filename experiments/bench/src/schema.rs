//! The JSON schemas of what `--json` prints, from the types themselves.

use std::collections::BTreeMap;

use eke_present::exit::{Outcome, Status};
use eke_present::putln;
use schemars::schema_for;

use crate::documents::Replay;

/// One object of all.
pub fn print() -> Outcome {
    let all = BTreeMap::from([
        ("bench", schema_for!(eke_results::report::Report)),
        ("replay", schema_for!(Replay)),
    ]);
    putln!("{}", serde_json::to_string_pretty(&all)?);
    Ok(Status::Done)
}
