//! The kernel's page cache before the store: only what it lacks is asked of the store.

use std::collections::{BTreeMap, HashMap};

use eke_cache_replay::Request;

/// A page cache that holds so many blocks, unpacked, and drops the one that was not asked for longest. The kernel's own has two
/// lists and read-ahead; this is the yardstick that all of them come close to on such traces.
#[derive(Debug)]
struct PageCache {
    most: usize,
    /// When each block was asked for last.
    asked: HashMap<u64, u64>,
    /// The same by time.
    order: BTreeMap<u64, u64>,
    now: u64,
}

impl PageCache {
    /// Is the block there? It is afterwards.
    fn ask(&mut self, key: u64) -> bool {
        self.now += 1;
        let before = self.asked.insert(key, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.now, key);
        if self.asked.len() > self.most {
            let oldest = self.order.pop_first();
            oldest.map(|(_, key)| self.asked.remove(&key));
        }
        before.is_some()
    }
}

/// The requests that a page cache of `blocks` blocks does not serve, in order.
pub fn behind(blocks: usize, trace: &[Request]) -> Vec<Request> {
    let mut cache = PageCache { most: blocks, asked: HashMap::new(), order: BTreeMap::new(), now: 0 };
    trace.iter().filter(|request| !cache.ask(request.key)).copied().collect()
}

/// The blocks of a trace, and what they weigh together.
pub fn footprint(trace: &[Request]) -> (usize, u64) {
    let blocks: HashMap<u64, u32> = trace.iter().map(|request| (request.key, request.weight)).collect();
    (blocks.len(), blocks.values().map(|weight| u64::from(*weight)).sum())
}

/// The same requests, each as heavy as all are on the mean.
pub fn alike(trace: &[Request]) -> Vec<Request> {
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
    fn the_page_cache_keeps_what_was_asked_for_last() {
        let keys = [1, 2, 1, 3, 1, 2, 2];
        assert_eq!(missed(2, &keys), [1, 2, 3, 2]);
        assert_eq!(missed(3, &keys), [1, 2, 3]);
        assert_eq!(missed(0, &keys), keys);
    }

    #[test]
    fn each_block_counts_once_and_alike_they_weigh_the_same_together() {
        let trace = trace(&[1, 3, 3, 1]);
        assert_eq!(footprint(&trace), (2, 40));
        assert_eq!(footprint(&alike(&trace)), (2, 40));
        assert!(alike(&trace).iter().all(|request| request.weight == 20));
    }
}
