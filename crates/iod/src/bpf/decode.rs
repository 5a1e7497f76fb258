//! Decodes the maps of `bpf/latency.bpf.c`, whose layouts are in `bpf/latency.h`. Pure.

use eke_io::class::{Class, Mode, Operation};
use eke_io::counters::{Latency, RequesterCounters};
use eke_io::histogram::{BUCKETS, Histogram, sum};
use eke_model::units::Bytes;

/// The key of a latency: the device's number, and the class.
pub fn key(bytes: &[u8]) -> Option<(u32, Class)> {
    let device = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let mode = match *bytes.get(5)? {
        0 => Mode::Async,
        1 => Mode::Sync,
        _ => Mode::Idle,
    };
    Some((device, Class::new(operation(*bytes.get(4)?), mode)))
}

fn operation(number: u8) -> Operation {
    Operation::ALL.get(usize::from(number)).copied().unwrap_or(Operation::Other)
}

/// Native 64-bit words in sequence.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    fn histogram(&mut self) -> Option<Histogram> {
        let (sum_ns, squares_us) = (self.next()?, self.next()?);
        let mut buckets = [0; BUCKETS];
        for bucket in &mut buckets {
            *bucket = self.next()?;
        }
        Some(Histogram { count: sum(&buckets), sum_ns, squares_us, buckets })
    }
}

/// One CPU's latencies, and how many requests the kernel did not stamp.
pub fn latency(bytes: &[u8]) -> Option<(Latency, u64)> {
    let mut words = Words(bytes);
    let (bytes, errors, unstamped) = (Bytes(words.next()?), words.next()?, words.next()?);
    let (whole, queue, device) = (words.histogram()?, words.histogram()?, words.histogram()?);
    Some((Latency { whole, queue, device, bytes, errors }, unstamped))
}

/// The key of a requester: its number, the device's, and the operation.
pub fn requester_key(bytes: &[u8]) -> Option<(u64, u32, Operation)> {
    let id = Words(bytes).next()?;
    let device = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    Some((id, device, operation(*bytes.get(12)?)))
}

/// The counters of a requester, with the name of the process.
pub fn requester(bytes: &[u8]) -> Option<RequesterCounters> {
    let mut words = Words(bytes);
    let (count, size, sum_ns, most_ns) = (words.next()?, Bytes(words.next()?), words.next()?, words.next()?);
    let name = words.0.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(RequesterCounters {
        name: String::from_utf8_lossy(name).into_owned(),
        count,
        bytes: size,
        sum_ns,
        most_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_decode_as_the_programs_write_them() {
        let words = |words: &[u64]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
        let histogram = |sum: u64, at: usize| {
            let mut all = [0u64; 2 + BUCKETS];
            (all[0], all[1], all[2 + at]) = (sum, 4, 1);
            words(&all)
        };
        let bytes =
            [words(&[4096, 1, 2]), histogram(3_000, 11), histogram(1_000, 9), histogram(2_000, 10)].concat();
        let (latency, unstamped) = latency(&bytes).unwrap();
        assert_eq!((latency.bytes, latency.errors, unstamped), (Bytes(4096), 1, 2));
        assert_eq!((latency.whole.count, latency.whole.sum_ns, latency.whole.buckets[11]), (1, 3_000, 1));
        assert_eq!((latency.queue.buckets[9], latency.device.sum_ns), (1, 2_000));
        assert!(super::latency(&bytes[1..]).is_none());
        let mut read = (259u32 << 20 | 3).to_ne_bytes().to_vec();
        read.extend([0, 0, 0, 0]);
        assert_eq!(key(&read), Some((259 << 20 | 3, Class::new(Operation::Read, Mode::Async))));
        assert_eq!(key(&read[..5]), None);
        let idle = [&read[..5], &[2, 0, 0]].concat();
        assert_eq!(key(&idle).unwrap().1, Class::new(Operation::Read, Mode::Idle));
        let key = [77u64.to_ne_bytes().to_vec(), read].concat();
        assert_eq!(requester_key(&key), Some((77, 259 << 20 | 3, Operation::Read)));
        let value = [words(&[2, 8192, 10, 7]), b"kworker\0 rubbish".to_vec()].concat();
        let found = requester(&value).unwrap();
        assert_eq!((found.name.as_str(), found.count, found.most_ns), ("kworker", 2, 7));
    }
}
