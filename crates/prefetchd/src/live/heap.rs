//! The heap of this process: what a burst of reading took is given back. Other C libraries than glibc keep little, or have no call.

/// One heap for all threads: else each of those that read leaves one behind, 3.5 MiB after a browser's start (`M_ARENA_MAX`, mallopt(3)).
/// Where it is refused there are more.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
pub(super) fn share() {
    // SAFETY: it takes no pointers, and changes where later allocations are made.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Free pages go back to the kernel (malloc_trim(3)).
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
pub(super) fn give_back() {
    // SAFETY: it takes no pointers and may be called at any time, from any thread (MT-Safe).
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn share() {}

#[cfg(not(target_env = "gnu"))]
pub(super) fn give_back() {}
