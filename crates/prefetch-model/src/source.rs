//! The source of trace events, as data for `eke doctor`.

use std::fmt;

/// How launches are traced, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// BPF programs on the kernel's tracepoints: every exec, every page.
    Bpf,
    /// The kernel's process events (netlink), with mapped pages from `/proc/PID/pagemap`.
    Connector,
    /// Polls of `/proc` every few seconds, with mapped pages from `/proc/PID/pagemap`.
    Scan,
}

/// The method that a tracer uses, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The method in use.
    pub way: Way,
    /// Why each better method, best first, is not in use: the attempt and the kernel's answer.
    pub why_not_better: Vec<(Way, String)>,
    /// What this method misses on this kernel, as sentences.
    pub blind: Vec<String>,
}

impl Way {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Way::Bpf => "BPF",
            Way::Connector => "process events",
            Way::Scan => "looks at /proc",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.way.name())?;
        self.why_not_better.iter().try_for_each(|(way, why)| write!(f, "; not {}: {why}", way.name()))?;
        self.blind.iter().try_for_each(|what| write!(f, "; {what}"))
    }
}
