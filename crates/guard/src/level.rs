//! How bad a shortage is. Pure.

use crate::shortage::Shortage;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Nothing to do.
    #[default]
    Calm,
    /// Memory will end soon, or tasks wait often.
    Short,
    /// Nearly nothing runs: a person would say that it freezes.
    Stalled,
    /// Nothing is left to give.
    Exhausted,
}

/// Programs can get less than this share of RAM: the kernel's own OOM killer is near.
const EXHAUSTED_ROOM: f64 = 0.02;
/// With this share left, growth that takes all of it within [`SOON_S`] exhausts memory, too.
pub(crate) const EXHAUSTED_SOON_ROOM: f64 = 0.08;
const SOON_S: f64 = 1.0;
/// With this share left, growth that takes all of it within [`RUSH_S`], or before the poll after the next, is stopped at once.
const RUSH_ROOM: f64 = 0.25;
const RUSH_S: f64 = 2.0;
const RUSH_POLLS: f64 = 2.5;
/// So little of RAM is left to programs, while they wait: the compressed pool itself has taken it. The kernel's OOM killer comes a
/// second later (measured with 124 MB and data that does not compress).
const EXHAUSTED_RESIDENT: f64 = 0.05;
const EXHAUSTED_STALLED_1S: f64 = 0.3;
/// Every task waits for this share of the last second, or of the last five.
const STALLED_1S: f64 = 0.5;
pub(crate) const STALLED_5S: f64 = 0.4;
/// A stall is over below this share of the last second.
pub(crate) const FLOWS_AGAIN_1S: f64 = 0.2;
/// With more available, it is a group at its own limit that waits, or files that are read again: no shortage of the machine.
const PLENTY: f64 = 0.35;
const SHORT_5S: f64 = 0.1;
const SHORT_ROOM: f64 = 0.1;
const SHORT_LEFT_S: f64 = 10.0;
const SHORT_LEFT_ROOM: f64 = 0.3;

/// The level of a shortage.
pub fn level(s: &Shortage) -> Level {
    let soon = |within_s: f64| s.left_s.is_some_and(|left| left < within_s);
    let is_exhausted = s.room_share < EXHAUSTED_ROOM
        || (s.room_share < EXHAUSTED_SOON_ROOM && soon(SOON_S))
        || (s.resident_share < EXHAUSTED_RESIDENT && s.stalled_1s >= EXHAUSTED_STALLED_1S);
    let is_short = s.stalled_5s >= SHORT_5S
        || s.room_share < SHORT_ROOM
        || (s.room_share < SHORT_LEFT_ROOM && soon(SHORT_LEFT_S));
    match () {
        () if has_plenty(s) => Level::Calm,
        () if is_exhausted => Level::Exhausted,
        () if s.stalled_1s >= STALLED_1S => Level::Stalled,
        () if s.stalled_5s >= STALLED_5S && s.stalled_1s >= FLOWS_AGAIN_1S => Level::Stalled,
        () if is_short => Level::Short,
        () => Level::Calm,
    }
}

/// While nearly all wait, ZFS's cache does not shrink, whatever it says: then it gives nobody anything.
pub(crate) fn has_plenty(s: &Shortage) -> bool {
    let from_zfs = if s.stalled_1s < STALLED_1S { s.zfs_share } else { 0.0 };
    s.available_share + from_zfs > PLENTY
}

/// Which limit a shortage has passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// Programs can get no more than this share of RAM.
    Room(f64),
    /// The room ends within so many seconds.
    LeftS(f64),
    /// What programs have in RAM, and what is free, is this share of RAM, while they wait: the compressed pool has the rest.
    Resident(f64),
    /// All tasks waited for this share of the last second.
    Stalled(f64),
}

/// The limit that has been passed; that of a stall, if none is known.
pub fn cause(s: &Shortage) -> Cause {
    match (level(s), s.left_s) {
        (Level::Exhausted, _) if s.room_share < EXHAUSTED_ROOM => Cause::Room(s.room_share),
        (Level::Exhausted, Some(left)) if s.room_share < EXHAUSTED_SOON_ROOM && left < SOON_S => {
            Cause::LeftS(left)
        }
        (Level::Exhausted, _) => Cause::Resident(s.resident_share),
        (_, Some(left)) if is_rush(s) => Cause::LeftS(left),
        _ => Cause::Stalled(s.stalled_1s),
    }
}

/// Whether memory ends before there is time to watch.
pub fn is_rush(s: &Shortage) -> bool {
    !has_plenty(s)
        && s.room_share < RUSH_ROOM
        && s.left_s.is_some_and(|left| left < RUSH_S.max(s.gap_s * RUSH_POLLS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_limit_that_was_passed() {
        let stall = Shortage {
            stalled_1s: 0.6,
            stalled_5s: 0.3,
            room_share: 0.5,
            resident_share: 0.5,
            ..Shortage::default()
        };
        for (shortage, expected) in [
            (stall, Cause::Stalled(0.6)),
            (Shortage { room_share: 0.01, left_s: Some(0.1), ..stall }, Cause::Room(0.01)),
            (Shortage { room_share: 0.07, left_s: Some(0.6), ..stall }, Cause::LeftS(0.6)),
            (Shortage { room_share: 0.07, resident_share: 0.04, ..stall }, Cause::Resident(0.04)),
            (Shortage { room_share: 0.2, left_s: Some(1.5), ..stall }, Cause::LeftS(1.5)),
        ] {
            assert_eq!(cause(&shortage), expected, "{shortage:?}");
        }
    }

    #[test]
    fn a_cache_of_zfs_that_does_not_shrink_hides_no_stall() {
        let with = |stalled_1s, zfs_share| {
            level(&Shortage {
                stalled_1s,
                stalled_5s: 0.3,
                available_share: 0.1,
                zfs_share,
                room_share: 0.6,
                resident_share: 0.9,
                ..Shortage::default()
            })
        };
        assert_eq!([with(0.9, 0.5), with(0.3, 0.5)], [Level::Stalled, Level::Calm]);
        assert_eq!([with(0.3, 0.2), with(0.3, 0.0)], [Level::Short; 2]);
    }
}
