//! Synthetic requests. The same seed gives the same requests.

use eke_statistics::Random;

use crate::Request;

/// The next number of a stream; the caller keeps its state.
pub fn next_random(state: &mut u64) -> u64 {
    eke_statistics::random::next(state)
}

/// The weight of a key: always the same, a quarter to three quarters of 64 KiB.
fn weight(key: u64) -> u32 {
    16384 + Random::new(key).below(32768) as u32
}

fn request(key: u64) -> Request {
    Request { key, weight: weight(key) }
}

/// Endless requests for `0..keys`. The probability of key k is proportional to 1 / (k + 1)^alpha.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// Cumulative probability of the keys up to this one.
    upto: Vec<f64>,
    random: Random,
}

impl Zipf {
    /// `alpha` 0 is uniform; web servers have 0.6 to 1.0.
    pub fn new(keys: u64, alpha: f64, seed: u64) -> Self {
        let mut total = 0.0;
        let sums = (0..keys).map(|key| {
            total += ((key + 1) as f64).powf(-alpha);
            total
        });
        let mut upto: Vec<f64> = sums.collect();
        upto.iter_mut().for_each(|sum| *sum /= total);
        Self { upto, random: Random::new(seed) }
    }
}

impl Iterator for Zipf {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let share = self.random.share();
        let key = self.upto.partition_point(|&upto| upto < share);
        Some(request(key as u64))
    }
}

/// `count` keys from `first` on, once each, like a backup or a grep.
pub fn scan(first: u64, count: u64) -> impl Iterator<Item = Request> {
    (first..first + count).map(request)
}

/// `keys` keys from `first` on, in order, `rounds` times.
pub fn loops(first: u64, keys: u64, rounds: usize) -> impl Iterator<Item = Request> {
    (0..rounds).flat_map(move |_| scan(first, keys))
}

/// Takes one of every `every` requests from `other`, until one of the two ends.
pub fn mixed(
    mut main: impl Iterator<Item = Request>,
    mut other: impl Iterator<Item = Request>,
    every: usize,
) -> impl Iterator<Item = Request> {
    let mut count = 0;
    std::iter::from_fn(move || {
        count += 1;
        if count % every == 0 { other.next() } else { main.next() }
    })
}
