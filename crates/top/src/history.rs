//! The last refreshes, for the curves.

use std::collections::VecDeque;

use eke_model::sample::Pressure;

use eke_present::refresh::{CacheStats, Refresh};
use eke_present::words::percent;

/// The number of points kept: more than any screen has columns.
pub const KEPT: usize = 512;

/// The values of one refresh. Shares are 0 to 1; `None` is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    values: [Option<f64>; CURVES.len()],
}

/// The unit of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// A number per second.
    PerSecond,
}

/// One curve.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    /// What it shows.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The top of the scale is at least this, so that noise stays small.
    pub at_least: f64,
}

/// All curves, in the order of the screen.
pub const CURVES: [Curve; 8] = [
    Curve { name: "waits for memory", unit: Unit::Share, at_least: 0.1 },
    Curve { name: "for disks", unit: Unit::Share, at_least: 0.1 },
    Curve { name: "for a CPU", unit: Unit::Share, at_least: 0.1 },
    Curve { name: "available", unit: Unit::Share, at_least: 1.0 },
    Curve { name: "held compressed", unit: Unit::Bytes, at_least: 1048576.0 },
    Curve { name: "pages in", unit: Unit::PerSecond, at_least: 10.0 },
    Curve { name: "pages out", unit: Unit::PerSecond, at_least: 10.0 },
    Curve { name: "cache hits", unit: Unit::Share, at_least: 1.0 },
];

impl Unit {
    /// A value as text.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Share => percent(value),
            Self::Bytes => eke_model::units::Bytes(value as u64).to_string(),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

impl Point {
    /// The values of a refresh; hits are those since the refresh before.
    pub fn new(refresh: &Refresh, before: Option<&Refresh>) -> Self {
        let (m, model) = (&refresh.snapshot.machine, &refresh.snapshot.model);
        let some = |p: Option<Pressure>| p.map(|p| p.some_avg10 / 100.0);
        let available = (model.ram.0 > 0).then(|| model.available.0 as f64 / model.ram.0 as f64);
        Self {
            values: [
                some(m.memory_pressure),
                some(m.io_pressure),
                some(m.cpu_pressure),
                available,
                Some(model.held.0 as f64),
                Some(model.pages_in_per_s),
                Some(model.pages_out_per_s),
                hits(refresh, before),
            ],
        }
    }
}

/// The hit rate between two refreshes; `None` if a new worker's counts start at 0 in between.
fn hits(now: &Refresh, before: Option<&Refresh>) -> Option<f64> {
    let sum = |refresh: &Refresh, of: fn(&CacheStats) -> u64| {
        refresh.caches.iter().filter_map(|c| c.stats.as_ref().ok()).map(of).sum::<u64>()
    };
    let since = |of| sum(now, of).checked_sub(before.map_or(0, |b| sum(b, of)));
    let (hits, misses) = (since(|f| f.hits)?, since(|f| f.misses)?);
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

/// The newest few points, oldest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    points: VecDeque<Point>,
}

impl History {
    /// Adds a point; drops the oldest if there are [`KEPT`].
    pub fn push(&mut self, point: Point) {
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// True if it has no point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The newest `most` values of curve number `curve`, oldest first.
    pub fn values(&self, curve: usize, most: usize) -> Vec<Option<f64>> {
        let skipped = self.points.len().saturating_sub(most);
        self.points.iter().skip(skipped).map(|p| p.values.get(curve).copied().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_present::refresh::Cache;

    fn with_hits(hits: u64, misses: u64) -> Refresh {
        let stats = CacheStats { hits, misses, ..CacheStats::default() };
        Refresh { caches: vec![Cache { place: "/a".into(), stats: Ok(stats) }], ..Refresh::default() }
    }

    #[test]
    fn hits_are_those_since_the_last_refresh() {
        let rate = |now: &Refresh, before: Option<&Refresh>| hits(now, before);
        assert_eq!(rate(&with_hits(100, 100), Some(&with_hits(90, 100))), Some(1.0));
        assert_eq!(rate(&with_hits(100, 100), Some(&with_hits(100, 100))), None);
        assert_eq!(rate(&with_hits(1, 1), Some(&with_hits(90, 100))), None);
        assert_eq!(rate(&with_hits(1, 3), None), Some(0.25));
    }

    #[test]
    fn the_oldest_go() {
        let mut history = History::default();
        for _ in 0..KEPT + 5 {
            history.push(Point::new(&Refresh::default(), None));
        }
        assert_eq!(history.len(), KEPT);
        assert_eq!(history.values(0, 3), vec![None; 3]);
        assert_eq!(history.values(5, 2), vec![Some(0.0); 2]);
    }
}
