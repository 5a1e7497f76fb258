//! The run time of the BPF programs, as the kernel counts it.

use std::collections::BTreeMap;
use std::os::fd::{FromRawFd, OwnedFd};

use eke_io::sensor::Refused;
use libbpf_rs::query::ProgInfoIter;

/// While it lives, the kernel counts the run time of BPF programs (`BPF_ENABLE_STATS`, since 5.8). Closing the descriptor ends that, so nothing
/// needs undoing.
#[derive(Debug)]
pub struct RunTimes(#[expect(dead_code, reason = "open: counting ends with it")] OwnedFd);

/// All runs of the programs so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunTime {
    /// Runs of the program at each request's end: requests.
    pub requests: u64,
    /// Nanoseconds of all programs.
    pub run_ns: u64,
}

impl RunTimes {
    /// Starts counting.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn count() -> Result<Self, Refused> {
        #[expect(unsafe_code, reason = "libbpf's call has no safe wrapper")]
        // SAFETY: a number in, a descriptor of our own or a negative number out.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let why = std::io::Error::from_raw_os_error(-fd);
            return Err(Refused::new("have the kernel count what BPF programs cost (Linux 5.8)", why));
        }
        #[expect(unsafe_code, reason = "a descriptor as a plain number")]
        // SAFETY: it was made just now and belongs to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Reads the run time of the sensor's programs that were loaded last, since counting began.
    pub fn read(&self) -> RunTime {
        let mut latest: BTreeMap<String, (u32, u64, u64)> = BTreeMap::new();
        for program in ProgInfoIter::default() {
            let name = program.name.to_string_lossy().into_owned();
            if ["on_start", "on_issue", "on_complete"].contains(&name.as_str()) {
                let found = (program.id, program.run_time_ns, program.run_cnt);
                let known = latest.entry(name).or_insert(found);
                *known = found.max(*known);
            }
        }
        let requests = latest.get("on_complete").map_or(0, |(_, _, count)| *count);
        RunTime { requests, run_ns: latest.values().map(|(_, ns, _)| ns).sum() }
    }
}
