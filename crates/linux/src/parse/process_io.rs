//! `/proc/PID/io` (proc_pid_io(5); needs CONFIG_TASK_IO_ACCOUNTING).

use super::keyed::value;

/// Bytes that a process or thread caused disks to read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessIo {
    /// `read_bytes`.
    pub read: u64,
    /// `write_bytes`: counted when pages become dirty, so they are charged to the program and not to the writeback
    /// thread.
    pub written: u64,
}

/// `None` if the kernel does not count them.
pub fn parse(text: &str) -> Option<ProcessIo> {
    let count = |name| value(text, name)?.parse().ok();
    Some(ProcessIo { read: count("read_bytes")?, written: count("write_bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_writes_are_not_writes() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        assert_eq!(parse(text), Some(ProcessIo { read: 4096, written: 8192 }));
        assert_eq!(parse("rchar: 1\n"), None);
    }
}
