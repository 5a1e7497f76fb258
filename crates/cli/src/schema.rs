//! The JSON schemas of everything that `--json` prints, from the types themselves.

use std::collections::BTreeMap;

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use schemars::{Schema, schema_for};

use crate::documents;
use crate::documents::{io, link, prefetch};

/// By verb.
fn all() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        ("status", schema_for!(documents::Status)),
        ("plan", schema_for!(documents::Plan)),
        ("down", schema_for!(documents::Down)),
        ("doctor", schema_for!(documents::Doctor)),
        ("advise", schema_for!(documents::Advise)),
        ("cache-mount", schema_for!(eke_cache_mounts::status::Ready)),
        ("cache-status", schema_for!(documents::CacheStatus)),
        ("cache-umount", schema_for!(documents::CacheUmount)),
        ("prefetch-list", schema_for!(prefetch::List)),
        ("prefetch-show", schema_for!(prefetch::Show)),
        ("prefetch-forget", schema_for!(prefetch::Forget)),
        ("prefetch-explain", schema_for!(prefetch::Explain)),
        ("prefetch-trace", schema_for!(prefetch::Trace)),
        ("link", schema_for!(link::Link)),
        ("link-undo", schema_for!(link::Undo)),
        ("io-watch", schema_for!(io::Watch)),
        ("io-compare", schema_for!(eke_io::compare::Outcome)),
        ("box", schema_for!(eke_sandbox::cgroup_box::Report)),
        ("record", schema_for!(eke_record::recording::Ended)),
        ("report", schema_for!(eke_record::steps::Document)),
        ("demo", schema_for!(eke_sandbox::demo::DemoReport)),
    ])
}

/// One schema, or an object of all.
pub fn print(name: Option<&str>) -> Outcome {
    let all = all();
    let text = match name {
        None => serde_json::to_string_pretty(&all)?,
        Some(name) => match all.get(name) {
            Some(schema) => serde_json::to_string_pretty(schema)?,
            None => return Err(unknown(name, &all)),
        },
    };
    putln!("{text}");
    Ok(Status::Done)
}

fn unknown(name: &str, all: &BTreeMap<&str, Schema>) -> Failure {
    let names: Vec<&str> = all.keys().copied().collect();
    Failure::new(Status::Usage, format!("\"{name}\" has no schema; there are: {}", names.join(", ")))
}
