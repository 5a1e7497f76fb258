//! When a request is done: a pure function of the requests before it. No clock, no randomness, no I/O.

use eke_model::units::{Bytes, Nanos};

use super::mechanics::Mechanics;
use super::profile::Profile;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Make all earlier writes durable.
    Flush,
}

/// One request; a flush has no offset and no length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// A disk in time. It serves requests and answers them in order of arrival.
#[derive(Debug, Clone)]
pub struct Model {
    profile: Profile,
    mechanics: Mechanics,
    path: u64,
    /// When each slot for a request in flight is free.
    free: Vec<u64>,
    /// When the transfer of the last request ends.
    transferred: u64,
    /// The earliest start of the next request under the IOPS limit.
    next_op: u64,
}

impl Model {
    /// An idle disk of `size`. `path` is the overhead of the way to the disk and back: a request was made that much
    /// before it arrives, so its service starts that much earlier, but never before the end of an earlier one.
    pub fn new(profile: Profile, size: Bytes, path: Nanos) -> Self {
        let free = vec![0; profile.depth.max(1)];
        let mechanics = Mechanics::new(&profile, size);
        Self { profile, mechanics, path: path.0, free, transferred: 0, next_op: 0 }
    }

    /// When the answer to a request that arrives at `now` is due, by the caller's clock. It may be before `now`, by at
    /// most `path`. Calls must be in order of time.
    pub fn serve(&mut self, now: Nanos, request: &Request) -> Nanos {
        let asked = now.0.saturating_sub(self.path);
        let done = match request.kind {
            Kind::Flush => self.flush(asked),
            Kind::Read | Kind::Write => self.transfer(self.slot(now.0), asked, request),
        };
        self.transferred = done;
        Nanos(done)
    }

    /// A flush follows everything before it: it takes a rotation of the platter, or one request's time.
    fn flush(&mut self, asked: u64) -> u64 {
        let begun = self.transferred.max(asked);
        let rotation = self.profile.head.map_or(0, |h| h.rotation.0);
        let done = begun + self.profile.latency.0 + rotation.max(self.between_ops());
        self.free.fill(done);
        done
    }

    fn transfer(&mut self, slot: usize, asked: u64, request: &Request) -> u64 {
        let begun = self.free[slot].max(asked);
        let ready = begun + self.mechanics.positioning(begun, request.offset) + self.profile.latency.0;
        let moved = ready.max(self.transferred) + self.mechanics.nanos_for(request.length);
        let done = moved.max(self.next_op.max(begun) + self.between_ops());
        self.next_op = done;
        self.free[slot] = done;
        self.mechanics.pass(request.offset, request.length);
        done
    }

    /// The slot that was freed last: requests that follow each other get the same slot, and so never wait less than one
    /// service time. If none is free, the first to become free.
    fn slot(&self, now: u64) -> usize {
        let all = 0..self.free.len();
        let free = all.clone().filter(|&i| self.free[i] <= now).max_by_key(|&i| self.free[i]);
        free.or_else(|| all.min_by_key(|&i| self.free[i])).unwrap_or(0)
    }

