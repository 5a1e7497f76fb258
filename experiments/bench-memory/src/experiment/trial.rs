//! One run of one variant, and the metrics that all experiments share.

use eke_bench_desktop::session::{End, Event, metrics};
use eke_results::report::{Metric, less, more};
use eke_results::rows::{Params, Rows};
use eke_sandbox::cgroup_box;

/// One run of one variant.
pub struct Trial<'a> {
    /// Its name.
    pub variant: &'a str,
    /// Its conditions: the size of its compressed swap.
    pub params: &'a Params,
    /// The session's events.
    pub events: &'a [Event],
    /// The box's report.
    pub report: &'a cgroup_box::BoxReport,
    /// Reads from the slow disk, in MiB; `None` on this machine's own disk, which other programs read, too.
    pub read_mib: Option<f64>,
}

/// The metric of [`Trial::finished_of_1`].
pub const FINISHED: &str = "finished";
/// The metric of [`Trial::add_opening`].
pub const OPENING: &str = "opening a document";
/// The metric of [`Trial::read_mib`].
pub const READ: &str = "read from the disk";

impl Trial<'_> {
    /// 1 for a finished run, else 0.
    pub fn finished_of_1(&self) -> f64 {
        f64::from(u8::from(metrics::end(self.events) == Some(&End::Finished)))
    }

    /// Adds the times of opening.
    pub fn add_opening(&self, rows: &mut Rows) {
        let seconds = metrics::openings(self.events);
        rows.add(self.variant, &Params::new(), OPENING, "s", seconds);
    }

    /// Adds whether the run finished, and its reads.
    pub fn add_end(&self, rows: &mut Rows) {
        let none = Params::new();
        rows.add(self.variant, &none, FINISHED, "of 1", [self.finished_of_1()]);
        rows.add(self.variant, &none, READ, "MiB", self.read_mib);
    }
}

/// The metrics of this module.
pub fn metrics() -> Vec<Metric> {
    vec![
        less(OPENING, "from starting the viewer to its first page drawn"),
        more(
            FINISHED,
            "1 for a run that went to its end, 0 for one in which something was killed or took too long",
        ),
        less(READ, "from the slow disk, programs and documents together"),
    ]
}
