//! The system's allocator, which also prefaults the start of fuser's buffers for requests.
//!
//! The kernel copies a request into a session's buffer. If a page of it is not resident yet, the kernel takes a slow path
//! (`get_user_pages`). A SIGKILL interrupts that path, and then the request is not resent to the next worker: its caller gets EIO
//! (`fuse_dev_do_read` in fs/fuse/dev.c). So a killed worker would lose a write now and then. fuser allocates these buffers itself, 16
//! MiB each, and their size identifies them.

use std::alloc::{GlobalAlloc, Layout, System};

use rustix::mm::{Advice, madvise};

use super::init::LONGEST_WRITE;

/// fuser's `MAX_WRITE_SIZE`, the least size of such a buffer.
const FUSER_BUFFER: usize = 16 << 20;
/// Bytes to prefault: the longest write and its headers.
const PREFAULTED: usize = LONGEST_WRITE as usize + 8192;
const PAGE: usize = 4096;

/// For `#[global_allocator]`.
#[derive(Debug)]
pub struct PrefaultingAllocator;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: every call goes to the system's allocator; the prefaulted bytes are within a block that it just returned.
unsafe impl GlobalAlloc for PrefaultingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract as System's; likewise in the functions below.
        prefault(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        prefault(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[expect(
    unsafe_code,
    reason = "writes into a block before anybody has it, and madvise(2) has no safe wrapper"
)]
fn prefault(block: *mut u8, size: usize) -> *mut u8 {
    if size >= FUSER_BUFFER && !block.is_null() {
        let before = block.addr() % PAGE;
        // SAFETY: the pages of this block alone, since it was mapped for it; the advice changes no byte. In a huge page each buffer
        // would take 2 MiB.
        let _ = unsafe { madvise(block.sub(before).cast(), before + size, Advice::LinuxNoHugepage) };
        for offset in (0..PREFAULTED).step_by(PAGE) {
            // SAFETY: the block has `size` bytes, more than PREFAULTED, and nobody uses it yet; a zeroed block stays zero.
            unsafe { block.add(offset).write_volatile(0) };
        }
    }
    block
}
