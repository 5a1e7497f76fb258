//! Prepares the worker's process before it serves.

use std::sync::Once;

use eke_cachefs::rights;
use eke_linux::Root;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, configure_io_flusher_behavior, getrlimit, setrlimit, umask};
use rustix::thread::set_name;

use crate::log::log_line;
use crate::supervisor::signals;

/// From this size on glibc allocates by mmap(2): such memory is zero already, and freeing returns it to the kernel. Each session of
/// fuser allocates 16 MiB for its handshake. Without a fixed threshold glibc stops using mmap(2) after the first (22 ms for each worker).
const FROM_MMAP: i32 = 1 << 20;

/// Prepares the process.
pub(super) fn prepare() {
    signals::ignore();
    let _ = set_name(c"eke-cache-work");
    // The kernel has applied the caller's umask.
    umask(Mode::empty());
    // An allocation of this process must not wait for writeback through this mount (prctl(2), PR_SET_IO_FLUSHER, needs
    // CAP_SYS_RESOURCE). Writes are passed on at once, so little could wait.
    let _ = configure_io_flusher_behavior(true);
    if let Err(e) = rights::settle() {
        log_line(&format!("the worker keeps more rights than it needs: {e}"));
    }
    if let Err(e) = rights::show_processes() {
        log_line(&format!(
            "the worker has no proc of its own ({e}): of processes that /proc hides (hidepid) it does not know the groups and capabilities"
        ));
    }
    large_blocks_from_mmap();
    abort_on_panic();
}

/// The most open files of a process (`fs.nr_open`), unless the machine has another value.
const NR_OPEN: u64 = 1 << 20;

/// Lifts the limits that a shell gave this process and its workers: they serve everybody. A write beyond a limit of file sizes
/// would kill a worker (SIGXFSZ). Without rights each limit is as high as it may be.
pub(crate) fn lift_limits(root: &Root) {
    let all = root.read("proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    raise(Resource::Nofile, Some(all.unwrap_or(NR_OPEN)));
    for resource in [Resource::Fsize, Resource::As, Resource::Data, Resource::Cpu] {
        raise(resource, None);
    }
}

/// With fewer descriptors a mount runs out of them: sessions, the watch and files that are open for writing keep some.
const FEWEST_FILES: u64 = 256;

/// The limit of open files and the least that serves, if it is below that.
pub(crate) fn too_few_files() -> Option<(u64, u64)> {
    let most = getrlimit(Resource::Nofile).current?;
    (most < FEWEST_FILES).then_some((most, FEWEST_FILES))
}

/// `None`: without limit.
fn raise(resource: Resource, to: Option<u64>) {
    if setrlimit(resource, Rlimit { current: to, maximum: to }).is_err() {
        let Rlimit { maximum, .. } = getrlimit(resource);
        let _ = setrlimit(resource, Rlimit { current: maximum, maximum });
    }
}

/// Ends the worker on a panic: a thread that panics would leave its request unanswered for ever, but those of a dead worker are resent.
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
fn large_blocks_from_mmap() {
    set_malloc(libc::M_MMAP_THRESHOLD, FROM_MMAP);
}

/// All threads share one heap: each of their own would keep what it has freed.
#[cfg(target_env = "gnu")]
pub(super) fn use_little_memory() {
    set_malloc(libc::M_ARENA_MAX, 1);
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "mallopt(3) has no safe wrapper")]
fn set_malloc(what: i32, to: i32) {
    // SAFETY: it only changes later allocations, and this process still has one thread.
    unsafe { libc::mallopt(what, to) };
}

/// Gives what was freed back to the kernel: glibc itself does so at the end of the heap only.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
pub(crate) fn give_back_memory() {
    // SAFETY: it touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn large_blocks_from_mmap() {
    let _ = FROM_MMAP;
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn use_little_memory() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back_memory() {}
