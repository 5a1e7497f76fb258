//! Whether a mount over its own directory gains anything, or should stand aside: out of the directory tree, until memory is short without it. Pure.
//!
//! # Rules
//! A window is [`WINDOW`] long, and several in a row must say the same (`must_agree`): where all fits the fewest, as small files wait for
//! requests until it leaves, and a wrong move is soon undone. While the mount serves, windows with few requests say nothing, and while the store
//! fills there is no decision ([`Window::is_filling`]). Otherwise it leaves
//! - *because all fits* ([`Reason::Fits`]): the disk is hardly read, and what compression saves is free anyway;
//! - *because it is slower* ([`Reason::Slower`]): hits save less time than opens cost;
//! - *because it holds no more* ([`Reason::HoldsNoMore`]): what compression saves is less than what the kernel needs for the mount's files.
//!
//! The last two must also be so over the last busy minutes ([`Past`]): a backup that reads all files once does not empty a store that was of use.
//!
//! Aside, only reads of what was dropped from memory before count (refaults). It returns when the store would save a tenth of the time, and
//! not before a pause is over, which grows each time that it leaves again soon. After a return in vain it returns only while memory is full: beside unused
//! memory refaults are those of a group with a limit of its own, perhaps of other files.

mod past;
mod window;

use std::time::Duration;

use eke_model::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};

use past::Past;
pub use window::{Sample, Window};

/// The length of a window.
pub const WINDOW: Duration = Duration::from_secs(5);
/// The most windows in a row that must agree.
const MOST_AGREE: u32 = 4;
/// Leaving again this soon after a return makes the next pause longer.
const SOON: Duration = Duration::from_secs(1800);
/// So many windows must agree that all fits soon after a return: memory was short just then, and a lull tells little.
const AGREE_AGAIN: u32 = 12;
/// Windows between attempts that fail, as each looks at all processes; and how often that doubles.
const TRY_AGAIN: u32 = 4;
const REFUSED_MOST: u32 = 5;
/// After an attempt that fails, the next one comes so soon, if it is still advised: after the longest pause and windows that agree, with as many to
/// spare.
pub const TRIED_AGAIN_WITHIN: Duration =
    WINDOW.saturating_mul(TRY_AGAIN * 2_u32.pow(REFUSED_MOST) + 4 * MOST_AGREE);
/// The first pause where all fits, in windows, and the longest: it returns when it is needed, so that only keeps it from swinging.
const FIRST_FITS: u32 = 6;
const LONGEST_FITS: Duration = Duration::from_secs(3600);
/// The first pause where the content is to blame: each try costs the store's filling.
const FIRST_CONTENT: Duration = Duration::from_secs(3600);
const LONGEST_CONTENT: Duration = Duration::from_secs(24 * 3600);

/// Why a mount stands aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// What is read fits into the memory without compression.
    Fits,
    /// The store's answers save less time than the way through the mount costs: the disk is fast, or the store has little to answer with.
    Slower,
    /// Its files need as much memory as compression saves.
    HoldsNoMore,
}

impl Reason {
    /// For people: the end of a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Fits => "what is read fits into the memory without it",
            Self::Slower => "the store's answers save less time than the way through the cache costs",
            Self::HoldsNoMore => {
                "what compression saves is less than what the kernel needs to know the files a second time"
            }
        }
    }
}

/// What is known of a mount that leaves; the worker that serves it afterwards knows nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Why.
    pub reason: Reason,
    /// What a block from the disk takes, in µs.
    pub disk_us: u32,
    /// The mean size of such a block; 0: unknown.
    #[serde(default)]
    pub disk_bytes: u32,
    /// Returns in a row before that were of no use.
    pub vain: u32,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Stay,
    /// Leave the directory tree.
    Leave(Reason),
    /// Return to it.
    Return,
}

/// Where the mount is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Serving { returned: Option<Duration> },
    Aside { earliest: Duration },
}

/// How long it stays aside at least, after so many returns in vain.
fn pause(reason: Reason, vain: u32, window: Duration) -> Duration {
    let (first, factor, longest) = match reason {
        Reason::Fits => (FIRST_FITS * window, 2_u32, LONGEST_FITS),
        Reason::Slower | Reason::HoldsNoMore => (FIRST_CONTENT, 4, LONGEST_CONTENT),
    };
    first.saturating_mul(factor.saturating_pow(vain)).min(longest)
}

/// The state between samples.
#[derive(Debug, Clone)]
pub struct Usefulness {
    window: Duration,
    place: Place,
    begin: Option<Sample>,
    agreeing: u32,
    last: Option<Advice>,
    past: Past,
    /// Returns in a row that were of no use.
    vain: u32,
    /// No advice before: the last one could not be followed.
    quiet_until: Duration,
    /// How many in a row could not.
    refused: u32,
}

