//! Is it drawn? Pure: times of damage, contents seen and times of work go in, the answer comes out.
//!
//! All times are since the drawing was asked for. The answer's time is that of the damage that brought the content, not
//! that of the look which found it.

use std::time::Duration;

/// After damage, wait so long for more of it before looking.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// But look at the latest so long after the first damage.
const LOOK_WITHIN: Duration = Duration::from_millis(50);
/// A changed window that stays so for this long is drawn, where nothing is known about it.
const STABLE: Duration = Duration::from_millis(80);
/// A damaged window that shows what it showed before, and stays so: two equal pages.
const UNCHANGED: Duration = Duration::from_secs(1);
/// A window that shows something else than expected, and stays so.
const OTHERWISE: Duration = Duration::from_secs(2);
/// No damage at all for so long: look whether it is there already.
const UNDAMAGED: Duration = Duration::from_secs(1);

/// One drawing that is waited for.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    before: Option<u64>,
    expected: Option<u64>,
    /// First and last damage that was not looked at yet.
    unseen: Option<(Duration, Duration)>,
    /// The last damage before the last look.
    damaged: Option<Duration>,
    seen: Option<u64>,
    looked: bool,
    /// The damage that brought what is seen.
    changed: Option<Duration>,
    worked: Duration,
    may_stay: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Look at the window now.
    Look,
    /// Nothing before this time, unless there is damage.
    Wait(Duration),
    /// It is drawn.
    Drawn(Drawn),
}

/// A drawing that is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drawn {
    /// The deciding damage.
    pub at: Duration,
    /// What the window shows.
    pub content: u64,
    /// Was it expected so?
    pub as_expected: Option<bool>,
}

impl Watch {
    /// `before`: what the window showed when the drawing was asked for, `None` if it did not show.
    pub fn new(before: Option<u64>, expected: Option<u64>) -> Self {
        Self {
            before,
            expected,
            unseen: None,
            damaged: None,
            seen: before,
            looked: false,
            changed: None,
            worked: Duration::ZERO,
            may_stay: false,
        }
    }

    /// The window may be as it is to be already; then nothing is drawn.
    #[must_use]
    pub fn may_stay(mut self) -> Self {
        self.may_stay = true;
        self
    }

    /// The window was drawn on.
    pub fn damage(&mut self, at: Duration) {
        let first = self.unseen.map_or(at, |(first, _)| first);
        self.unseen = Some((first, at));
    }

    /// The programs that draw it used the CPU, waited for a disk, or faulted: it may not be all.
    pub fn work(&mut self, at: Duration) {
        self.worked = at;
    }

    /// The window was looked at, after all damage that was told.
    pub fn see(&mut self, content: u64) {
        self.looked = true;
        if let Some((_, last)) = self.unseen.take() {
            self.damaged = Some(last);
        }
        if self.seen != Some(content) {
            self.seen = Some(content);
            self.changed = self.damaged;
        }
    }

    /// What now?
    pub fn next(&self, now: Duration) -> Next {
        if let Some((first, last)) = self.unseen {
            let due = (last + DEBOUNCE).min(first + LOOK_WITHIN);
            return if now >= due { Next::Look } else { Next::Wait(due) };
        }
        match (self.damaged, self.seen) {
            (Some(damaged), Some(content)) => self.judge(now, self.changed.unwrap_or(damaged), content),
            _ => self.undamaged(now),
        }
    }

    fn judge(&self, now: Duration, at: Duration, content: u64) -> Next {
        if self.expected == Some(content) {
            return Next::Drawn(Drawn { at, content, as_expected: Some(true) });
        }
        let quiet = match self.expected {
            Some(_) => OTHERWISE,
            None if self.before == Some(content) => UNCHANGED,
            None => STABLE,
        };
        let due = at.max(self.worked) + quiet;
        if now < due {
            return Next::Wait(due);
        }
        Next::Drawn(Drawn { at, content, as_expected: self.expected.map(|_| false) })
    }

