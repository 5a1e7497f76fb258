//! Documents in windows, in a box: opened and browsed through 50 pages, one after the other.

use eke_bench_desktop::session::{Act, metrics};
use eke_results::report::Metric;
use eke_results::rows::{Params, Rows};

use crate::experiment::{self, Kind, Options, Trial, Windows, trial};
use eke_results::report::{less, more};

const PAGES: u32 = 50;
/// More than fit into the study's 124 MiB with any variant.
const MOST: usize = 24;
const HELD: &str = "documents held";
const PAGE: &str = "one page";

const CAPACITY: Kind = Kind {
    name: "capacity",
    documents: MOST,
    documents_if_quick: 16,
    pages: PAGES,
    acts,
    metrics,
    add,
    sizes: true,
    ballast: experiment::DESKTOP,
};

/// The experiment.
pub fn experiment(options: Options) -> Windows {
    Windows { kind: &CAPACITY, options }
}

fn acts(documents: usize, pages: u32) -> Vec<Act> {
    let each = |document| [Act::Open { document }, Act::Browse { document, pages, back: false }];
    (0..documents).flat_map(each).collect()
}

fn metrics() -> Vec<Metric> {
    let own = [
        more(
            HELD,
            "documents opened and browsed through 50 pages before one was killed or a page took over 10 s",
        ),
        super::density_metric("documents'"),
        less(PAGE, "from the key to the page drawn"),
        super::killed_metric(),
    ];
    own.into_iter().chain(trial::metrics()).collect()
}

fn add(trial: &Trial, rows: &mut Rows) {
    let (variant, params) = (trial.variant, &trial.params);
    let (count, held) = metrics::capacity(trial.events, PAGES);
    rows.add(variant, params, HELD, "documents", [count as f64]);
    super::add_density(rows, variant, params, held, trial.report.memory);
    let none = Params::new();
    trial.add_opening(rows);
    trial.add_end(rows);
    let pages = metrics::browsed(trial.events).into_iter().flat_map(|b| b.seconds);
    rows.add(variant, &none, PAGE, "s", pages);
    super::add_killed(rows, variant, params, trial.events);
}
