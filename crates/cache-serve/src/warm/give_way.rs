//! When to read ahead of requests, and how much at once, so that others do not wait. Pure.
//!
//! The disk counts as idle when nothing was completed and nothing was in flight for a while. Then piece after piece is read, one at a time.
//! A request in flight right after a piece is another's: it waited behind that piece. So reading stops there, and the disk must be idle for
//! twice as long before it goes on: beside a regular reader this soon exceeds the pause between its reads, and then it never waits. After a
//! long time undisturbed, the while is halved again. A piece takes about [`PIECE_TAKES`]: that is the longest that a reader can wait.

use std::time::Duration;

/// The shortest and the longest time for which the disk must be idle.
const IDLE_FOR: std::ops::RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(20);
/// Pause between two looks at a busy disk.
const POLL: Duration = Duration::from_millis(20);
/// How long a piece should take. The next one is half or twice as long if it took more or less than half of this.
const PIECE_TAKES: Duration = Duration::from_millis(16);
/// The smallest piece in bytes.
const LEAST: u64 = 64 << 10;
/// Undisturbed for this many times the required idle time, that is halved.
const CALM: u32 = 8;

/// What a disk does at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Requests completed so far.
    pub done: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Read this many bytes.
    Read(u64),
    /// Wait this long, and ask again.
    Wait(Duration),
}

/// Decides when to read.
#[derive(Debug, Clone)]
pub struct GiveWay {
    /// The required idle time.
    idle_for: Duration,
    idle_since: Duration,
    /// Since when it reads; `None` while it waits.
    reading_since: Option<Duration>,
    before: Option<Activity>,
    piece: u64,
    most: u64,
}

impl GiveWay {
    /// Pieces of at most `most` bytes.
    pub fn new(most: u64) -> Self {
        Self {
            idle_for: *IDLE_FOR.start(),
            idle_since: Duration::ZERO,
            reading_since: None,
            before: None,
            piece: (256 << 10).min(most),
            most,
        }
    }

    /// True while it waits for an idle disk.
    pub fn waits(&self) -> bool {
        self.reading_since.is_none()
    }

    /// What to do at `now`, when the disk does this. Since the last call the caller has read nothing.
    pub fn next(&mut self, now: Duration, disk: Activity) -> Advice {
        let others = disk.in_flight > 0 || self.before.is_none_or(|before| before.done != disk.done);
        self.before = Some(disk);
        if others {
            self.disturbed(now);
            return Advice::Wait(POLL);
        }
        let missing = (self.idle_since + self.idle_for).saturating_sub(now);
        if self.waits() && !missing.is_zero() {
            return Advice::Wait(missing.min(POLL));
        }
        let since = *self.reading_since.get_or_insert(now);
        if now.saturating_sub(since) > self.idle_for * CALM {
            self.idle_for = (self.idle_for / 2).max(*IDLE_FOR.start());
            self.reading_since = Some(now);
        }
        Advice::Read(self.piece)
    }

    /// The caller has read a piece, which took so long, and the disk does this now.
    pub fn did_read(&mut self, now: Duration, took: Duration, disk: Activity) {
        self.looked_up(now, disk);
        if took > PIECE_TAKES {
            self.piece = (self.piece / 2).max(LEAST);
        } else if took < PIECE_TAKES / 2 {
            self.piece = (self.piece * 2).min(self.most.max(LEAST));
        }
    }

    /// The caller has looked up a name, which may have read from the disk, too.
    pub fn looked_up(&mut self, now: Duration, disk: Activity) {
        self.before = Some(disk);
        if disk.in_flight > 0 {
            self.disturbed(now);
        }
    }

    fn disturbed(&mut self, now: Duration) {
        if self.reading_since.take().is_some() {
            self.idle_for = (self.idle_for * 2).min(*IDLE_FOR.end());
        }
        self.idle_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const QUIET: Activity = Activity { done: 5, in_flight: 0 };
    const BUSY: Activity = Activity { done: 5, in_flight: 1 };

    /// A disk on which a reader begins a read of 10 ms every `every` ms, beside pieces that take 1 ms for 64 KiB. Returns how many of its
    /// reads had to wait for a piece, of how many, and the bytes read in pieces.
    fn beside(every: u64, for_ms: u64) -> (u64, u64, u64) {
        let (mut way, mut now, mut collisions, mut bytes, mut done) = (GiveWay::new(2 << 20), 0, 0, 0, 0);
        while now < for_ms {
            let in_flight = u64::from(now % every < 10);
            match way.next(MS(now), Activity { done: now / every, in_flight }) {
                Advice::Wait(pause) => now += u64::try_from(pause.as_millis()).unwrap().max(1),
                Advice::Read(piece) => {
                    let took = piece >> 16;
                    // A read that begins within the piece is served after it.
                    let begun = (now + 1..=now + took).filter(|at| at % every == 0).count() as u64;
                    collisions += begun;
                    now += took;
                    bytes += piece;
                    done += begun;
                    let in_flight = u64::from(begun > 0 || now % every < 10);
                    way.did_read(MS(now), MS(took), Activity { done, in_flight });
                }
            }
        }
        (collisions, for_ms / every, bytes)
    }

    #[test]
    fn an_idle_disk_is_used_after_a_while_in_growing_pieces() {
        let mut way = GiveWay::new(1 << 20);
        assert!(matches!(way.next(MS(0), QUIET), Advice::Wait(_)), "nothing is known yet");
        assert!(matches!(way.next(MS(100), QUIET), Advice::Wait(_)) && way.waits());
        let Advice::Read(first) = way.next(MS(201), QUIET) else { panic!("it waits") };
        way.did_read(MS(205), MS(4), Activity { done: 9, ..QUIET });
        assert_eq!(way.next(MS(205), Activity { done: 9, ..QUIET }), Advice::Read(2 * first));
        way.did_read(MS(300), MS(95), Activity { done: 12, ..QUIET });
        assert_eq!(way.next(MS(300), Activity { done: 12, ..QUIET }), Advice::Read(first));
    }

    #[test]
    fn a_request_of_others_ends_it_and_doubles_the_time() {
        let mut way = GiveWay::new(1 << 20);
        way.next(MS(0), QUIET);
        assert!(matches!(way.next(MS(201), QUIET), Advice::Read(_)));
        way.did_read(MS(210), MS(9), BUSY);
        assert!(way.waits());
        way.next(MS(220), QUIET);
        assert!(matches!(way.next(MS(420), QUIET), Advice::Wait(_)));
        assert!(matches!(way.next(MS(621), QUIET), Advice::Read(_)));
        // Completed between two looks.
        assert!(matches!(way.next(MS(622), Activity { done: 6, in_flight: 0 }), Advice::Wait(_)));
    }

    #[test]
    fn a_regular_reader_soon_waits_no_more() {
        for every in [50, 250, 1000, 3000] {
            let (collisions, reads, _) = beside(every, 600_000);
            assert!(
                collisions <= 8 && collisions * 100 <= reads.max(800),
                "{collisions} of {reads} at {every} ms"
            );
        }
        let (_, _, bytes) = beside(1_000_000, 60_000);
        assert!(bytes > 1 << 30, "{bytes} in a minute of an idle disk");
    }
}