    /// A viewer need not draw a page that equals the one before it, nor a window that is at the front already.
    fn undamaged(&self, now: Duration) -> Next {
        let due = self.worked + UNDAMAGED;
        let Some(content) = self.seen.filter(|_| self.looked) else {
            return match self.looked {
                false if now >= due => Next::Look,
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
    fn a_page_that_shows_what_is_expected_is_drawn_at_its_damage() {
        let mut watch = Watch::new(Some(1), Some(2));
        assert_eq!(watch.next(ms(10)), Next::Wait(UNDAMAGED));
        watch.damage(ms(40));
        watch.damage(ms(42));
        assert_eq!(watch.next(ms(43)), Next::Wait(ms(47)));
        assert_eq!(watch.next(ms(47)), Next::Look);
        watch.see(2);
        assert_eq!(watch.next(ms(60)), drawn(42, 2, Some(true)));
    }

    #[test]
    fn a_blank_window_before_the_expected_page_is_waited_out() {
        let mut watch = Watch::new(Some(1), Some(2));
        watch.damage(ms(10));
        watch.see(0);
        assert_eq!(watch.next(ms(1900)), Next::Wait(ms(2010)));
        // it pages in its program meanwhile
        watch.work(ms(1800));
        assert_eq!(watch.next(ms(2500)), Next::Wait(ms(3800)));
        watch.damage(ms(3000));
        watch.see(2);
        assert_eq!(watch.next(ms(3010)), drawn(3000, 2, Some(true)));
    }

    #[test]
    fn a_window_that_stays_otherwise_counts_and_is_told() {
        let mut watch = Watch::new(Some(1), Some(2));
        watch.damage(ms(10));
        watch.see(3);
        assert_eq!(watch.next(ms(2010)), drawn(10, 3, Some(false)));
    }

    #[test]
    fn without_expectation_a_change_that_stays_counts() {
        let mut watch = Watch::new(Some(1), None);
        watch.damage(ms(10));
        watch.see(0);
        watch.damage(ms(100));
        watch.see(2);
        // redrawn without any change
        watch.damage(ms(200));
        watch.see(2);
        assert_eq!(watch.next(ms(170)), Next::Wait(ms(180)));
        assert_eq!(watch.next(ms(180)), drawn(100, 2, None));
    }

    #[test]
    fn a_viewer_at_work_is_waited_for() {
        let mut watch = Watch::new(Some(1), None);
        watch.damage(ms(10));
        watch.see(0);
        watch.work(ms(300));
        assert_eq!(watch.next(ms(379)), Next::Wait(ms(380)));
        assert_eq!(watch.next(ms(380)), drawn(10, 0, None));
    }

    #[test]
    fn two_equal_pages() {
        let mut watch = Watch::new(Some(1), None);
        watch.damage(ms(30));
        watch.see(1);
        assert_eq!(watch.next(ms(500)), Next::Wait(ms(1030)));
        assert_eq!(watch.next(ms(1030)), drawn(30, 1, None));
        let mut known = Watch::new(Some(1), Some(1));
        known.damage(ms(30));
        known.see(1);
        assert_eq!(known.next(ms(40)), drawn(30, 1, Some(true)));
    }

    #[test]
    fn a_page_that_need_not_be_drawn() {
        let mut watch = Watch::new(Some(1), Some(1));
        assert_eq!(watch.next(ms(999)), Next::Wait(ms(1000)));
        assert_eq!(watch.next(ms(1000)), Next::Look);
        watch.see(1);
        assert_eq!(watch.next(ms(1010)), drawn(0, 1, Some(true)));
    }

    #[test]
    fn a_window_that_may_stay_as_it_is() {
        let mut watch = Watch::new(Some(1), Some(2)).may_stay();
        watch.work(ms(300));
        assert_eq!(watch.next(ms(1299)), Next::Wait(ms(1300)));
        assert_eq!(watch.next(ms(1300)), Next::Look);
        watch.see(1);
        assert_eq!(watch.next(ms(1310)), drawn(0, 1, Some(false)));
    }

    #[test]
    fn nothing_drawn_is_never_drawn() {
        let mut watch = Watch::new(Some(1), Some(2));
        watch.see(1);
        assert_eq!(watch.next(ms(9000)), Next::Wait(ms(10_000)));
        let mut new = Watch::new(None, None);
        assert_eq!(new.next(ms(1000)), Next::Look);
        new.see(7);
        assert_eq!(new.next(ms(9000)), Next::Wait(ms(10_000)));
    }

    #[test]
    fn damage_without_end_is_looked_at() {
        let mut watch = Watch::new(Some(1), None);
        for at in 0..20 {
            watch.damage(ms(100 + 4 * at));
        }
        assert_eq!(watch.next(ms(177)), Next::Look);
    }
}
