//! The source of trace events, as data for `eke doctor`.

use std::fmt;

/// How launches are traced, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceMethod {
    /// BPF programs on the kernel's tracepoints: every exec, every page.
    Bpf,
    /// The kernel's process events (netlink), with mapped pages from `/proc/PID/pagemap`.
    Connector,
    /// Programs that are opened to be executed (fanotify), with polls of `/proc` for what ended, and mapped pages from `/proc/PID/pagemap`.
    ExecOpens,
    /// Polls of `/proc` every few seconds, with mapped pages from `/proc/PID/pagemap`.
    Scan,
}

/// The method that a tracer uses, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The method in use.
    pub method: TraceMethod,
    /// Why each better method, best first, is not in use: the attempt and the kernel's answer.
    pub why_not_better: Vec<(TraceMethod, String)>,
    /// What this method misses on this kernel, as sentences.
    pub limits: Vec<String>,
}

impl TraceMethod {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            TraceMethod::Bpf => "BPF",
            TraceMethod::Connector => "process events",
            TraceMethod::ExecOpens => "fanotify",
            TraceMethod::Scan => "polls of /proc",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method.name())?;
        self.why_not_better
            .iter()
            .try_for_each(|(method, why)| write!(f, "; not {}: {why}", method.name()))?;
        self.limits.iter().try_for_each(|what| write!(f, "; {what}"))
    }
}
