//! Decides when a window is drawn. Pure: times of damage, sampled contents and times of work go in, the decision comes out.
//!
//! All times count from the request of the drawing. The result's time is that of the damage that brought the content, not that
//! of the sample that found it.

use std::time::Duration;

/// After damage, wait so long for more of it before sampling.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// Sample at the latest so long after the first damage.
const SAMPLE_WITHIN: Duration = Duration::from_millis(50);
/// Without an expected content, a changed window is drawn when it stays unchanged for so long.
const STABLE: Duration = Duration::from_millis(80);
/// A damaged window that shows the same as before is drawn after so long: two equal pages.
const UNCHANGED: Duration = Duration::from_secs(1);
/// A window that shows something else than expected counts as drawn after so long.
const UNEXPECTED: Duration = Duration::from_secs(2);
/// Without any damage for so long, sample: the window may already show the content.
const UNDAMAGED: Duration = Duration::from_secs(1);

/// One awaited drawing.
#[derive(Debug, Clone)]
pub(super) struct Redraw {
    before: Option<u64>,
    expected: Option<u64>,
    /// The first and the last damage since the last sample.
    unsampled: Option<(Duration, Duration)>,
    /// The last damage before the last sample.
    damaged: Option<Duration>,
    content: Option<u64>,
    sampled: bool,
    /// The damage that brought the content.
    changed: Option<Duration>,
    worked: Duration,
    may_stay: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Sample the window now.
    Sample,
    /// Nothing to do before this time, unless there is damage.
    Wait(Duration),
    /// The window is drawn.
    Drawn(Drawn),
}

/// A finished drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drawn {
    /// The time of the damage that brought the content.
    pub at: Duration,
    /// The hash of what the window shows.
    pub content: u64,
    /// Whether that was expected; `None` without an expectation.
    pub as_expected: Option<bool>,
}

impl Redraw {
    /// `before` is what the window showed at the request, `None` if it was not visible.
    pub fn new(before: Option<u64>, expected: Option<u64>) -> Self {
        Self {
            before,
            expected,
            unsampled: None,
            damaged: None,
            content: before,
            sampled: false,
            changed: None,
            worked: Duration::ZERO,
            may_stay: false,
        }
    }

    /// The window may already show the right content; then it draws nothing.
    #[must_use]
    pub fn may_stay(mut self) -> Self {
        self.may_stay = true;
        self
    }

    /// The window was damaged.
    pub fn damage(&mut self, at: Duration) {
        let first = self.unsampled.map_or(at, |(first, _)| first);
        self.unsampled = Some((first, at));
    }

    /// The programs that draw used the CPU, waited for a disk, or faulted: the drawing may not be complete.
    pub fn work(&mut self, at: Duration) {
        self.worked = at;
    }

    /// The window's content, sampled after all damage so far.
    pub fn sample(&mut self, content: u64) {
        self.sampled = true;
        if let Some((_, last)) = self.unsampled.take() {
            self.damaged = Some(last);
        }
        if self.content != Some(content) {
            self.content = Some(content);
            self.changed = self.damaged;
        }
    }

    /// Decides the next step.
    pub fn next(&self, now: Duration) -> Next {
        if let Some((first, last)) = self.unsampled {
            let due = (last + DEBOUNCE).min(first + SAMPLE_WITHIN);
            return if now >= due { Next::Sample } else { Next::Wait(due) };
        }
        match (self.damaged, self.content) {
            (Some(damaged), Some(content)) => self.damaged(now, self.changed.unwrap_or(damaged), content),
            _ => self.undamaged(now),
        }
    }

    fn damaged(&self, now: Duration, at: Duration, content: u64) -> Next {
        if self.expected == Some(content) {
            return Next::Drawn(Drawn { at, content, as_expected: Some(true) });
        }
        let quiet = match self.expected {
            Some(_) => UNEXPECTED,
            None if self.before == Some(content) => UNCHANGED,
            None => STABLE,
        };
        let due = at.max(self.worked) + quiet;
        if now < due {
            return Next::Wait(due);
        }
        Next::Drawn(Drawn { at, content, as_expected: self.expected.map(|_| false) })
    }

