//! What parses foreign bytes, each with what must hold for any of them. Test code, in two uses:
//!
//! - `fuzz/` links it to libFuzzer, which looks for bytes for which something does not hold (`make fuzz`);
//! - `tests/kept.rs` calls it with the bytes that are kept in `fuzz/seeds` and `fuzz/found`, on any toolchain (`make test`).
//!
//! Besides the assertions here, nothing may panic, overflow an integer, take more than a few seconds or 1 GiB of memory.
//!
//! # Layout
//! - [`input`]: numbers, texts and files from the bytes; [`scratch`]: files in memory; [`again`]: what is written is read
//! - the rest: one file for each crate whose parsers are called
#![allow(clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod again;
mod bench;
mod boot;
mod input;
mod io;
mod kernel;
mod link;
mod machine;
mod messages;
mod mount;
mod page;
mod prefetch;
mod record;
mod requests;
mod scratch;
mod swap;

/// One thing that parses.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its directories of bytes.
    pub name: &'static str,
    /// Calls it. Panics if something does not hold.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($module:ident: $($name:ident)*;)*) => {
        /// All of them.
        pub const TARGETS: &[Target] = &[$($(Target { name: stringify!($name), run: $module::$name },)*)*];
    };
}

targets! {
    bench: bench_report elf http_requests bench_texts pdf;
    boot: boot_files boot_undo;
    io: io_latencies zpool;
    kernel: config journal files_journal kernel_texts mountinfo;
    link: ssh_output ssh_config ltsp;
    machine: machine;
    messages: agent_messages mount_messages;
    mount: fanotify fuse_init ledger;
    page: dash_guard dash_history;
    prefetch: predictor_state prefetch_bytes prefetch_rows prefetch_store prefetch_trace purdue;
    record: marks recording;
    requests: fuse_requests;
    swap: swap_texts;
}

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
