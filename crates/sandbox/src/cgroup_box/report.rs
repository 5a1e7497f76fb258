//! The result of a run in a box.

use eke_model::units::Bytes;
use serde::Serialize;

/// A finished run. Counters are of this run alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoxReport {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The budget of the box.
    pub memory: Bytes,
    /// The version of control groups: 1 or 2.
    pub cgroup: u8,
    /// The command's exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// Was the command itself killed for lack of memory, by the kernel or over budget?
    pub oom_killed: bool,
    /// Processes that the kernel killed for lack of memory, plus 1 for a box over budget.
    pub oom_kills: u64,
    /// Was the box killed because it was over budget for more than a second?
    pub over_budget: bool,
    /// Was the box killed because of a signal to the supervisor?
    pub interrupted: bool,
    /// From the start to the end of the command, in seconds.
    pub seconds: f64,
    /// The highest sum of its memory and its share of the compressed swap. It can exceed the budget for a tenth of a second.
    pub peak: Bytes,
    /// Its highest use of swap, uncompressed.
    pub most_swapped: Bytes,
    /// The RAM that it was charged for that. The quotient is the real ratio.
    pub charged_for_most_swapped: Bytes,
    /// Pages that were swapped out and in.
    pub swap: SwapTraffic,
    /// Page faults that waited for swap or a disk.
    pub major_faults: u64,
    /// The time that its processes waited for memory; `None` if the kernel does not count it by group.
    pub pressure: Option<Stall>,
    /// The command's standard output, if captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Notes for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Pages of 4 KiB between memory and swap (zswap included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapTraffic {
    /// The scope of the counters.
    pub scope: Scope,
    /// From swap to memory.
    pub pages_in: u64,
    /// From memory to swap.
    pub pages_out: u64,
}

/// The scope of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The box alone.
    Box,
    /// The whole machine while the box ran: this kernel does not count by group.
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

impl BoxReport {
    /// The exit code for a supervisor that passes it through: the command's own, or 128 and the signal as shells do.
    pub fn exit_code(&self) -> i32 {
        self.exit_code.or(self.signal.map(|s| 128 + s)).unwrap_or(1)
    }

    /// The compression ratio at the highest use of swap; `None` without swap, or with pages of one word alone.
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
        let with = |exit_code, signal| BoxReport { exit_code, signal, ..BoxReport::default() }.exit_code();
        assert_eq!((with(Some(7), None), with(None, Some(9)), with(None, None)), (7, 137, 1));
    }

    #[test]
    fn the_ratio_is_of_what_was_swapped() {
        let report = BoxReport {
            most_swapped: Bytes(300),
            charged_for_most_swapped: Bytes(100),
            ..BoxReport::default()
        };
        assert_eq!((report.ratio(), BoxReport::default().ratio()), (Some(3.0), None));
    }
}
