//! Parsers of foreign bytes, with assertions that hold for any input. Test code, used twice:
//!
//! - `fuzz/` links it with libFuzzer, which searches for input that breaks an assertion (`make fuzz`);
//! - `tests/kept.rs` runs it on the files in `fuzz/seeds` and `fuzz/found`, with any toolchain (`make test`).
//!
//! No input may cause a panic or an integer overflow, take more than a few seconds, or use more than 1 GiB of memory.
//!
//! # Layout
//! - [`input`]: numbers, texts and files from the bytes; [`scratch`]: files in memory; [`again`]: round trips
//! - the rest: one file for each crate whose parsers are called
#![allow(clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod again;
mod bench;
mod boot;
mod input;
mod io;
mod kernel;
mod link;
mod ltsp;
mod machine;
mod messages;
mod mount;
mod page;
mod prefetch;
mod record;
mod requests;
mod scratch;
mod shared;
mod spill;
mod swap;

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its input directories.
    pub name: &'static str,
    /// Runs it. Panics if an assertion fails.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($module:ident: $($name:ident)*;)*) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$($(Target { name: stringify!($name), run: $module::$name },)*)*];
    };
}

targets! {
    bench: bench_report elf http_requests bench_texts pdf;
    boot: boot_files boot_undo;
    io: io_latencies zpool;
    kernel: config journal files_journal kernel_texts mountinfo;
    link: ssh_output ssh_config ltsp;
    ltsp: ltsp_clients metrics_page;
    machine: machine;
    messages: agent_messages mount_messages;
    mount: fanotify fuse_init hot_list ledger;
    page: dash_guard dash_history;
    prefetch: predictor_state prefetch_bytes prefetch_launches prefetch_rows prefetch_store prefetch_trace purdue;
    record: marks recording;
    requests: fuse_requests;
    shared: shared_tier;
    spill: spill;
    swap: swap_texts;
}

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
