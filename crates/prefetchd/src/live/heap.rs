//! Returns heap memory after a burst of reading. C libraries other than glibc keep little, or have no such call.

/// One heap for all threads: otherwise each reading thread leaves one, 3.5 MiB after a browser's start (`M_ARENA_MAX`, mallopt(3)). If the call fails
/// there are more heaps.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
pub(super) fn use_one_arena() {
    // SAFETY: it takes no pointers, and changes where later allocations are made.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Returns free pages to the kernel (malloc_trim(3)).
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
pub(super) fn trim() {
    // SAFETY: it takes no pointers and may be called at any time, from any thread (MT-Safe).
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn use_one_arena() {}

#[cfg(not(target_env = "gnu"))]
pub(super) fn trim() {}
