//! `eke` without a verb, as text.

use std::fmt::Write as _;

use eke_model::snapshot::Snapshot;
use eke_present::scarce;

use super::status::{decided, memory, remedies, row};
use crate::documents::Status;

/// What the machine is short of, what eke does about it, what each remedy gains, the last decision, and the next commands.
pub fn text(document: &Status) -> String {
    let s = &document.snapshot;
    let mut out = String::new();
    row(&mut out, "short of", &scarce::sentence(s));
    row(&mut out, "memory", &memory(s));
    row(&mut out, "eke does", &doing(s));
    if let Some(why) = &s.agent_silent {
        row(&mut out, "", &format!("{why} (`eke status` says what to do)"));
    }
    out += &remedies(document);
    if let Some(decided) = decided(s) {
        row(&mut out, "decided", &decided);
    }
    let _ = writeln!(out, "\n{}", next(s));
    out
}

fn doing(s: &Snapshot) -> String {
    match (s.applied, s.backend.as_str()) {
        (true, backend) => format!("compressed swap: {backend}"),
        (false, _) if s.agent.is_some() => "swap stays as it is; `eke status` shows what else runs".into(),
        (false, "none") => "nothing: no plan is applied".into(),
        (false, backend) => format!("nothing: no plan is applied ({backend} is from another source)"),
    }
}

fn next(s: &Snapshot) -> &'static str {
    if s.applied || s.agent.is_some() {
        "eke top: the same, live; eke status: more numbers; eke advise: which programs use the memory; sudo eke down: restore everything"
    } else {
        "eke plan: what eke would do, and why (changes nothing); sudo eke up: do it; eke doctor: what this kernel supports"
    }
}
