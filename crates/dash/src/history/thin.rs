//! Thins readings to points: each span has a step, and a point is the mean of the readings of its step.

use std::collections::VecDeque;

use super::series::{COUNT, Values};

/// A span of the history, with its resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its name on the page.
    pub name: &'static str,
    /// Seconds between two points.
    pub step_s: u64,
    /// Seconds that are kept.
    pub keep_s: u64,
    /// True if it is in the file.
    pub kept: bool,
}

/// All spans, the shortest first. A plot is a few hundred pixels wide, so none has more than 720 points.
pub const SPANS: [Span; 3] = [
    Span { name: "minutes", step_s: 1, keep_s: 300, kept: false },
    Span { name: "hour", step_s: 5, keep_s: 3_600, kept: true },
    Span { name: "day", step_s: 120, keep_s: 86_400, kept: true },
];

/// A point of all lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The beginning of its step, in seconds since 1970.
    pub at_s: u64,
    /// The means.
    pub values: Values,
}

/// The current step.
#[derive(Debug, Clone)]
struct Open {
    at_s: u64,
    sums: [f64; COUNT],
    counts: [u32; COUNT],
}

impl Open {
    fn new(at_s: u64) -> Self {
        Self { at_s, sums: [0.0; COUNT], counts: [0; COUNT] }
    }

    fn add(&mut self, values: &Values) {
        for (i, value) in values.iter().enumerate() {
            if let Some(value) = value {
                self.sums[i] += value;
                self.counts[i] += 1;
            }
        }
    }

    fn point(&self) -> Point {
        let mean = |i: usize| (self.counts[i] > 0).then(|| self.sums[i] / f64::from(self.counts[i]));
        Point { at_s: self.at_s, values: std::array::from_fn(mean) }
    }
}

#[derive(Debug, Default)]
struct Level {
    points: VecDeque<Point>,
    open: Option<Open>,
    /// The last time that is in the file.
    saved_s: u64,
}

/// All spans. Its size is limited, whatever times come.
#[derive(Debug, Default)]
pub struct History {
    levels: [Level; SPANS.len()],
}

impl History {
    /// Adds a reading. If the clock was set back, it drops the points after it.
    pub fn push(&mut self, at_s: u64, values: &Values) {
        for (level, span) in self.levels.iter_mut().zip(SPANS) {
            let begins = at_s - at_s % span.step_s;
            level.forget_future(begins);
            if level.open.as_ref().is_some_and(|open| open.at_s != begins) {
                level.points.extend(level.open.take().map(|open| open.point()));
            }
            level.open.get_or_insert_with(|| Open::new(begins)).add(values);
            level.forget_old(at_s.saturating_sub(span.keep_s));
        }
    }

    /// Takes the file's points, in order.
    pub fn restore(&mut self, span: usize, points: Vec<Point>) {
        if let Some(level) = self.levels.get_mut(span) {
            level.saved_s = points.last().map_or(0, |p| p.at_s);
            level.points = points.into();
        }
    }

    /// The points of a span after a time, in order.
    pub fn after(&self, span: usize, after_s: u64) -> impl Iterator<Item = &Point> {
        let points = self.levels.get(span).into_iter().flat_map(|level| &level.points);
        points.filter(move |p| p.at_s > after_s)
    }

    /// The points that are not in the file yet.
    pub fn unsaved(&self, span: usize) -> impl Iterator<Item = &Point> {
        self.after(span, self.levels.get(span).map_or(0, |level| level.saved_s))
    }

    /// Marks all points as written.
    pub fn saved(&mut self) {
        for level in &mut self.levels {
            level.saved_s = level.points.back().map_or(level.saved_s, |p| p.at_s);
        }
    }
}

impl Level {
    /// Drops the points after the step that begins now.
    fn forget_future(&mut self, begins_s: u64) {
        if self.open.as_ref().is_some_and(|open| open.at_s > begins_s) {
            self.open = None;
        }
        while self.points.back().is_some_and(|p| p.at_s >= begins_s) {
            self.points.pop_back();
        }
        self.saved_s = self.saved_s.min(self.points.back().map_or(0, |p| p.at_s));
    }

    fn forget_old(&mut self, before_s: u64) {
        while self.points.front().is_some_and(|p| p.at_s < before_s) {
            self.points.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(first: f64) -> Values {
        let mut values = [None; COUNT];
        values[0] = Some(first);
        values
    }

    fn shown(history: &History, span: usize) -> Vec<(u64, Option<f64>)> {
        history.after(span, 0).map(|p| (p.at_s, p.values[0])).collect()
    }

    #[test]
    fn a_point_is_the_mean_of_its_step_and_a_gap_stays_one() {
        let mut history = History::default();
        for (at_s, value) in [(1000, 1.0), (1002, 3.0), (1005, 9.0), (1030, 5.0), (1035, 0.0)] {
            history.push(at_s, &values(value));
        }
        assert_eq!(shown(&history, 1), [(1000, Some(2.0)), (1005, Some(9.0)), (1030, Some(5.0))]);
        assert_eq!(shown(&history, 2), [], "its step of two minutes is not over");
    }

    #[test]
    fn only_what_is_new_is_written() {
        let mut history = History::default();
        let unsaved = |h: &History| h.unsaved(1).map(|p| p.at_s).collect::<Vec<_>>();
        for at_s in 1000..1011 {
            history.push(at_s, &values(1.0));
        }
        assert_eq!(unsaved(&history), [1000, 1005]);
        history.saved();
        history.push(1015, &values(1.0));
        assert_eq!(unsaved(&history), [1010]);
    }

    #[test]
    fn a_clock_that_is_set_back_drops_later_points() {
        let mut history = History::default();
        for at_s in (5000..5100).chain(2000..2020) {
            history.push(at_s, &values(1.0));
        }
        assert_eq!(shown(&history, 1), [(2000, Some(1.0)), (2005, Some(1.0)), (2010, Some(1.0))]);
        history.saved();
        history.push(1990, &values(1.0));
        history.push(1995, &values(1.0));
        assert_eq!(history.unsaved(1).count(), 1);
    }

    proptest::proptest! {
        #[test]
        fn it_is_bounded_and_in_order_whatever_the_clock_does(times in proptest::collection::vec(0u64..200_000, 0..800)) {
            let mut history = History::default();
            for at_s in times {
                history.push(at_s, &values(1.0));
            }
            for (i, span) in SPANS.iter().enumerate() {
                let at: Vec<u64> = history.after(i, 0).map(|p| p.at_s).collect();
                assert!(at.len() as u64 <= span.keep_s / span.step_s + 1);
                assert!(at.windows(2).all(|w| w[0] < w[1]), "{at:?}");
            }
        }
    }
}
