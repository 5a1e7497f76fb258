//! What the worker's process is made before it serves.

use std::sync::Once;

use eke_cachefs::rights;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, configure_io_flusher_behavior, getrlimit, setrlimit, umask};
use rustix::thread::set_name;

use crate::log::say;
use crate::supervisor::signals;

/// Each session of fuser allocates 16 MiB for its handshake. Above this many bytes glibc takes memory from mmap(2), which is
/// zero already and goes back when freed; without a fixed threshold it stops doing so after the first (22 ms a worker).
const FROM_MMAP: i32 = 1 << 20;

/// Prepares it.
pub(super) fn prepare() {
    signals::ignore();
    let _ = set_name(c"eke-cache-work");
    // Modes arrive with the caller's umask applied.
    umask(Mode::empty());
    raise_open_files();
    // Memory that this process waits for must not wait for this mount (prctl(2), PR_SET_IO_FLUSHER, needs
    // CAP_SYS_RESOURCE). Writes go through at once, so there is little that could.
    let _ = configure_io_flusher_behavior(true);
    if let Err(e) = rights::settle() {
        say(&format!("the worker keeps more rights than it needs: {e}"));
    }
    large_blocks_from_mmap();
    abort_on_panic();
}

/// As many open files as there may be.
pub(crate) fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A thread that panics would leave its request unanswered for ever; a worker that dies does not.
fn abort_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            print(info);
            std::process::abort();
        }));
    });
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
fn large_blocks_from_mmap() {
    // SAFETY: only changes how later allocations are made; this process has one thread yet.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, FROM_MMAP) };
}

#[cfg(not(target_env = "gnu"))]
fn large_blocks_from_mmap() {
    let _ = FROM_MMAP;
}
