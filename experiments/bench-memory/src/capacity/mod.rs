//! `eke bench capacity`: how many documents or tabs can be opened and used in little memory, before one is killed or takes over 10 s.
//!
//! - [`documents`]: PDF files in windows, in a box
//! - [`machine`]: the same in the small machine
//! - [`tabs`]: pages of a local web server in a browser, in a box

pub mod documents;
pub mod machine;
pub mod tabs;

use eke_bench_desktop::session::{End, Event, MemoryUse, metrics};
use eke_model::units::Bytes;
use eke_results::report::Metric;
use eke_results::report::{less, more};
use eke_results::rows::{Params, Rows};

/// The parameter with the size of a variant's own compressed swap.
pub(crate) const SWAP: &str = "swap_mib";

const DENSITY: &str = "memory held by each byte of the box";
const KILLED: &str = "ended by a kill";

fn density_metric(what: &str) -> Metric {
    let about = format!(
        "the {what} own memory, resident and swapped, by the budget of the box: does not depend on what else is in it"
    );
    more(DENSITY, &about)
}

fn add_density(rows: &mut Rows, variant: &str, params: &Params, held: MemoryUse, budget: Bytes) {
    let bytes = (held.anonymous + held.swapped).0 as f64;
    rows.add(variant, params, DENSITY, "bytes", [bytes / budget.0.max(1) as f64]);
}

fn killed_metric() -> Metric {
    less(
        KILLED,
        "1 for a run that ended by a kill, 0 for one that ended by what took over 10 s or with all open",
    )
}

fn add_killed(rows: &mut Rows, variant: &str, params: &Params, events: &[Event]) {
    let killed = matches!(metrics::end(events), None | Some(End::Killed { .. }));
    rows.add(variant, params, KILLED, "of 1", [f64::from(u8::from(killed))]);
}
