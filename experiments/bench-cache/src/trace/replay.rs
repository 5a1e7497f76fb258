//! The eviction policies, and how many requests each serves.

use std::hash::{BuildHasherDefault, DefaultHasher};

use eke_cache_replay::{Lru, Request, Sieve, replay};
use eke_cache_store::S3Fifo;
use eke_model::units::Bytes;
use eke_results::report::{Role, Variant};
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};

/// An eviction policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Least recently used.
    Lru,
    /// SIEVE.
    Sieve,
    /// quick_cache's policy, of the CLOCK-Pro family.
    Quick,
    /// The policy of eke's store.
    Eke,
    /// S3-FIFO as in its paper.
    TwoBits,
}

impl Policy {
    /// All policies, in the order of the table.
    pub const ALL: [Self; 5] = [Self::Lru, Self::Sieve, Self::Quick, Self::Eke, Self::TwoBits];

    /// The name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Sieve => "SIEVE",
            Self::Quick => "quick_cache",
            Self::Eke => "eke",
            Self::TwoBits => "eke, two bits",
        }
    }

    pub(super) fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Lru => (Role::Baseline, "evicts the least recently used block"),
            Self::Sieve => (Role::Peer, "SIEVE (NSDI '24), weighed in bytes"),
            Self::Quick => (
                Role::Peer,
                "quick_cache 0.7, single-threaded, given the mean number of blocks that fit, weighed in bytes; of the CLOCK-Pro family",
            ),
            Self::Eke => (
                Role::Ours,
                "S3-FIFO (SOSP '23) with one bit, a small queue of 10 % and ghosts, weighed in bytes: the policy of eke's store",
            ),
            Self::TwoBits => (Role::Variation, "the same with two bits, as in the paper"),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }

    /// Replays `trace` with a cache of `capacity`.
    pub fn serve(self, capacity: Bytes, trace: &[Request]) -> Served {
        let requests = trace.iter().copied();
        let rates = match self {
            Self::Lru => replay::<Lru>(capacity, requests),
            Self::Sieve => replay::<Sieve>(capacity, requests),
            Self::Eke => replay::<S3Fifo<1>>(capacity, requests),
            Self::TwoBits => replay::<S3Fifo<3>>(capacity, requests),
            Self::Quick => return quick(capacity, trace),
        };
        Served { hits: rates.hits, requests: rates.requests, hit_bytes: rates.hit_bytes, bytes: rates.bytes }
    }
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Requests that the cache served.
    pub hits: u64,
    /// All requests.
    pub requests: u64,
    /// The total weight of the hits.
    pub hit_bytes: u64,
    /// The total weight of all requests.
    pub bytes: u64,
}

#[derive(Clone)]
struct AsGiven;

impl Weighter<u64, u32> for AsGiven {
    fn weight(&self, _key: &u64, weight: &u32) -> u64 {
        // quick_cache never evicts blocks of weight 0.
        u64::from(*weight).max(1)
    }
}

/// A fixed hash, so that a trace always has the same result.
type Hasher = BuildHasherDefault<DefaultHasher>;

fn quick(capacity: Bytes, trace: &[Request]) -> Served {
    let mut served = Served { bytes: trace.iter().map(|r| u64::from(r.weight)).sum(), ..Served::default() };
    let mean = (served.bytes / trace.len().max(1) as u64).max(1);
    let items = usize::try_from(capacity.0 / mean).unwrap_or(usize::MAX);
    let mut cache = Cache::with(items, capacity.0, AsGiven, Hasher::default(), DefaultLifecycle::default());
    for request in trace {
        served.requests += 1;
        if cache.get(&request.key).is_some() {
            served.hits += 1;
            served.hit_bytes += u64::from(request.weight);
        } else {
            cache.insert(request.key, request.weight);
        }
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_cache_replay::{Zipf, loops};

    #[test]
    fn all_policies_serve_what_fits_and_nothing_else() {
        let trace: Vec<Request> = loops(0, 100, 3).collect();
        for policy in Policy::ALL {
            let roomy = policy.serve(Bytes::mib(64), &trace);
            assert_eq!((roomy.hits, roomy.requests), (200, 300), "{policy:?}");
            assert!(roomy.hit_bytes * 3 == roomy.bytes * 2, "{policy:?}");
            assert_eq!(policy.serve(Bytes(1), &trace).hits, 0, "{policy:?}");
        }
    }

    #[test]
    fn all_policies_beat_chance_and_are_reproducible() {
        let trace: Vec<Request> = Zipf::new(2_000, 0.8, 1).take(40_000).collect();
        for policy in Policy::ALL {
            let served = policy.serve(Bytes(2_000 * 32_768 / 10), &trace);
            assert!(served.hits > served.requests / 5, "{policy:?}: {served:?}");
            assert_eq!(served, policy.serve(Bytes(2_000 * 32_768 / 10), &trace));
        }
    }
}
