//! What eke's caches did, from their own status. Pure.

use serde_json::Value;

/// What the cache of a node, or of all nodes, did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Bytes of reads that the node's own store had.
    pub from_store: u64,
    /// Bytes of reads that the shared tier had.
    pub from_shared: u64,
    /// Bytes read from the origin's disk.
    pub from_backing: u64,
    /// Blocks that came from the shared tier.
    pub hits: u64,
    /// Blocks that it did not have.
    pub misses: u64,
    /// Blocks that came too late.
    pub late: u64,
    /// Blocks that could not be asked for, or were not: the engine failed, or the breaker was open.
    pub failed: u64,
    /// Blocks that were not as they were offered.
    pub refused: u64,
    /// Blocks offered.
    pub offered: u64,
    /// Blocks not offered.
    pub not_offered: u64,
    /// Bytes that the store holds.
    pub held: u64,
    /// Bytes of files that these are.
    pub raw: u64,
}

impl Tiers {
    /// From `eke cache status --json` of one mount; `None` if it has no worker now.
    pub fn parse(status: &Value) -> Option<Self> {
        let worker = status.pointer("/caches/0/details/worker").filter(|w| w.is_object())?;
        let of = |name: &str| worker.pointer(name).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            from_store: of("/tier/from_store"),
            from_shared: of("/shared/from_shared"),
            from_backing: of("/tier/from_backing"),
            hits: of("/shared/hits"),
            misses: of("/shared/misses"),
            late: of("/shared/late"),
            failed: of("/shared/failed") + of("/shared/paused"),
            refused: of("/shared/refused"),
            offered: of("/shared/offered"),
            not_offered: of("/shared/not_offered"),
            held: of("/store/held"),
            raw: of("/store/raw"),
        })
    }

    /// Both, by this function.
    #[must_use]
    pub fn with(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            from_store: by(self.from_store, other.from_store),
            from_shared: by(self.from_shared, other.from_shared),
            from_backing: by(self.from_backing, other.from_backing),
            hits: by(self.hits, other.hits),
            misses: by(self.misses, other.misses),
            late: by(self.late, other.late),
            failed: by(self.failed, other.failed),
            refused: by(self.refused, other.refused),
            offered: by(self.offered, other.offered),
            not_offered: by(self.not_offered, other.not_offered),
            held: by(self.held, other.held),
            raw: by(self.raw, other.raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_if_the_status_has_them() {
        let text = r#"{"caches":[{"details":{"worker":{"tier":{"from_store":5},"shared":{"hits":3,"failed":1,"paused":2}}}}]}"#;
        let expected = Tiers { from_store: 5, hits: 3, failed: 3, ..Tiers::default() };
        let parse = |text| Tiers::parse(&serde_json::from_str(text).unwrap());
        assert_eq!(parse(text), Some(expected));
        assert_eq!(expected.with(expected, u64::wrapping_add).hits, 6);
        for text in [r#"{"caches":[{"details":{"worker":null}}]}"#, r#"{"caches":[]}"#, "[]", "3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