impl Usefulness {
    /// Of a mount that serves.
    pub fn serving() -> Self {
        Self {
            window: WINDOW,
            place: Place::Serving { returned: None },
            begin: None,
            agreeing: 0,
            last: None,
            past: Past::default(),
            vain: 0,
            quiet_until: Duration::ZERO,
            refused: 0,
        }
    }

    /// With windows of another length, for tests.
    #[must_use]
    pub fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// A sample, about once a second. Anything but [`Advice::Stay`] comes once; then [`Usefulness::left`] or [`Usefulness::returned`] says
    /// that it was done, or [`Usefulness::refused`] that it was not.
    pub fn step(&mut self, sample: Sample) -> Advice {
        let Some(begin) = self.begin else {
            self.begin = Some(sample);
            return Advice::Stay;
        };
        let window = Window { begin, end: sample };
        if window.length() < self.window {
            return Advice::Stay;
        }
        self.begin = Some(sample);
        if window.is_busy() {
            self.past.add(&window);
        }
        let advice = self.judge(&window);
        self.agreeing = if Some(advice) == self.last { self.agreeing + 1 } else { 1 };
        self.last = Some(advice);
        if advice == Advice::Stay || self.agreeing < self.must_agree(advice, sample.now) {
            return Advice::Stay;
        }
        self.begin_anew();
        advice
    }

    /// So many windows in a row must advise this.
    fn must_agree(&self, advice: Advice, now: Duration) -> u32 {
        match advice {
            Advice::Leave(Reason::Fits) if self.has_just_returned(now) => AGREE_AGAIN,
            Advice::Leave(Reason::Fits) => 2,
            _ => MOST_AGREE,
        }
    }

    fn has_just_returned(&self, now: Duration) -> bool {
        matches!(self.place, Place::Serving { returned: Some(at) } if now.saturating_sub(at) < SOON)
    }

    /// Returns in a row that were of no use, if it leaves at this time.
    pub fn vain(&self, now: Duration) -> u32 {
        match self.place {
            Place::Serving { .. } if self.has_just_returned(now) => self.vain + 1,
            Place::Serving { .. } => 0,
            Place::Aside { .. } => self.vain,
        }
    }

    /// It left at this time.
    pub fn left(&mut self, Left { reason, vain, .. }: Left, now: Duration) {
        (self.vain, self.refused) = (vain, 0);
        self.place = Place::Aside { earliest: now.saturating_add(pause(reason, vain, self.window)) };
        self.begin_anew();
    }

    /// It returned at this time.
    pub fn returned(&mut self, now: Duration) {
        self.place = Place::Serving { returned: Some(now) };
        (self.refused, self.past) = (0, Past::default());
        self.begin_anew();
    }

    /// The last advice could not be followed, because programs use files there.
    pub fn refused(&mut self, now: Duration) {
        self.refused += 1;
        let pause = TRY_AGAIN * self.window * 2_u32.pow(self.refused.min(REFUSED_MOST));
        self.quiet_until = now.saturating_add(pause.min(LONGEST_FITS));
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.begin, self.agreeing, self.last) = (None, 0, None);
    }

    fn judge(&self, window: &Window) -> Advice {
        if window.end.now < self.quiet_until {
            return Advice::Stay;
        }
        match self.place {
            Place::Serving { .. } => self::serving(window, &self.past).map_or(Advice::Stay, Advice::Leave),
            Place::Aside { earliest } if window.end.now < earliest => Advice::Stay,
            Place::Aside { .. } if window.is_short_of_memory() && (window.end.is_full || self.vain == 0) => {
                Advice::Return
            }
            Place::Aside { .. } => Advice::Stay,
        }
    }
}

/// Why a mount that serves is of no use; `None`: it is, or nobody can tell.
fn serving(window: &Window, past: &Past) -> Option<Reason> {
    if !window.is_busy() {
        return None;
    }
    if !window.reads_disk() && window.fits_uncompressed() {
        return Some(Reason::Fits);
    }
    if window.is_filling() {
        return None;
    }
    if window.loses() && past.loses() {
        return Some(Reason::Slower);
    }
    let least = least_gain(window.end.limit);
    (window.reads_disk() && window.gained().max(past.gained()) < least).then_some(Reason::HoldsNoMore)
}

/// With less memory gained than a twentieth of the store's, the hit rate does not pay for the requests.
fn least_gain(limit: Bytes) -> i64 {
    i64::try_from(limit.0 / 20).unwrap_or(i64::MAX).max(MIB as i64)
}

#[cfg(test)]
mod tests;
