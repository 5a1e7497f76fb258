//! Synthetic traces. Equal seeds give equal traces.

use eke_cache_replay::{Request, Zipf, loops, mixed, next_random, scan};

/// The number of blocks that are requested repeatedly.
const KEYS: u64 = 10_000;
/// The number of requests.
const REQUESTS: usize = 100_000;
/// Keys from here on are requested once.
const ONCE: u64 = 1 << 32;

/// A trace and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The name in the table.
    pub name: String,
    /// The requests, in order.
    pub requests: Vec<Request>,
}

/// The names, in order.
pub const NAMES: [&str; 8] = [
    "Zipf 0.6",
    "Zipf 0.8",
    "Zipf 1.0",
    "Zipf 0.8 and a scan",
    "one-hit wonders",
    "loop",
    "launches",
    "web support",
];

/// The note of a report that describes the traces.
pub const ABOUT: &str = "Synthetic traces, three seeds each, 10,000 repeated blocks and 100,000 requests: Zipf 0.6 to 1.0; \"and a scan\": after every 20,000 requests a scan of 5,000 blocks that come once; one-hit wonders: every second request is for a block that comes once; loop: 5,000 blocks in order, again and again; launches: 150 programs by Zipf 0.8, each reads its own 8 to 64 blocks and those of a few of 40 libraries in order; web support: 1,500 files by Zipf 0.8, each read completely, in sizes from 1 to 100 blocks (the file classes of SPECweb2005 Support). Weights are random, from a quarter to three quarters of 64 KiB.";

/// All traces of a seed.
pub fn all(seed: u64) -> impl Iterator<Item = Trace> {
    NAMES.into_iter().map(move |name| {
        let requests = match name {
            "Zipf 0.6" => zipf(0.6, seed).collect(),
            "Zipf 0.8" => zipf(0.8, seed).collect(),
            "Zipf 1.0" => zipf(1.0, seed).collect(),
            "Zipf 0.8 and a scan" => scanned(seed),
            "one-hit wonders" => {
                mixed(zipf(0.8, seed), scan(ONCE, REQUESTS as u64), 2).take(REQUESTS).collect()
            }
            "loop" => loops(0, KEYS / 2, 2 * REQUESTS / KEYS as usize).collect(),
            "launches" => launches(seed),
            _ => web(seed),
        };
        Trace { name: name.into(), requests }
    })
}

fn zipf(alpha: f64, seed: u64) -> impl Iterator<Item = Request> {
    Zipf::new(KEYS, alpha, seed).take(REQUESTS)
}

/// Zipf requests with scans of many files in between.
fn scanned(seed: u64) -> Vec<Request> {
    let requests: Vec<Request> = zipf(0.8, seed).collect();
    let parts = requests.chunks(20_000).zip(0..);
    parts.flat_map(|(part, n)| part.iter().copied().chain(scan(ONCE + n * 5_000, 5_000))).collect()
}

/// Launches: each requests the blocks of the program's libraries, then its own.
fn launches(seed: u64) -> Vec<Request> {
    const PROGRAMS: u64 = 150;
    const LIBRARIES: u64 = 40;
    let chosen = Zipf::new(PROGRAMS, 0.8, seed).map(|request| request.key);
    let one = |program: u64| {
        let mut state = program;
        let libraries = (0..2 + next_random(&mut state) % 6).map(|_| next_random(&mut state) % LIBRARIES);
        let libraries: Vec<u64> = libraries.collect();
        let own = 8 + next_random(&mut state) % 57;
        libraries
            .into_iter()
            .flat_map(|library| scan(library * 64, 8 + library % 24))
            .chain(scan((LIBRARIES + program) * 64, own))
    };
    chosen.flat_map(one).take(REQUESTS).collect()
}

/// Files, each read completely.
fn web(seed: u64) -> Vec<Request> {
    /// The 64 KiB blocks of a file of each class, and the class's percentage of files.
    const CLASSES: [(u64, u64); 5] = [(1, 40), (3, 25), (8, 20), (30, 10), (100, 5)];
    let chosen = Zipf::new(1_500, 0.8, seed).map(|request| request.key);
    let one = |file: u64| {
        let mut state = file;
        let mut percentile = next_random(&mut state) % 100;
        let class = CLASSES.iter().find(|(_, share)| {
            let is_this = percentile < *share;
            percentile = percentile.saturating_sub(*share);
            is_this
        });
        scan(file * 128, class.map_or(1, |(blocks, _)| *blocks))
    };
    chosen.flat_map(one).take(REQUESTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_similar_lengths_and_are_reproducible() {
        let (once, again): (Vec<Trace>, Vec<Trace>) = (all(7).collect(), all(7).collect());
        assert_eq!(once, again);
        for trace in &once {
            assert!((REQUESTS..=REQUESTS * 5 / 4).contains(&trace.requests.len()), "{}", trace.name);
        }
        let other: Vec<Trace> = all(8).collect();
        assert!(once.iter().zip(&other).all(|(a, b)| a.name == "loop" || a.requests != b.requests));
    }

    #[test]
    fn a_file_is_read_from_its_beginning_to_its_end() {
        let web = web(1);
        let starts = web.iter().filter(|request| request.key % 128 == 0).count();
        let follows = web.windows(2).filter(|two| two[1].key == two[0].key + 1).count();
        assert_eq!(starts + follows, web.len());
        assert!(starts < web.len() / 2, "{starts}");
    }
}
