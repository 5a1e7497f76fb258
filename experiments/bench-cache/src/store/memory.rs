//! This process's memory, as the kernel counts it.

use eke_bench_core::process;
use eke_linux::Root;
use eke_model::units::MIB;

/// Resident anonymous memory of this process in MiB (`RssAnon` of `/proc/PID/status`, Linux 4.5), after trimming the heap; `None`
/// if the kernel does not report it.
pub(super) fn anonymous_mib(root: &Root) -> Option<f64> {
    trim_heap();
    process::mib(&root.read("proc/self/status").ok()?, "RssAnon")
}

/// Uncompressed bytes per byte of memory.
pub(super) fn by_byte(raw: u64, mib: f64) -> f64 {
    raw as f64 / (mib * MIB as f64).max(1.0)
}

/// Returns free pages of the heap to the kernel. Other C libraries than glibc keep few, or have no call for it.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
fn trim_heap() {
    // SAFETY: malloc_trim(3) takes no pointers and may be called at any time, from any thread (MT-Safe).
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_measured() {
        let before = anonymous_mib(&Root::host()).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = anonymous_mib(&Root::host()).unwrap();
        assert!(after - before > 32.0, "{before} to {after} MiB for {}", block[77]);
        assert_eq!(by_byte(3 << 20, 2.0), 1.5);
    }
}