    fn between_ops(&self) -> u64 {
        self.profile.iops.map_or(0, |iops| 1_000_000_000 / u64::from(iops.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{Head, PAGE};

    const SIZE: u64 = 1 << 30;

    fn disk(profile: Profile) -> Model {
        Model::new(profile, Bytes(SIZE), Nanos(0))
    }

    fn read(offset: u64, length: u64) -> Request {
        Request { kind: Kind::Read, offset, length }
    }

    /// Offsets like those of a random generator, but the same each time.
    fn scattered(i: u64) -> u64 {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % (SIZE / PAGE) * PAGE
    }

    /// Serves `count` requests, of which `depth` are always queued; returns the seconds until the last is done.
    fn closed_loop(mut model: Model, depth: usize, count: u64, request: impl Fn(u64) -> Request) -> f64 {
        let mut done: Vec<Nanos> = Vec::new();
        for i in 0..count {
            let now = (done.len() >= depth).then(|| done[done.len() - depth]);
            done.push(model.serve(now.unwrap_or_default(), &request(i)));
        }
        done.last().unwrap().seconds()
    }

    #[test]
    fn random_reads_come_to_the_nominal_iops() {
        for profile in Profile::NAMES.map(|name| Profile::named(name).unwrap()) {
            for depth in [1, 8] {
                let seconds = closed_loop(disk(profile.clone()), depth, 20_000, |i| read(scattered(i), PAGE));
                let ratio = 20_000.0 / seconds / profile.nominal_iops(depth);
                assert!((0.98..1.02).contains(&ratio), "{} at depth {depth}: {ratio}", profile.name);
            }
        }
    }

    #[test]
    fn sequential_reads_come_to_the_nominal_rate() {
        for profile in Profile::NAMES.map(|name| Profile::named(name).unwrap()) {
            let seconds = closed_loop(disk(profile.clone()), 4, 1000, |i| read(i << 18, 1 << 18));
            let ratio = (1000 << 18) as f64 / seconds / profile.rate as f64;
            assert!((0.98..=1.0).contains(&ratio), "{}: {ratio}", profile.name);
        }
    }

    #[test]
    fn a_longer_way_takes_longer_to_seek() {
        let mut means = [SIZE / 100, SIZE / 10, SIZE / 2].map(|distance| {
            let there_and_back = |i: u64| read(i % 2 * distance + i * 37 % 64 * PAGE, PAGE);
            closed_loop(disk(Profile::laptop()), 1, 5_000, there_and_back)
        });
        assert!(means.is_sorted(), "{means:?}");
        means.reverse();
        assert!(means[0] > 1.2 * means[2], "{means:?}");
    }

    #[test]
    fn a_flush_waits_for_earlier_requests_and_delays_later_ones() {
        let mut model = disk(Profile::nfs());
        let write = model.serve(Nanos(0), &Request { kind: Kind::Write, offset: 0, length: 1 << 20 });
        let flush = model.serve(Nanos(0), &Request { kind: Kind::Flush, offset: 0, length: 0 });
        let after = model.serve(Nanos(0), &read(0, PAGE));
        assert!(write < flush && flush < after, "{write} {flush} {after}");
    }

    #[test]
    fn the_overhead_is_subtracted_but_no_two_services_overlap() {
        for depth in [1, 4] {
            let profile = Profile { latency: Nanos::micros(500), depth, ..Profile::plain() };
            let model = |path| Model::new(profile.clone(), Bytes(SIZE), path);
            let (mut none, mut some) = (model(Nanos(0)), model(Nanos::micros(100)));
            let late = Nanos::micros(1_000);
            assert_eq!(none.serve(late, &read(0, 0)), Nanos::micros(1_500));
            assert_eq!(some.serve(late, &read(0, 0)), Nanos::micros(1_400));
            let next = some.serve(Nanos::micros(1_420), &read(0, 0));
            assert_eq!(next, Nanos::micros(1_900), "right after the one before, not earlier");
        }
    }

    prop_compose! {
        fn profiles()(
            rate in 1_000_000..500_000_000u64,
            iops in prop::option::of(10..20_000u32),
            head in prop::option::of((20..500u32, 3_600..15_000u64)),
            latency in 0..2_000_000u64,
            depth in 1..20usize,
        ) -> Profile {
            let head = head.map(|(iops, rpm)| Head::for_iops(iops, Nanos(60_000_000_000 / rpm), rate));
            Profile { name: "any".into(), rate, iops, head, latency: Nanos(latency), depth, ..Profile::plain() }
        }
    }

    prop_compose! {
        fn requests()(some in prop::collection::vec(
            (0..5_000_000u64, 0..SIZE / 512, 1..2_048u64, 0..10u8, any::<bool>()), 1..60,
        )) -> Vec<(Nanos, Request)> {
            let (mut now, mut end) = (0, 0);
            some.into_iter().map(|(pause, offset, length, kind, follows)| {
                now += pause;
                let kind = [Kind::Flush, Kind::Write, Kind::Read][usize::from(kind.min(2))];
                let offset = if follows { end } else { offset * 512 };
                end = offset + length * 512;
                let length = if kind == Kind::Flush { 0 } else { length * 512 };
                (Nanos(now), Request { kind, offset, length })
            }).collect()
        }
    }

    fn run(profile: &Profile, path: Nanos, requests: &[(Nanos, Request)]) -> Vec<Nanos> {
        let mut model = Model::new(profile.clone(), Bytes(SIZE), path);
        requests.iter().map(|(now, request)| model.serve(*now, request)).collect()
    }

    proptest! {
        #[test]
        fn over_no_window_are_rate_or_iops_exceeded(
            profile in profiles(), requests in requests(), path in 0..1_000_000u64,
        ) {
            let done = run(&profile, Nanos(path), &requests);
            for (first, begun) in done.iter().enumerate() {
                let (mut bytes, mut count) = (0u128, 0u128);
                for (end, (_, request)) in done.iter().zip(&requests).skip(first + 1) {
                    bytes += u128::from(request.length);
                    count += 1;
                    let window = u128::from(end.0 - begun.0);
                    prop_assert!(bytes * 1_000_000_000 <= window * u128::from(profile.rate));
                    if let Some(iops) = profile.iops {
                        // The time between two requests is rounded down to a nanosecond.
                        prop_assert!(count * (1_000_000_000 / u128::from(iops)) <= window);
                    }
                }
            }
        }

        #[test]
        fn answers_come_in_order_not_before_their_time_and_the_same_each_time(
            profile in profiles(), requests in requests(), path in 0..1_000_000u64,
        ) {
            let done = run(&profile, Nanos(path), &requests);
            prop_assert!(done.is_sorted());
            for (end, (now, request)) in done.iter().zip(&requests) {
                let least = u128::from(request.length) * 1_000_000_000 / u128::from(profile.rate);
                let least = least + u128::from(profile.latency.0);
                prop_assert!(u128::from(end.0 + path) >= u128::from(now.0) + least);
            }
            prop_assert_eq!(run(&profile, Nanos(path), &requests), done);
        }

        #[test]
        fn reads_in_a_row_are_never_slower_than_the_same_reads_scattered(
            profile in profiles(), length in 8..512u64, depth in 1..10usize,
        ) {
            let length = length * 512;
            let row = closed_loop(disk(profile.clone()), depth, 200, |i| read(i * length, length));
            let apart = closed_loop(disk(profile.clone()), depth, 200, |i| read(scattered(i), length));
            prop_assert!(row <= apart);
            if profile.iops.is_none() && profile.head.is_some_and(|h| h.settle.0 > 0) {
                prop_assert!(row < apart);
            }
        }
    }
}
