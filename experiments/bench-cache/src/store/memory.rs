//! The memory that this process holds, as the kernel counts it.

use eke_bench_core::process;
use eke_linux::Root;
use eke_model::units::MIB;

/// Anonymous memory of this process that is in RAM, MiB (`RssAnon` of `/proc/PID/status`, Linux 4.5), after the heap gave
/// back what is free; `None` where the kernel does not say.
pub(super) fn held_mib(root: &Root) -> Option<f64> {
    give_back();
    process::mib(&root.read("proc/self/status").ok()?, "RssAnon")
}

/// Bytes by byte of memory.
pub(super) fn by_byte(raw: u64, mib: f64) -> f64 {
    raw as f64 / (mib * MIB as f64).max(1.0)
}

/// Free pages of the heap go back to the kernel. Other C libraries than glibc keep none worth speaking of, or have no call.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
fn give_back() {
    // SAFETY: it takes no pointers and may be called at any time, from any thread (malloc_trim(3): MT-Safe).
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_seen() {
        let before = held_mib(&Root::host()).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = held_mib(&Root::host()).unwrap();
        assert!(after - before > 32.0, "{before} to {after} MiB for {}", block[77]);
        assert_eq!(by_byte(3 << 20, 2.0), 1.5);
    }
}
