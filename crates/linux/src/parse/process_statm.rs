//! `/proc/PID/statm` (proc_pid_statm(5)).

use eke_model::units::{Bytes, PageSize};

/// The most memory within execve(2): the begin of a stack with 6 MiB of arguments at most (`bprm_stack_limits` in fs/exec.c).
const MOST_WITHIN_EXEC: Bytes = Bytes::mib(8);

/// The fields that eke uses, in pages. Kernel threads and zombies have 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStatm {
    /// `size`: the address space.
    pub size: u64,
    /// `text`: the place of the program's own code.
    pub code: u64,
}

impl ProcessStatm {
    /// Whether it is within execve(2): its memory is the new program's, and the place of the code is not set yet. A process cannot take that back later
    /// (`validate_prctl_map_addr` in kernel/sys.c). A program whose code is all in libraries has none either, but a larger address space.
    ///
    /// Until the new program is mapped the kernel holds `exec_update_lock` (fs/exec.c, since Linux 5.8), also while it closes files, which a FUSE server
    /// can delay for ever. Whoever reads what `/proc` shows after a check as for ptrace(2) (`maps`, on some kernels also `stat`, `exe`, `cwd`, `io` and
    /// `ns`) waits with it, and only SIGKILL ends that. `statm`, `status`, `comm`, `cgroup` and `cmdline` never wait for it.
    ///
    /// `cmdline`, `environ`, `maps`, `smaps` and `pagemap` wait for the lock of the memory itself, too (`mmap_lock`), within execve or not. A process can hold it
    /// for ever: it reads a page of a FUSE file by `/proc/self/mem`, and maps something meanwhile. Nothing shows that before, so these need a time limit.
    pub fn is_within_exec(&self, page: PageSize) -> bool {
        let size = Bytes(self.size.saturating_mul(page.bytes()));
        self.code == 0 && (Bytes(1)..=MOST_WITHIN_EXEC).contains(&size)
    }
}

/// The line of one process; `None` if it is cut short.
pub fn parse(text: &str) -> Option<ProcessStatm> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
    let (size, code) = (fields.next()??, fields.nth(2)??);
    Some(ProcessStatm { size, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_process_without_code_is_within_execve() {
        let within = |text: &str| parse(text).map(|statm| statm.is_within_exec(PageSize::SMALLEST));
        assert_eq!(within("1 1 0 0 0 1 0\n"), Some(true), "Linux 6.18");
        assert_eq!(within("700 300 280 5 0 100 0\n"), Some(false), "a program");
        assert_eq!(within("128000 9 9 0 0 9 0\n"), Some(false), "all its code is in libraries");
        assert_eq!(within("0 0 0 0 0 0 0\n"), Some(false), "a kernel thread");
        assert_eq!((within(""), within("1 1 0"), within("x 1 0 0")), (None, None, None));
    }
}
