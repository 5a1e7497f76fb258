//! Reads of a disk.

/// Reads from a disk since some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Reads of `/sys/block/DEVICE/stat`: the first field, and the third in sectors of 512 bytes.
pub fn iostat(text: &str) -> Option<Reads> {
    let mut fields = text.split_whitespace();
    let requests = fields.next()?.parse().ok()?;
    let sectors: u64 = fields.nth(1)?.parse().ok()?;
    Some(Reads { requests, bytes: sectors * 512 })
}

impl std::ops::Sub for Reads {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_devices_reads() {
        let text = "  446216   784926  9550688  4382310   124847   312726  4290192  590848 0 1 2";
        assert_eq!(iostat(text), Some(Reads { requests: 446_216, bytes: 9_550_688 * 512 }));
        assert_eq!(iostat("1 2"), None);
    }
}
