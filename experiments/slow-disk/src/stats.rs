//! The counters of a disk.

use eke_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::model::{Kind, Request};

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Number of requests.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Sum of the times from arrival to answer, in the model.
    pub time: Nanos,
}

/// All counters since the disk was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Reads.
    pub reads: Tally,
    /// Writes.
    pub writes: Tally,
    /// Flushes (`fsync(2)`, barriers of a file system's journal).
    pub flushes: Tally,
    /// Requests of any kind answered with an error; the tallies exclude them.
    pub errors: u64,
    /// Sum of the lateness of answers relative to the model. It is caused by this machine, not by the disk.
    pub late: Nanos,
    /// Written bytes that power cuts lost.
    pub lost: Bytes,
}

impl Stats {
    /// Counts a request served in `time`.
    pub(super) fn count(&mut self, request: &Request, time: Nanos) {
        let tally = match request.kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
            Kind::Flush => &mut self.flushes,
        };
        tally.requests += 1;
        tally.bytes = tally.bytes + Bytes(request.length);
        tally.time = Nanos(tally.time.0.saturating_add(time.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_tally() {
        let mut stats = Stats::default();
        stats.count(&Request { kind: Kind::Read, offset: 0, length: 10 }, Nanos(5));
        stats.count(&Request { kind: Kind::Read, offset: 0, length: 20 }, Nanos(6));
        stats.count(&Request { kind: Kind::Flush, offset: 0, length: 0 }, Nanos(7));
        assert_eq!(stats.reads, Tally { requests: 2, bytes: Bytes(30), time: Nanos(11) });
        assert_eq!((stats.writes.requests, stats.flushes.requests), (0, 1));
    }
}
