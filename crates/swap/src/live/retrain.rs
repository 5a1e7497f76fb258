//! When to train the dictionary anew; pure, with its state as data.
//!
//! The data in swap changes with the programs, and a dictionary does not. The sign is the ratio that it was chosen for: if what is stored compresses a
//! tenth worse for an hour, [`crate::retrain`] trains another one, at most once a day, and compares both. After an attempt without gain it must become
//! a tenth worse again: the pages in swap are not those that were sampled, and may compress worse with any dictionary.

use eke_model::sample::Sample;
use eke_model::units::Bytes;

use crate::measure::ratio::USUAL_PER_DATA;

/// A ratio below this share of the expected one is too low.
const TOO_LOW: f64 = 0.9;
/// It must have been too low for this time,
const FOR_MS: u64 = 3_600_000;
/// and so long must the last training be past.
const PAUSE_MS: u64 = 86_400_000;
/// With less data the ratio is that of a few pages.
const HELD_AT_LEAST: Bytes = Bytes::mib(16);

/// What devices with one dictionary store, by `mm_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    /// The pages (`orig_data_size`).
    pub pages: Bytes,
    /// Their compressed data (`compr_data_size`).
    pub data: Bytes,
}

impl Stored {
    /// Of the devices with these names together.
    pub fn of<'a>(sample: &Sample, names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let own = sample.zram.iter().filter(|stat| names.clone().any(|name| name == stat.name));
        own.fold(Self::default(), |sum, stat| Self {
            pages: sum.pages + stat.orig_data,
            data: sum.data + stat.compr_data,
        })
    }

    /// Bytes of pages for a byte of data; `None` while too little is stored.
    pub fn ratio(self) -> Option<f64> {
        (self.pages >= HELD_AT_LEAST && self.data.0 > 0).then(|| self.pages.0 as f64 / self.data.0 as f64)
    }
}

/// The moment of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The monotonic clock, in milliseconds.
    pub ms: u64,
    /// Has the gate been open for long enough, and may a training begin?
    pub is_calm: bool,
    /// When a training last began, by the same clock of this boot.
    pub tried_ms: Option<u64>,
    /// The ratio of what was stored then, if that training gained nothing.
    pub ratio_then: Option<f64>,
}

/// Since when the ratio has been too low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    too_low_since_ms: Option<u64>,
}

/// Whether to train now, as a sentence that says why; and the next state. `chosen_for` is the ratio that the dictionary was chosen for: bytes of pages that
/// are not same-filled for a byte of pool, which has [`USUAL_PER_DATA`] bytes for each of data.
pub fn decide(stored: Stored, chosen_for: f64, now: Now, state: State) -> (Option<String>, State) {
    let expected = chosen_for * USUAL_PER_DATA;
    let usual = now.ratio_then.map_or(expected, |then| then.min(expected));
    let Some(ratio) = stored.ratio().filter(|ratio| *ratio < TOO_LOW * usual) else {
        return (None, State::default());
    };
    let since_ms = state.too_low_since_ms.unwrap_or(now.ms);
    let state = State { too_low_since_ms: Some(since_ms) };
    let past = |from_ms: u64, time_ms: u64| now.ms.saturating_sub(from_ms) >= time_ms;
    let is_due =
        now.is_calm && past(since_ms, FOR_MS) && now.tried_ms.is_none_or(|tried| past(tried, PAUSE_MS));
    let why = format!(
        "{} of pages have compressed {ratio:.2} to 1 for an hour, and the dictionary was chosen for {expected:.2}: a new one is trained.",
        stored.pages
    );
    (is_due.then_some(why), state)
}

#[cfg(test)]
mod tests {
    use eke_model::sample::ZramStat;

    use super::*;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;

    fn stored(pages_mib: u64, ratio: f64) -> Stored {
        Stored { pages: Bytes::mib(pages_mib), data: Bytes::mib(pages_mib).scaled(1.0 / ratio) }
    }

    /// The minutes at which a training begins, of ratios over time; one tick a minute. Each lasts no time and gains nothing.
    fn trainings(minutes: u64, at: impl Fn(u64) -> (Stored, bool)) -> Vec<u64> {
        let (mut state, mut tried_ms, mut ratio_then, mut began) = (State::default(), None, None, Vec::new());
        for minute in 0..minutes {
            let (stored, is_calm) = at(minute);
            let now = Now { ms: minute * MINUTE, is_calm, tried_ms, ratio_then };
            let (why, next) = decide(stored, 3.0 / USUAL_PER_DATA, now, state);
            state = next;
            if why.is_some() {
                (tried_ms, ratio_then) = (Some(now.ms), stored.ratio());
                began.push(minute);
            }
        }
        began
    }

    #[test]
    fn an_hour_of_a_ratio_a_tenth_too_low_and_once_a_day() {
        let of = |ratio: f64| trainings(2_900, |_| (stored(100, ratio), true));
        assert_eq!(of(2.72), [0; 0]);
        assert_eq!(of(2.69), [60], "after an hour, and not each day");
    }

    #[test]
    fn after_a_training_without_gain_it_must_become_worse_again_and_a_day_must_pass() {
        let falls = |to: f64| trainings(6_000, |n| (stored(100, if n < 100 { 2.5 } else { to }), true));
        assert_eq!(falls(2.26), [60]);
        assert_eq!(falls(2.24), [60, 1_500]);
        let begins = |minute| (stored(100, if minute < 3_000 { 2.5 } else { 2.0 }), true);
        assert_eq!(trainings(6_000, begins), [60, 3_060], "an hour again");
    }

    #[test]
    fn a_ratio_that_recovers_begins_the_hour_anew() {
        let recovers = |minute| (stored(100, if minute == 30 { 2.9 } else { 2.0 }), true);
        assert_eq!(trainings(100, recovers), [91]);
    }

    #[test]
    fn few_pages_say_nothing() {
        assert_eq!(trainings(200, |_| (stored(15, 1.5), true)), [0; 0]);
        let empty = Stored { pages: Bytes::mib(100), data: Bytes(0) };
        assert_eq!(trainings(200, |_| (empty, true)), [0; 0], "all pages are same-filled");
    }

    #[test]
    fn it_waits_for_calm() {
        assert_eq!(trainings(200, |minute| (stored(100, 2.0), minute >= 150)), [150]);
    }

    #[test]
    fn the_sentence_has_both_ratios() {
        let now = Now { ms: HOUR, is_calm: true, tried_ms: None, ratio_then: None };
        let state = State { too_low_since_ms: Some(0) };
        let (why, _) = decide(stored(100, 2.0), 3.0, now, state);
        let sentence = "100 MiB of pages have compressed 2.00 to 1 for an hour, and the dictionary was chosen for 3.09: a new one is trained.";
        assert_eq!(why.as_deref(), Some(sentence));
    }

    #[test]
    fn the_named_devices_count_together() {
        let stat = |name: &str, mib| ZramStat {
            name: name.into(),
            orig_data: Bytes::mib(mib),
            compr_data: Bytes::mib(mib / 2),
            ..ZramStat::default()
        };
        let sample =
            Sample { zram: vec![stat("zram1", 2), stat("zram2", 4), stat("zram3", 8)], ..Sample::default() };
        let expected = Stored { pages: Bytes::mib(12), data: Bytes::mib(6) };
        assert_eq!(Stored::of(&sample, ["zram2", "zram3"].into_iter()), expected);
    }
}
