//! What programs cause to be read and written.

/// Bytes that a process caused to be read from and written to disks (proc_pid_io(5): writes count when pages become dirty, so that they are the
/// program's and not the writeback thread's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caused {
    /// `read_bytes`.
    pub read: u64,
    /// `write_bytes`.
    pub written: u64,
}

/// From `/proc/PID/io`.
pub fn parse(text: &str) -> Option<Caused> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    Some(Caused { read: field("read_bytes")?, written: field("write_bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_not_what_was_written() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        assert_eq!(parse(text), Some(Caused { read: 4096, written: 8192 }));
        assert_eq!(parse("rchar: 1\n"), None);
    }
}
