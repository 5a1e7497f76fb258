//! Throughput and response times: as many clients as in `eke bench web` request one file after the other, without a pause.
//!
//! A request needs a processor first, in order of arrival, then the disk, which serves all waiting requests at once and equally, as interleaved
//! read-ahead does. Compression counts before the answer, also if a worker does it later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::time::{Disk, Work};

/// The clients.
const CLIENTS: usize = 32;
/// The processors.
pub const CPUS: usize = 2;

/// The result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Served {
    /// The time until all requests are answered.
    pub seconds: f64,
    /// The time of each answer.
    pub response_s: Vec<f64>,
}

/// A moment, and what it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At(f64, usize);

impl Eq for At {}

impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A disk that serves all its requests equally. Its own time runs as fast as each of them is served.
#[derive(Debug, Default)]
struct Shared {
    own: f64,
    at: f64,
    waiting: BinaryHeap<Reverse<At>>,
}

impl Shared {
    fn advance(&mut self, now: f64) {
        self.own += (now - self.at) / self.waiting.len().max(1) as f64;
        self.at = now;
    }

    fn next(&self) -> f64 {
        let Some(Reverse(At(own, _))) = self.waiting.peek() else { return f64::INFINITY };
        self.at + (own - self.own).max(0.0) * self.waiting.len() as f64
    }

    fn add(&mut self, now: f64, seconds: f64, request: usize) {
        self.advance(now);
        self.waiting.push(Reverse(At(self.own + seconds, request)));
    }

    fn pop(&mut self, now: f64) -> Option<usize> {
        self.advance(now);
        self.waiting.pop().map(|Reverse(At(_, request))| request)
    }
}

/// The clients, and all they wait for.
struct Queues<'a> {
    works: &'a [Work],
    latency_s: f64,
    begun: Vec<f64>,
    processors: [f64; CPUS],
    /// Requests that leave their processor.
    computed: BinaryHeap<Reverse<At>>,
    /// Requests that are answered.
    answered: BinaryHeap<Reverse<At>>,
    disk: Shared,
    served: Served,
}

/// Serves these requests.
pub fn serve(works: &[Work], disk: &Disk) -> Served {
    let mut queues = Queues {
        works,
        latency_s: disk.latency_s,
        begun: Vec::with_capacity(works.len()),
        processors: [0.0; CPUS],
        computed: BinaryHeap::new(),
        answered: BinaryHeap::new(),
        disk: Shared::default(),
        served: Served::default(),
    };
    (0..CLIENTS.min(works.len())).for_each(|_| queues.begin(0.0));
    while queues.step() {}
    queues.served
}

impl Queues<'_> {
    /// A client makes its next request.
    fn begin(&mut self, now: f64) {
        let request = self.begun.len();
        let Some(work) = self.works.get(request) else { return };
        self.begun.push(now);
        let next = if self.processors[0] <= self.processors[1] { 0 } else { 1 };
        self.processors[next] = self.processors[next].max(now) + work.cpu_s;
        self.computed.push(Reverse(At(self.processors[next], request)));
    }

    /// The next event; `false` at the end.
    fn step(&mut self) -> bool {
        let first = |heap: &BinaryHeap<Reverse<At>>| heap.peek().map_or(f64::INFINITY, |Reverse(at)| at.0);
        let (computed, answered, read) = (first(&self.computed), first(&self.answered), self.disk.next());
        if answered.is_finite() && answered <= computed && answered <= read {
            if let Some(Reverse(At(now, request))) = self.answered.pop() {
                self.served.response_s.push(now - self.begun[request]);
                self.served.seconds = now;
                self.begin(now);
            }
        } else if computed.is_finite() && computed <= read {
            if let Some(Reverse(At(now, request))) = self.computed.pop() {
                match self.works[request].disk_s {
                    0.0 => self.answered.push(Reverse(At(now, request))),
                    seconds => self.disk.add(now, seconds, request),
                }
            }
        } else if let Some(request) = self.disk.pop(read) {
            let latency = self.works[request].reads as f64 * self.latency_s;
            self.answered.push(Reverse(At(read + latency, request)));
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(latency_s: f64) -> Disk {
        Disk { name: "a".into(), rate: 1e6, positioning_s: 0.0, latency_s }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_disk_is_shared_and_processors_are_not() {
        let of_disk = |disk_s| Work { disk_s, reads: 1, ..Work::default() };
        let served = serve(&[of_disk(1.0), of_disk(2.0)], &disk(0.5));
        assert!(near(served.seconds, 3.5) && near(served.response_s[0], 2.5), "{served:?}");
        let computed = vec![Work { cpu_s: 1.0, ..Work::default() }; 3];
        let served = serve(&computed, &disk(0.5));
        assert!(near(served.seconds, 2.0) && near(served.response_s[0], 1.0), "{served:?}");
    }

    #[test]
    fn a_busy_disk_is_never_idle() {
        let works: Vec<Work> =
            (1..200).map(|n| Work { cpu_s: 1e-6, disk_s: f64::from(n % 7), reads: 1 }).collect();
        let served = serve(&works, &disk(0.0));
        let sum: f64 = works.iter().map(|work| work.disk_s).sum();
        assert!((served.seconds / sum - 1.0).abs() < 1e-3, "{} {sum}", served.seconds);
        assert_eq!(served.response_s.len(), works.len());
        assert_eq!(serve(&[], &disk(0.0)), Served::default());
    }
}
