//! `eke bench switch`: two documents in two windows in little memory; the time from requesting the other window until it is drawn.

use eke_bench_desktop::session::{Act, metrics};
use eke_results::report::Metric;
use eke_results::rows::{Params, Rows};

use crate::experiment::{self, Kind, Options, Trial, Windows, trial};
use eke_results::report::less;

/// How many pages of a document are read before its window is left.
const READ: u32 = 25;
/// Switches to each window.
const ROUNDS: usize = 6;
const SWITCH: &str = "one switch";
const SLOWEST: &str = "slowest switch";

/// Its documents, acts and metrics.
const SWITCH_EXPERIMENT: Kind = Kind {
    name: "switch",
    documents: 2,
    documents_if_quick: 2,
    pages: READ,
    acts,
    metrics,
    add,
    sizes: false,
    ballast: experiment::DESKTOP,
};

/// The experiment.
pub fn experiment(options: Options) -> Windows {
    Windows { kind: &SWITCH_EXPERIMENT, options }
}

/// Reads some pages in each window before the switch to the other: pages in use need memory, too.
fn acts(_documents: usize, pages: u32) -> Vec<Act> {
    let mut acts = Vec::new();
    for document in [0, 1] {
        acts.extend([Act::Open { document }, Act::Browse { document, pages, back: false }]);
    }
    for round in 0..ROUNDS {
        let back = round % 2 == 0;
        for document in [0, 1] {
            acts.extend([Act::Switch { document }, Act::Browse { document, pages, back }]);
        }
    }
    acts
}

fn metrics() -> Vec<Metric> {
    let own = [
        less(SWITCH, "from asking for the other window until it is drawn"),
        less(SLOWEST, "the slowest switch of each run"),
    ];
    own.into_iter().chain(trial::metrics()).collect()
}

fn add(trial: &Trial, rows: &mut Rows) {
    let none = Params::new();
    let switches = metrics::switches(trial.events);
    rows.add(trial.variant, &none, SLOWEST, "s", switches.iter().copied().reduce(f64::max));
    rows.add(trial.variant, &none, SWITCH, "s", switches);
    trial.add_opening(rows);
    trial.add_end(rows);
}
