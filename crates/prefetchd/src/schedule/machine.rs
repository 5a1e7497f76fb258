//! Memory counters and the read counters of our threads, from `/proc`.

use eke_linux::Root;
use eke_linux::parse::{meminfo, process_io};
use eke_model::units::{Bytes, PageSize};

use crate::reclaim::Reclaim;

/// Memory counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Memory {
    pub(super) available_bytes: u64,
    /// See [`Reclaim::refaulted`].
    pub(super) refaulted_bytes: u64,
    /// Bytes that the kernel reclaimed.
    pub(super) reclaimed_bytes: u64,
}

/// From `/proc/meminfo` and `/proc/vmstat`.
pub(super) fn memory(root: &Root) -> Memory {
    let read = |file: &str| root.read(file).unwrap_or_default();
    parse(&read("proc/meminfo"), &read("proc/vmstat"), root.page_size())
}

/// All memory, from `/proc/meminfo`.
pub(super) fn total(root: &Root) -> Bytes {
    meminfo::parse(&root.read("proc/meminfo").unwrap_or_default()).total
}

/// `vmstat` counts in the machine's pages.
fn parse(meminfo: &str, vmstat: &str, page: PageSize) -> Memory {
    let Reclaim { refaulted, reclaimed } = Reclaim::parse(vmstat);
    Memory {
        available_bytes: meminfo::parse(meminfo).available.0,
        refaulted_bytes: page.of(refaulted).0,
        reclaimed_bytes: page.of(reclaimed).0,
    }
}

/// Bytes that a thread of this process has read from disks (`read_bytes` in proc_pid_io(5)); `None` if the kernel does not count them, or the thread
/// has ended.
pub(super) fn thread_read_bytes(root: &Root, thread: i32) -> Option<u64> {
    read_bytes(&root.read(format!("proc/self/task/{thread}/io")).ok()?)
}

/// Whether this kernel counts such bytes (CONFIG_TASK_IO_ACCOUNTING).
pub(super) fn counts_reads(root: &Root) -> bool {
    root.read("proc/self/io").is_ok_and(|text| read_bytes(&text).is_some())
}

fn read_bytes(text: &str) -> Option<u64> {
    process_io::parse(text).map(|io| io.read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let vmstat =
            "workingset_activate_file 12\npgsteal_kswapd 3\npgsteal_direct 4\npgsteal_direct_x 100\n";
        for kib in [4, 16, 64] {
            let memory = parse("MemAvailable: 7 kB\n", vmstat, PageSize::new(kib << 10).unwrap());
            let (refaulted_bytes, reclaimed_bytes) = ((12 * kib) << 10, (7 * kib) << 10);
            assert_eq!(memory, Memory { available_bytes: 7 << 10, refaulted_bytes, reclaimed_bytes });
        }
        assert_eq!(parse("", "", PageSize::SMALLEST), Memory::default());
    }

    #[test]
    fn the_bytes_that_a_thread_read_are_found() {
        let text =
            "rchar: 3\nwchar: 0\nsyscr: 10\nread_bytes: 8192\nwrite_bytes: 1\ncancelled_write_bytes: 0\n";
        assert_eq!(read_bytes(text), Some(8192));
        assert_eq!(read_bytes("rchar: 3\n"), None);
    }
}