    /// A viewer need not draw a page that equals the one before, nor a window that is already in front.
    fn undamaged(&self, now: Duration) -> Next {
        let due = self.worked + UNDAMAGED;
        let Some(content) = self.content.filter(|_| self.sampled) else {
            return match self.sampled {
                false if now >= due => Next::Sample,
                _ => Next::Wait(due.max(now)),
            };
        };
        let as_expected = self.expected.map(|e| e == content);
        if as_expected == Some(true) || self.may_stay && now >= due {
            return Next::Drawn(Drawn { at: Duration::ZERO, content, as_expected });
        }
        Next::Wait(now + UNDAMAGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn drawn(at: u64, content: u64, as_expected: Option<bool>) -> Next {
        Next::Drawn(Drawn { at: ms(at), content, as_expected })
    }

    #[test]
    fn a_page_with_the_expected_content_is_drawn_at_its_damage() {
        let mut redraw = Redraw::new(Some(1), Some(2));
        assert_eq!(redraw.next(ms(10)), Next::Wait(UNDAMAGED));
        redraw.damage(ms(40));
        redraw.damage(ms(42));
        assert_eq!(redraw.next(ms(43)), Next::Wait(ms(47)));
        assert_eq!(redraw.next(ms(47)), Next::Sample);
        redraw.sample(2);
        assert_eq!(redraw.next(ms(60)), drawn(42, 2, Some(true)));
    }

    #[test]
    fn a_blank_window_before_the_expected_page_is_waited_out() {
        let mut redraw = Redraw::new(Some(1), Some(2));
        redraw.damage(ms(10));
        redraw.sample(0);
        assert_eq!(redraw.next(ms(1900)), Next::Wait(ms(2010)));
        // The viewer reads its program's pages meanwhile.
        redraw.work(ms(1800));
        assert_eq!(redraw.next(ms(2500)), Next::Wait(ms(3800)));
        redraw.damage(ms(3000));
        redraw.sample(2);
        assert_eq!(redraw.next(ms(3010)), drawn(3000, 2, Some(true)));
    }

    #[test]
    fn a_window_that_stays_unexpected_counts_and_is_reported() {
        let mut redraw = Redraw::new(Some(1), Some(2));
        redraw.damage(ms(10));
        redraw.sample(3);
        assert_eq!(redraw.next(ms(2010)), drawn(10, 3, Some(false)));
    }

    #[test]
    fn without_expectation_a_change_that_stays_counts() {
        let mut redraw = Redraw::new(Some(1), None);
        redraw.damage(ms(10));
        redraw.sample(0);
        redraw.damage(ms(100));
        redraw.sample(2);
        // A redraw without any change.
        redraw.damage(ms(200));
        redraw.sample(2);
        assert_eq!(redraw.next(ms(170)), Next::Wait(ms(180)));
        assert_eq!(redraw.next(ms(180)), drawn(100, 2, None));
    }

    #[test]
    fn a_viewer_at_work_is_waited_for() {
        let mut redraw = Redraw::new(Some(1), None);
        redraw.damage(ms(10));
        redraw.sample(0);
        redraw.work(ms(300));
        assert_eq!(redraw.next(ms(379)), Next::Wait(ms(380)));
        assert_eq!(redraw.next(ms(380)), drawn(10, 0, None));
    }

    #[test]
    fn two_equal_pages() {
        let mut redraw = Redraw::new(Some(1), None);
        redraw.damage(ms(30));
        redraw.sample(1);
        assert_eq!(redraw.next(ms(500)), Next::Wait(ms(1030)));
        assert_eq!(redraw.next(ms(1030)), drawn(30, 1, None));
        let mut known = Redraw::new(Some(1), Some(1));
        known.damage(ms(30));
        known.sample(1);
        assert_eq!(known.next(ms(40)), drawn(30, 1, Some(true)));
    }

    #[test]
    fn a_page_that_need_not_be_drawn() {
        let mut redraw = Redraw::new(Some(1), Some(1));
        assert_eq!(redraw.next(ms(999)), Next::Wait(ms(1000)));
        assert_eq!(redraw.next(ms(1000)), Next::Sample);
        redraw.sample(1);
        assert_eq!(redraw.next(ms(1010)), drawn(0, 1, Some(true)));
    }

    #[test]
    fn a_window_that_may_stay_as_it_is() {
        let mut redraw = Redraw::new(Some(1), Some(2)).may_stay();
        redraw.work(ms(300));
        assert_eq!(redraw.next(ms(1299)), Next::Wait(ms(1300)));
        assert_eq!(redraw.next(ms(1300)), Next::Sample);
        redraw.sample(1);
        assert_eq!(redraw.next(ms(1310)), drawn(0, 1, Some(false)));
    }

    #[test]
    fn nothing_drawn_is_never_drawn() {
        let mut redraw = Redraw::new(Some(1), Some(2));
        redraw.sample(1);
        assert_eq!(redraw.next(ms(9000)), Next::Wait(ms(10_000)));
        let mut new = Redraw::new(None, None);
        assert_eq!(new.next(ms(1000)), Next::Sample);
        new.sample(7);
        assert_eq!(new.next(ms(9000)), Next::Wait(ms(10_000)));
    }

    #[test]
    fn endless_damage_is_sampled() {
        let mut redraw = Redraw::new(Some(1), None);
        for at in 0..20 {
            redraw.damage(ms(100 + 4 * at));
        }
        assert_eq!(redraw.next(ms(177)), Next::Sample);
    }
}
