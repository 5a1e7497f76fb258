//! `eke bench paging`: two documents in a real viewer in little memory; the time to page through them.
//!
//! It repeats the thin-client study's measurement: from page 1 to 50 and back, for the first document alone and for each with both open.

use eke_bench_desktop::session::Act;
use eke_bench_desktop::session::metrics::{Browsed, browsed};
use eke_results::report::Metric;
use eke_results::rows::{Rows, params};

use crate::experiment::{self, Kind, Options, Trial, Windows, trial};
use eke_results::report::less;

/// Page changes in each direction.
const PAGES: u32 = 49;
/// The documents' names in reports.
const NAMES: [&str; 2] = ["A", "B"];
const TOTAL: &str = "pages 1 to 50 and back";
const PAGE: &str = "one page";
const SLOWEST: &str = "slowest page";

const PAGING: Kind = Kind {
    name: "paging",
    documents: 2,
    documents_if_quick: 2,
    pages: PAGES,
    acts,
    metrics,
    add,
    sizes: false,
    ballast: experiment::DESKTOP,
};

/// The experiment.
pub fn experiment(options: Options) -> Windows {
    Windows { kind: &PAGING, options }
}

fn acts(_documents: usize, pages: u32) -> Vec<Act> {
    let forth_and_back = |document| [false, true].map(|back| Act::Browse { document, pages, back });
    let mut acts = vec![Act::Open { document: 0 }];
    acts.extend(forth_and_back(0));
    acts.push(Act::Open { document: 1 });
    acts.extend(forth_and_back(1));
    acts.extend(forth_and_back(0));
    acts
}

fn metrics() -> Vec<Metric> {
    let own = [
        less(TOTAL, "seconds to turn all pages forth and back, each drawn before the next is asked for"),
        less(PAGE, "from the key to the page drawn"),
        less(SLOWEST, "the slowest page of each run"),
    ];
    own.into_iter().chain(trial::metrics()).collect()
}

fn add(trial: &Trial, rows: &mut Rows) {
    for document in by_document(browsed(trial.events)) {
        let params = params([
            ("document", NAMES.get(document.document).copied().unwrap_or("?").into()),
            ("open", document.open.into()),
        ]);
        let seconds = &document.seconds;
        rows.add(trial.variant, &params, PAGE, "s", seconds.iter().copied());
        rows.add(trial.variant, &params, SLOWEST, "s", seconds.iter().copied().reduce(f64::max));
        if seconds.len() == 2 * PAGES as usize {
            rows.add(trial.variant, &params, TOTAL, "s", [seconds.iter().sum()]);
        }
    }
    trial.add_opening(rows);
    trial.add_end(rows);
}

/// Unites both directions of a document.
fn by_document(browsed: Vec<Browsed>) -> Vec<Browsed> {
    let mut all: Vec<Browsed> = Vec::new();
    for part in browsed {
        match all.last_mut().filter(|b| (b.document, b.open) == (part.document, part.open)) {
            Some(last) => last.seconds.extend(part.seconds),
            None => all.push(part),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_bench_desktop::session::Event;
    use eke_results::rows::Params;
    use eke_sandbox::cgroup_box;

    fn pages(document: usize, back: bool, count: u32) -> impl Iterator<Item = Event> {
        let page = move |page| Event::Page {
            document,
            page,
            back,
            seconds: 0.5,
            content: 0,
            as_expected: Some(true),
        };
        (0..count).map(page)
    }

    fn opened(document: usize) -> Event {
        Event::Opened { document, seconds: 1.0, content: 0 }
    }

    #[test]
    fn a_total_is_of_all_pages_or_there_is_none() {
        let mut events = vec![opened(0)];
        events.extend(pages(0, false, PAGES).chain(pages(0, true, PAGES)));
        events.push(opened(1));
        events.extend(pages(1, false, PAGES).chain(pages(1, true, 3)));
        let (params, report) = (Params::new(), cgroup_box::BoxReport::default());
        let trial =
            Trial { variant: "eke", params: &params, events: &events, report: &report, read_mib: Some(7.0) };
        let mut rows = Rows::default();
        add(&trial, &mut rows);
        let rows = rows.done();
        let totals: Vec<f64> =
            rows.iter().filter(|r| r.metric == TOTAL).flat_map(|r| r.samples.clone()).collect();
        assert_eq!(totals, [49.0]);
        let pages: Vec<usize> = rows.iter().filter(|r| r.metric == PAGE).map(|r| r.samples.len()).collect();
        assert_eq!(pages, [98, 52]);
        assert!(
            rows.iter().any(|r| r.metric == trial::FINISHED && r.samples == [0.0]),
            "it has no last word"
        );
    }
}
