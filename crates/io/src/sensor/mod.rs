//! Measures latencies: from the kernel's averages in this process, from ZFS for its pools, by BPF in a process `eke-io`.
//!
//! - [`stat`], [`zpool`]: text to counters, and their readers; [`devices`]: names and numbers
//! - [`local`]: a sensor in this process; [`remote`]: in a process `eke-io`, so that `eke` needs no libbpf

pub mod cost;
pub mod devices;
pub mod local;
pub mod remote;
pub mod stat;
pub mod zpool;

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, Window};

/// Why something could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {tried}: {why}")]
pub struct Refused {
    /// The attempt, as a verb with its object.
    pub tried: String,
    /// The answer, mostly the kernel's.
    pub why: String,
}

impl Refused {
    /// An attempt and its answer.
    pub fn new(tried: impl Into<String>, why: impl ToString) -> Self {
        Self { tried: tried.into(), why: why.to_string() }
    }
}

/// What requests are counted by, beside device and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// Nothing.
    #[default]
    None,
    /// The process that submits them; for writeback that is a kernel thread.
    Process,
    /// The control group.
    Cgroup,
}

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SensorOptions {
    /// What requests are counted by.
    pub attribution: Attribution,
    /// Never use BPF.
    pub no_bpf: bool,
    /// Never ask ZFS for its pools: that is a process for each window, which may hang with a pool.
    pub no_pools: bool,
}

/// Something that has counters.
pub trait Sensor {
    /// `bpf` or `stat`.
    fn name(&self) -> &'static str;
    /// Reads the counters.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&mut self) -> Result<Counters, Refused>;
}

/// Something that measures windows.
pub trait WindowSource {
    /// The window since the last call; since the start at the first call.
    ///
    /// # Errors
    /// It cannot be measured.
    fn window(&mut self) -> Result<Window, Refused>;
}
