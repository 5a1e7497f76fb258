//! What a disk was asked for.

use eke_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::model::{Kind, Request};

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// The sum of the times from arrival to answer, by the model.
    pub time: Nanos,
}

/// Everything since the disk was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Reads.
    pub reads: Tally,
    /// Writes.
    pub writes: Tally,
    /// Flushes (`fsync(2)`, barriers of a file system's journal).
    pub flushes: Tally,
    /// Requests answered with an error, whatever their kind; they are not in the tallies.
    pub errors: u64,
    /// The sum of the times by which answers were later than the model says: this machine's fault, not the disk's.
    pub late: Nanos,
    /// Written bytes that power cuts took back.
    pub lost: Bytes,
}

impl Stats {
    /// One that was served in `time`.
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
