//! A model of the kernel's page cache in front of the store: only its misses reach the store.

use std::collections::{BTreeMap, HashMap};

use eke_cache_replay::Request;

/// An LRU cache of uncompressed blocks. The kernel's page cache has two lists and read-ahead; on such traces its hit rate is close to
/// LRU's.
#[derive(Debug)]
struct PageCache {
    most: usize,
    /// The time of the last request for each block.
    last_request: HashMap<u64, u64>,
    /// The blocks by time of their last request.
    order: BTreeMap<u64, u64>,
    now: u64,
}

impl PageCache {
    /// Requests a block. Returns whether it was cached; it is cached afterwards.
    fn request(&mut self, key: u64) -> bool {
        self.now += 1;
        let before = self.last_request.insert(key, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.now, key);
        if self.last_request.len() > self.most {
            let oldest = self.order.pop_first();
            oldest.map(|(_, key)| self.last_request.remove(&key));
        }
        before.is_some()
    }
}

/// The misses of a page cache of `blocks` blocks, in order.
pub fn behind(blocks: usize, trace: &[Request]) -> Vec<Request> {
    let mut cache = PageCache { most: blocks, last_request: HashMap::new(), order: BTreeMap::new(), now: 0 };
    trace.iter().filter(|request| !cache.request(request.key)).copied().collect()
}

/// The number of different blocks of a trace, and their total weight.
pub fn footprint(trace: &[Request]) -> (usize, u64) {
    let blocks: HashMap<u64, u32> = trace.iter().map(|request| (request.key, request.weight)).collect();
    (blocks.len(), blocks.values().map(|weight| u64::from(*weight)).sum())
}

/// The same requests, each with the mean weight.
pub fn with_equal_weights(trace: &[Request]) -> Vec<Request> {
    let (blocks, bytes) = footprint(trace);
    let weight = u32::try_from(bytes / blocks.max(1) as u64).unwrap_or(u32::MAX);
    trace.iter().map(|request| Request { weight, ..*request }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(keys: &[u64]) -> Vec<Request> {
        keys.iter().map(|key| Request { key: *key, weight: 10 * (*key as u32) }).collect()
    }

    fn missed(blocks: usize, keys: &[u64]) -> Vec<u64> {
        behind(blocks, &trace(keys)).iter().map(|request| request.key).collect()
    }

    #[test]
    fn the_page_cache_keeps_the_latest_requests() {
        let keys = [1, 2, 1, 3, 1, 2, 2];
        assert_eq!(missed(2, &keys), [1, 2, 3, 2]);
        assert_eq!(missed(3, &keys), [1, 2, 3]);
        assert_eq!(missed(0, &keys), keys);
    }

    #[test]
    fn each_block_counts_once_and_equal_weights_keep_the_total() {
        let trace = trace(&[1, 3, 3, 1]);
        assert_eq!(footprint(&trace), (2, 40));
        assert_eq!(footprint(&with_equal_weights(&trace)), (2, 40));
        assert!(with_equal_weights(&trace).iter().all(|request| request.weight == 20));
    }
}
