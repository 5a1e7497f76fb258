//! Returns heap memory after a burst of reading. C libraries other than glibc keep little, or have no such call.

/// What is as large has a mapping of its own, which goes when it is freed. glibc raises this by itself to the largest that was freed: the events of one
/// burst were then in the heap, and left holes in it, 0.6 MiB beside a build.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: libc::c_int = 64 << 10;

/// One heap for all threads: otherwise each reading thread leaves one, 3.5 MiB after a browser's start (`M_ARENA_MAX`, mallopt(3)). If a call fails
/// there are more heaps, or more holes in one.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
pub(super) fn keep_small() {
    // SAFETY: it takes no pointers, and changes where later allocations are made.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
    }
}

/// Returns free pages to the kernel (malloc_trim(3)).
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
pub(super) fn trim() {
    // SAFETY: it takes no pointers and may be called at any time, from any thread (MT-Safe).
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn keep_small() {}

#[cfg(not(target_env = "gnu"))]
pub(super) fn trim() {}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    const BYTES: usize = 16 << 20;

    /// Bytes of allocations that have mappings of their own.
    #[expect(unsafe_code, reason = "mallinfo2(3) has no safe wrapper")]
    fn mapped() -> usize {
        // SAFETY: it takes no pointers and returns numbers.
        unsafe { libc::mallinfo2() }.hblkhd
    }

    #[test]
    fn what_one_burst_took_is_returned_after_the_next_one_too() {
        super::keep_small();
        drop(std::hint::black_box(vec![1_u8; BYTES]));
        let burst = std::hint::black_box(vec![1_u8; BYTES]);
        assert!(mapped() >= BYTES, "{} bytes are mapped", mapped());
        drop(burst);
    }
}
