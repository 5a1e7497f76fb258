//! Stamps, which distinguish contents of a file as NFS does: close-to-open.

use std::os::fd::AsFd;
use std::time::Duration;

use eke_linux::magic;
use eke_linux::parse::release;
use rustix::fs::{Statx, StatxTimestamp, fstatfs};

/// The size and times of a file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// In bytes.
    pub size: u64,
    /// Of the content, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Of the inode, in nanoseconds since 1970.
    pub changed_ns: i128,
    /// The inode's birth, if the file system has it, because an inode number can be reused.
    pub born_ns: i128,
}

/// Times in whole seconds come from a file system without finer ones. FAT counts in steps of two.
const COARSE_NS: i128 = 2_000_000_000;

impl Stamp {
    /// From statx(2) with `STATX_BASIC_STATS | STATX_BTIME`.
    pub fn of(statx: &Statx) -> Self {
        Self {
            size: statx.stx_size,
            modified_ns: nanos(statx.stx_mtime),
            changed_ns: nanos(statx.stx_ctime),
            born_ns: nanos(statx.stx_btime),
        }
    }

    /// True if any change after `now_ns` would show. For `tick_ns` after a change, the file system's clock may still have
    /// the same value; git calls such entries racy.
    ///
    /// It uses the inode's time: every change of the content sets it, and nobody can set it to a chosen value.
    pub fn is_settled(&self, now_ns: i128, tick_ns: i128) -> bool {
        let coarse = self.changed_ns % 1_000_000_000 == 0;
        let tick_ns = if coarse { COARSE_NS.max(tick_ns) } else { tick_ns };
        tick_ns == 0 || now_ns - self.changed_ns > tick_ns
    }
}

/// The clock of inodes ticks at 100 Hz or faster (`CONFIG_HZ`); times are those of the last tick.
const TICK: Duration = Duration::from_millis(10);

/// File systems where a change after a stat has a distinct time since Linux 6.13
/// (`Documentation/filesystems/multigrain-ts.rst`).
const MULTIGRAIN: [u32; 3] = [magic::EXT, magic::XFS, magic::BTRFS];

/// The tick of this file system: a change before and one after a stat may have the same time if they are no further apart.
pub fn tick(dir: impl AsFd) -> Duration {
    let since = kernel_is_at_least((6, 13));
    match fstatfs(dir).map(|fs| fs.f_type as u32) {
        // Stores through a mapping have no time (see `dirty`).
        Ok(kind) if magic::IN_MEMORY.contains(&kind) => Duration::MAX,
        Ok(kind) if since && MULTIGRAIN.contains(&kind) => Duration::ZERO,
        _ => TICK,
    }
}

/// True if the running kernel has at least this version.
pub fn kernel_is_at_least(version: (u32, u32)) -> bool {
    // Of this process, also where /proc is not mounted.
    let release = rustix::system::uname();
    release::version(&release.release().to_string_lossy()).is_some_and(|running| running >= version)
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
    fn without_a_tick_each_change_after_a_stat_shows() {
        let file = tempfile::tempfile().unwrap();
        if tick(&file) != Duration::ZERO {
            eke_testkit::real::skip(
                "stamp",
                "the kernel or the file system has no times of their own for changes",
            );
            return;
        }
        let backing = crate::backing::File::new(file.try_clone().unwrap().into());
        for round in 0..200 {
            let before = backing.stamp().unwrap();
            backing.write_at(&[round], 0).unwrap();
            backing.write_at(&[round], 1).unwrap();
            assert!(round == 0 || before != backing.stamp().unwrap(), "{round}");
        }
    }

    #[test]
    fn whole_seconds_settle_after_two() {
        let stamp = changed_at(5_000_000_000);
        assert!(!stamp.is_settled(6_999_999_999, TICK_NS) && !stamp.is_settled(6_999_999_999, 0));
        assert!(stamp.is_settled(7_000_000_001, 0));
    }
}
