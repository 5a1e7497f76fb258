//! The system's allocator, with the beginning of fuser's buffers for requests touched at once.
//!
//! The kernel copies a request into a session's buffer. Where a page of it is not there yet it takes the slow way
//! (`get_user_pages`), which a SIGKILL ends, and then the request is not sent to the next worker: its caller has EIO
//! (`fuse_dev_do_read` in fs/fuse/dev.c). So a killed worker would cost a write now and then. fuser makes these buffers
//! itself, of 16 MiB each; they are known by that.

use std::alloc::{GlobalAlloc, Layout, System};

use super::init::LONGEST_WRITE;

/// fuser's `MAX_WRITE_SIZE`, which such a buffer has at least.
const FUSER_BUFFER: usize = 16 << 20;
/// A write's bytes, and what stands before them.
const TOUCHED: usize = LONGEST_WRITE as usize + 8192;
const PAGE: usize = 4096;

/// For `#[global_allocator]`.
#[derive(Debug)]
pub struct Touched;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: all is the system's; what is touched lies within a block that it just gave.
unsafe impl GlobalAlloc for Touched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the one that the system asks for; so it is below.
        touch(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        touch(unsafe { System.alloc_zeroed(layout) }, layout.size())
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

#[expect(unsafe_code, reason = "writes into memory that nobody has yet")]
fn touch(block: *mut u8, size: usize) -> *mut u8 {
    if size >= FUSER_BUFFER && !block.is_null() {
        for offset in (0..TOUCHED).step_by(PAGE) {
            // SAFETY: the block has `size` bytes, more than TOUCHED, and is not anybody's yet; 0 is what a zeroed one has.
            unsafe { block.add(offset).write_volatile(0) };
        }
    }
    block
}
