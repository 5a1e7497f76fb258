//! `eke` without a verb, as text.

use std::fmt::Write as _;

use eke_core::snapshot::Snapshot;

use crate::documents::Status;

/// What the machine is short of, what eke does about it, what that gained, and what to say next.
pub fn text(document: &Status) -> String {
    let s = &document.snapshot;
    let mut out = String::new();
    let _ = writeln!(out, "short of    {}", shortage(s));
    let _ = writeln!(out, "eke does    {}", doing(s));
    let _ = writeln!(out, "gained      {}", gained(s));
    out += &super::cache::lines(&document.caches);
    let _ = writeln!(out, "\n{}", next(s));
    out
}

/// Less than this share of RAM available, or more than this share of the time waiting, is a shortage.
const LITTLE_AVAILABLE: f64 = 0.10;
const MUCH_WAITING: f64 = 0.05;

fn shortage(s: &Snapshot) -> String {
    let m = &s.model;
    let available = m.available.0 as f64 / m.ram.0.max(1) as f64;
    let waiting = m.waiting_share.unwrap_or(0.0);
    match (available < LITTLE_AVAILABLE, waiting > MUCH_WAITING) {
        (true, _) => format!("memory: {} of {} available ({:.0} %)", m.available, m.ram, 100.0 * available),
        (false, true) => {
            format!("memory: tasks waited for it {:.0} % of the last {:.1} s", 100.0 * waiting, m.interval_s)
        }
        (false, false) => {
            format!("nothing now: {} of {} available ({:.0} %)", m.available, m.ram, 100.0 * available)
        }
    }
}

fn doing(s: &Snapshot) -> String {
    match (s.applied, s.backend.as_str()) {
        (true, backend) => format!("compressed swap: {backend}"),
        (false, "none") => "nothing: no plan is applied".into(),
        (false, backend) => format!("nothing: no plan is applied (somebody else set up {backend})"),
    }
}

fn gained(s: &Snapshot) -> String {
    let m = &s.model;
    match m.effective_ratio {
        Some(ratio) => format!("{} of RAM: {} held in {} ({ratio:.2} to 1)", m.saved, m.held, m.pool),
        None => "nothing yet: no page had to leave RAM".into(),
    }
}

fn next(s: &Snapshot) -> &'static str {
    if s.applied {
        "eke status: more figures; eke advise: what holds the memory; sudo eke down: put everything back"
    } else {
        "eke plan: what eke would do and why (changes nothing); sudo eke up: do it; eke doctor: what this kernel can"
    }
}
