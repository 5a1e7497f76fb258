//! Tracing with BPF on the running kernel: the learned pages are those that programs on a small ext4 touch.
#![cfg(feature = "bpf")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

mod disk_reads;
mod pages;
mod programs;
#[path = "../tracing/mod.rs"]
mod tracing;

use std::collections::BTreeSet;
use std::path::Path;

use eke_linux::Root;
use eke_prefetch_model::{Pages, Span};
use eke_prefetchd::trace::{Observation, TraceMethod, available};
use eke_testkit::real::{SameDisks, skip};
use eke_testkit::wait::wait_for;
use tracing::{Disk, Session};

/// The machine's disks, to compare at the end. `None`, with the reason printed, if this machine cannot run the test.
fn start(test: &str) -> Option<SameDisks> {
    let why = tracing::lacking().or_else(|| available(&Root::host()).err().map(|why| why.to_string()));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    Some(SameDisks::start())
}

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_on_request() {
    tracing::map_on_request();
}

/// Below `root`, the kernel's description without this name, as of an older kernel.
fn older_btf(root: &Path, name: &str) {
    let place = root.join("sys/kernel/btf");
    std::fs::create_dir_all(&place).unwrap();
    let btf = String::from_utf8_lossy(&std::fs::read("/sys/kernel/btf/vmlinux").unwrap()).into_owned();
    std::fs::write(place.join("vmlinux"), btf.replace(name, "")).unwrap();
}

/// This process's BPF programs and links, from its own descriptors, because other processes may trace too.
fn attached() -> (BTreeSet<u32>, usize) {
    let entries = std::fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let infos: Vec<String> = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect();
    let program =
        |info: &String| info.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().parse().ok();
    let links = infos.iter().filter(|info| info.contains("link_type:")).count();
    (infos.iter().filter_map(program).collect(), links)
}

#[test]
fn nothing_stays_attached() {
    let Some(_machine) = start("nothing_stays_attached") else { return };
    let disk = Disk::new();
    // Of a test of this process that only asks what the kernel can trace.
    wait_for("programs of other tests to go", || attached().0.is_empty());
    let mut session = Session::new(TraceMethod::Bpf, &disk);
    let (programs, links) = attached();
    assert!(
        programs.len() >= 4 && links == 3,
        "only exec, exit and fork while nothing is learned: {programs:?} {links}"
    );
    let mut child = tracing::shell(&disk.place(), "exit 0");
    wait_for("a launch that is learned", || {
        session.poll();
        session.learning() > 0
    });
    let without_reads = programs.len() - 1;
    assert_eq!(attached().1, without_reads, "all but that for disks while something is learned");
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    session.until("the launch", |observation| matches!(observation, Observation::Launch(_)).then_some(()));
    assert_eq!(attached().1, 3);
    drop(session);
    assert_eq!(attached().1, 0);
    // the kernel frees programs when no CPU uses them any more
    let loaded = || libbpf_rs::query::ProgInfoIter::default();
    wait_for("the programs to go", || !loaded().any(|program| programs.contains(&program.id)));
}

#[test]
fn without_btf_the_reason_is_reported() {
    let empty = tempfile::tempdir().unwrap();
    let why = available(&Root::at(empty.path())).unwrap_err().to_string();
    assert!(why.contains("sys/kernel/btf/vmlinux"), "{why}");
}

#[test]
fn older_kernels_trace_less_and_report_it() {
    let Some(_machine) = start("older_kernels_trace_less_and_report_it") else { return };
    let older = tempfile::tempdir().unwrap();
    older_btf(older.path(), "btf_trace_mm_filemap_get_pages");
    let limits = available(&Root::at(older.path())).unwrap();
    assert!(limits.len() == 1 && limits[0].contains("reads of what is in memory"), "{limits:?}");
    assert!(!limits[0].contains("page faults"), "{limits:?}");

    older_btf(older.path(), "btf_trace_sched_process_exec");
    let why = available(&Root::at(older.path())).unwrap_err().to_string();
    assert!(why.contains("sched_process_exec"), "{why}");
}
