//! A note that compares a report with the study that made compressed swap known. Pure.
//!
//! The study is compcache's on a thin client (LTSP, 128 MB, documents and programs over NFS). With compcache: 11 documents (2 without),
//! 15 tabs (6 without), a switch to a window in less than 1 s (over 5 s without). With two documents open, pages 1 to 50 took 2.5 s in the
//! first (10 s without) and 4 s in the second (412 s without).

use eke_results::report::{Report, Role, Row, median};

/// Adds a note on the study as the first one, if the study has such a measurement.
pub fn beside(mut report: Report) -> Report {
    report.notes.splice(0..0, note(&report));
    report
}

/// A sentence on the study's result and this one; `None` if the study has no such measurement.
fn note(report: &Report) -> Option<String> {
    let results = Results { report };
    match report.experiment.as_str() {
        "capacity" | "capacity in the small machine" => {
            results.held("documents held", "documents", (2.0, 11.0))
        }
        "capacity of tabs" => results.held("tabs held", "tabs", (6.0, 15.0)),
        "switch" => results.switch(),
        "paging" => results.paging(),
        _ => None,
    }
}

struct Results<'a> {
    report: &'a Report,
}

impl<'a> Results<'a> {
    fn rows(&self, variant: &'a str, metric: &'a str) -> impl Iterator<Item = &'a Row> {
        self.report.rows.iter().filter(move |row| row.variant == variant && row.metric == metric)
    }

    fn median(&self, variant: &'a str, metric: &'a str) -> Option<f64> {
        let samples: Vec<f64> = self.rows(variant, metric).flat_map(|row| row.samples.clone()).collect();
        (!samples.is_empty()).then(|| median(&samples))
    }

    fn most(&self, variant: &'a str, metric: &'a str) -> Option<f64> {
        self.rows(variant, metric).flat_map(|row| row.samples.iter().copied()).reduce(f64::max)
    }

    fn held(&self, metric: &'static str, what: &str, (none, compcache): (f64, f64)) -> Option<String> {
        let (nothing, eke) = (self.median("nothing", metric)?, self.median("eke", metric)?);
        let best = self.best_peer(metric).map(|(name, held)| format!(", {held:.0} with {name}"));
        let gain = if nothing > 0.0 { format!(", {:.1} times", eke / nothing) } else { String::new() };
        let short = if nothing > 0.0 && eke / nothing < compcache / none {
            " That is less of a gain than the study's."
        } else {
            ""
        };
        Some(format!(
            "Beside the study ({none:.0} {what} without swap, {compcache:.0} with compcache, {:.1} times): here {nothing:.0} without{}, \
             {eke:.0} with eke{gain}.{short}",
            compcache / none,
            best.unwrap_or_default(),
        ))
    }

    /// The best peer.
    fn best_peer(&self, metric: &'static str) -> Option<(&'a str, f64)> {
        let peers = self.report.variants.iter().filter(|v| v.role == Role::Peer);
        let held = peers.filter_map(|v| Some((v.name.as_str(), self.median(&v.name, metric)?)));
        held.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn switch(&self) -> Option<String> {
        let metric = "one switch";
        let (nothing, eke) = (self.most("nothing", metric)?, self.most("eke", metric)?);
        let why = if nothing <= 5.0 {
            " Without swap it does not take 5 s here: the disk answers sooner than the study's, and with so much ballast that \
             a switch would take that long the second document cannot be opened at all."
        } else {
            ""
        };
        Some(format!(
            "Beside the study (over 5 s without swap, under 1 s with compcache): here at most {nothing:.2} s without, {eke:.3} s \
             with eke.{why}"
        ))
    }

    fn paging(&self) -> Option<String> {
        let spare = self.both_open("memory to spare", "B");
        let spare = spare.map(|s| format!("; {s:.2} s with memory to spare")).unwrap_or_default();
        let (nothing, eke) = (self.both_open("nothing", "B")?, self.both_open("eke", "B")?);
        let gain = nothing / eke;
        let short = if gain < 412.0 / 4.0 {
            " That is less of a gain than the study's: here the machine without swap does not thrash as its did."
        } else {
            ""
        };
        Some(format!(
            "Beside the study (pages of the second document with both open: 412 s without swap, 4 s with compcache, 103 times): here \
             {nothing:.2} s without, {eke:.2} s with eke, {gain:.1} times{spare}.{short}"
        ))
    }

    /// Seconds for one document while both are open.
    fn both_open(&self, variant: &'a str, document: &str) -> Option<f64> {
        let mut rows = self.rows(variant, "pages 1 to 50 and back");
        rows.find(|r| r.params["open"] == 2 && r.params["document"] == document).map(|r| r.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_results::report::Variant;
    use eke_results::rows::{Rows, params};

    fn report(experiment: &str, values: &[(&str, &str, &[f64])]) -> Report {
        let mut rows = Rows::default();
        for (variant, metric, samples) in values {
            rows.add(variant, &params([]), metric, "of them", samples.iter().copied());
        }
        let role = |name: &str| if name == "Fedora" { Role::Peer } else { Role::Baseline };
        let variants = values.iter().map(|(name, ..)| Variant {
            name: (*name).into(),
            role: role(name),
            set_up: String::new(),
        });
        Report {
            experiment: experiment.into(),
            variants: variants.collect(),
            rows: rows.done(),
            ..Report::default()
        }
    }

    #[test]
    fn counts_are_compared_with_the_study() {
        let held = |eke: f64| {
            let held = "documents held";
            let values: [(&str, &str, &[f64]); 3] =
                [("nothing", held, &[2.0]), ("Fedora", held, &[9.0]), ("eke", held, &[eke])];
            note(&report("capacity", &values)).unwrap()
        };
        assert_eq!(
            held(19.0),
            "Beside the study (2 documents without swap, 11 with compcache, 5.5 times): here 2 without, 9 with Fedora, 19 with \
             eke, 9.5 times."
        );
        assert!(held(10.0).ends_with("5.0 times. That is less of a gain than the study's."));
    }

    #[test]
    fn a_smaller_gain_has_a_reason() {
        let values: [(&str, &str, &[f64]); 2] =
            [("nothing", "one switch", &[0.2, 0.6]), ("eke", "one switch", &[0.01, 0.03])];
        let short = note(&report("switch", &values)).unwrap();
        assert!(
            short.contains("at most 0.60 s without, 0.030 s with eke. Without swap it does not"),
            "{short}"
        );
        let values: [(&str, &str, &[f64]); 2] =
            [("nothing", "one switch", &[6.0]), ("eke", "one switch", &[0.5])];
        assert!(note(&report("switch", &values)).unwrap().ends_with("0.500 s with eke."));
    }

    #[test]
    fn the_second_document_counts_while_both_are_open() {
        let mut rows = Rows::default();
        for (variant, document, open, seconds) in [
            ("memory to spare", "B", 2, 1.5),
            ("nothing", "A", 2, 9.0),
            ("nothing", "B", 2, 30.0),
            ("eke", "B", 1, 90.0),
            ("eke", "B", 2, 3.0),
        ] {
            let params = params([("document", document.into()), ("open", open.into())]);
            rows.add(variant, &params, "pages 1 to 50 and back", "s", [seconds]);
        }
        let report = Report { experiment: "paging".into(), rows: rows.done(), ..Report::default() };
        let note = note(&report).unwrap();
        let here = "here 30.00 s without, 3.00 s with eke, 10.0 times; 1.50 s with memory to spare.";
        assert!(note.contains(here) && note.contains("less of a gain"), "{note}");
    }

    #[test]
    fn without_measurements_there_is_no_note() {
        assert_eq!(note(&report("capacity", &[("eke", "documents held", &[3.0])])), None);
        assert_eq!(note(&report("agent", &[])), None);
    }
}
