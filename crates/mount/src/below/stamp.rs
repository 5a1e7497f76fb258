//! What tells one content of a file from another, as NFS does it: close-to-open.

use rustix::fs::{Statx, StatxTimestamp};

/// What a file was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// In bytes.
    pub size: u64,
    /// Of the content, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Of the inode, in nanoseconds since 1970.
    pub changed_ns: i128,
    /// When the inode came to be, if the file system says: an inode number can be used again.
    pub born_ns: i128,
}

/// Times in whole seconds come from a file system that has no finer ones: FAT counts in twos.
const COARSE_NS: i128 = 2_000_000_000;

impl Stamp {
    /// Of what statx(2) says with `STATX_BASIC_STATS | STATX_BTIME`.
    pub fn of(statx: &Statx) -> Self {
        Self {
            size: statx.stx_size,
            modified_ns: nanos(statx.stx_mtime),
            changed_ns: nanos(statx.stx_ctime),
            born_ns: nanos(statx.stx_btime),
        }
    }

    /// Would a change after the moment `now_ns` show? Not while the clock below may still say the same, which it does for
    /// `tick_ns`: git calls such entries racy.
    ///
    /// By the time of the inode: each change of the content sets it too, and nobody can set it to a time of their choice.
    pub fn is_settled(&self, now_ns: i128, tick_ns: i128) -> bool {
        let coarse = self.changed_ns % 1_000_000_000 == 0;
        let tick_ns = if coarse { COARSE_NS } else { tick_ns };
        tick_ns == 0 || now_ns - self.changed_ns > tick_ns
    }
}

fn nanos(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: i128 = 10_000_000;

    fn changed_at(changed_ns: i128) -> Stamp {
        Stamp { size: 1, modified_ns: 1, changed_ns, born_ns: 1 }
    }

    #[test]
    fn a_stamp_settles_when_the_clock_has_ticked_on() {
        let at = 5_000_000_001;
        let stamp = changed_at(at);
        assert!(!stamp.is_settled(at, TICK_NS) && !stamp.is_settled(at + TICK_NS, TICK_NS));
        assert!(stamp.is_settled(at + TICK_NS + 1, TICK_NS));
        assert!(stamp.is_settled(at, 0), "each change has a time of its own");
        assert!(!stamp.is_settled(at - 1_000_000_000, TICK_NS), "the clock was set back");
    }

    #[test]
    fn whole_seconds_settle_after_two() {
        let stamp = changed_at(5_000_000_000);
        assert!(!stamp.is_settled(6_999_999_999, TICK_NS) && !stamp.is_settled(6_999_999_999, 0));
        assert!(stamp.is_settled(7_000_000_001, 0));
    }
}
