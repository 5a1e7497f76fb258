//! How latencies are measured: by BPF where it loads, from the kernel's averages where not, from ZFS itself for its pools.
//!
//! - [`stat`], [`zpool`]: text to counters, and their readers; [`devices`]: names and numbers
//! - `bpf`: the programs of `bpf/latency.bpf.c`
//! - [`local`]: a sensor in this process; [`remote`]: in a process `eke-io` of its own, so that whoever only shows figures needs no libbpf

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod cost;
pub mod devices;
pub mod groups;
pub mod local;
pub mod remote;
pub mod stat;
pub mod zpool;

use serde::{Deserialize, Serialize};

use crate::figures::{Reading, Window};

/// Why something could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried}: {why}")]
pub struct Refused {
    /// What was tried.
    pub tried: String,
    /// What the kernel said.
    pub why: String,
}

impl Refused {
    /// What was tried, and the answer.
    pub fn new(tried: impl Into<String>, why: impl ToString) -> Self {
        Self { tried: tried.into(), why: why.to_string() }
    }
}

/// By whom requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Not at all.
    #[default]
    Nobody,
    /// By process: the one that asks, which for writeback is a thread of the kernel.
    Process,
    /// By group.
    Cgroup,
}

/// Something that has counters.
pub trait Sense {
    /// `bpf` or `stat`.
    fn name(&self) -> &'static str;
    /// The counters now.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read(&mut self) -> Result<Reading, Refused>;
}

/// Something that tells what happened since it was asked last.
pub trait Windows {
    /// What happened since the last time, or since it began.
    ///
    /// # Errors
    /// Why that cannot be told.
    fn window(&mut self) -> Result<Window, Refused>;
}
