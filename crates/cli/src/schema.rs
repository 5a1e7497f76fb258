//! The JSON schemas of everything that `--json` prints.

use std::collections::BTreeMap;
use std::io::{self, Read};

use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use flate2::read::ZlibDecoder;
use serde_json::Value;

/// `docs/schemas.json`, compressed by `build.rs`. The test below makes it from the types: the program itself carries no code for schemas.
const SCHEMAS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.z"));

/// Prints one schema, or an object of all.
pub fn print(name: Option<&str>) -> Outcome {
    let text = text()?;
    let Some(name) = name else {
        putln!("{}", text.trim_end());
        return Ok(Status::Done);
    };
    let all: BTreeMap<&str, Value> = serde_json::from_str(&text)?;
    let schema = all.get(name).ok_or_else(|| unknown(name))?;
    putln!("{}", serde_json::to_string_pretty(schema)?);
    Ok(Status::Done)
}

fn text() -> io::Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(SCHEMAS).read_to_string(&mut text)?;
    Ok(text)
}

fn unknown(name: &str) -> Failure {
    Failure::new(Status::Usage, format!("\"{name}\" has no schema"))
        .hint("`eke schema --help` lists the names, `eke schema` prints all schemas")
}

#[cfg(test)]
mod tests {
    use eke_prefetch_learned::documents as prefetch;
    use schemars::{Schema, schema_for};

    use super::*;
    use crate::documents::{self, io, link};

    /// The schemas by verb.
    fn all() -> BTreeMap<&'static str, Schema> {
        BTreeMap::from([
            ("status", schema_for!(documents::Status)),
            ("plan", schema_for!(documents::Plan)),
            ("up", schema_for!(documents::Up)),
            ("down", schema_for!(documents::Down)),
            ("doctor", schema_for!(documents::Doctor)),
            ("report-bug", schema_for!(documents::ReportBug)),
            ("advise", schema_for!(documents::Advise)),
            ("cache-mount", schema_for!(eke_cache_mounts::status::Ready)),
            ("cache-status", schema_for!(documents::CacheStatus)),
            ("cache-umount", schema_for!(documents::CacheUmount)),
            ("cache-warm", schema_for!(documents::CacheWarm)),
            ("prefetch-list", schema_for!(prefetch::List)),
            ("prefetch-show", schema_for!(prefetch::Show)),
            ("prefetch-forget", schema_for!(prefetch::Forget)),
            ("prefetch-explain", schema_for!(prefetch::Explain)),
            ("prefetch-boot", schema_for!(prefetch::Boot)),
            ("prefetch-missing", schema_for!(prefetch::Missing)),
            ("prefetch-trace", schema_for!(prefetch::Trace)),
            ("prefetch-export", schema_for!(prefetch::Export)),
            ("prefetch-import", schema_for!(prefetch::Import)),
            ("link", schema_for!(link::Link)),
            ("link-undo", schema_for!(link::Undo)),
            ("ltsp-plan", schema_for!(eke_ltsp::documents::Plan)),
            ("ltsp-done", schema_for!(eke_ltsp::documents::Done)),
            ("ltsp-status", schema_for!(eke_ltsp::status::Status)),
            ("io-watch", schema_for!(io::Watch)),
            ("io-compare", schema_for!(eke_io::compare::ComparisonResult)),
            ("box", schema_for!(eke_sandbox::cgroup_box::BoxReport)),
            ("record", schema_for!(eke_record::recording::Ended)),
            ("report", schema_for!(eke_record::steps::Document)),
            ("demo", schema_for!(eke_sandbox::demo::DemoReport)),
        ])
    }

    /// `EKE_BLESS=1` writes the file anew.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of the source tree")]
    fn the_schemas_are_those_of_the_types() {
        let current = format!("{}\n", serde_json::to_string_pretty(&all()).unwrap());
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas.json");
        if std::env::var_os("EKE_BLESS").is_some() {
            std::fs::write(file, &current).unwrap();
        }
        let kept = std::fs::read_to_string(file).unwrap();
        assert!(kept == current, "docs/schemas.json is not current: `make docs` writes it");
        assert!(
            std::env::var_os("EKE_BLESS").is_some() || text().unwrap() == kept,
            "it is not what `eke schema` prints"
        );
    }
}
