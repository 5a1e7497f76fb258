//! Other programs and settings that do a guard's work. Pure.

use crate::process::Process;

/// Daemons that end programs when memory is short, by the kernel's name (at most 15 characters).
const DAEMONS: &[&str] =
    &["earlyoom", "nohang", "nohang-desktop", "oomd", "systemd-oomd", "psi-monitor", "bustd"];

/// Which of them runs; `None` if none does. Only root's processes count, since any user can choose a name. A script
/// (`nohang` is one) is found by the name that it gave itself.
pub fn running(processes: &[Process]) -> Option<&str> {
    let is_one =
        |p: &&Process| DAEMONS.contains(&p.name.as_str()) && (p.user == 0 || p.trusted_program.is_some());
    processes.iter().find(is_one).map(|p| p.name.as_str())
}

/// Whether `lru_gen/min_ttl_ms` lets the kernel end programs before it evicts a young working set
/// (Documentation/admin-guide/mm/multigen_lru.rst, Linux 6.1). `text` is the file.
pub fn kernel_keeps_working_sets(text: &str) -> bool {
    text.trim().parse::<u64>().is_ok_and(|ms| ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::process;

    #[test]
    fn only_trusted_daemons_count() {
        assert_eq!(running(&[process(5, "sh", 1), process(6, "earlyoom", 1)]), Some("earlyoom"));
        assert_eq!(running(&[Process { trusted_program: None, ..process(6, "earlyoom", 1) }]), None);
        assert!(kernel_keeps_working_sets("1000\n") && !kernel_keeps_working_sets("0\n"));
        assert!(!kernel_keeps_working_sets(""));
    }
}
