//! The names of variants and metrics.

use eke_bench_core::Environment;
use eke_results::report::{Report, Role, Row, Variant, less, more};

use super::Case;

pub(super) const BEFORE: &str = "hit rate before";
pub(super) const AFTER: &str = "hit rate after";
pub(super) const SHARE: &str = "after of before";
pub(super) const RATE: &str = "files read after";
pub(super) const READY: &str = "read again after";
pub(super) const P50: &str = "median of another reader";
pub(super) const P99: &str = "p99 of another reader";
pub(super) const READ: &str = "of the list read meanwhile";

const WITH: &str = "eke";
const WITHOUT: &str = "eke, --no-remember";

impl Case {
    pub fn name(self) -> &'static str {
        if self.remembers() { WITH } else { WITHOUT }
    }
}

pub(super) fn report(environment: &Environment<'_>, rows: Vec<Row>, notes: Vec<String>) -> Report {
    let variant = |name: &str, role, set_up: &str| Variant { name: name.into(), role, set_up: set_up.into() };
    Report {
        variants: vec![
            variant(
                WITHOUT,
                Role::Baseline,
                "a mount that begins with an empty store, and reads nothing by itself",
            ),
            variant(
                WITH,
                Role::Ours,
                "a mount that reads again what was hot before the unmount, while the disk is idle",
            ),
        ],
        metrics: vec![
            more(BEFORE, "share of the requested bytes that came from the store, before the unmount"),
            more(AFTER, "the same after unmount, dropped caches, mount and the idle time"),
            more(SHARE, "the second of the first"),
            more(RATE, "megabytes a second of these requests, one reader"),
            less(READY, "the time until all of the list was read again"),
            less(P50, "of random reads of 16 KiB of another file on the disk, from the mount on"),
            less(P99, "the same"),
            more(READ, "how much of the list was read again beside that reader"),
        ],
        rows,
        notes,
        ..environment.report("warm")
    }
}
