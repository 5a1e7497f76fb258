//! What a run in a box shows.

use eke_model::units::Bytes;
use serde::Serialize;

/// A finished run. Counters are of this run alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The budget of the box.
    pub memory: Bytes,
    /// The version of control groups that held it: 1 or 2.
    pub cgroup: u8,
    /// The command's exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// Was the command itself killed for want of memory, by the kernel or for being over budget?
    pub oom_killed: bool,
    /// Processes that were killed for want of memory: by the kernel, and 1 for a box that was over budget.
    pub oom_kills: u64,
    /// Was the box killed because it was over budget for more than a second?
    pub over_budget: bool,
    /// Was the box killed because the supervisor was told to end?
    pub interrupted: bool,
    /// From the start to the end of the command, in seconds.
    pub seconds: f64,
    /// The most memory that it used together with its part of the compressed swap. What grows within a tenth of a
    /// second can be over the budget for that long.
    pub peak: Bytes,
    /// The most that it had in swap, uncompressed.
    pub most_swapped: Bytes,
    /// What it was charged for that in RAM. The first by the second is the real ratio.
    pub charged_for_most_swapped: Bytes,
    /// Pages that went to swap and came back.
    pub swap: SwapTraffic,
    /// Page faults that waited for swap or a disk.
    pub major_faults: u64,
    /// The time that its processes waited for memory; `None` where the kernel does not keep it by group.
    pub pressure: Option<Stall>,
    /// The command's standard output, where it was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What else the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Pages of 4 KiB between memory and swap (zswap included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapTraffic {
    /// Whose pages.
    pub scope: Scope,
    /// From swap to memory.
    pub pages_in: u64,
    /// From memory to swap.
    pub pages_out: u64,
}

/// Whose a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The box's alone.
    Box,
    /// The whole machine's while the box ran: this kernel does not count it by group.
    #[default]
    Machine,
}

/// Pressure-stall totals in microseconds (Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// At least one process waited for memory.
    pub some_us: u64,
    /// All waited.
    pub full_us: u64,
}

impl Report {
    /// The exit code for a supervisor that passes it through: the command's own, or 128 and the signal as shells do.
    pub fn exit_code(&self) -> i32 {
        self.exit_code.or(self.signal.map(|s| 128 + s)).unwrap_or(1)
    }

    /// Bytes held for each byte of RAM when most was swapped; `None` if nothing was, or only pages of one word.
    pub fn ratio(&self) -> Option<f64> {
        (self.charged_for_most_swapped.0 > 0)
            .then(|| self.most_swapped.0 as f64 / self.charged_for_most_swapped.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_commands_or_the_signals() {
        let with = |exit_code, signal| Report { exit_code, signal, ..Report::default() }.exit_code();
        assert_eq!((with(Some(7), None), with(None, Some(9)), with(None, None)), (7, 137, 1));
    }

    #[test]
    fn the_ratio_is_of_what_was_swapped() {
        let report =
            Report { most_swapped: Bytes(300), charged_for_most_swapped: Bytes(100), ..Report::default() };
        assert_eq!((report.ratio(), Report::default().ratio()), (Some(3.0), None));
    }
}
